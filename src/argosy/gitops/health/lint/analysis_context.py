"""Facts about a script that hold on all execution paths, and findings collected from all of them.

In: the scopes of a script. Out: the functions that can be followed, the variables that cannot be tracked. Never:
follows a path.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NoReturn

from argosy.gitops.health.lint.flow_state import ExpressionResult, FlowState, Location
from argosy.gitops.health.lua.syntax.scopes import LuaScopes, LuaVariable, walk_tree
from argosy.gitops.health.lua.syntax.tree import (
    AssignStatement,
    FunctionCall,
    FunctionExpression,
    IndexExpression,
    LuaBlock,
    LuaNode,
    NameReference,
    ReturnStatement,
)

MAX_CALL_DEPTH = 5  # nested

# Functions that do not change their arguments.
PURE_FUNCTIONS = frozenset(
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
class AnalysisLimits:
    """Maximum number of separate paths at one point of a script; lower in loops, which are analysed repeatedly."""

    max_paths: int
    max_paths_in_loops: int
    max_steps: int


class AnalysisAborted(Exception):
    """The script is too complex to analyse."""


@dataclass(slots=True)
class CallFrame:
    """The function that a path is in; None is the script itself."""

    function: FunctionExpression | None = None
    returned_results: list[tuple[ReturnStatement, FlowState, list[ExpressionResult], bool]] = field(
        default_factory=list
    )
    break_states: list[list[FlowState]] = field(default_factory=list)  # by loop, the innermost last
    goto_states: dict[str, list[FlowState]] = field(default_factory=dict)  # by label


@dataclass(frozen=True, slots=True)
class NilUse:
    """A part of `obj` that may be nil was indexed, iterated, counted or concatenated."""

    line: int
    names: tuple[str, ...]  # the location: obj, status, phase
    use_kind: str
    is_element: bool


class ScriptAnalysis:
    def __init__(
        self, script: LuaBlock, scopes: LuaScopes, limits: AnalysisLimits, missing: Collection[LuaVariable]
    ) -> None:
        self.scopes = scopes
        self.limits = limits
        self.missing_globals = missing  # globals that are never set: certainly nil
        self.subject = scopes.globals.get("obj")
        self.frames = [CallFrame()]
        self.nil_uses: dict[NilUse, None] = {}
        self._steps = 0
        nodes = list(walk_tree(script))
        self.functions = _find_followable_functions(nodes, scopes)
        self.untracked = _find_untracked_variables(nodes, scopes, set(self.functions.values()))
        self._changed_variables: dict[FunctionExpression, set[LuaVariable]] = {}
        self.inner_variables = {
            function: find_inner_variables(function, scopes) for function in self.functions.values()
        }

    def count_step(self, state: FlowState) -> None:
        self._steps += 1 + len(state.values) // 32  # a state is copied with every change
        if self._steps > self.limits.max_steps:
            self.abort()

    def abort(self) -> NoReturn:
        raise AnalysisAborted

    def list_changed_variables(self, function: FunctionExpression) -> set[LuaVariable]:
        if function not in self._changed_variables:
            self._changed_variables[function] = find_changed_variables(function, self.scopes)
        return self._changed_variables[function]

    def find_builtin(self, node: LuaNode) -> str:
        """Return the name of the library function, or an empty string."""
        if isinstance(node, NameReference):
            variable = self.scopes.variables[node]
            if variable.is_global and not variable.values:
                return node.name
        return ""

    def is_part_of_object(self, location: Location, state: FlowState) -> bool:
        return location[0] is self.subject or location[0] in state.elements

    def record_nil_use(self, result: ExpressionResult, state: FlowState, line: int, use_kind: str) -> FlowState:
        """Record a use that fails if the result is nil; once per path."""
        location = result.location
        if (
            location is None
            or len(location) < 2
            or not self.is_part_of_object(location, state)
            or location in state.indexed
        ):
            return state
        if result.value.may_be(("nil", None)):
            is_element = location[0] is not self.subject
            names = (location[0].name, *location[1:])
            self.nil_uses.setdefault(NilUse(line, names, use_kind, is_element))
        return state.mark_indexed(location)


def _find_followable_functions(nodes: list[LuaNode], scopes: LuaScopes) -> dict[LuaVariable, FunctionExpression]:
    """Return the variables that hold one function of the script and are only called."""
    called = {node.function for node in nodes if isinstance(node, FunctionCall)}
    functions = {}
    for variable in dict.fromkeys(scopes.variables.values()):
        function = variable.values[0] if len(variable.values) == 1 else None
        if isinstance(function, FunctionExpression) and sum(name not in called for name in variable.names) == 1:
            functions[variable] = function
    return functions


def find_inner_variables(function: FunctionExpression, scopes: LuaScopes) -> frozenset[LuaVariable]:
    """Return the parameters and locals of the function and of its inner functions."""
    inside = {node for node in walk_tree(function) if isinstance(node, NameReference)}
    variables = {scopes.variables[name] for name in inside}
    return frozenset(variable for variable in variables if not variable.is_global and variable.names[0] in inside)


def _find_untracked_variables(
    nodes: list[LuaNode], scopes: LuaScopes, followed: set[FunctionExpression]
) -> set[LuaVariable]:
    """Return the variables that are changed by functions whose calls cannot be followed."""
    untracked: set[LuaVariable] = set()
    for node in nodes:
        if isinstance(node, FunctionExpression) and node not in followed:
            untracked |= find_changed_variables(node, scopes)
    return untracked


def find_changed_variables(function: FunctionExpression, scopes: LuaScopes) -> set[LuaVariable]:
    """Return the outer variables that a function assigns, or whose fields it assigns."""
    inside = set(walk_tree(function))
    changed = set()
    for node in inside:
        for target in node.targets if isinstance(node, AssignStatement) else ():
            root: LuaNode = target
            while isinstance(root, IndexExpression):
                root = root.base
            if isinstance(root, NameReference):
                variable = scopes.variables[root]
                if variable.is_global or variable.names[0] not in inside:
                    changed.add(variable)
    return changed
