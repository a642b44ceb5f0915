"""Resolves names to variables, with all values assigned to each variable.

In: the tree of a script. Out: `LuaScopes`. Never: evaluates; `values` lists every assignment anywhere in the script.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from argosy.gitops.health.lua.syntax.tree import (
    Assign,
    Block,
    Expression,
    For,
    ForIn,
    Function,
    Local,
    LocalFunction,
    Name,
    Node,
    Repeat,
)


@dataclass(slots=True, eq=False)
class Variable:
    """`values` has an entry per assignment; None if the value is not an expression of the script."""

    name: str
    is_global: bool
    values: list[Expression | None] = field(default_factory=list)
    names: list[Name] = field(default_factory=list)  # all occurrences, including its declaration and assignments

    def __repr__(self) -> str:
        return f"<{'global' if self.is_global else 'local'} {self.name}>"


@dataclass(frozen=True, slots=True)
class Scopes:
    variables: dict[Name, Variable]
    globals: dict[str, Variable]

    def is_global(self, node: Node, name: str) -> bool:
        return isinstance(node, Name) and node.name == name and self.variables[node].is_global


def resolve(script: Block) -> Scopes:
    resolver = _Resolver()
    resolver.block(script)
    return Scopes(resolver.variables, resolver.globals)


def children(node: Node) -> Iterator[Node]:
    """Yield the direct children, in source order."""
    for name in _slots(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from value


def walk(node: Node) -> Iterator[Node]:
    """Yield the node and its descendants, in source order."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(children(node))))


_FIELDS: dict[type[Node], tuple[str, ...]] = {}


def _slots(kind: type[Node]) -> tuple[str, ...]:
    if kind not in _FIELDS:
        names = getattr(kind, "__dataclass_fields__", {})
        _FIELDS[kind] = tuple(name for name in names if name not in ("line", "last_line"))
    return _FIELDS[kind]


class _Resolver:
    def __init__(self) -> None:
        self.variables: dict[Name, Variable] = {}
        self.globals: dict[str, Variable] = {}
        self._open: list[dict[str, Variable]] = []

    def _declare(self, name: Name, value: Expression | None) -> None:
        variable = Variable(name.name, False, [value], [name])
        self._open[-1][name.name] = variable
        self.variables[name] = variable

    def _use(self, name: Name) -> Variable:
        for scope in reversed(self._open):
            if (variable := scope.get(name.name)) is not None:
                break
        else:
            variable = self.globals.setdefault(name.name, Variable(name.name, True))
        variable.names.append(name)
        self.variables[name] = variable
        return variable

    def block(self, block: Block, names: tuple[Name, ...] = (), condition: Expression | None = None) -> None:
        """Visit a block as a scope with these names; the condition of `repeat` can see its locals."""
        self._open.append({})
        for name in names:
            self._declare(name, None)
        for statement in block.statements:
            self.visit(statement)
        if condition is not None:
            self.visit(condition)
        self._open.pop()

    def visit(self, node: Node) -> None:
        match node:
            case Name():
                self._use(node)
            case Block():
                self.block(node)
            case Function():
                self.block(node.body, node.parameters)
            case Local():
                self._all(node.values)
                for place, name in enumerate(node.names):
                    self._declare(name, value_at(node.values, place))
            case LocalFunction():
                self._declare(node.name, node.function)
                self.visit(node.function)
            case Assign():
                self._all(node.values)
                for place, target in enumerate(node.targets):
                    self.visit(target)
                    if isinstance(target, Name):
                        self.variables[target].values.append(value_at(node.values, place))
            case For():
                self._all(node.bounds)
                self.block(node.body, (node.name,))
            case ForIn():
                self._all(node.values)
                self.block(node.body, node.names)
            case Repeat():
                self.block(node.body, (), node.condition)
            case _:
                self._all(tuple(children(node)))

    def _all(self, nodes: tuple[Node, ...]) -> None:
        for node in nodes:
            self.visit(node)


def value_at(values: tuple[Expression, ...], place: int) -> Expression | None:
    """Return the expression for the variable at this position of an assignment; None if there are fewer values."""
    return values[place] if place < len(values) else None
