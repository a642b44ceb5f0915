"""Parses Lua expressions.

In: tokens. Out: expression nodes. Never: nests deeper than `MAX_DEPTH`, so that code may walk the tree recursively.
"""

from __future__ import annotations

from typing import NoReturn

from argosy.gitops.health.lua.syntax.lexer import END, NAME, NUMBER, STRING, LuaSyntaxError, Tokens
from argosy.gitops.health.lua.syntax.tree import (
    Binary,
    Block,
    Call,
    Concat,
    Constant,
    Expression,
    Field,
    Function,
    Index,
    Logical,
    Method,
    Name,
    String,
    Table,
    Unary,
    Vararg,
)

MOST_DEPTH = 100

# Precedence of binary operators; `..` and `^` are right-associative.
_STRENGTH = {
    "or": 1, "and": 2, "<": 3, ">": 3, "<=": 3, ">=": 3, "~=": 3, "==": 3, "..": 4,
    "+": 5, "-": 5, "*": 6, "/": 6, "%": 6, "^": 8,
}  # fmt: skip
_UNARY_STRENGTH = 7
_FLAT = {"or", "and", ".."}


class ExpressionReader:
    """Parser state: the position in the token list."""

    def __init__(self, tokens: Tokens) -> None:
        self.kinds, self.values, self.lines = tokens.kinds, tokens.values, tokens.lines
        self.place = 0
        self.depth = 0
        self.varargs = [True]  # for each enclosing function: True if `...` may be used
        self.in_parentheses = False  # True if the last suffixed expression was a bare `( … )`

    # -- tokens --

    @property
    def kind(self) -> str:
        return self.kinds[self.place]

    @property
    def line(self) -> int:
        return self.lines[self.place]

    def accept(self, kind: str) -> bool:
        if self.kinds[self.place] != kind:
            return False
        self.place += 1
        return True

    def expect(self, kind: str) -> str:
        if self.kinds[self.place] != kind:
            self.fail(f"{kind!r} expected")
        self.place += 1
        return self.values[self.place - 1]

    def expect_closing(self, kind: str, opener: str, line: int) -> None:
        if not self.accept(kind):
            since = f" (to close {opener!r} at line {line})" if line != self.line else ""
            self.fail(f"{kind!r} expected{since}")

    def fail(self, message: str, line: int = 0) -> NoReturn:
        value = self.values[self.place]
        near = value if len(value) <= 40 else f"{value[:37]}..."
        raise LuaSyntaxError(line or self.line, f"{message} near '{near}'")

    def go_down(self, levels: int) -> None:
        self.depth += levels
        if self.depth > MOST_DEPTH:
            raise LuaSyntaxError(self.line, f"nested deeper than {MOST_DEPTH} levels; split it up")

    # -- expressions --

    def expression(self, weakest: int = 0) -> Expression:
        self.go_down(1)
        depth = self.depth
        left = self._operand()
        while (strength := _STRENGTH.get(operator := self.kinds[self.place], 0)) > weakest:
            line = self.line
            if operator in _FLAT:
                left = self._flat(left, operator, strength)
            else:
                self.go_down(1)  # left-associative: the tree grows one level per operator
                self.place += 1
                right = self.expression(strength - 1 if operator == "^" else strength)
                left = Binary(line, operator, left, right)
        self.depth = depth - 1
        return left

    def _flat(self, first: Expression, operator: str, strength: int) -> Expression:
        line, operands = self.line, [first]
        while self.accept(operator):
            operands.append(self.expression(strength))
        return Concat(line, tuple(operands)) if operator == ".." else Logical(line, operator, tuple(operands))

    def _operand(self) -> Expression:
        kind, line = self.kind, self.line
        if kind in ("not", "-", "#"):
            self.place += 1
            return Unary(line, kind, self.expression(_UNARY_STRENGTH))
        if kind in _CONSTANTS:
            self.place += 1
            return Constant(line, _CONSTANTS[kind])
        if kind == NUMBER:
            return Constant(line, _as_float(self.expect(NUMBER)), is_number=True)
        if kind == STRING:
            return String(line, self.expect(STRING))
        if kind == "...":
            if not self.varargs[-1]:
                self.fail("cannot use '...' outside a vararg function")
            self.place += 1
            return Vararg(line)
        if kind == "{":
            return self.table()
        if self.accept("function"):
            return self.function(line)
        return self.suffixed()

    def expressions(self) -> tuple[Expression, ...]:
        found = [self.expression()]
        while self.accept(","):
            found.append(self.expression())
        return tuple(found)

    def suffixed(self) -> Expression:
        """Parse a name or `( … )` with all following index and call suffixes."""
        depth = self.depth
        node = self._primary()
        while True:
            kind, line = self.kind, self.line
            if kind == ".":
                self.place += 1
                node = Index(line, node, String(self.line, self.expect(NAME)))
            elif kind == "[":
                self.place += 1
                node = Index(line, node, self.expression())
                self.expect("]")
            elif kind == ":":
                self.place += 1
                name = self.expect(NAME)
                node = Method(line, node, name, self.arguments())
            elif kind in ("(", STRING, "{"):
                node = Call(line, node, self.arguments())
            else:
                self.depth = depth
                return node
            self.in_parentheses = False
            self.go_down(1)

    def _primary(self) -> Expression:
        line = self.line
        if self.accept("("):
            inner = self.expression()
            self.expect_closing(")", "(", line)
            self.in_parentheses = True
            return inner
        if self.kind != NAME:
            self.fail("unexpected symbol")
        self.in_parentheses = False
        return self.name()

    def name(self) -> Name:
        line = self.line
        return Name(line, self.expect(NAME))

    def arguments(self) -> tuple[Expression, ...]:
        line = self.line
        if self.kind == STRING:
            return (String(line, self.expect(STRING)),)
        if self.kind == "{":
            return (self.table(),)
        if self.kind != "(":
            self.fail("function arguments expected")
        if line != self.lines[self.place - 1]:
            self.fail("ambiguous syntax (function call x new statement)")
        self.place += 1
        if self.accept(")"):
            return ()
        found = self.expressions()
        self.expect_closing(")", "(", line)
        return found

    def table(self) -> Table:
        line, fields = self.line, []
        self.expect("{")
        while self.kind != "}":
            fields.append(self._field())
            if not self.accept(",") and not self.accept(";"):
                break
        self.expect_closing("}", "{", line)
        return Table(line, tuple(fields))

    def _field(self) -> Field:
        line = self.line
        key: Expression | None = None
        if self.kind == NAME and self.kinds[self.place + 1] == "=":
            key = String(line, self.expect(NAME))
            self.expect("=")
        elif self.accept("["):
            key = self.expression()
            self.expect("]")
            self.expect("=")
        return Field(line, key, self.expression())

    def function(self, line: int, *, is_method: bool = False) -> Function:
        """Parse a function from its parameters to its `end`, after the keyword `function`."""
        parameters = [Name(line, "self")] if is_method else []
        is_vararg = False
        self.expect("(")
        if self.kind != ")":
            while True:
                if is_vararg := self.accept("..."):
                    break
                if self.kind != NAME:
                    self.fail("<name> or '...' expected")
                parameters.append(self.name())
                if not self.accept(","):
                    break
        self.expect(")")
        self.varargs.append(is_vararg)
        body = self.function_body("function", line)
        self.varargs.pop()
        return Function(line, tuple(parameters), is_vararg, body)

    def function_body(self, opener: str, line: int) -> Block:
        raise NotImplementedError  # the statement parser implements it


_CONSTANTS: dict[str, bool | None] = {"nil": None, "true": True, "false": False}


def _as_float(text: str) -> float | None:
    try:
        return float.fromhex(text) if text[:2] in ("0x", "0X") else float(text)
    except (ValueError, OverflowError):
        return None


def is_end(kind: str) -> bool:
    return kind in ("end", "else", "elseif", "until", END)
