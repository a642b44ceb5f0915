"""Splits a template into text and actions between `{{` and `}}`.

In: text. Out: tokens. Never: parses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from argosy.errors import UserError

SPACE: Final = " \t\r\n"


class TemplateError(UserError):
    """The template, or its use of the values, is wrong."""


class Token(NamedTuple):
    kind: str  # text, open, close, word, field, variable, number, string, char, mark, end
    value: str
    line: int
    is_apart: bool = False  # preceded by a space


_TOKEN: Final = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
  | (?P<char>'(?:[^'\\\n]|\\.[^']*)')
  | (?P<number>[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?))
  | (?P<field>\.[^\W\d]\w*)
  | (?P<variable>\$\w*)
  | (?P<word>[^\W\d]\w*)
  | (?P<mark>:=|=|[|(),.])
    """,
    re.VERBOSE,
)


def pieces(text: str) -> Iterator[Token]:
    at, line, trims = 0, 1, False
    while True:
        start = text.find("{{", at)
        plain = text[at:] if start < 0 else text[at:start]
        line_after = line + plain.count("\n")
        shown = plain.lstrip(SPACE) if trims else plain
        if start < 0:
            if shown:
                yield Token("text", shown, line)
            yield Token("end", "", line_after)
            return
        inner = start + 2
        if text[inner : inner + 1] == "-" and text[inner + 1 : inner + 2] in set(SPACE):
            shown, inner = shown.rstrip(SPACE), inner + 1
        if shown:
            yield Token("text", shown, line)
        line = line_after
        words, at, trims = _action(text, inner, line)
        yield from words
        line += text.count("\n", start, at)


def _action(text: str, at: int, line: int) -> tuple[list[Token], int, bool]:
    """Return the tokens of an action, its end, and True if the space after it is trimmed."""
    comment = re.compile(r"[ \t\r\n]*/\*.*?\*/", re.DOTALL).match(text, at)
    if comment:
        end = re.compile(r"([ \t\r\n]+-)?\}\}").match(text, comment.end())
        if end is None:
            raise TemplateError("a comment is not closed; add */}}", line=line)
        return [], end.end(), bool(end[1])
    words = [Token("open", "{{", line)]
    is_apart = False
    while True:
        if text.startswith("}}", at):
            return [*words, Token("close", "}}", line)], at + 2, False
        if is_apart and text.startswith("-}}", at):
            return [*words, Token("close", "}}", line)], at + 3, True
        found = _TOKEN.match(text, at)
        if found is None:
            what = repr(text[at : at + 20]) if text[at:] else "the end"
            raise TemplateError(f"unexpected {what} in {{{{ }}}}; correct it", line=line)
        kind = found.lastgroup or ""
        if kind == "space":
            is_apart = True
        else:
            words.append(Token(kind, found[0], line, is_apart))
            is_apart = False
        line += found[0].count("\n")
        at = found.end()
