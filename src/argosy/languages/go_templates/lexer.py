"""Splits a template into text and actions between `{{` and `}}`.

In: text. Out: tokens. Never: parses them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from argosy.errors import UserError

WHITESPACE: Final = " \t\r\n"


class TemplateError(UserError):
    """The template, or its use of the values, is wrong."""


class TemplateToken(NamedTuple):
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


def tokenize(text: str) -> Iterator[TemplateToken]:
    position, line, trims_left = 0, 1, False
    while True:
        start = text.find("{{", position)
        raw_text = text[position:] if start < 0 else text[position:start]
        line_after = line + raw_text.count("\n")
        trimmed_text = raw_text.lstrip(WHITESPACE) if trims_left else raw_text
        if start < 0:
            if trimmed_text:
                yield TemplateToken("text", trimmed_text, line)
            yield TemplateToken("end", "", line_after)
            return
        inner = start + 2
        if text[inner : inner + 1] == "-" and text[inner + 1 : inner + 2] in set(WHITESPACE):
            trimmed_text, inner = trimmed_text.rstrip(WHITESPACE), inner + 1
        if trimmed_text:
            yield TemplateToken("text", trimmed_text, line)
        line = line_after
        action_tokens, position, trims_left = _tokenize_action(text, inner, line)
        yield from action_tokens
        line += text.count("\n", start, position)


def _tokenize_action(text: str, position: int, line: int) -> tuple[list[TemplateToken], int, bool]:
    """Return the tokens of an action, its end, and True if the space after it is trimmed."""
    comment = re.compile(r"[ \t\r\n]*/\*.*?\*/", re.DOTALL).match(text, position)
    if comment:
        end = re.compile(r"([ \t\r\n]+-)?\}\}").match(text, comment.end())
        if end is None:
            raise TemplateError("a comment is not closed; add */}}", line=line)
        return [], end.end(), bool(end[1])
    tokens = [TemplateToken("open", "{{", line)]
    is_apart = False
    while True:
        if text.startswith("}}", position):
            return [*tokens, TemplateToken("close", "}}", line)], position + 2, False
        if is_apart and text.startswith("-}}", position):
            return [*tokens, TemplateToken("close", "}}", line)], position + 3, True
        match = _TOKEN.match(text, position)
        if match is None:
            found_text = repr(text[position : position + 20]) if text[position:] else "the end"
            raise TemplateError(f"unexpected {found_text} in {{{{ }}}}; correct it", line=line)
        kind = match.lastgroup or ""
        if kind == "space":
            is_apart = True
        else:
            tokens.append(TemplateToken(kind, match[0], line, is_apart))
            is_apart = False
        line += match[0].count("\n")
        position = match.end()
