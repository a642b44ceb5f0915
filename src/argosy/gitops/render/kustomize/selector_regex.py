"""Compiles the regular expressions of targets and images. In: untrusted text. Out: a pattern.

Never: a pattern that can run for a very long time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from math import comb
from re import _parser  # type: ignore[attr-defined]  # the only access to parsed patterns
from typing import Any, Final, NamedTuple

from argosy.errors import RenderError

_MAX_PATTERN_LENGTH: Final = 1000
_MAX_CHEAP_REPEATS: Final = 3
_MAX_MATCH_STEPS: Final = 50_000_000
# k8s: Go rejects these.
_UNSUPPORTED_BY_GO = re.compile(r"\(\?(?:[=!(#>]|<[=!]|P[=>])|(?<!\\)(?:\\\\)*\\[1-9]|(?<!\\)[*+?}]\+")
_POSIX_CLASSES: Final = {
    "[:alpha:]": "A-Za-z", "[:digit:]": "0-9", "[:alnum:]": "0-9A-Za-z", "[:lower:]": "a-z", "[:upper:]": "A-Z",
    "[:space:]": r"\s", "[:word:]": r"\w", "[:xdigit:]": "0-9A-Fa-f", "[:punct:]": r"!-/:-@\[-`{-~",
    "[:blank:]": r" \t",
}  # fmt: skip


class ResourcePattern(NamedTuple):
    text: str
    where: str
    find: Callable[[str], re.Match[str] | None]
    repeats: int

    def matches(self, text: str) -> bool:
        """True if the pattern matches the text."""
        # With consecutive repeats, Python tries every way to divide the text among them.
        if self.repeats > 1 and comb(len(text) + 1, self.repeats) > _MAX_MATCH_STEPS:
            raise _build_cost_error(self.text, self.where)
        return self.find(text) is not None


def _build_cost_error(text: str, where: str) -> RenderError:
    return RenderError(f"the pattern {text[:80]!r} is too expensive: use fewer and no nested repeats", where=where)


def _count_repeats(parsed: Iterable[tuple[Any, Any]], *, inside_repeat: bool = False) -> int | None:
    """Count consecutive repeats; None if a repeated part is ambiguous.

    An ambiguous repeat takes exponential time in Python, but not in Go.
    """
    total = 0
    for operation, arguments in parsed:
        count: int | None = 0
        match str(operation):
            case "MAX_REPEAT" | "MIN_REPEAT" if arguments[0] != arguments[1]:
                is_unbounded = arguments[1] > _MAX_CHEAP_REPEATS
                inner_count = _count_repeats(arguments[2], inside_repeat=inside_repeat or is_unbounded)
                count = None if inside_repeat or inner_count is None else is_unbounded or inner_count * arguments[1]
            case "MAX_REPEAT" | "MIN_REPEAT":
                inner_count = _count_repeats(arguments[2], inside_repeat=inside_repeat)
                count = None if inner_count is None else inner_count * arguments[1]
            case "SUBPATTERN":
                count = _count_repeats(arguments[-1], inside_repeat=inside_repeat)
            case "BRANCH":
                branch_counts = [_count_repeats(branch, inside_repeat=inside_repeat) for branch in arguments[1]]
                count = None if inside_repeat or None in branch_counts else max(branch or 0 for branch in branch_counts)
        if count is None:
            return None
        total += count
    return total


@lru_cache(1024)
def compile_pattern(text: str, where: str, suffix: str = "") -> ResourcePattern:
    """Compile a pattern, followed by our own suffix."""
    if len(text) > _MAX_PATTERN_LENGTH:
        raise _build_cost_error(text, where)
    if _UNSUPPORTED_BY_GO.search(text):
        message = f"{text!r} uses lookaround or a backreference, which is not supported: remove it"
        raise RenderError(message, where=where)
    for name, range_ in _POSIX_CLASSES.items() if "[:" in text else ():
        text = text.replace(name, range_)
    full_pattern = text + suffix
    if suffix and "|" in text:
        # k8s: the suffix is appended without brackets, so the first alternative may end, and the last may start,
        # anywhere.
        full_pattern = rf"^{full_pattern}\Z"
    try:
        compiled = re.compile(full_pattern, re.ASCII)
        repeats = _count_repeats(_parser.parse(full_pattern, re.ASCII))
    except (re.error, RecursionError, OverflowError) as error:
        raise RenderError(f"{text!r} is not a valid regular expression ({error}): correct it", where=where) from error
    if repeats is None:
        raise _build_cost_error(text, where)
    return ResourcePattern(
        text, where, compiled.search if full_pattern != text + suffix else compiled.fullmatch, repeats
    )
