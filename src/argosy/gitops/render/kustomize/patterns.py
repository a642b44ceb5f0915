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

_LONGEST: Final = 1000
_FEW: Final = 3
_MOST_STEPS: Final = 50_000_000
# k8s: Go rejects these.
_FOREIGN = re.compile(r"\(\?(?:[=!(#>]|<[=!]|P[=>])|(?<!\\)(?:\\\\)*\\[1-9]|(?<!\\)[*+?}]\+")
_CLASSES: Final = {
    "[:alpha:]": "A-Za-z", "[:digit:]": "0-9", "[:alnum:]": "0-9A-Za-z", "[:lower:]": "a-z", "[:upper:]": "A-Z",
    "[:space:]": r"\s", "[:word:]": r"\w", "[:xdigit:]": "0-9A-Fa-f", "[:punct:]": r"!-/:-@\[-`{-~",
    "[:blank:]": r" \t",
}  # fmt: skip


class Pattern(NamedTuple):
    text: str
    where: str
    find: Callable[[str], re.Match[str] | None]
    repeats: int

    def fits(self, text: str) -> bool:
        """True if the pattern matches the text."""
        # With consecutive repeats, Python tries every way to divide the text among them.
        if self.repeats > 1 and comb(len(text) + 1, self.repeats) > _MOST_STEPS:
            raise _costly(self.text, self.where)
        return self.find(text) is not None


def _costly(text: str, where: str) -> RenderError:
    return RenderError(f"the pattern {text[:80]!r} is too expensive: use fewer and no nested repeats", where=where)


def _repeats(parsed: Iterable[tuple[Any, Any]], *, within: bool = False) -> int | None:
    """Count consecutive repeats; None if a repeated part is ambiguous.

    An ambiguous repeat takes exponential time in Python, but not in Go.
    """
    found = 0
    for operation, given in parsed:
        count: int | None = 0
        match str(operation):
            case "MAX_REPEAT" | "MIN_REPEAT" if given[0] != given[1]:
                many = given[1] > _FEW
                below = _repeats(given[2], within=within or many)
                count = None if within or below is None else many or below * given[1]
            case "MAX_REPEAT" | "MIN_REPEAT":
                below = _repeats(given[2], within=within)
                count = None if below is None else below * given[1]
            case "SUBPATTERN":
                count = _repeats(given[-1], within=within)
            case "BRANCH":
                ways = [_repeats(each, within=within) for each in given[1]]
                count = None if within or None in ways else max(each or 0 for each in ways)
        if count is None:
            return None
        found += count
    return found


@lru_cache(1024)
def pattern(text: str, where: str, rest: str = "") -> Pattern:
    """Compile a pattern, followed by our own suffix."""
    if len(text) > _LONGEST:
        raise _costly(text, where)
    if _FOREIGN.search(text):
        message = f"{text!r} uses lookaround or a backreference, which is not supported: remove it"
        raise RenderError(message, where=where)
    for name, range_ in _CLASSES.items() if "[:" in text else ():
        text = text.replace(name, range_)
    whole = text + rest
    if rest and "|" in text:
        # k8s: the suffix is appended without brackets, so the first alternative may end, and the last may start,
        # anywhere.
        whole = rf"^{whole}\Z"
    try:
        compiled = re.compile(whole, re.ASCII)
        repeats = _repeats(_parser.parse(whole, re.ASCII))
    except (re.error, RecursionError, OverflowError) as error:
        raise RenderError(f"{text!r} is not a valid regular expression ({error}): correct it", where=where) from error
    if repeats is None:
        raise _costly(text, where)
    return Pattern(text, where, compiled.search if whole != text + rest else compiled.fullmatch, repeats)
