"""Nodes of the Lua syntax tree.

In: nothing. Out: frozen nodes with the line they start on. Nodes are compared by identity, so that a node can be a key.
Never: has semantics. Chains of the same `and`, `or` or `..` are one flat node, and parentheses have no node: neither
matters for the analyses.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    line: int


# -- expressions ---------------------------------------------------------------------------------------------------


class Expression(Node):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Expression):
    """nil, true, false, or a number (None for one that Python cannot parse, such as LuaJIT's `1LL`)."""

    value: bool | float | None
    is_number: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class String(Expression):
    value: str


@dataclass(frozen=True, slots=True, eq=False)
class Vararg(Expression):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Name(Expression):
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Index(Expression):
    """`base[key]`; the key of `base.key` is a String, as in Lua itself."""

    base: Expression
    key: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expression):
    function: Expression
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Method(Expression):
    """`base:name(arguments)`."""

    base: Expression
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Logical(Expression):
    """`a and b and c`, or `a or b or c`."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Concat(Expression):
    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expression):
    """Arithmetic and comparison."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expression):
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Field(Node):
    """One entry of a table constructor; `key` is None for an entry by position."""

    key: Expression | None
    value: Expression


@dataclass(frozen=True, slots=True, eq=False)
class Table(Expression):
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Function(Expression):
    parameters: tuple[Name, ...]
    is_vararg: bool
    body: Block


# -- statements ----------------------------------------------------------------------------------------------------


class Statement(Node):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Block(Node):
    """`last_line` is the line of the keyword that ends it."""

    statements: tuple[Statement, ...]
    last_line: int


@dataclass(frozen=True, slots=True, eq=False)
class Local(Statement):
    names: tuple[Name, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LocalFunction(Statement):
    name: Name
    function: Function


@dataclass(frozen=True, slots=True, eq=False)
class Assign(Statement):
    """Also `function a.b.c() … end`, which assigns a function."""

    targets: tuple[Name | Index, ...]
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Do(Statement):
    """A call as a statement."""

    call: Call | Method


@dataclass(frozen=True, slots=True, eq=False)
class Scope(Statement):
    """`do … end`."""

    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class Clause(Node):
    condition: Expression
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class If(Statement):
    clauses: tuple[Clause, ...]
    otherwise: Block | None


@dataclass(frozen=True, slots=True, eq=False)
class While(Statement):
    condition: Expression
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class Repeat(Statement):
    body: Block
    condition: Expression


@dataclass(frozen=True, slots=True, eq=False)
class For(Statement):
    """Numeric loop: start, stop and optional step."""

    name: Name
    bounds: tuple[Expression, ...]
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class ForIn(Statement):
    names: tuple[Name, ...]
    values: tuple[Expression, ...]
    body: Block


@dataclass(frozen=True, slots=True, eq=False)
class Return(Statement):
    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Break(Statement):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class Goto(Statement):
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class Label(Statement):
    name: str
