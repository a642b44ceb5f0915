"""Parses jq expressions.

In: text. Out: a function that evaluates it; UnsupportedJq for anything else, valid or not. Never: runs it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import orjson

from argosy.languages import jq_evaluator as steps
from argosy.languages.jq_evaluator import JqFailed, Step

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
_PLAIN: Final = re.compile(r"\^?(?:[\w \-/:,@=]|\\[.\-/])*\$?", re.ASCII)
_MOST_DEPTH: Final = 50
_HOLDS: Final[dict[str, Callable[[int], bool]]] = {
    "==": lambda sign: sign == 0,
    "!=": lambda sign: sign != 0,
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}
_LITERALS: Final = {"true": True, "false": False, "null": None}


class Unknown(ValueError):
    """The expression needs the real jq."""


def read(text: str) -> Step:
    reading = _Reading(_tokens(text))
    step = reading.pipe()
    reading.expect("end", "")
    return step


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise Unknown
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return [*found, ("end", "")]


class _Reading:
    """Recursive descent parser for one expression; the weakest operator is parsed first."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    def peek(self, *signs: str) -> bool:
        kind, text = self._tokens[self._at]
        return kind in ("sign", "word") and text in signs

    def take(self, *signs: str) -> bool:
        found = self.peek(*signs)
        self._at += found
        return found

    def next(self) -> tuple[str, str]:
        token = self._tokens[self._at]
        self._at += token[0] != "end"
        return token

    def expect(self, kind: str, text: str) -> None:
        if self.next() != (kind, text):
            raise Unknown

    def pipe(self) -> Step:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise Unknown
        step = self._comma()
        while self.take("|"):
            step = steps.pipe(step, self._comma())
        self._depth -= 1
        return step

    def _comma(self) -> Step:
        step = self._or()
        while self.take(","):
            step = steps.comma(step, self._or())
        return step

    def _or(self) -> Step:
        step = self._and()
        while self.take("or"):
            step = steps.both(step, self._and(), stops_at=True)
        return step

    def _and(self) -> Step:
        step = self._comparison()
        while self.take("and"):
            step = steps.both(step, self._comparison(), stops_at=False)
        return step

    def _comparison(self) -> Step:
        step = self._term()
        for sign, holds in _HOLDS.items():
            if self.take(sign):
                step = steps.compared(step, self._term(), holds)
                if self.peek(*_HOLDS):
                    raise Unknown
                break
        return step

    def _term(self) -> Step:
        """argo: a `?` applies to the whole term before it."""
        kind, text = self.next()
        step: Step
        match kind, text:
            case "field", _:
                step = steps.field(text[1:])
            case "sign", ".":
                step = self._after_dot()
            case "sign", "(":
                step = self.pipe()
                self.expect("sign", ")")
            case "string", _:
                step = steps.literal(_string(text))
            case "number", _:
                step = steps.literal(orjson.loads(text))
            case "word", _ if text in _LITERALS:
                step = steps.literal(_LITERALS[text])
            case "word", _:
                step = self._function(text)
            case _:
                raise Unknown
        return self._suffixes(step)

    def _after_dot(self) -> Step:
        kind, text = self._tokens[self._at]
        if kind == "string":
            self._at += 1
            return steps.field(_string(text))
        return steps.identity

    def _suffixes(self, step: Step) -> Step:
        while True:
            kind, text = self._tokens[self._at]
            if kind == "field":
                self._at += 1
                step = steps.pipe(step, steps.field(text[1:]))
            elif self.take("["):
                step = steps.pipe(step, self._bracket())
            elif self.take("?"):
                step = steps.attempt(step)
            elif kind == "sign" and text == "." and self._tokens[self._at + 1][0] == "string":
                self._at += 2
                step = steps.pipe(step, steps.field(_string(self._tokens[self._at - 1][1])))
            elif kind == "sign" and text == "." and self._tokens[self._at + 1] == ("sign", "["):
                self._at += 1
            else:
                return step

    def _bracket(self) -> Step:
        if self.take("]"):
            return steps.each
        kind, text = self.next()
        self.expect("sign", "]")
        if kind == "string":
            return steps.field(_string(text))
        if kind == "number" and "." not in text:
            return steps.index(int(text))
        raise Unknown

    def _function(self, name: str) -> Step:
        if name == "not":
            return steps.computed(lambda value: not steps.is_true(value))
        if not self.take("("):
            raise Unknown
        if name == "select":
            step = steps.select(self.pipe())
        elif name in _OF_TEXT:
            kind, text = self.next()
            if kind != "string":
                raise Unknown
            step = steps.computed(_OF_TEXT[name](_string(text)))
        else:
            raise Unknown
        self.expect("sign", ")")
        return step


def _string(text: str) -> str:
    if "\\(" in text:
        raise Unknown
    try:
        return str(orjson.loads(text))
    except ValueError:
        raise Unknown from None


def _on_text(holds: Callable[[str], bool]) -> Callable[[Any], bool]:
    def answer(value: Any) -> bool:
        if not isinstance(value, str):
            raise JqFailed("expected a string")
        return holds(value)

    return answer


def _has(name: str) -> Callable[[Any], bool]:
    def answer(value: Any) -> bool:
        if not isinstance(value, dict):
            raise JqFailed("expected an object")
        return name in value

    return answer


def _test(pattern: str) -> Callable[[Any], bool]:
    """Support literal text with anchors only: other patterns can run forever, so the confined jq evaluates them."""
    if not _PLAIN.fullmatch(pattern):
        raise Unknown
    at_start, at_end = pattern.startswith("^"), pattern.endswith("$")
    plain = pattern[at_start : len(pattern) - at_end].replace("\\", "")
    if at_start and at_end:
        return _on_text(lambda text: text == plain)
    if at_start or at_end:
        return _on_text(lambda text: text.startswith(plain) if at_start else text.endswith(plain))
    return _on_text(lambda text: plain in text)


_OF_TEXT: Final[dict[str, Callable[[str], Callable[[Any], bool]]]] = {
    "has": _has,
    "test": _test,
    "startswith": lambda lead: _on_text(lambda text: text.startswith(lead)),
    "endswith": lambda tail: _on_text(lambda text: text.endswith(tail)),
}
