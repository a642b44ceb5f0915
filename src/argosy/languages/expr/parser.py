"""Pratt parser for expressions; tokens are compiled to functions directly.

In: tokens. Out: a node, and the names that it refers to. Never: evaluates anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from argosy.errors import LimitError
from argosy.languages.expr import builtins, compiled_nodes
from argosy.languages.expr.compiled_nodes import Node
from argosy.languages.expr.lexer import ExprError, ExprToken, parse_number, unquote_string

MAX_DEPTH: Final = 60
BINDING_POWER: Final = {
    "|": 1, "or": 10, "||": 10, "and": 15, "&&": 15,
    "==": 20, "!=": 20, "<": 20, ">": 20, "<=": 20, ">=": 20,
    "in": 20, "matches": 20, "contains": 20, "startsWith": 20, "endsWith": 20,
    "..": 25, "+": 30, "-": 30, "*": 60, "/": 60, "%": 60, "**": 100, "^": 100, "??": 500,
}  # fmt: skip
NEGATABLE_OPERATORS: Final = frozenset(
    {"in", "matches", "contains", "startsWith", "endsWith"}
)  # `not` may precede them
NOT_BINDING_POWER, SIGN_BINDING_POWER = 50, 90  # binding powers
RESERVED_WORDS: Final = frozenset({"and", "or", "not", "let", "else", *NEGATABLE_OPERATORS})
CONSTANTS: Final = {"true": True, "false": False, "nil": None}


class ExprParser:
    def __init__(self, tokens: Sequence[ExprToken]) -> None:
        self._tokens, self._position, self._depth = tokens, 0, 0
        self._local_names: list[str] = []
        self._predicate_depth = 0
        self.names: set[str] = set()

    def parse_expression(self) -> Node:
        node = self._parse_let_or_expression()
        if self._token.kind != "end":
            raise self._build_error()
        return node

    # -- tokens

    @property
    def _token(self) -> ExprToken:
        return self._tokens[self._position]

    def _next_token(self) -> ExprToken:
        token = self._token
        self._position += token.kind != "end"
        return token

    def _is_token(self, *values: str) -> bool:
        return self._token.kind in ("mark", "name") and self._token.value in values

    def _take(self, value: str) -> bool:
        if self._is_token(value):
            self._position += 1
            return True
        return False

    def _require(self, value: str) -> None:
        if not self._take(value):
            raise self._build_error(f"{value!r} is missing")

    def _parse_name(self) -> str:
        token = self._next_token()
        if token.kind != "name":
            raise self._build_error("a name is missing")
        return token.value

    def _build_error(self, reason: str = "") -> ExprError:
        token = self._token
        if token.kind == "end" and not reason:
            return ExprError("unexpected end of the expression; complete it")
        token_text = f"{token.value[:30]!r} at {token.position + 1}" if token.kind != "end" else "its end"
        return ExprError(f"{reason or 'syntax error'} before {token_text}; correct it")

    # -- grammar

    def _parse_let_or_expression(self) -> Node:
        if self._is_token("let"):
            self._next_token()
            name = self._parse_name()
            self._require("=")
            value = self._parse_binary()
            self._require(";")
            self._local_names.append(name)
            body = self._parse_nested(self._parse_let_or_expression)
            self._local_names.pop()
            return compiled_nodes.build_let(name, value, body)
        return self._parse_binary()

    def _parse_nested(self, parse: Callable[[], Node]) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise LimitError("it is nested too deeply; flatten it")
        try:
            return parse()
        finally:
            self._depth -= 1

    def _parse_binary(self, min_binding_power: int = 0) -> Node:
        return self._parse_nested(lambda: self._climb_precedence(min_binding_power))

    def _climb_precedence(self, min_binding_power: int) -> Node:
        left = self._parse_unary()
        while True:
            negated = self._is_token("not") and self._tokens[self._position + 1].value in NEGATABLE_OPERATORS
            token = self._tokens[self._position + 1] if negated else self._token
            binding = BINDING_POWER.get(token.value, -1) if token.kind in ("mark", "name") else -1
            if binding < min_binding_power or binding < 0:
                break
            self._position += 1 + negated
            left = self._parse_operator(left, token.value, binding)
            left = compiled_nodes.build_not(left) if negated else left
        if min_binding_power == 0 and self._take("?"):
            left = self._parse_ternary(left)
        return left

    def _parse_operator(self, left: Node, operator: str, binding: int) -> Node:
        if operator == "|":
            return self._parse_pipe(left)
        right = self._parse_binary(binding if operator in ("**", "^") else binding + 1)
        if operator in ("and", "&&"):
            return compiled_nodes.build_and(left, right)
        if operator in ("or", "||"):
            return compiled_nodes.build_or(left, right)
        return (
            compiled_nodes.build_coalesce(left, right)
            if operator == "??"
            else compiled_nodes.build_binary(operator, left, right)
        )

    def _parse_ternary(self, test: Node) -> Node:
        if self._take(":"):
            return compiled_nodes.build_conditional(test, test, self._parse_binary())
        then_node = self._parse_binary()
        self._require(":")
        return compiled_nodes.build_conditional(test, then_node, self._parse_binary())

    def _parse_unary(self) -> Node:
        if self._take("not") or self._take("!"):
            return compiled_nodes.build_not(self._parse_binary(NOT_BINDING_POWER))
        if self._take("-"):
            return compiled_nodes.build_minus(self._parse_binary(SIGN_BINDING_POWER))
        if self._take("+"):
            return compiled_nodes.build_plus(self._parse_binary(SIGN_BINDING_POWER))
        return self._parse_postfix(*self._parse_primary())

    def _parse_primary(self) -> tuple[Node, str]:
        token = self._token
        if token.kind == "number":
            self._next_token()
            return compiled_nodes.build_constant(parse_number(token)), token.value
        if token.kind == "text":
            self._next_token()
            return compiled_nodes.build_constant(unquote_string(token)), "a text"
        if token.kind == "name":
            return self._parse_identifier()
        if self._take("("):
            node = self._parse_let_or_expression()
            self._require(")")
            return node, "it"
        if self._take("["):
            return compiled_nodes.build_list(self._parse_items("]")), "a list"
        if self._take("{"):
            return self._parse_map(), "a map"
        if self._predicate_depth and self._take("#"):
            return self._parse_current_element(), "#"
        if self._predicate_depth and self._is_token("."):
            return (lambda scope: scope.item), "#"
        raise self._build_error()

    def _parse_current_element(self) -> Node:
        if self._token.kind == "name" and self._token.value in ("index", "acc"):
            name = self._next_token().value
            return (lambda scope: scope.index) if name == "index" else (lambda scope: scope.result)
        return lambda scope: scope.item

    def _parse_identifier(self) -> tuple[Node, str]:
        name = self._parse_name()
        if name in CONSTANTS:
            return compiled_nodes.build_constant(CONSTANTS[name]), name
        if name in RESERVED_WORDS:
            self._position -= 1
            raise self._build_error()
        if name == "if" and not self._is_token("(", ".", "[", "?."):
            return self._parse_if_else(), "if"
        if (
            self._is_token("(")
            and name not in self._local_names
            and (name in builtins.PLAIN_FUNCTIONS or name in builtins.PREDICATE_FUNCTIONS)
        ):
            self._next_token()
            return self._parse_builtin_call(name, []), name
        if name == "$env":
            return (lambda scope: dict(scope.values)), name
        if name not in self._local_names:
            self.names.add(name)
        return compiled_nodes.build_variable(name), name

    def _parse_if_else(self) -> Node:
        test = self._parse_binary()
        then_node = self._parse_block()
        self._require("else")
        else_node = self._parse_identifier()[0] if self._is_token("if") else self._parse_block()
        return compiled_nodes.build_conditional(test, then_node, else_node)

    def _parse_block(self) -> Node:
        self._require("{")
        node = self._parse_let_or_expression()
        self._require("}")
        return node

    def _parse_items(self, closing: str) -> list[Node]:
        items: list[Node] = []
        while not self._take(closing):
            items.append(self._parse_binary())
            if not self._is_token(closing):
                self._require(",")
        return items

    def _parse_map(self) -> Node:
        items: list[tuple[Node, Node]] = []
        while not self._take("}"):
            token = self._next_token()
            if token.kind == "text":
                name = compiled_nodes.build_constant(unquote_string(token))
            elif token.kind in ("name", "number"):
                name = compiled_nodes.build_constant(token.value)
            elif token.value == "(":
                name = self._parse_binary()
                self._require(")")
            else:
                self._position -= 1
                raise self._build_error("a map's key is missing")
            self._require(":")
            items.append((name, self._parse_binary()))
            if not self._is_token("}"):
                self._require(",")
        return compiled_nodes.build_map(items)

    def _parse_postfix(self, node: Node, description: str) -> Node:
        is_chain = False
        while True:
            if self._take("("):
                node = compiled_nodes.build_call(node, self._parse_items(")"), description)
            elif self._is_token("?.", "."):
                is_optional = self._next_token().value == "?."
                is_chain |= is_optional
                if is_optional and self._take("["):
                    node = compiled_nodes.build_member(node, self._parse_binary(), is_optional=True)
                    self._require("]")
                    continue
                description = self._parse_name()
                node = compiled_nodes.build_member(
                    node, compiled_nodes.build_constant(description), is_optional=is_optional
                )
            elif self._take("["):
                node = self._parse_index(node)
            else:
                return compiled_nodes.build_optional_chain(node) if is_chain else node

    def _parse_index(self, node: Node) -> Node:
        first = None if self._is_token(":") else self._parse_binary(1)
        if self._take(":"):
            last = None if self._is_token("]") else self._parse_binary(1)
            self._require("]")
            return compiled_nodes.build_slice(node, first, last)
        self._require("]")
        return compiled_nodes.build_member(node, first or compiled_nodes.build_constant(None))

    def _parse_pipe(self, left: Node) -> Node:
        name = self._parse_name()
        if name not in builtins.PLAIN_FUNCTIONS and name not in builtins.PREDICATE_FUNCTIONS:
            raise self._build_error(f"{name} is not a function")
        arguments = [left]
        if self._take("("):
            return self._parse_postfix(self._parse_builtin_call(name, arguments), name)
        return (
            builtins.build_plain_call(name, arguments)
            if name in builtins.PLAIN_FUNCTIONS
            else builtins.build_predicate_call(name, left, None)
        )

    def _parse_builtin_call(self, name: str, arguments: list[Node]) -> Node:
        if name in builtins.PLAIN_FUNCTIONS:
            return builtins.build_plain_call(name, [*arguments, *self._parse_items(")")])
        if not arguments:
            arguments = [self._parse_binary()]
            if not self._is_token(")"):
                self._require(",")
        predicate = None
        if not self._is_token(")"):
            predicate = self._parse_predicate()
            while self._take(","):
                arguments.append(self._parse_binary())
        self._require(")")
        return builtins.build_predicate_call(name, arguments[0], predicate, arguments[1:])

    def _parse_predicate(self) -> Node:
        self._predicate_depth += 1
        try:
            return self._parse_block() if self._is_token("{") else self._parse_binary()
        finally:
            self._predicate_depth -= 1
