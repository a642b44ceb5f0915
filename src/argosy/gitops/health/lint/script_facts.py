"""What stays the same on every way through a script, and what all ways add to.

In: a script's scopes. Out: which functions can be followed into, which variables cannot be followed. Never: walks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NoReturn

from argosy.gitops.health.lint.flow_state import Place, Result, State
from argosy.gitops.health.lua.syntax.scopes import Scopes, Variable, walk
from argosy.gitops.health.lua.syntax.tree import Assign, Block, Call, Function, Index, Name, Node, Return

MOST_CALLS = 5  # one inside the other

# Functions that leave the tables they are given as they were.
HARMLESS = frozenset(
    {
        "assert",
        "ipairs",
        "next",
        "pairs",
        "print",
        "rawequal",
        "rawget",
        "select",
        "tonumber",
        "tostring",
        "type",
        "unpack",
    }
)


@dataclass(frozen=True, slots=True)
class Limits:
    """How many ways are kept apart at one point of a script: fewer in a loop, which is gone through many times."""

    ways: int
    ways_in_loops: int
    steps: int


class GaveUp(Exception):
    """The script is too winding to be followed."""


@dataclass(slots=True)
class Frame:
    """A function that a way is in; None is the script itself."""

    function: Function | None = None
    returned: list[tuple[Return, State, list[Result], bool]] = field(default_factory=list)
    broken: list[list[State]] = field(default_factory=list)  # by loop, the innermost last
    waiting: dict[str, list[State]] = field(default_factory=dict)  # by label


@dataclass(frozen=True, slots=True)
class NilUse:
    """Something of `obj` that may be nil was indexed, iterated, counted or joined into a text."""

    line: int
    names: tuple[str, ...]  # how the place reads: obj, status, phase
    how: str
    is_element: bool


class Ground:
    def __init__(self, script: Block, scopes: Scopes, limits: Limits, missing: Collection[Variable]) -> None:
        self.scopes = scopes
        self.limits = limits
        self.missing = missing  # globals that nobody ever sets: certainly nil
        self.subject = scopes.globals.get("obj")
        self.frames = [Frame()]
        self.nil_uses: dict[NilUse, None] = {}
        self._steps = 0
        nodes = list(walk(script))
        self.functions = _followed(nodes, scopes)
        self.loose = _changed_unseen(nodes, scopes, set(self.functions.values()))
        self._changed: dict[Function, set[Variable]] = {}
        self.inner = {function: inner_variables(function, scopes) for function in self.functions.values()}

    def step(self, state: State) -> None:
        self._steps += 1 + len(state.values) // 32  # a state is copied with every change
        if self._steps > self.limits.steps:
            self.give_up()

    def give_up(self) -> NoReturn:
        raise GaveUp

    def changed_by(self, function: Function) -> set[Variable]:
        if function not in self._changed:
            self._changed[function] = changed_by(function, self.scopes)
        return self._changed[function]

    def builtin(self, node: Node) -> str:
        """The name of the library function that a name stands for, or nothing."""
        if isinstance(node, Name):
            variable = self.scopes.variables[node]
            if variable.is_global and not variable.values:
                return node.name
        return ""

    def is_of_subject(self, place: Place, state: State) -> bool:
        return place[0] is self.subject or place[0] in state.elements

    def note_nil(self, result: Result, state: State, line: int, how: str) -> State:
        """A use that fails where the result is nil; on this way it is noted once."""
        place = result.place
        if place is None or len(place) < 2 or not self.is_of_subject(place, state) or place in state.used:
            return state
        if result.value.may_be(("nil", None)):
            is_element = place[0] is not self.subject
            names = (place[0].name, *place[1:])
            self.nil_uses.setdefault(NilUse(line, names, how, is_element))
        return state.using(place)


def _followed(nodes: list[Node], scopes: Scopes) -> dict[Variable, Function]:
    """Variables that are one function of the script, and are only ever called."""
    called = {node.function for node in nodes if isinstance(node, Call)}
    found = {}
    for variable in dict.fromkeys(scopes.variables.values()):
        function = variable.values[0] if len(variable.values) == 1 else None
        if isinstance(function, Function) and sum(name not in called for name in variable.names) == 1:
            found[variable] = function
    return found


def inner_variables(function: Function, scopes: Scopes) -> frozenset[Variable]:
    """Its parameters and locals, and those of the functions in it."""
    inside = {node for node in walk(function) if isinstance(node, Name)}
    variables = {scopes.variables[name] for name in inside}
    return frozenset(variable for variable in variables if not variable.is_global and variable.names[0] in inside)


def _changed_unseen(nodes: list[Node], scopes: Scopes, followed: set[Function]) -> set[Variable]:
    """Variables that a function changes of which nobody knows when it is called."""
    loose: set[Variable] = set()
    for node in nodes:
        if isinstance(node, Function) and node not in followed:
            loose |= changed_by(node, scopes)
    return loose


def changed_by(function: Function, scopes: Scopes) -> set[Variable]:
    """The variables around a function that it assigns to, or into."""
    inside = set(walk(function))
    changed = set()
    for node in inside:
        for target in node.targets if isinstance(node, Assign) else ():
            root: Node = target
            while isinstance(root, Index):
                root = root.base
            if isinstance(root, Name):
                variable = scopes.variables[root]
                if variable.is_global or variable.names[0] not in inside:
                    changed.add(variable)
    return changed
