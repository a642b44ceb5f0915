"""Nodes of the Lua syntax tree.

In: nothing. Out: frozen nodes with the line they start on. Nodes are compared by identity, so that a node can be a key.
Never: has semantics. Chains of the same `and`, `or` or `..` are one flat node, and parentheses have no node: neither
matters for the analyses.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class LuaNode:
    line: int


# -- expressions ---------------------------------------------------------------------------------------------------


class LuaExpression(LuaNode):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class LuaConstant(LuaExpression):
    """nil, true, false, or a number (None for one that Python cannot parse, such as LuaJIT's `1LL`)."""

    value: bool | float | None
    is_number: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class StringLiteral(LuaExpression):
    value: str


@dataclass(frozen=True, slots=True, eq=False)
class Vararg(LuaExpression):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class NameReference(LuaExpression):
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class IndexExpression(LuaExpression):
    """`base[key]`; the key of `base.key` is a String, as in Lua itself."""

    base: LuaExpression
    key: LuaExpression


@dataclass(frozen=True, slots=True, eq=False)
class FunctionCall(LuaExpression):
    function: LuaExpression
    arguments: tuple[LuaExpression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class MethodCall(LuaExpression):
    """`base:name(arguments)`."""

    base: LuaExpression
    name: str
    arguments: tuple[LuaExpression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LogicalExpression(LuaExpression):
    """`a and b and c`, or `a or b or c`."""

    operator: str
    operands: tuple[LuaExpression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class ConcatExpression(LuaExpression):
    parts: tuple[LuaExpression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BinaryExpression(LuaExpression):
    """Arithmetic and comparison."""

    operator: str
    left: LuaExpression
    right: LuaExpression


@dataclass(frozen=True, slots=True, eq=False)
class UnaryExpression(LuaExpression):
    operator: str
    operand: LuaExpression


@dataclass(frozen=True, slots=True, eq=False)
class TableField(LuaNode):
    """One entry of a table constructor; `key` is None for an entry by position."""

    key: LuaExpression | None
    value: LuaExpression


@dataclass(frozen=True, slots=True, eq=False)
class TableConstructor(LuaExpression):
    fields: tuple[TableField, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FunctionExpression(LuaExpression):
    parameters: tuple[NameReference, ...]
    is_vararg: bool
    body: LuaBlock


# -- statements ----------------------------------------------------------------------------------------------------


class LuaStatement(LuaNode):
    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class LuaBlock(LuaNode):
    """`last_line` is the line of the keyword that ends it."""

    statements: tuple[LuaStatement, ...]
    last_line: int


@dataclass(frozen=True, slots=True, eq=False)
class LocalStatement(LuaStatement):
    names: tuple[NameReference, ...]
    values: tuple[LuaExpression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class LocalFunction(LuaStatement):
    name: NameReference
    function: FunctionExpression


@dataclass(frozen=True, slots=True, eq=False)
class AssignStatement(LuaStatement):
    """Also `function a.b.c() … end`, which assigns a function."""

    targets: tuple[NameReference | IndexExpression, ...]
    values: tuple[LuaExpression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CallStatement(LuaStatement):
    """A call as a statement."""

    call: FunctionCall | MethodCall


@dataclass(frozen=True, slots=True, eq=False)
class DoBlock(LuaStatement):
    """`do … end`."""

    body: LuaBlock


@dataclass(frozen=True, slots=True, eq=False)
class IfClause(LuaNode):
    condition: LuaExpression
    body: LuaBlock


@dataclass(frozen=True, slots=True, eq=False)
class IfStatement(LuaStatement):
    clauses: tuple[IfClause, ...]
    otherwise: LuaBlock | None


@dataclass(frozen=True, slots=True, eq=False)
class WhileLoop(LuaStatement):
    condition: LuaExpression
    body: LuaBlock


@dataclass(frozen=True, slots=True, eq=False)
class RepeatLoop(LuaStatement):
    body: LuaBlock
    condition: LuaExpression


@dataclass(frozen=True, slots=True, eq=False)
class NumericFor(LuaStatement):
    """Numeric loop: start, stop and optional step."""

    name: NameReference
    bounds: tuple[LuaExpression, ...]
    body: LuaBlock


@dataclass(frozen=True, slots=True, eq=False)
class GenericFor(LuaStatement):
    names: tuple[NameReference, ...]
    values: tuple[LuaExpression, ...]
    body: LuaBlock


@dataclass(frozen=True, slots=True, eq=False)
class ReturnStatement(LuaStatement):
    values: tuple[LuaExpression, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BreakStatement(LuaStatement):
    pass


@dataclass(frozen=True, slots=True, eq=False)
class GotoStatement(LuaStatement):
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class LabelStatement(LuaStatement):
    name: str
