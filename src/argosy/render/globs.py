"""Patterns for paths. In: a glob, as Argo CD's users write them. Out: a regular expression. Never: a slow one.

Two dialects: in `include` and `exclude` a star crosses slashes and braces hold alternatives; in
manifest-generate-paths a glob is for one name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from argosy.model.errors import RenderError

LONGEST: Final = 1_000
_MOST_ALTERNATIVES: Final = 200
_STAR: Final = "*"
_BRACES: Final = ("{", "}", ",")


def glob_pattern(glob: str, where: str) -> re.Pattern[str]:
    """The dialect of `include` and `exclude`; raises RenderError for what is no glob."""
    return _Glob(glob, where, "!").pattern(braces=True)


def path_pattern(glob: str) -> re.Pattern[str]:
    """The dialect of file names, for one name; what is no glob matches nothing."""
    try:
        return _Glob(glob, "", "^").pattern(braces=False)
    except RenderError:
        return re.compile(r"(?!)")


class _Glob:
    """One glob on its way to a regular expression."""

    def __init__(self, glob: str, where: str, negation: str) -> None:
        self.glob = glob
        self.where = where
        self.negation = negation
        if len(glob) > LONGEST:
            raise self._wrong(f"it has more than {LONGEST} characters")

    def pattern(self, *, braces: bool) -> re.Pattern[str]:
        signs = list(self._signs())
        rows = (
            self._alternatives(signs) if braces else [[re.escape(sign) if sign in _BRACES else sign for sign in signs]]
        )
        return re.compile("|".join(_expression(row) for row in rows), re.DOTALL)

    def _signs(self) -> Iterator[str]:
        """Stars, braces and commas as they are; everything else as an expression for one character."""
        at = 0
        while at < len(self.glob):
            sign = self.glob[at]
            at += 1
            if sign == "*":
                yield _STAR
            elif sign == "?":
                yield "."
            elif sign == "[":
                text, at = self._set(at)
                yield text
            elif sign == "\\":
                if at == len(self.glob):
                    raise self._wrong("nothing follows the last backslash")
                yield f"[{re.escape(self.glob[at])}]"
                at += 1
            else:
                yield sign if sign in _BRACES else re.escape(sign)

    def _set(self, at: int) -> tuple[str, int]:
        end = at + (self.glob[at : at + 1] == self.negation)
        found: list[str] = []
        while self.glob[end : end + 1] not in ("]", "") or not found:
            end += self.glob[end : end + 1] == "\\"
            if end >= len(self.glob):
                raise self._wrong("a bracket is not closed")
            found.append(self.glob[end])
            end += 1
        if end == len(self.glob):
            raise self._wrong("a bracket is not closed")
        inner = re.escape(found[0]) + "".join("-" if sign == "-" else re.escape(sign) for sign in found[1:-1])
        inner += re.escape(found[-1]) if len(found) > 1 else ""
        text = f"[{'^' if self.glob[at] == self.negation else ''}{inner}]"
        try:
            re.compile(text)
        except re.error:
            raise self._wrong(f"{self.glob[at - 1 : end + 1]} is no set of characters") from None
        return text, end + 1

    def _alternatives(self, signs: list[str]) -> list[list[str]]:
        """Braces written out: every row is without them, which keeps the expression quick."""
        rows: list[list[str]] = [[]]
        at = 0
        while at < len(signs):
            if signs[at] != "{":
                for row in rows:
                    row.append(re.escape(signs[at]) if signs[at] in _BRACES else signs[at])
                at += 1
                continue
            parts, at = self._parts(signs, at + 1)
            inner = [choice for part in parts for choice in self._alternatives(part)]
            rows = [[*row, *choice] for row in rows for choice in inner]
            if len(rows) > _MOST_ALTERNATIVES:
                raise self._wrong(f"its braces stand for more than {_MOST_ALTERNATIVES} globs")
        return rows

    def _parts(self, signs: list[str], at: int) -> tuple[list[list[str]], int]:
        """What the commas of a brace part, and the place behind it."""
        parts: list[list[str]] = [[]]
        depth = 0
        for place in range(at, len(signs)):
            sign = signs[place]
            if sign == "}" and not depth:
                return parts, place + 1
            if sign == "," and not depth:
                parts.append([])
                continue
            depth += (sign == "{") - (sign == "}")
            parts[-1].append(sign)
        raise self._wrong("a brace is not closed")

    def _wrong(self, message: str) -> RenderError:
        return RenderError(f"{self.glob[:80]!r} is no glob, {message}: correct it", where=self.where)


def _expression(row: list[str]) -> str:
    """Between two stars the first place that fits is as good as any other, so that nothing is ever tried twice."""
    pieces: list[str] = [""]
    for sign in row:
        if sign == _STAR:
            pieces.append("")
        else:
            pieces[-1] += sign
    first, *middle = pieces
    if not middle:
        return f"(?:{first})"
    last = middle.pop()
    return f"(?:{first}{''.join(f'(?>.*?{piece})' for piece in middle if piece)}.*{last})"
