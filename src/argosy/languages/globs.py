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

MAX_GLOB_CHARACTERS: Final = 1_000
_MAX_ALTERNATIVES: Final = 200
GLOB_CHARACTERS: Final = frozenset("*?[]{}\\,!")
_STAR: Final = "*"
_DOUBLE_STAR: Final = "**"
_CROSS_SLASHES: Final = {_STAR: ".", _DOUBLE_STAR: "."}
_WITHIN_SEGMENT: Final = {_STAR: "[^/]", _DOUBLE_STAR: "."}
_BRACE_CHARACTERS: Final = ("{", "}", ",")
_IPV6_HOST: Final = re.compile(r"(?<=[/@])\[([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)\]")


def compile_glob(glob: str, where: str) -> re.Pattern[str]:
    """Compile the dialect of `include` and `exclude`; raises UserError for an invalid glob."""
    return _GlobCompiler(glob, where, "!").compile(braces=True)


def compile_name_glob(glob: str) -> re.Pattern[str]:
    """Compile the dialect of file names, for one name; an invalid glob matches nothing."""
    try:
        return _GlobCompiler(glob, "", "^").compile(braces=False)
    except UserError:
        return re.compile(r"(?!)")


def matches_glob(glob: str, text: str, *, by_segment: bool = False) -> bool:
    """True if the whole text matches; an invalid glob matches only itself."""
    if glob == text:
        return True
    pattern = _compile_or_none(glob, by_segment)
    return pattern is not None and pattern.fullmatch(text) is not None


def is_glob(glob: str) -> bool:
    """False for an invalid glob, such as one with an open bracket."""
    return _compile_or_none(glob, False) is not None


def escape_ipv6(pattern: str) -> str:
    """Escape the brackets around an IPv6 address of a URL, which are not a set of characters."""
    return _IPV6_HOST.sub(r"\\[\1\\]", pattern)


def escape_glob(text: str) -> str:
    """Return a glob that matches only this text."""
    return "".join(f"\\{character}" if character in GLOB_CHARACTERS else character for character in text)


@lru_cache(maxsize=4096)
def _compile_or_none(glob: str, by_segment: bool) -> re.Pattern[str] | None:
    try:
        return _GlobCompiler(glob, "", "!").compile(
            braces=True, stars=_WITHIN_SEGMENT if by_segment else _CROSS_SLASHES
        )
    except UserError:
        return None


class _GlobCompiler:
    """Converts one glob to a regular expression."""

    def __init__(self, glob: str, where: str, negation: str) -> None:
        self.glob = glob
        self.where = where
        self.negation = negation
        if len(glob) > MAX_GLOB_CHARACTERS:
            raise self._build_error(f"it has more than {MAX_GLOB_CHARACTERS} characters")

    def compile(self, *, braces: bool, stars: Mapping[str, str] = _CROSS_SLASHES) -> re.Pattern[str]:
        tokens = list(self._tokenize())
        rows = (
            self._expand_braces(tokens)
            if braces
            else [[re.escape(token) if token in _BRACE_CHARACTERS else token for token in tokens]]
        )
        return re.compile("|".join(_row_to_regex(row, stars) for row in rows), re.DOTALL)

    def _tokenize(self) -> Iterator[str]:
        """Yield stars, braces and commas as they are, and everything else as a regular expression for one character."""
        position = 0
        while position < len(self.glob):
            character = self.glob[position]
            position += 1
            if character == "*":
                extra_stars = len(self.glob[position:]) - len(self.glob[position:].lstrip("*"))
                position += extra_stars
                yield _DOUBLE_STAR if extra_stars else _STAR
            elif character == "?":
                yield "."
            elif character == "[":
                text, position = self._read_character_set(position)
                yield text
            elif character == "\\":
                if position == len(self.glob):
                    raise self._build_error("it ends with a backslash")
                yield f"[{re.escape(self.glob[position])}]"
                position += 1
            else:
                yield character if character in _BRACE_CHARACTERS else re.escape(character)

    def _read_character_set(self, start: int) -> tuple[str, int]:
        end = start + (self.glob[start : start + 1] == self.negation)
        characters: list[str] = []
        while self.glob[end : end + 1] not in ("]", "") or not characters:
            end += self.glob[end : end + 1] == "\\"
            if end >= len(self.glob):
                raise self._build_error("a bracket is not closed")
            characters.append(self.glob[end])
            end += 1
        if end == len(self.glob):
            raise self._build_error("a bracket is not closed")
        inner = re.escape(characters[0]) + "".join(
            "-" if character == "-" else re.escape(character) for character in characters[1:-1]
        )
        inner += re.escape(characters[-1]) if len(characters) > 1 else ""
        text = f"[{'^' if self.glob[start] == self.negation else ''}{inner}]"
        try:
            re.compile(text)
        except re.error:
            raise self._build_error(f"{self.glob[start - 1 : end + 1]} is not a valid set of characters") from None
        return text, end + 1

    def _expand_braces(self, tokens: list[str]) -> list[list[str]]:
        """Expand braces: no row has any, which keeps the regular expression fast."""
        rows: list[list[str]] = [[]]
        position = 0
        while position < len(tokens):
            if tokens[position] != "{":
                for row in rows:
                    row.append(
                        re.escape(tokens[position]) if tokens[position] in _BRACE_CHARACTERS else tokens[position]
                    )
                position += 1
                continue
            parts, position = self._split_brace(tokens, position + 1)
            inner = [choice for part in parts for choice in self._expand_braces(part)]
            rows = [[*row, *choice] for row in rows for choice in inner]
            if len(rows) > _MAX_ALTERNATIVES:
                raise self._build_error(f"its braces expand to more than {_MAX_ALTERNATIVES} globs")
        return rows

    def _split_brace(self, tokens: list[str], start: int) -> tuple[list[list[str]], int]:
        """Split a brace at its commas, and return the index after it."""
        parts: list[list[str]] = [[]]
        depth = 0
        for position in range(start, len(tokens)):
            token = tokens[position]
            if token == "}" and not depth:
                return parts, position + 1
            if token == "," and not depth:
                parts.append([])
                continue
            depth += (token == "{") - (token == "}")
            parts[-1].append(token)
        raise self._build_error("a brace is not closed")

    def _build_error(self, message: str) -> UserError:
        return UserError(f"invalid glob {self.glob[:80]!r}, {message}: correct it", where=self.where)


def _row_to_regex(row: list[str], stars: Mapping[str, str]) -> str:
    """Between two stars the first match is as good as any other, so atomic groups avoid backtracking."""
    first = ""
    pieces: list[tuple[str, str]] = []  # the pattern of a star, and the text after it
    for token in row:
        if token in stars:
            pieces.append((stars[token], ""))
        elif pieces:
            pieces[-1] = (pieces[-1][0], pieces[-1][1] + token)
        else:
            first += token
    if not pieces:
        return f"(?:{first})"
    *middle, (last_star, last) = pieces
    return f"(?:{first}{''.join(f'(?>{token}*?{piece})' for token, piece in middle)}{last_star}*{last})"
