"""Matches regular expressions of users in bounded time.

In: a pattern and a text. Out: whether it matches anywhere, as in Go's regexp. Never: backtracks: Python's engine runs
only patterns that it matches in linear time; RE2, whose syntax and results are those of Go, runs all others.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

LONGEST_PATTERN: Final = 4096
MATCHING_SECONDS: Final = 2.0  # CPU time for all patterns of one object
# Instructions times bytes: RE2 needs up to 30 ns for each if its automaton does not fit into its memory budget.
MAX_MATCH_WORK: Final = 50_000_000
_LONGEST_FAST_TEXT = 4096
_LONGEST_COMMON = 256
_REMEMBERED_TEXT = 512  # caching thousands of longer texts would use too much memory
_SMALL_MEMORY: Final = 1 << 20
_LARGE_MEMORY: Final = 64 << 20  # for patterns such as \pL{100}, which Go accepts

# A sequence of characters and classes without groups, of which at most one has a variable repeat.
_PLAIN_PIECE = r"(?:\[\^?\]?(?:\\[\w.\-/\\]|[^\\\]\[])*\]|\\[.dwDW/\-\\]|[^\\^$.|?*+()\[\]{}])"
_FIXED = rf"(?:{_PLAIN_PIECE}(?:\{{\d{{1,3}}\}})?)*"
_PLAIN = re.compile(rf"\^{_FIXED}(?:{_PLAIN_PIECE}(?:[*+?]|\{{\d{{1,3}},(?:\d{{1,3}})?\}}){_FIXED})?\$?")

# k8s: the pattern of quantities, in nearly every CRD. It is unambiguous, so the engine never backtracks.
_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

# Syntax that all engines read alike, so that Python can check it without loading RE2: characters, ASCII classes, dots,
# anchors, groups, alternatives, simple repeats.
_PIECE = r"(?:[\w/@:,;=~!#%&\"'<> -]|\\[.+*?()\[\]{}|^$/\\-]|\.|\[\^?-?(?:[\w./:@+](?:-[\w])?)+-?\])"
_COMMON = re.compile(rf"(?:{_PIECE}(?:[*+?]|\{{\d(?:,\d?)?\}})?|\((?:\?:)?|\)[*+?]?|[\^$|])*", re.ASCII)

_MAX_NESTING: Final = 1000  # k8s: Go rejects deeper groups
_LITERAL_PART: Final = re.compile(r"\\Q.*?(?:\\E|\Z)", re.DOTALL)
_LARGE_COUNT: Final = re.compile(r"\{\d*,?\d{10,}\}|\{\d{10,},?\}")
# RE2's error messages -> Go's.
_GO_REASONS: Final = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "trailing \\": "trailing backslash at end of expression",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}


class MatchTooExpensiveError(ValueError):
    """A text is too long for its pattern, or the patterns of one object took too much CPU time."""


_seconds_left: ContextVar[list[float] | None] = ContextVar("seconds_left", default=None)


@contextmanager
def limited_matching() -> Iterator[None]:
    """Limit the CPU time of all matches in the block; matches after the limit raise MatchTooExpensiveError."""
    token = _seconds_left.set([MATCHING_SECONDS])
    try:
        yield
    finally:
        _seconds_left.reset(token)


def problem(pattern: str) -> str:
    """Return why a pattern is invalid, or ""."""
    if len(pattern) > LONGEST_PATTERN:
        return f"longer than {LONGEST_PATTERN} characters"
    if _fast(pattern) is not None or _is_common(pattern):
        return ""
    try:
        _compile(pattern)
    except ValueError as error:
        return str(error)
    return ""


def matches(pattern: str, text: str) -> bool:
    """True if the pattern matches anywhere. An invalid pattern matches nothing. May raise MatchTooExpensiveError."""
    return _matches_short(pattern, text) if len(text) <= _REMEMBERED_TEXT else _matches(pattern, text)


@lru_cache(maxsize=4096)
def _matches_short(pattern: str, text: str) -> bool:
    return _matches(pattern, text)


def _matches(pattern: str, text: str) -> bool:
    fast = _fast(pattern)
    # Python's `$` also matches before a trailing line break, Go's does not.
    if fast is not None and "\n" not in text and len(text) <= _LONGEST_FAST_TEXT:
        return fast.search(text) is not None
    try:
        compiled = _compile(pattern)
    except ValueError:
        return False
    return _search(compiled, text)


@lru_cache(maxsize=1024)
def _fast(pattern: str) -> re.Pattern[str] | None:
    """Compile with Python's engine if it matches in linear time: anchored, no groups, one variable repeat."""
    if len(pattern) > LONGEST_PATTERN or not (pattern == _QUANTITY or _PLAIN.fullmatch(pattern)):
        return None
    try:
        return re.compile(pattern, re.ASCII)
    except (re.error, OverflowError):
        return None


def _is_common(pattern: str) -> bool:
    """True if Python accepts the pattern and it only has syntax that all engines read alike."""
    if not pattern.isascii() or len(pattern) > _LONGEST_COMMON or not _COMMON.fullmatch(pattern):
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError):
        return False
    return True


def _compile(pattern: str) -> Any:
    """Compile with RE2; raise ValueError with Go's message if the pattern is invalid."""
    small = _compile_small(pattern)
    return _compile_large(pattern) if small is None else small


@lru_cache(maxsize=256)
def _compile_small(pattern: str) -> Any:
    """Compile with little memory, enough for most patterns; return None if the program does not fit."""
    if reason := _refused_by_go(pattern):
        raise ValueError(reason)
    return _compile_within(pattern, _SMALL_MEMORY)


@lru_cache(maxsize=4)
def _compile_large(pattern: str) -> Any:
    compiled = _compile_within(pattern, _LARGE_MEMORY)
    if compiled is None:
        raise ValueError("error parsing regexp: expression too large")
    return compiled


def _compile_within(pattern: str, memory: int) -> Any:
    import re2  # imported lazily: most commands match no user patterns

    options = re2.Options()
    options.max_mem, options.log_errors, options.never_capture = memory, False, True
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else "invalid UTF-8"
        if reason.startswith("pattern too large"):
            return None
        raise ValueError(_in_words_of_go(reason, pattern)) from error
    finally:
        re2.purge()  # re2's own cache would keep 128 more programs of any size


def _refused_by_go(pattern: str) -> str:
    """Return Go's error for a pattern that RE2 accepts and Go rejects, or ""."""
    bare = _LITERAL_PART.sub("", pattern)
    if at := re.search(r"(?<!\\)(?:\\\\)*\\C", bare):
        return f"error parsing regexp: invalid escape sequence: `{at[0][-2:]}`"
    if at := _LARGE_COUNT.search(bare):
        return f"error parsing regexp: invalid repeat count: `{at[0]}`"
    depth = deepest = 0
    for sign in re.findall(r"\\.|\[\^?\]?(?:\\.|[^\\\]])*\]|[()]", bare, re.DOTALL):
        depth += (sign == "(") - (sign == ")")
        deepest = max(deepest, depth)
    return f"error parsing regexp: expression nests too deeply: `{pattern}`" if deepest >= _MAX_NESTING else ""


def _in_words_of_go(reason: str, pattern: str) -> str:
    what, _, where = reason.partition(": ")
    if what == "invalid perl operator" and where in ("(?<=", "(?<!"):
        what, where = "invalid named capture", pattern[pattern.index(where) :]
    elif what == "invalid UTF-8" and pattern.isascii():
        what, where = "invalid escape sequence", pattern[pattern.rindex("\\x") :]
    return f"error parsing regexp: {_GO_REASONS.get(what, what)}: `{where}`"


def _search(compiled: Any, text: str) -> bool:
    content = text.encode("utf-8", "replace")
    if compiled.programsize * len(content) > MAX_MATCH_WORK:
        raise MatchTooExpensiveError
    left = _seconds_left.get()
    if left is None:
        return compiled.search(content) is not None
    if left[0] <= 0:
        raise MatchTooExpensiveError
    began = time.thread_time()
    try:
        return compiled.search(content) is not None
    finally:
        left[0] -= time.thread_time() - began
