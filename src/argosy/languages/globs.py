"""Compiles Argo CD's globs. In: a glob. Out: a regular expression, or True or False. Never: a slow one.

Three dialects: in `include`, `exclude` and most fields of a project, a star crosses slashes and braces hold
alternatives; in repository URLs a star does not cross slashes and `**` does; in manifest-generate-paths a glob matches
one name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from argosy.errors import UserError

LONGEST: Final = 1_000
_MOST_ALTERNATIVES: Final = 200
_STAR: Final = "*"
_STARS: Final = "**"
_ANYTHING: Final = {_STAR: ".", _STARS: "."}
_WITHIN_A_SEGMENT: Final = {_STAR: "[^/]", _STARS: "."}
_BRACES: Final = ("{", "}", ",")
_IPV6: Final = re.compile(r"(?<=[/@])\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\]")


def glob_pattern(glob: str, where: str) -> re.Pattern[str]:
    """Compile the dialect of `include` and `exclude`; raises UserError for an invalid glob."""
    return _Glob(glob, where, "!").pattern(braces=True)


def path_pattern(glob: str) -> re.Pattern[str]:
    """Compile the dialect of file names, for one name; an invalid glob matches nothing."""
    try:
        return _Glob(glob, "", "^").pattern(braces=False)
    except UserError:
        return re.compile(r"(?!)")


def matches(glob: str, text: str, *, by_segment: bool = False) -> bool:
    """True if the whole text matches; an invalid glob matches only itself."""
    if glob == text:
        return True
    pattern = _known(glob, by_segment)
    return pattern is not None and pattern.fullmatch(text) is not None


def is_glob(glob: str) -> bool:
    """False for an invalid glob, such as one with an open bracket."""
    return _known(glob, False) is not None


def escape_ipv6(pattern: str) -> str:
    """Escape the brackets around an IPv6 address of a URL, which are not a set of characters."""
    return _IPV6.sub(r"\\[\1\\]", pattern)


@lru_cache(maxsize=4096)
def _known(glob: str, by_segment: bool) -> re.Pattern[str] | None:
    try:
        return _Glob(glob, "", "!").pattern(braces=True, stars=_WITHIN_A_SEGMENT if by_segment else _ANYTHING)
    except UserError:
        return None


class _Glob:
    """Converts one glob to a regular expression."""

    def __init__(self, glob: str, where: str, negation: str) -> None:
        self.glob = glob
        self.where = where
        self.negation = negation
        if len(glob) > LONGEST:
            raise self._wrong(f"it has more than {LONGEST} characters")

    def pattern(self, *, braces: bool, stars: Mapping[str, str] = _ANYTHING) -> re.Pattern[str]:
        signs = list(self._signs())
        rows = (
            self._alternatives(signs) if braces else [[re.escape(sign) if sign in _BRACES else sign for sign in signs]]
        )
        return re.compile("|".join(_expression(row, stars) for row in rows), re.DOTALL)

    def _signs(self) -> Iterator[str]:
        """Yield stars, braces and commas as they are, and everything else as a regular expression for one character."""
        at = 0
        while at < len(self.glob):
            sign = self.glob[at]
            at += 1
            if sign == "*":
                run = len(self.glob[at:]) - len(self.glob[at:].lstrip("*"))
                at += run
                yield _STARS if run else _STAR
            elif sign == "?":
                yield "."
            elif sign == "[":
                text, at = self._set(at)
                yield text
            elif sign == "\\":
                if at == len(self.glob):
                    raise self._wrong("it ends with a backslash")
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
            raise self._wrong(f"{self.glob[at - 1 : end + 1]} is not a valid set of characters") from None
        return text, end + 1

    def _alternatives(self, signs: list[str]) -> list[list[str]]:
        """Expand braces: no row has any, which keeps the regular expression fast."""
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
                raise self._wrong(f"its braces expand to more than {_MOST_ALTERNATIVES} globs")
        return rows

    def _parts(self, signs: list[str], at: int) -> tuple[list[list[str]], int]:
        """Split a brace at its commas, and return the index after it."""
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

    def _wrong(self, message: str) -> UserError:
        return UserError(f"invalid glob {self.glob[:80]!r}, {message}: correct it", where=self.where)


def _expression(row: list[str], stars: Mapping[str, str]) -> str:
    """Between two stars the first match is as good as any other, so atomic groups avoid backtracking."""
    first = ""
    pieces: list[tuple[str, str]] = []  # the pattern of a star, and the text after it
    for sign in row:
        if sign in stars:
            pieces.append((stars[sign], ""))
        elif pieces:
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + sign)
        else:
            first += sign
    if not pieces:
        return f"(?:{first})"
    *middle, (any_sign, last) = pieces
    return f"(?:{first}{''.join(f'(?>{sign}*?{piece})' for sign, piece in middle)}{any_sign}*{last})"
