"""Parses Lua expressions.

In: tokens. Out: expression nodes. Never: nests deeper than `MAX_DEPTH`, so that code may walk the tree recursively.
"""

from __future__ import annotations

from typing import NoReturn

from argosy.gitops.health.lua.syntax.lexer import (
    END_TOKEN,
    NAME_TOKEN,
    NUMBER_TOKEN,
    STRING_TOKEN,
    LuaSyntaxError,
    LuaTokens,
)
from argosy.gitops.health.lua.syntax.tree import (
    BinaryExpression,
    ConcatExpression,
    FunctionCall,
    FunctionExpression,
    IndexExpression,
    LogicalExpression,
    LuaBlock,
    LuaConstant,
    LuaExpression,
    MethodCall,
    NameReference,
    StringLiteral,
    TableConstructor,
    TableField,
    UnaryExpression,
    Vararg,
)

MAX_DEPTH = 100

# Precedence of binary operators; `..` and `^` are right-associative.
_PRECEDENCE = {
    "or": 1, "and": 2, "<": 3, ">": 3, "<=": 3, ">=": 3, "~=": 3, "==": 3, "..": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "%": 6, "^": 8,
}  # fmt: skip
_UNARY_PRECEDENCE = 7
_FLAT_OPERATORS = {"or", "and", ".."}


class ExpressionParser:
    """Parser state: the position in the token list."""

    def __init__(self, tokens: LuaTokens) -> None:
        self.kinds, self.values, self.lines = tokens.kinds, tokens.values, tokens.lines
        self.position = 0
        self.depth = 0
        self.varargs = [True]  # for each enclosing function: True if `...` may be used
        self.in_parentheses = False  # True if the last suffixed expression was a bare `( … )`

    # -- tokens --

    @property
    def kind(self) -> str:
        return self.kinds[self.position]

    @property
    def line(self) -> int:
        return self.lines[self.position]

    def accept(self, kind: str) -> bool:
        if self.kinds[self.position] != kind:
            return False
        self.position += 1
        return True

    def expect(self, kind: str) -> str:
        if self.kinds[self.position] != kind:
            self.fail(f"{kind!r} expected")
        self.position += 1
        return self.values[self.position - 1]

    def expect_closing(self, kind: str, opener: str, line: int) -> None:
        if not self.accept(kind):
            since = f" (to close {opener!r} at line {line})" if line != self.line else ""
            self.fail(f"{kind!r} expected{since}")

    def fail(self, message: str, line: int = 0) -> NoReturn:
        value = self.values[self.position]
        near = value if len(value) <= 40 else f"{value[:37]}..."
        raise LuaSyntaxError(line or self.line, f"{message} near '{near}'")

    def add_depth(self, levels: int) -> None:
        self.depth += levels
        if self.depth > MAX_DEPTH:
            raise LuaSyntaxError(self.line, f"nested deeper than {MAX_DEPTH} levels; split it up")

    # -- expressions --

    def parse_expression(self, min_precedence: int = 0) -> LuaExpression:
        self.add_depth(1)
        depth = self.depth
        left = self._parse_operand()
        while (precedence := _PRECEDENCE.get(operator := self.kinds[self.position], 0)) > min_precedence:
            line = self.line
            if operator in _FLAT_OPERATORS:
                left = self._parse_flat(left, operator, precedence)
            else:
                self.add_depth(1)  # left-associative: the tree grows one level per operator
                self.position += 1
                right = self.parse_expression(precedence - 1 if operator == "^" else precedence)
                left = BinaryExpression(line, operator, left, right)
        self.depth = depth - 1
        return left

    def _parse_flat(self, first_operand: LuaExpression, operator: str, precedence: int) -> LuaExpression:
        line, operands = self.line, [first_operand]
        while self.accept(operator):
            operands.append(self.parse_expression(precedence))
        return (
            ConcatExpression(line, tuple(operands))
            if operator == ".."
            else LogicalExpression(line, operator, tuple(operands))
        )

    def _parse_operand(self) -> LuaExpression:
        kind, line = self.kind, self.line
        if kind in ("not", "-", "#"):
            self.position += 1
            return UnaryExpression(line, kind, self.parse_expression(_UNARY_PRECEDENCE))
        if kind in _CONSTANTS:
            self.position += 1
            return LuaConstant(line, _CONSTANTS[kind])
        if kind == NUMBER_TOKEN:
            return LuaConstant(line, _as_float(self.expect(NUMBER_TOKEN)), is_number=True)
        if kind == STRING_TOKEN:
            return StringLiteral(line, self.expect(STRING_TOKEN))
        if kind == "...":
            if not self.varargs[-1]:
                self.fail("cannot use '...' outside a vararg function")
            self.position += 1
            return Vararg(line)
        if kind == "{":
            return self.parse_table()
        if self.accept("function"):
            return self.parse_function(line)
        return self.parse_suffixed()

    def parse_expressions(self) -> tuple[LuaExpression, ...]:
        parsed = [self.parse_expression()]
        while self.accept(","):
            parsed.append(self.parse_expression())
        return tuple(parsed)

    def parse_suffixed(self) -> LuaExpression:
        """Parse a name or `( … )` with all following index and call suffixes."""
        depth = self.depth
        node = self._parse_primary()
        while True:
            kind, line = self.kind, self.line
            if kind == ".":
                self.position += 1
                node = IndexExpression(line, node, StringLiteral(self.line, self.expect(NAME_TOKEN)))
            elif kind == "[":
                self.position += 1
                node = IndexExpression(line, node, self.parse_expression())
                self.expect("]")
            elif kind == ":":
                self.position += 1
                name = self.expect(NAME_TOKEN)
                node = MethodCall(line, node, name, self.parse_arguments())
            elif kind in ("(", STRING_TOKEN, "{"):
                node = FunctionCall(line, node, self.parse_arguments())
            else:
                self.depth = depth
                return node
            self.in_parentheses = False
            self.add_depth(1)

    def _parse_primary(self) -> LuaExpression:
        line = self.line
        if self.accept("("):
            inner = self.parse_expression()
            self.expect_closing(")", "(", line)
            self.in_parentheses = True
            return inner
        if self.kind != NAME_TOKEN:
            self.fail("unexpected symbol")
        self.in_parentheses = False
        return self.parse_name()

    def parse_name(self) -> NameReference:
        line = self.line
        return NameReference(line, self.expect(NAME_TOKEN))

    def parse_arguments(self) -> tuple[LuaExpression, ...]:
        line = self.line
        if self.kind == STRING_TOKEN:
            return (StringLiteral(line, self.expect(STRING_TOKEN)),)
        if self.kind == "{":
            return (self.parse_table(),)
        if self.kind != "(":
            self.fail("function arguments expected")
        if line != self.lines[self.position - 1]:
            self.fail("ambiguous syntax (function call x new statement)")
        self.position += 1
        if self.accept(")"):
            return ()
        parsed = self.parse_expressions()
        self.expect_closing(")", "(", line)
        return parsed

    def parse_table(self) -> TableConstructor:
        line, fields = self.line, []
        self.expect("{")
        while self.kind != "}":
            fields.append(self._parse_field())
            if not self.accept(",") and not self.accept(";"):
                break
        self.expect_closing("}", "{", line)
        return TableConstructor(line, tuple(fields))

    def _parse_field(self) -> TableField:
        line = self.line
        key: LuaExpression | None = None
        if self.kind == NAME_TOKEN and self.kinds[self.position + 1] == "=":
            key = StringLiteral(line, self.expect(NAME_TOKEN))
            self.expect("=")
        elif self.accept("["):
            key = self.parse_expression()
            self.expect("]")
            self.expect("=")
        return TableField(line, key, self.parse_expression())

    def parse_function(self, line: int, *, is_method: bool = False) -> FunctionExpression:
        """Parse a function from its parameters to its `end`, after the keyword `function`."""
        parameters = [NameReference(line, "self")] if is_method else []
        is_vararg = False
        self.expect("(")
        if self.kind != ")":
            while True:
                if is_vararg := self.accept("..."):
                    break
                if self.kind != NAME_TOKEN:
                    self.fail("<name> or '...' expected")
                parameters.append(self.parse_name())
                if not self.accept(","):
                    break
        self.expect(")")
        self.varargs.append(is_vararg)
        body = self.parse_function_body("function", line)
        self.varargs.pop()
        return FunctionExpression(line, tuple(parameters), is_vararg, body)

    def parse_function_body(self, opener: str, line: int) -> LuaBlock:
        raise NotImplementedError  # the statement parser implements it


_CONSTANTS: dict[str, bool | None] = {"nil": None, "true": True, "false": False}


def _as_float(text: str) -> float | None:
    try:
        return float.fromhex(text) if text[:2] in ("0x", "0X") else float(text)
    except (ValueError, OverflowError):
        return None


def ends_block(kind: str) -> bool:
    return kind in ("end", "else", "elseif", "until", END_TOKEN)
