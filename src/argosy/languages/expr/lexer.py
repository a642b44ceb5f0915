"""Splits an expression into tokens.

In: text. Out: tokens with their positions. Never: parses them.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from argosy.errors import UserError


class ExprError(UserError):
    """The expression, or its use of the values, is wrong."""


class ExprToken(NamedTuple):
    kind: str  # name, number, text, mark, end
    value: str
    position: int


_TOKEN: Final = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|\#(?=\s*\Z)\Z|/\*.*?\*/)
  | (?P<number>0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+
      |(?:\d[\d_]*(?:\.(?!\.)\d[\d_]*)?|\.\d[\d_]*)(?:[eE][+-]?\d+)?)
  | (?P<name>[^\W\d][\w$]*|\$env)
  | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
  | (?P<mark>\?\.|\?\?|\.\.|==|!=|<=|>=|&&|\|\||\*\*|[-+*/%^<>!?:;,.(){}\[\]|\#=])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


def tokenize(text: str) -> list[ExprToken]:
    tokens_found, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExprError(f"unexpected {text[position : position + 20]!r} at {position + 1}; correct it")
        kind = match.lastgroup or ""
        if kind != "space":
            tokens_found.append(ExprToken(kind, match[0], position))
        position = match.end()
    return [*tokens_found, ExprToken("end", "", len(text))]


def unquote_string(token: ExprToken) -> str:
    """Return the content of a quoted string."""
    inner = token.value[1:-1]
    return inner if token.value[0] == "`" else _ESCAPE.sub(_unescape, inner)


def _unescape(match: re.Match[str]) -> str:
    word = match[1]
    if word[0] in "xuU" and len(word) > 1:
        number = int(word[1:], 16)
        if number > 0x10FFFF or 0xD800 <= number < 0xE000:
            raise ExprError(f"\\{word} is not a valid character; correct it")
        return chr(number)
    if len(word) == 3:
        return chr(int(word, 8) & 0xFF)
    return _ESCAPES.get(word, word)


def parse_number(token: ExprToken) -> int | float:
    text = token.value.replace("_", "")
    if text[:2].lower() in ("0x", "0b", "0o"):
        value = int(text, 0) if len(text) > 2 else 0
    elif re.fullmatch(r"\d+", text):
        value = int(text) if len(text) < 20 else 1 << 64
    else:
        return float(text)
    if value >= 1 << 63:
        raise ExprError(f"number {token.value[:30]} is too large; use a smaller number")
    return value
