"""Go's regular expressions, as users write them, matched in bounded time.

In: a pattern and a text. Out: whether and where it matches, as in Go's regexp. Never: backtracks: Python's engine runs
only patterns that it matches in linear time; RE2, whose syntax and results are those of Go, runs all others.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Final

MAX_PATTERN_CHARACTERS: Final = 4096
MAX_MATCHING_SECONDS: Final = 2.0  # CPU time for all patterns of one object
# Instructions times bytes: RE2 needs up to 30 ns for each if its automaton does not fit into its memory budget.
MAX_MATCH_WORK: Final = 50_000_000
MAX_COMPILED_INSTRUCTIONS: Final = MAX_MATCH_WORK // 4_000  # of `compile_go_regexp`; a name has up to 4,000 bytes
_MAX_PYTHON_TEXT_CHARACTERS = 4096
_MAX_COMMON_PATTERN_CHARACTERS = 256
_MAX_CACHED_TEXT_CHARACTERS = 512  # caching thousands of longer texts would use too much memory
_SMALL_PROGRAM_BYTES: Final = 1 << 20
_LARGE_PROGRAM_BYTES: Final = 64 << 20  # for patterns such as \pL{100}, which Go accepts

# A sequence of characters and classes without groups, of which at most one has a variable repeat.
_LINEAR_PIECE = r"(?:\[\^?\]?(?:\\[\w.\-/\\]|[^\\\]\[])*\]|\\[.dwDW/\-\\]|[^\\^$.|?*+()\[\]{}])"
_FIXED_PIECES = rf"(?:{_LINEAR_PIECE}(?:\{{\d{{1,3}}\}})?)*"
_LINEAR_PATTERN = re.compile(
    rf"\^{_FIXED_PIECES}(?:{_LINEAR_PIECE}(?:[*+?]|\{{\d{{1,3}},(?:\d{{1,3}})?\}}){_FIXED_PIECES})?\$?"
)

# k8s: the pattern of quantities, in nearly every CRD. It is unambiguous, so the engine never backtracks.
_QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
    r"(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

# Syntax that all engines read alike, so that Python can check it without loading RE2: characters, ASCII classes, dots,
# anchors, groups, alternatives, simple repeats.
_COMMON_PIECE = r"(?:[\w/@:,;=~!#%&\"'<> -]|\\[.+*?()\[\]{}|^$/\\-]|\.|\[\^?-?(?:[\w./:@+](?:-[\w])?)+-?\])"
_COMMON_PATTERN = re.compile(rf"(?:{_COMMON_PIECE}(?:[*+?]|\{{\d(?:,\d?)?\}})?|\((?:\?:)?|\)[*+?]?|[\^$|])*", re.ASCII)

_MAX_GROUP_DEPTH: Final = 1000  # k8s: Go rejects deeper groups
_QUOTED_LITERAL: Final = re.compile(r"\\Q.*?(?:\\E|\Z)", re.DOTALL)
_LARGE_REPEAT_COUNT: Final = re.compile(r"\{\d*,?\d{10,}\}|\{\d{10,},?\}")
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


RegexpMatcher = Callable[[str], bool]
Span = tuple[int, int]  # of bytes; (-1, -1) for a group that took no part in the match


class InvalidGoRegexp(ValueError):
    """Not a regular expression, not one of Go's, or too large; the message is Go's."""


class MatchTooExpensiveError(ValueError):
    """A text is too long for its pattern, or the patterns of one object took too much CPU time."""


_seconds_left: ContextVar[list[float] | None] = ContextVar("seconds_left", default=None)


@contextmanager
def limit_matching_time() -> Iterator[None]:
    """Limit the CPU time of all matches in the block; matches after the limit raise MatchTooExpensiveError."""
    token = _seconds_left.set([MAX_MATCHING_SECONDS])
    try:
        yield
    finally:
        _seconds_left.reset(token)


def compile_go_regexp(pattern: str) -> RegexpMatcher:
    """Compile a pattern for many short texts, such as names in a policy. Raises InvalidGoRegexp.

    Decides everything about the pattern now: a matcher never takes an invalid or too large pattern for one that
    matches nothing. It raises MatchTooExpensiveError if a text is too long.
    """
    compiled = _compile_for_many_texts(pattern)
    linear = _compile_linear(pattern)

    def search(text: str) -> bool:
        if linear is not None and _is_short_line(text):
            return linear.search(text) is not None
        return _search(compiled, text)

    return search


class GoRegexpFinder:
    """Finds all matches of a pattern in a text, in the order and number of Go. Raises InvalidGoRegexp."""

    def __init__(self, pattern: str, *, needs_groups: bool = False) -> None:
        self._compiled = _compile_for_many_texts(pattern, needs_groups=needs_groups)
        self.group_numbers: Mapping[str, int] = self._compiled.groupindex

    def iter_spans(self, content: bytes) -> Iterator[Sequence[Span]]:
        """Yield the spans of each match and its groups in UTF-8. Raises MatchTooExpensiveError.

        As in Go, an empty match right behind another match is none.
        """
        if self._compiled.programsize * len(content) > MAX_MATCH_WORK:
            raise MatchTooExpensiveError
        group_count = self._compiled.groups
        seconds_left = MAX_MATCHING_SECONDS  # a pattern may read the rest of the text for each match
        position, previous_end = 0, -1
        while position <= len(content):
            started = time.thread_time()
            match = self._compiled.search(content, position)
            seconds_left -= time.thread_time() - started
            if match is None:
                return
            if seconds_left < 0:
                raise MatchTooExpensiveError
            start, end = match.span()
            is_repeated = start == end == previous_end
            position = _skip_character(content, position) if end == position else end
            previous_end = end
            if not is_repeated:
                yield [match.span(number) for number in range(group_count + 1)]


def _skip_character(content: bytes, position: int) -> int:
    position += 1
    while position < len(content) and content[position] & 0xC0 == 0x80:
        position += 1
    return position


def _compile_for_many_texts(pattern: str, *, needs_groups: bool = False) -> Any:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise InvalidGoRegexp(f"longer than {MAX_PATTERN_CHARACTERS} characters")
    try:
        compiled = _compile(pattern, needs_groups)
    except ValueError as error:
        raise InvalidGoRegexp(str(error)) from error
    if compiled.programsize > MAX_COMPILED_INSTRUCTIONS:
        raise InvalidGoRegexp("error parsing regexp: expression too large")
    return compiled


def find_pattern_error(pattern: str) -> str:
    """Return why a pattern is invalid, or ""."""
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        return f"longer than {MAX_PATTERN_CHARACTERS} characters"
    if _compile_linear(pattern) is not None or _is_common_syntax(pattern):
        return ""
    try:
        _compile(pattern)
    except ValueError as error:
        return str(error)
    return ""


def matches(pattern: str, text: str) -> bool:
    """True if the pattern matches anywhere. An invalid pattern matches nothing. May raise MatchTooExpensiveError."""
    return (
        _matches_cached(pattern, text) if len(text) <= _MAX_CACHED_TEXT_CHARACTERS else _matches_uncached(pattern, text)
    )


@lru_cache(maxsize=4096)
def _matches_cached(pattern: str, text: str) -> bool:
    return _matches_uncached(pattern, text)


def _matches_uncached(pattern: str, text: str) -> bool:
    linear = _compile_linear(pattern)
    if linear is not None and _is_short_line(text):
        return linear.search(text) is not None
    try:
        compiled = _compile(pattern)
    except ValueError:
        return False
    return _search(compiled, text)


def _is_short_line(text: str) -> bool:
    """True if Python may match a linear pattern: its `$` also matches before a trailing line break, Go's does not."""
    return "\n" not in text and len(text) <= _MAX_PYTHON_TEXT_CHARACTERS


@lru_cache(maxsize=1024)
def _compile_linear(pattern: str) -> re.Pattern[str] | None:
    """Compile with Python's engine if it matches in linear time: anchored, no groups, one variable repeat."""
    if len(pattern) > MAX_PATTERN_CHARACTERS or not (
        pattern == _QUANTITY_PATTERN or _LINEAR_PATTERN.fullmatch(pattern)
    ):
        return None
    try:
        return re.compile(pattern, re.ASCII)
    except (re.error, OverflowError):
        return None


def _is_common_syntax(pattern: str) -> bool:
    """True if Python accepts the pattern and it only has syntax that all engines read alike."""
    if not pattern.isascii() or len(pattern) > _MAX_COMMON_PATTERN_CHARACTERS or not _COMMON_PATTERN.fullmatch(pattern):
        return False
    try:
        re.compile(pattern)
    except (re.error, OverflowError):
        return False
    return True


def _compile(pattern: str, needs_groups: bool = False) -> Any:
    """Compile with RE2; raise ValueError with Go's message if the pattern is invalid."""
    small = _compile_with_small_memory(pattern, needs_groups)
    return _compile_with_large_memory(pattern, needs_groups) if small is None else small


@lru_cache(maxsize=256)
def _compile_with_small_memory(pattern: str, needs_groups: bool) -> Any:
    """Compile with little memory, enough for most patterns; return None if the program does not fit."""
    if reason := _find_error_unknown_to_re2(pattern):
        raise ValueError(reason)
    return _compile_within(pattern, _SMALL_PROGRAM_BYTES, needs_groups)


@lru_cache(maxsize=4)
def _compile_with_large_memory(pattern: str, needs_groups: bool) -> Any:
    compiled = _compile_within(pattern, _LARGE_PROGRAM_BYTES, needs_groups)
    if compiled is None:
        raise ValueError("error parsing regexp: expression too large")
    return compiled


def _compile_within(pattern: str, memory: int, needs_groups: bool) -> Any:
    import re2  # imported lazily: most commands match no user patterns

    options = re2.Options()
    options.max_mem, options.log_errors, options.never_capture = memory, False, not needs_groups
    try:
        return re2.compile(pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        reason = error.args[0].decode() if isinstance(error.args[0], bytes) else "invalid UTF-8"
        if reason.startswith("pattern too large"):
            return None
        raise ValueError(_format_go_error(reason, pattern)) from error
    finally:
        re2.purge()  # re2's own cache would keep 128 more programs of any size


def _find_error_unknown_to_re2(pattern: str) -> str:
    """Return Go's error for a pattern that RE2 accepts and Go rejects, or ""."""
    unquoted = _QUOTED_LITERAL.sub("", pattern)
    if match := re.search(r"(?<!\\)(?:\\\\)*\\C", unquoted):
        return f"error parsing regexp: invalid escape sequence: `{match[0][-2:]}`"
    if match := _LARGE_REPEAT_COUNT.search(unquoted):
        return f"error parsing regexp: invalid repeat count: `{match[0]}`"
    depth = deepest = 0
    for token in re.findall(r"\\.|\[\^?\]?(?:\\.|[^\\\]])*\]|[()]", unquoted, re.DOTALL):
        depth += (token == "(") - (token == ")")
        deepest = max(deepest, depth)
    return f"error parsing regexp: expression nests too deeply: `{pattern}`" if deepest >= _MAX_GROUP_DEPTH else ""


def _format_go_error(reason: str, pattern: str) -> str:
    problem, _, excerpt = reason.partition(": ")
    if problem == "invalid perl operator" and excerpt in ("(?<=", "(?<!"):
        problem, excerpt = "invalid named capture", pattern[pattern.index(excerpt) :]
    elif problem == "invalid UTF-8" and pattern.isascii():
        problem, excerpt = "invalid escape sequence", pattern[pattern.rindex("\\x") :]
    return f"error parsing regexp: {_GO_REASONS.get(problem, problem)}: `{excerpt}`"


def _search(compiled: Any, text: str) -> bool:
    content = text.encode("utf-8", "replace")
    if compiled.programsize * len(content) > MAX_MATCH_WORK:
        raise MatchTooExpensiveError
    seconds_left = _seconds_left.get()
    if seconds_left is None:
        return compiled.search(content) is not None
    if seconds_left[0] <= 0:
        raise MatchTooExpensiveError
    started = time.thread_time()
    try:
        return compiled.search(content) is not None
    finally:
        seconds_left[0] -= time.thread_time() - started
