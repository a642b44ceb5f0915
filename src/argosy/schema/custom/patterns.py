"""Patterns that users write, matched so that none of them can hang the process.

In: a pattern and a text. Out: whether it matches anywhere, as Go's regexp would say. Never: backtracks without bound:
what Python's engine is not certain to do in linear time goes to a linear-time engine (the one inside the CEL library).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

LONGEST_PATTERN = 4096
_LONGEST_FAST_TEXT = 4096
_LONGEST_COMMON = 256
_REMEMBERED_TEXT = 512  # thousands of longer ones would fill the memory

# A chain of single characters or classes, no groups, of which one at most may be repeated more or less often.
_PLAIN_PIECE = r"(?:\[\^?\]?(?:\\[\w.\-/\\]|[^\\\]\[])*\]|\\[.dwDW/\-\\]|[^\\^$.|?*+()\[\]{}])"
_FIXED = rf"(?:{_PLAIN_PIECE}(?:\{{\d{{1,3}}\}})?)*"
_PLAIN = re.compile(rf"\^{_FIXED}(?:{_PLAIN_PIECE}(?:[*+?]|\{{\d{{1,3}},(?:\d{{1,3}})?\}}){_FIXED})?\$?")

# k8s: quantities, in nearly every definition. No two ways lead through it: no text makes the engine turn back.
_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

# What each engine reads alike, and without which a pattern needs no engine to be known as one: characters, classes of
# ASCII, dots, anchors, groups, alternatives, simple repeats.
_PIECE = r"(?:[\w/@:,;=~!#%&\"'<> -]|\\[.+*?()\[\]{}|^$/\\-]|\.|\[\^?-?(?:[\w./:@+](?:-[\w])?)+-?\])"
_COMMON = re.compile(rf"(?:{_PIECE}(?:[*+?]|\{{\d(?:,\d?)?\}})?|\((?:\?:)?|\)[*+?]?|[\^$|])*", re.ASCII)


def problem(pattern: str) -> str:
    """Why a pattern cannot be used, empty if it can."""
    if len(pattern) > LONGEST_PATTERN:
        return f"longer than {LONGEST_PATTERN} characters"
    if _fast(pattern) is not None or _is_common(pattern):
        return ""
    try:
        _linear("", pattern)
    except ValueError as error:
        return str(error)
    return ""


def matches(pattern: str, text: str) -> bool:
    """Somewhere in the text. A pattern that is no pattern matches nothing."""
    return _matches_short(pattern, text) if len(text) <= _REMEMBERED_TEXT else _matches(pattern, text)


@lru_cache(maxsize=4096)
def _matches_short(pattern: str, text: str) -> bool:
    return _matches(pattern, text)


def _matches(pattern: str, text: str) -> bool:
    fast = _fast(pattern)
    # Python's `$` also stands before a last line break, Go's does not.
    if fast is not None and "\n" not in text and len(text) <= _LONGEST_FAST_TEXT:
        return fast.search(text) is not None
    try:
        return _linear(text, pattern)
    except ValueError:
        return False


@lru_cache(maxsize=1024)
def _fast(pattern: str) -> re.Pattern[str] | None:
    """Python's own engine, for what it walks through in linear time: anchored, flat, one open repeat."""
    if len(pattern) > LONGEST_PATTERN or not (pattern == _QUANTITY or _PLAIN.fullmatch(pattern)):
        return None
    try:
        return re.compile(pattern, re.ASCII)
    except (re.error, OverflowError):
        return None


def _is_common(pattern: str) -> bool:
    """Surely a pattern: Python's engine reads it, and nothing is in it that another reads otherwise."""
    if not pattern.isascii() or len(pattern) > _LONGEST_COMMON or not _COMMON.fullmatch(pattern):
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError):
        return False
    return True


@lru_cache(maxsize=1)
def _program() -> Any:
    import cel  # late: it takes longer to import than most commands take

    return cel.compile("text.matches(pattern)")


def _linear(text: str, pattern: str) -> bool:
    """Raises ValueError, with the engine's reason, if the pattern is none."""
    if len(pattern) > LONGEST_PATTERN:
        raise ValueError(f"longer than {LONGEST_PATTERN} characters")
    try:
        return bool(_program().execute({"text": text, "pattern": pattern}))
    except (RuntimeError, TypeError, ValueError) as error:
        lines = [line.strip() for line in str(error).splitlines()]
        reason = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), "not a pattern")
        raise ValueError(reason.partition(". Check function")[0]) from error
