"""Parses jq expressions.

In: text. Out: a function that evaluates it; UnsupportedJq for anything else, valid or not. Never: runs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from argosy.languages import jq_evaluator as steps
from argosy.languages.jq_evaluator import JqFailed, JqStep

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<field>\.[A-Za-z_]\w*)
      | (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<number>-?\d+(?:\.\d+)?)
      | (?P<word>[A-Za-z_]\w*)
      | (?P<sign>==|!=|<=|>=|[.\[\](),|?<>;])
    )""",
    re.VERBOSE | re.ASCII,
)
_LITERAL_PATTERN: Final = re.compile(r"\^?(?:[\w \-/:,@=]|\\[.\-/])*\$?", re.ASCII)
_MAX_DEPTH: Final = 50
_COMPARISONS: Final[dict[str, Callable[[int], bool]]] = {
    "==": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}
_LITERAL_VALUES: Final = {"true": True, "false": False, "null": None}


class UnsupportedJq(ValueError):
    """The expression needs the real jq."""


def parse_jq(text: str) -> JqStep:
    parser = _JqParser(_tokenize(text))
    step = parser.parse_pipe()
    parser.expect("end", "")
    return step


def _tokenize(text: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None or match.lastgroup is None:
            raise UnsupportedJq
        tokens.append((match.lastgroup, match[match.lastgroup]))
        position = match.end()
    return [*tokens, ("end", "")]


class _JqParser:
    """Recursive descent parser for one expression; the weakest operator is parsed first."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._position = 0
        self._depth = 0

    def peek(self, *operators: str) -> bool:
        kind, text = self._tokens[self._position]
        return kind in ("sign", "word") and text in operators

    def take(self, *operators: str) -> bool:
        is_match = self.peek(*operators)
        self._position += is_match
        return is_match

    def next_token(self) -> tuple[str, str]:
        token = self._tokens[self._position]
        self._position += token[0] != "end"
        return token

    def expect(self, kind: str, text: str) -> None:
        if self.next_token() != (kind, text):
            raise UnsupportedJq

    def parse_pipe(self) -> JqStep:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise UnsupportedJq
        step = self._parse_comma()
        while self.take("|"):
            step = steps.build_pipe(step, self._parse_comma())
        self._depth -= 1
        return step

    def _parse_comma(self) -> JqStep:
        step = self._parse_or()
        while self.take(","):
            step = steps.build_comma(step, self._parse_or())
        return step

    def _parse_or(self) -> JqStep:
        step = self._parse_and()
        while self.take("or"):
            step = steps.build_and_or(step, self._parse_and(), stops_at=True)
        return step

    def _parse_and(self) -> JqStep:
        step = self._parse_comparison()
        while self.take("and"):
            step = steps.build_and_or(step, self._parse_comparison(), stops_at=False)
        return step

    def _parse_comparison(self) -> JqStep:
        step = self._parse_term()
        for operator, test in _COMPARISONS.items():
            if self.take(operator):
                step = steps.build_comparison(step, self._parse_term(), test)
                if self.peek(*_COMPARISONS):
                    raise UnsupportedJq
                break
        return step

    def _parse_term(self) -> JqStep:
        """argo: a `?` applies to the whole term before it."""
        kind, text = self.next_token()
        step: JqStep
        match kind, text:
            case "field", _:
                step = steps.build_field(text[1:])
            case "sign", ".":
                step = self._parse_after_dot()
            case "sign", "(":
                step = self.parse_pipe()
                self.expect("sign", ")")
            case "string", _:
                step = steps.build_literal(_parse_string(text))
            case "number", _:
                step = steps.build_literal(orjson.loads(text))
            case "word", _ if text in _LITERAL_VALUES:
                step = steps.build_literal(_LITERAL_VALUES[text])
            case "word", _:
                step = self._parse_function(text)
            case _:
                raise UnsupportedJq
        return self._parse_suffixes(step)

    def _parse_after_dot(self) -> JqStep:
        kind, text = self._tokens[self._position]
        if kind == "string":
            self._position += 1
            return steps.build_field(_parse_string(text))
        return steps.identity

    def _parse_suffixes(self, step: JqStep) -> JqStep:
        while True:
            kind, text = self._tokens[self._position]
            if kind == "field":
                self._position += 1
                step = steps.build_pipe(step, steps.build_field(text[1:]))
            elif self.take("["):
                step = steps.build_pipe(step, self._parse_bracket())
            elif self.take("?"):
                step = steps.build_error_suppression(step)
            elif kind == "sign" and text == "." and self._tokens[self._position + 1][0] == "string":
                self._position += 2
                step = steps.build_pipe(step, steps.build_field(_parse_string(self._tokens[self._position - 1][1])))
            elif kind == "sign" and text == "." and self._tokens[self._position + 1] == ("sign", "["):
                self._position += 1
            else:
                return step

    def _parse_bracket(self) -> JqStep:
        if self.take("]"):
            return steps.iterate
        kind, text = self.next_token()
        self.expect("sign", "]")
        if kind == "string":
            return steps.build_field(_parse_string(text))
        if kind == "number" and "." not in text:
            return steps.build_index(int(text))
        raise UnsupportedJq

    def _parse_function(self, name: str) -> JqStep:
        if name == "not":
            return steps.build_function(lambda value: not steps.is_true(value))
        if not self.take("("):
            raise UnsupportedJq
        if name == "select":
            step = steps.build_select(self.parse_pipe())
        elif name in _STRING_FUNCTIONS:
            kind, text = self.next_token()
            if kind != "string":
                raise UnsupportedJq
            step = steps.build_function(_STRING_FUNCTIONS[name](_parse_string(text)))
        else:
            raise UnsupportedJq
        self.expect("sign", ")")
        return step


def _parse_string(text: str) -> str:
    if "\\(" in text:
        raise UnsupportedJq
    try:
        return str(orjson.loads(text))
    except ValueError:
        raise UnsupportedJq from None


def _build_string_test(test: Callable[[str], bool]) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        if not isinstance(value, str):
            raise JqFailed("expected a string")
        return test(value)

    return check


def _build_has(name: str) -> Callable[[Any], bool]:
    def check(value: Any) -> bool:
        if not isinstance(value, dict):
            raise JqFailed("expected an object")
        return name in value

    return check


def _build_pattern_test(pattern: str) -> Callable[[Any], bool]:
    """Support literal text with anchors only: other patterns can run forever, so the confined jq evaluates them."""
    if not _LITERAL_PATTERN.fullmatch(pattern):
        raise UnsupportedJq
    at_start, at_end = pattern.startswith("^"), pattern.endswith("$")
    literal = pattern[at_start : len(pattern) - at_end].replace("\\", "")
    if at_start and at_end:
        return _build_string_test(lambda text: text == literal)
    if at_start or at_end:
        return _build_string_test(lambda text: text.startswith(literal) if at_start else text.endswith(literal))
    return _build_string_test(lambda text: literal in text)


_STRING_FUNCTIONS: Final[dict[str, Callable[[str], Callable[[Any], bool]]]] = {
    "has": _build_has,
    "test": _build_pattern_test,
    "startswith": lambda lead: _build_string_test(lambda text: text.startswith(lead)),
    "endswith": lambda tail: _build_string_test(lambda text: text.endswith(tail)),
}
