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
_TIMED = r"(?:execution|elapsed|wall|cpu|run|total|training|user|sys) ?times?|elapsed|duration|took|finished in|done in"
_UNITS = r"(?:nanoseconds?|microseconds?|milliseconds?|seconds?|secs?|minutes?|mins?|hours?|ns|[uµμ]s|ms|s|m|h)\b"
_AMOUNT = r"\d{1,15}(?:\.\d{1,15})?"  # bounded, like all patterns here: long outputs must not take minutes
_LENGTH = rf"(?<![\w.]){_AMOUNT} ?{_UNITS}(?:,? ?{_AMOUNT} ?{_UNITS}){{0,9}}"
_GAP = r"\s{0,9}[:=]?\s{0,9}"
_EPOCH = r"(?:1\d{9}|[23]\d{9}|4[01]\d{8})"
_TIMES: Final = (
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}[T ]{_CLOCK}(?: ?(?:Z|UTC|GMT|[+-]\d{{2}}:?\d{{2}}))?",
    rf"\b\d{{1,2}}/\d{{1,2}}/\d{{4}},? {_CLOCK}(?: ?[AP]M)?",
    rf"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \w{{3}} +\d{{1,2}} {_CLOCK}(?: \w+)? \d{{4}}",
    # A duration only where the text says so: "loss 0.5s" may be anything, and is compared.
    rf"(?i:\b(?:{_TIMED})(?: time)?(?: is| was| of)?{_GAP}(?:{_LENGTH}|\d{{1,3}}:{_CLOCK}|{_CLOCK}))",
    r"\bCPU times: user [^\n]{0,120}",
    rf"{_LENGTH} ± {_LENGTH} per loop.{{0,200}}",
    r"\[[\d:?]{1,12}<[\d:?]{1,12},[^\]]{0,80}\]",  # timing part of progress bars
    # Unix time in seconds or milliseconds as clocks print it, or where the text says so; plain amounts are compared.
    rf"(?<![\w.]){_EPOCH}\.\d{{3,}}\b",
    rf"(?i:\b(?:time|timestamp|epoch|date|at)s?\"?'?{_GAP}){_EPOCH}(?:\d{{3}})?\b",
)
_ADDRESSES: Final = re.compile(r"\b0x[0-9a-fA-F]{6,16}\b")
_CELL_FILES: Final = re.compile(r"(?<!\S)\S{0,200}ipykernel_\d{1,9}/\d{1,12}\.py|<ipython-input-[^>]{0,80}>")
_COLOURS: Final = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_SPACES: Final = re.compile(r"\s+")
_TOKEN: Final = re.compile(
    r"""(?P<word>\d+(?:\.\d+){2,}|[^\W\d]\w*)                                     # a version, a name
      | (?P<number>(?:(?<![\w.)\]])[-+])?(?:\d+(?:\.\d+)?|(?<!\w)\.\d+)(?:[eE][-+]?\d+)?)""",
    re.VERBOSE,
)
_AROUND_MARKS: Final = re.compile(r" ?([^\w ]) ?")
_POSIX_CLASS: Final = re.compile(r"\[:\^?\w+:\]")


class Match(IntEnum):
    """How closely two values match; the worst match of the parts is that of the whole."""

    SAME = 0
    NEAR = 1  # numbers differ within the tolerance
    SPACED = 2  # only white space differs
    OTHER = 3


def pattern_problems(patterns: Iterable[str]) -> list[str]:
    """Describe invalid patterns of users, so that they fail before the run and not in the middle of it."""
    problems = []
    for number, pattern in enumerate(patterns):
        which = f"customTimestampPatterns[{number}]"
        if _POSIX_CLASS.search(pattern):
            problems.append(f"{which}: {pattern!r} has a class such as [[:digit:]]; write \\d, \\s or \\w")
            continue
        try:
            re.compile(pattern)
        except re.error as error:
            problems.append(f"{which}: {pattern!r} is not a regular expression ({error}); correct it")
    return problems


@dataclass(frozen=True)
class Normalizer:
    """Compares texts exactly, or after normalization."""

    exact: bool = False
    tolerance: float = 0.0001
    times: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, *, exact: bool, tolerance: float, hide_times: bool, patterns: Sequence[str]) -> Normalizer:
        """Raises ValueError if a pattern is not a regular expression."""
        if problems := pattern_problems(patterns):
            raise ValueError("; ".join(problems))
        times = [*(_TIMES if hide_times else ()), *patterns]
        return cls(exact, tolerance, tuple(re.compile(each) for each in times))

    def text(self, written: str) -> str:
        """Remove times, addresses and colour codes, and keep the last state of progress bars."""
        if self.exact:
            return written
        shown = _as_shown(_COLOURS.sub("", written))
        for pattern in self.times:
            shown = pattern.sub(TIMESTAMP, shown)
        return _ADDRESSES.sub(ADDRESS, _CELL_FILES.sub(CELL_FILE, shown))

    def texts(self, golden: str, found: str) -> Match:
        if golden == found:
            return Match.SAME
        if self.exact:
            spaced = _squeezed(golden) == _squeezed(found)
            return Match.SPACED if spaced else Match.OTHER
        golden, found = _squeezed(self.text(golden)), _squeezed(self.text(found))
        return Match.SAME if golden == found else self._tokens(golden, found)

    def numbers(self, golden: float, found: float) -> Match:
        if golden == found or (math.isnan(golden) and math.isnan(found)):
            return Match.SAME
        if self.exact:
            return Match.OTHER
        # Integers are counts: one row more is a difference, however many rows there are.
        if float(golden).is_integer() and float(found).is_integer() and isinstance(golden, int):
            return Match.OTHER
        near = math.isclose(golden, found, rel_tol=self.tolerance, abs_tol=self.tolerance)
        return Match.NEAR if near else Match.OTHER

    def _tokens(self, golden: str, found: str) -> Match:
        worst = Match.SAME
        for one, other in zip_longest(_parts(golden), _parts(found)):
            if one == other:
                continue
            if isinstance(one, str) or isinstance(other, str) or one is None or other is None:
                return Match.OTHER
            worst = max(worst, self.numbers(one, other))
        return worst


def _as_shown(text: str) -> str:
    """Resolve carriage returns as a terminal does: overwritten text is dropped."""
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(next((part for part in reversed(line.split("\r")) if part.strip()), "") for line in lines)


def _squeezed(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _parts(text: str) -> list[str | float | int]:
    """Split into numbers and the words between them; columns and brackets may move when a number gets longer."""
    parts: list[str | float | int] = []
    end = 0
    for found in _TOKEN.finditer(text):
        if (number := found["number"]) is None:
            continue
        if between := _words(text[end : found.start()]):
            parts.append(between)
        parts.append(_number(number))
        end = found.end()
    rest = _words(text[end:])
    return [*parts, rest] if rest else parts


def _words(text: str) -> str:
    return _AROUND_MARKS.sub(r"\1", text).strip()


def _number(written: str) -> float | int:
    if written.lstrip("+-").isdigit():
        return int(written) if len(written) < 400 else float("inf")
    return float(written)
