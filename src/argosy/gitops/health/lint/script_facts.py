"""Facts about a script that hold on all execution paths, and findings collected from all of them.

In: the scopes of a script. Out: the functions that can be followed, the variables that cannot be tracked. Never:
follows a path.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NoReturn

from argosy.gitops.health.lint.flow_state import Place, Result, State
from argosy.gitops.health.lua.syntax.scopes import Scopes, Variable, walk
from argosy.gitops.health.lua.syntax.tree import Assign, Block, Call, Function, Index, Name, Node, Return

MOST_CALLS = 5  # nested

# Functions that do not change their arguments.
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
    """Maximum number of separate paths at one point of a script; lower in loops, which are analysed repeatedly."""

    ways: int
    ways_in_loops: int
    steps: int


class GaveUp(Exception):
    """The script is too complex to analyse."""


@dataclass(slots=True)
class Frame:
    """The function that a path is in; None is the script itself."""

    function: Function | None = None
    returned: list[tuple[Return, State, list[Result], bool]] = field(default_factory=list)
    broken: list[list[State]] = field(default_factory=list)  # by loop, the innermost last
    waiting: dict[str, list[State]] = field(default_factory=dict)  # by label


@dataclass(frozen=True, slots=True)
class NilUse:
    """A part of `obj` that may be nil was indexed, iterated, counted or concatenated."""

    line: int
    names: tuple[str, ...]  # the location: obj, status, phase
    how: str
    is_element: bool


class Ground:
    def __init__(self, script: Block, scopes: Scopes, limits: Limits, missing: Collection[Variable]) -> None:
        self.scopes = scopes
        self.limits = limits
        self.missing = missing  # globals that are never set: certainly nil
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
        """Return the name of the library function, or an empty string."""
        if isinstance(node, Name):
            variable = self.scopes.variables[node]
            if variable.is_global and not variable.values:
                return node.name
        return ""

    def is_of_subject(self, place: Place, state: State) -> bool:
        return place[0] is self.subject or place[0] in state.elements

    def note_nil(self, result: Result, state: State, line: int, how: str) -> State:
        """Record a use that fails if the result is nil; once per path."""
        place = result.place
        if place is None or len(place) < 2 or not self.is_of_subject(place, state) or place in state.used:
            return state
        if result.value.may_be(("nil", None)):
            is_element = place[0] is not self.subject
            names = (place[0].name, *place[1:])
            self.nil_uses.setdefault(NilUse(line, names, how, is_element))
        return state.using(place)


def _followed(nodes: list[Node], scopes: Scopes) -> dict[Variable, Function]:
    """Return the variables that hold one function of the script and are only called."""
    called = {node.function for node in nodes if isinstance(node, Call)}
    found = {}
    for variable in dict.fromkeys(scopes.variables.values()):
        function = variable.values[0] if len(variable.values) == 1 else None
        if isinstance(function, Function) and sum(name not in called for name in variable.names) == 1:
            found[variable] = function
    return found


def inner_variables(function: Function, scopes: Scopes) -> frozenset[Variable]:
    """Return the parameters and locals of the function and of its inner functions."""
    inside = {node for node in walk(function) if isinstance(node, Name)}
    variables = {scopes.variables[name] for name in inside}
    return frozenset(variable for variable in variables if not variable.is_global and variable.names[0] in inside)


def _changed_unseen(nodes: list[Node], scopes: Scopes, followed: set[Function]) -> set[Variable]:
    """Return the variables that are changed by functions whose calls cannot be followed."""
    loose: set[Variable] = set()
    for node in nodes:
        if isinstance(node, Function) and node not in followed:
            loose |= changed_by(node, scopes)
    return loose


def changed_by(function: Function, scopes: Scopes) -> set[Variable]:
    """Return the outer variables that a function assigns, or whose fields it assigns."""
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
