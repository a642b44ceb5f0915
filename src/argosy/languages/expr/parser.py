"""Pratt parser for expressions; tokens are compiled to functions directly.

In: tokens. Out: a node, and the names that it refers to. Never: evaluates anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from argosy.errors import LimitError
from argosy.languages.expr import builtins, nodes
from argosy.languages.expr.lexer import ExprError, Token, number_of, text_of
from argosy.languages.expr.nodes import Node

MOST_DEPTH: Final = 60
BINDING: Final = {
    "|": 1, "or": 10, "||": 10, "and": 15, "&&": 15,
    "==": 20, "!=": 20, "<": 20, ">": 20, "<=": 20, ">=": 20,
    "in": 20, "matches": 20, "contains": 20, "startsWith": 20, "endsWith": 20,
    "..": 25, "+": 30, "-": 30, "*": 60, "/": 60, "%": 60, "**": 100, "^": 100, "??": 500,
}  # fmt: skip
WORDS: Final = frozenset({"in", "matches", "contains", "startsWith", "endsWith"})  # `not` may precede them
NOT, SIGN = 50, 90  # binding powers
RESERVED: Final = frozenset({"and", "or", "not", "let", "else", *WORDS})
CONSTANTS: Final = {"true": True, "false": False, "nil": None}


class Parser:
    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0
        self._local: list[str] = []
        self._predicates = 0
        self.names: set[str] = set()

    def whole(self) -> Node:
        node = self._sequence()
        if self._token.kind != "end":
            raise self._unexpected()
        return node

    # -- tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._token
        self._at += token.kind != "end"
        return token

    def _is(self, *values: str) -> bool:
        return self._token.kind in ("mark", "name") and self._token.value in values

    def _take(self, value: str) -> bool:
        if self._is(value):
            self._at += 1
            return True
        return False

    def _need(self, value: str) -> None:
        if not self._take(value):
            raise self._unexpected(f"{value!r} is missing")

    def _name(self) -> str:
        token = self._next()
        if token.kind != "name":
            raise self._unexpected("a name is missing")
        return token.value

    def _unexpected(self, why: str = "") -> ExprError:
        token = self._token
        if token.kind == "end" and not why:
            return ExprError("unexpected end of the expression; complete it")
        what = f"{token.value[:30]!r} at {token.at + 1}" if token.kind != "end" else "its end"
        return ExprError(f"{why or 'syntax error'} before {what}; correct it")

    # -- grammar

    def _sequence(self) -> Node:
        if self._is("let"):
            self._next()
            name = self._name()
            self._need("=")
            value = self._expression()
            self._need(";")
            self._local.append(name)
            rest = self._nested(self._sequence)
            self._local.pop()
            return nodes.let(name, value, rest)
        return self._expression()

    def _nested(self, parse: Callable[[], Node]) -> Node:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise LimitError("it is nested too deeply; flatten it")
        try:
            return parse()
        finally:
            self._depth -= 1

    def _expression(self, least: int = 0) -> Node:
        return self._nested(lambda: self._climbing(least))

    def _climbing(self, least: int) -> Node:
        left = self._unary()
        while True:
            negated = self._is("not") and self._tokens[self._at + 1].value in WORDS
            token = self._tokens[self._at + 1] if negated else self._token
            binding = BINDING.get(token.value, -1) if token.kind in ("mark", "name") else -1
            if binding < least or binding < 0:
                break
            self._at += 1 + negated
            left = self._combined(left, token.value, binding)
            left = nodes.negated(left) if negated else left
        if least == 0 and self._take("?"):
            left = self._ternary(left)
        return left

    def _combined(self, left: Node, mark: str, binding: int) -> Node:
        if mark == "|":
            return self._piped(left)
        right = self._expression(binding if mark in ("**", "^") else binding + 1)
        if mark in ("and", "&&"):
            return nodes.both(left, right)
        if mark in ("or", "||"):
            return nodes.either(left, right)
        return nodes.coalesced(left, right) if mark == "??" else nodes.binary(mark, left, right)

    def _ternary(self, test: Node) -> Node:
        if self._take(":"):
            return nodes.chosen(test, test, self._expression())
        one = self._expression()
        self._need(":")
        return nodes.chosen(test, one, self._expression())

    def _unary(self) -> Node:
        if self._take("not") or self._take("!"):
            return nodes.negated(self._expression(NOT))
        if self._take("-"):
            return nodes.minus(self._expression(SIGN))
        if self._take("+"):
            return nodes.plus(self._expression(SIGN))
        return self._postfix(*self._primary())

    def _primary(self) -> tuple[Node, str]:
        token = self._token
        if token.kind == "number":
            self._next()
            return nodes.constant(number_of(token)), token.value
        if token.kind == "text":
            self._next()
            return nodes.constant(text_of(token)), "a text"
        if token.kind == "name":
            return self._named()
        if self._take("("):
            node = self._sequence()
            self._need(")")
            return node, "it"
        if self._take("["):
            return nodes.listed(self._items("]")), "a list"
        if self._take("{"):
            return self._map(), "a map"
        if self._predicates and self._take("#"):
            return self._element(), "#"
        if self._predicates and self._is("."):
            return (lambda scope: scope.item), "#"
        raise self._unexpected()

    def _element(self) -> Node:
        if self._token.kind == "name" and self._token.value in ("index", "acc"):
            name = self._next().value
            return (lambda scope: scope.index) if name == "index" else (lambda scope: scope.result)
        return lambda scope: scope.item

    def _named(self) -> tuple[Node, str]:
        name = self._name()
        if name in CONSTANTS:
            return nodes.constant(CONSTANTS[name]), name
        if name in RESERVED:
            self._at -= 1
            raise self._unexpected()
        if name == "if" and not self._is("(", ".", "[", "?."):
            return self._conditional(), "if"
        if self._is("(") and name not in self._local and (name in builtins.PLAIN or name in builtins.ASKING):
            self._next()
            return self._builtin(name, []), name
        if name == "$env":
            return (lambda scope: dict(scope.values)), name
        if name not in self._local:
            self.names.add(name)
        return nodes.named(name), name

    def _conditional(self) -> Node:
        test = self._expression()
        one = self._block()
        self._need("else")
        other = self._named()[0] if self._is("if") else self._block()
        return nodes.chosen(test, one, other)

    def _block(self) -> Node:
        self._need("{")
        node = self._sequence()
        self._need("}")
        return node

    def _items(self, closing: str) -> list[Node]:
        items: list[Node] = []
        while not self._take(closing):
            items.append(self._expression())
            if not self._is(closing):
                self._need(",")
        return items

    def _map(self) -> Node:
        items: list[tuple[Node, Node]] = []
        while not self._take("}"):
            token = self._next()
            if token.kind == "text":
                name = nodes.constant(text_of(token))
            elif token.kind in ("name", "number"):
                name = nodes.constant(token.value)
            elif token.value == "(":
                name = self._expression()
                self._need(")")
            else:
                self._at -= 1
                raise self._unexpected("a map's key is missing")
            self._need(":")
            items.append((name, self._expression()))
            if not self._is("}"):
                self._need(",")
        return nodes.mapped(items)

    def _postfix(self, node: Node, what: str) -> Node:
        is_chain = False
        while True:
            if self._take("("):
                node = nodes.call(node, self._items(")"), what)
            elif self._is("?.", "."):
                is_optional = self._next().value == "?."
                is_chain |= is_optional
                if is_optional and self._take("["):
                    node = nodes.member(node, self._expression(), is_optional=True)
                    self._need("]")
                    continue
                what = self._name()
                node = nodes.member(node, nodes.constant(what), is_optional=is_optional)
            elif self._take("["):
                node = self._indexed(node)
            else:
                return nodes.chain(node) if is_chain else node

    def _indexed(self, node: Node) -> Node:
        first = None if self._is(":") else self._expression(1)
        if self._take(":"):
            last = None if self._is("]") else self._expression(1)
            self._need("]")
            return nodes.sliced(node, first, last)
        self._need("]")
        return nodes.member(node, first or nodes.constant(None))

    def _piped(self, left: Node) -> Node:
        name = self._name()
        if name not in builtins.PLAIN and name not in builtins.ASKING:
            raise self._unexpected(f"{name} is not a function")
        arguments = [left]
        if self._take("("):
            return self._postfix(self._builtin(name, arguments), name)
        return builtins.plain(name, arguments) if name in builtins.PLAIN else builtins.asking(name, left, None)

    def _builtin(self, name: str, arguments: list[Node]) -> Node:
        if name in builtins.PLAIN:
            return builtins.plain(name, [*arguments, *self._items(")")])
        if not arguments:
            arguments = [self._expression()]
            if not self._is(")"):
                self._need(",")
        predicate = None
        if not self._is(")"):
            predicate = self._predicate()
            while self._take(","):
                arguments.append(self._expression())
        self._need(")")
        return builtins.asking(name, arguments[0], predicate, arguments[1:])

    def _predicate(self) -> Node:
        self._predicates += 1
        try:
            return self._block() if self._is("{") else self._expression()
        finally:
            self._predicates -= 1
