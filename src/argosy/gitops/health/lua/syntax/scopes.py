"""Resolves names to variables, with all values assigned to each variable.

In: the tree of a script. Out: `LuaScopes`. Never: evaluates; `values` lists every assignment anywhere in the script.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from argosy.gitops.health.lua.syntax.tree import (
    AssignStatement,
    FunctionExpression,
    GenericFor,
    LocalFunction,
    LocalStatement,
    LuaBlock,
    LuaExpression,
    LuaNode,
    NameReference,
    NumericFor,
    RepeatLoop,
)


@dataclass(slots=True, eq=False)
class LuaVariable:
    """`values` has an entry per assignment; None if the value is not an expression of the script."""

    name: str
    is_global: bool
    values: list[LuaExpression | None] = field(default_factory=list)
    names: list[NameReference] = field(
        default_factory=list
    )  # all occurrences, including its declaration and assignments

    def __repr__(self) -> str:
        return f"<{'global' if self.is_global else 'local'} {self.name}>"


@dataclass(frozen=True, slots=True)
class LuaScopes:
    variables: dict[NameReference, LuaVariable]
    globals: dict[str, LuaVariable]

    def is_global(self, node: LuaNode, name: str) -> bool:
        return isinstance(node, NameReference) and node.name == name and self.variables[node].is_global


def resolve_scopes(script: LuaBlock) -> LuaScopes:
    resolver = _Resolver()
    resolver.visit_block(script)
    return LuaScopes(resolver.variables, resolver.globals)


def list_children(node: LuaNode) -> Iterator[LuaNode]:
    """Yield the direct children, in source order."""
    for name in _child_fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, LuaNode):
            yield value
        elif isinstance(value, tuple):
            yield from value


def walk_tree(node: LuaNode) -> Iterator[LuaNode]:
    """Yield the node and its descendants, in source order."""
    pending = [node]
    while pending:
        node = pending.pop()
        yield node
        pending.extend(reversed(list(list_children(node))))


_FIELDS_BY_TYPE: dict[type[LuaNode], tuple[str, ...]] = {}


def _child_fields(node_type: type[LuaNode]) -> tuple[str, ...]:
    if node_type not in _FIELDS_BY_TYPE:
        names = getattr(node_type, "__dataclass_fields__", {})
        _FIELDS_BY_TYPE[node_type] = tuple(name for name in names if name not in ("line", "last_line"))
    return _FIELDS_BY_TYPE[node_type]


class _Resolver:
    def __init__(self) -> None:
        self.variables: dict[NameReference, LuaVariable] = {}
        self.globals: dict[str, LuaVariable] = {}
        self._scope_stack: list[dict[str, LuaVariable]] = []

    def _declare(self, name: NameReference, value: LuaExpression | None) -> None:
        variable = LuaVariable(name.name, False, [value], [name])
        self._scope_stack[-1][name.name] = variable
        self.variables[name] = variable

    def _resolve_name(self, name: NameReference) -> LuaVariable:
        for scope in reversed(self._scope_stack):
            if (variable := scope.get(name.name)) is not None:
                break
        else:
            variable = self.globals.setdefault(name.name, LuaVariable(name.name, True))
        variable.names.append(name)
        self.variables[name] = variable
        return variable

    def visit_block(
        self, block: LuaBlock, names: tuple[NameReference, ...] = (), condition: LuaExpression | None = None
    ) -> None:
        """Visit a block as a scope with these names; the condition of `repeat` can see its locals."""
        self._scope_stack.append({})
        for name in names:
            self._declare(name, None)
        for statement in block.statements:
            self.visit(statement)
        if condition is not None:
            self.visit(condition)
        self._scope_stack.pop()

    def visit(self, node: LuaNode) -> None:
        match node:
            case NameReference():
                self._resolve_name(node)
            case LuaBlock():
                self.visit_block(node)
            case FunctionExpression():
                self.visit_block(node.body, node.parameters)
            case LocalStatement():
                self._visit_all(node.values)
                for position, name in enumerate(node.names):
                    self._declare(name, find_assigned_value(node.values, position))
            case LocalFunction():
                self._declare(node.name, node.function)
                self.visit(node.function)
            case AssignStatement():
                self._visit_all(node.values)
                for position, target in enumerate(node.targets):
                    self.visit(target)
                    if isinstance(target, NameReference):
                        self.variables[target].values.append(find_assigned_value(node.values, position))
            case NumericFor():
                self._visit_all(node.bounds)
                self.visit_block(node.body, (node.name,))
            case GenericFor():
                self._visit_all(node.values)
                self.visit_block(node.body, node.names)
            case RepeatLoop():
                self.visit_block(node.body, (), node.condition)
            case _:
                self._visit_all(tuple(list_children(node)))

    def _visit_all(self, nodes: tuple[LuaNode, ...]) -> None:
        for node in nodes:
            self.visit(node)


def find_assigned_value(values: tuple[LuaExpression, ...], position: int) -> LuaExpression | None:
    """Return the expression for the variable at this position of an assignment; None if there are fewer values."""
    return values[position] if position < len(values) else None
