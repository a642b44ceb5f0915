"""Normalizes texts for comparison and compares numbers with a tolerance.

In: two texts. Out: how closely they match. Never: hides a number because of the words around it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import zip_longest
from typing import Final

TIMESTAMP, ADDRESS, CELL_FILE = "[TIMESTAMP]", "[ADDRESS]", "[CELL]"

_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
_TIMED_WORDS = (
    r"(?:execution|elapsed|wall|cpu|run|total|training|user|sys) ?times?|elapsed|duration|took|finished in|done in"
)
_UNITS = r"(?:nanoseconds?|microseconds?|milliseconds?|seconds?|secs?|minutes?|mins?|hours?|ns|[uµμ]s|ms|s|m|h)\b"
_AMOUNT = r"\d{1,15}(?:\.\d{1,15})?"  # bounded, like all patterns here: long outputs must not take minutes
_DURATION = rf"(?<![\w.]){_AMOUNT} ?{_UNITS}(?:,? ?{_AMOUNT} ?{_UNITS}){{0,9}}"
_GAP = r"\s{0,9}[:=]?\s{0,9}"
_EPOCH = r"(?:1\d{9}|[23]\d{9}|4[01]\d{8})"
_TIME_PATTERNS: Final = (
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}[T ]{_CLOCK}(?: ?(?:Z|UTC|GMT|[+-]\d{{2}}:?\d{{2}}))?",
    rf"\b\d{{1,2}}/\d{{1,2}}/\d{{4}},? {_CLOCK}(?: ?[AP]M)?",
    rf"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \w{{3}} +\d{{1,2}} {_CLOCK}(?: \w+)? \d{{4}}",
    # A duration only where the text says so: "loss 0.5s" may be anything, and is compared.
    rf"(?i:\b(?:{_TIMED_WORDS})(?: time)?(?: is| was| of)?{_GAP}(?:{_DURATION}|\d{{1,3}}:{_CLOCK}|{_CLOCK}))",
    r"\bCPU times: user [^\n]{0,120}",
    rf"{_DURATION} ± {_DURATION} per loop.{{0,200}}",
    r"\[[\d:?]{1,12}<[\d:?]{1,12},[^\]]{0,80}\]",  # timing part of progress bars
    # Unix time in seconds or milliseconds as clocks print it, or where the text says so; plain amounts are compared.
    rf"(?<![\w.]){_EPOCH}\.\d{{3,}}\b",
    rf"(?i:\b(?:time|timestamp|epoch|date|at)s?\"?'?{_GAP}){_EPOCH}(?:\d{{3}})?\b",
)
_ADDRESS_PATTERN: Final = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
_CELL_FILE_PATTERN: Final = re.compile(r"(?<!\S)\S{0,200}ipykernel_\d{1,9}/\d{1,12}\.py|<ipython-input-[^>]{0,80}>")
_ANSI_CODES: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_WHITESPACE: Final = re.compile(r"\s+")
_TOKEN: Final = re.compile(
    r"""(?P<word>\d+(?:\.\d+){2,}|[^\W\d]\w*)                                     # a version, a name
      | (?P<number>(?:(?<![\w.)\]])[-+])?(?:\d+(?:\.\d+)?|(?<!\w)\.\d+)(?:[eE][-+]?\d+)?)""",
    re.VERBOSE,
)
_PUNCTUATION_SPACING: Final = re.compile(r" ?([^\w ]) ?")
_POSIX_CLASS: Final = re.compile(r"\[:\^?\w+:\]")


class Match(IntEnum):
    """How closely two values match; the worst match of the parts is that of the whole."""

    SAME = 0
    WITHIN_TOLERANCE = 1  # numbers differ within the tolerance
    WHITESPACE_ONLY = 2  # only white space differs
    DIFFERENT = 3


def find_pattern_problems(patterns: Iterable[str]) -> list[str]:
    """Describe invalid patterns of users, so that they fail before the run and not in the middle of it."""
    problems = []
    for number, pattern in enumerate(patterns):
        setting_name = f"customTimestampPatterns[{number}]"
        if _POSIX_CLASS.search(pattern):
            problems.append(f"{setting_name}: {pattern!r} has a class such as [[:digit:]]; write \\d, \\s or \\w")
            continue
        try:
            re.compile(pattern)
        except re.error as error:
            problems.append(f"{setting_name}: {pattern!r} is not a regular expression ({error}); correct it")
    return problems


@dataclass(frozen=True)
class Normalizer:
    """Compares texts exactly, or after normalization."""

    exact: bool = False
    tolerance: float = 0.0001
    time_patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def create(cls, *, exact: bool, tolerance: float, hide_times: bool, patterns: Sequence[str]) -> Normalizer:
        """Raises ValueError if a pattern is not a regular expression."""
        if problems := find_pattern_problems(patterns):
            raise ValueError("; ".join(problems))
        patterns_in_use = [*(_TIME_PATTERNS if hide_times else ()), *patterns]
        return cls(exact, tolerance, tuple(re.compile(time_pattern) for time_pattern in patterns_in_use))

    def normalize(self, text: str) -> str:
        """Remove times, addresses and colour codes, and keep the last state of progress bars."""
        if self.exact:
            return text
        visible = _resolve_carriage_returns(_ANSI_CODES.sub("", text))
        for pattern in self.time_patterns:
            visible = pattern.sub(TIMESTAMP, visible)
        return _ADDRESS_PATTERN.sub(ADDRESS, _CELL_FILE_PATTERN.sub(CELL_FILE, visible))

    def compare_texts(self, golden: str, executed: str) -> Match:
        if golden == executed:
            return Match.SAME
        if self.exact:
            is_equal_without_spacing = _collapse_whitespace(golden) == _collapse_whitespace(executed)
            return Match.WHITESPACE_ONLY if is_equal_without_spacing else Match.DIFFERENT
        golden, executed = _collapse_whitespace(self.normalize(golden)), _collapse_whitespace(self.normalize(executed))
        return Match.SAME if golden == executed else self._compare_tokens(golden, executed)

    def compare_numbers(self, golden: float, executed: float) -> Match:
        if golden == executed or (math.isnan(golden) and math.isnan(executed)):
            return Match.SAME
        if self.exact:
            return Match.DIFFERENT
        # Integers are counts: one row more is a difference, however many rows there are.
        if float(golden).is_integer() and float(executed).is_integer() and isinstance(golden, int):
            return Match.DIFFERENT
        is_close = math.isclose(golden, executed, rel_tol=self.tolerance, abs_tol=self.tolerance)
        return Match.WITHIN_TOLERANCE if is_close else Match.DIFFERENT

    def _compare_tokens(self, golden: str, executed: str) -> Match:
        worst_match = Match.SAME
        for golden_token, executed_token in zip_longest(_split_numbers(golden), _split_numbers(executed)):
            if golden_token == executed_token:
                continue
            if (
                isinstance(golden_token, str)
                or isinstance(executed_token, str)
                or golden_token is None
                or executed_token is None
            ):
                return Match.DIFFERENT
            worst_match = max(worst_match, self.compare_numbers(golden_token, executed_token))
        return worst_match


def _resolve_carriage_returns(text: str) -> str:
    """Resolve carriage returns as a terminal does: overwritten text is dropped."""
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(next((part for part in reversed(line.split("\r")) if part.strip()), "") for line in lines)


def _collapse_whitespace(text: str) -> str:
    return _WHITESPACE.sub(" ", text).strip()


def _split_numbers(text: str) -> list[str | float | int]:
    """Split into numbers and the words between them; columns and brackets may move when a number gets longer."""
    parts: list[str | float | int] = []
    end = 0
    for match in _TOKEN.finditer(text):
        if (number := match["number"]) is None:
            continue
        if words := _strip_punctuation_spacing(text[end : match.start()]):
            parts.append(words)
        parts.append(_parse_number(number))
        end = match.end()
    last_words = _strip_punctuation_spacing(text[end:])
    return [*parts, last_words] if last_words else parts


def _strip_punctuation_spacing(text: str) -> str:
    return _PUNCTUATION_SPACING.sub(r"\1", text).strip()


def _parse_number(text: str) -> float | int:
    if text.lstrip("+-").isdigit():
        return int(text) if len(text) < 400 else float("inf")
    return float(text)
