"""Texts without what differs from run to run, and numbers that are compared as numbers.

In: two texts. Out: whether they say the same, and how nearly. Never: hides a number because of what stands behind it.
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
_AMOUNT = r"\d{1,15}(?:\.\d{1,15})?"  # bounded, as all of these: an output of a million digits must not take minutes
_LENGTH = rf"(?<![\w.]){_AMOUNT} ?{_UNITS}(?:,? ?{_AMOUNT} ?{_UNITS}){{0,9}}"
_GAP = r"\s{0,9}[:=]?\s{0,9}"
_EPOCH = r"(?:1\d{9}|[23]\d{9}|4[01]\d{8})"
_TIMES: Final = (
    rf"\b\d{{4}}-\d{{2}}-\d{{2}}[T ]{_CLOCK}(?: ?(?:Z|UTC|GMT|[+-]\d{{2}}:?\d{{2}}))?",
    rf"\b\d{{1,2}}/\d{{1,2}}/\d{{4}},? {_CLOCK}(?: ?[AP]M)?",
    rf"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \w{{3}} +\d{{1,2}} {_CLOCK}(?: \w+)? \d{{4}}",
    # A length of time only where the text says that it is one: "loss 0.5s" might be anything, and is compared.
    rf"(?i:\b(?:{_TIMED})(?: time)?(?: is| was| of)?{_GAP}(?:{_LENGTH}|\d{{1,3}}:{_CLOCK}|{_CLOCK}))",
    r"\bCPU times: user [^\n]{0,120}",
    rf"{_LENGTH} ± {_LENGTH} per loop.{{0,200}}",
    r"\[[\d:?]{1,12}<[\d:?]{1,12},[^\]]{0,80}\]",  # what progress bars say of time
    # Seconds or milliseconds since 1970 as a clock gives them, or where the text says so; an amount is none.
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
    """How nearly two things are the same; the worst of parts is that of the whole."""

    SAME = 0
    NEAR = 1  # numbers that differ within the tolerance
    SPACED = 2  # only white space differs
    OTHER = 3


def pattern_problems(patterns: Iterable[str]) -> list[str]:
    """What is wrong with patterns of users, in sentences; they must not surprise anybody in the middle of a run."""
    problems = []
    for number, pattern in enumerate(patterns):
        which = f"customTimestampPatterns[{number}]"
        if _POSIX_CLASS.search(pattern):
            problems.append(f"{which}: {pattern!r} has a class such as [[:digit:]]; write \\d, \\s or \\w")
            continue
        try:
            re.compile(pattern)
        except re.error as error:
            problems.append(f"{which}: {pattern!r} is no regular expression ({error}); correct it")
    return problems


@dataclass(frozen=True)
class Normalizer:
    """How texts are compared: exactly, or by what they say."""

    exact: bool = False
    tolerance: float = 0.0001
    times: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, *, exact: bool, tolerance: float, hide_times: bool, patterns: Sequence[str]) -> Normalizer:
        """Raises ValueError with a sentence if a pattern is not a regular expression."""
        if problems := pattern_problems(patterns):
            raise ValueError("; ".join(problems))
        times = [*(_TIMES if hide_times else ()), *patterns]
        return cls(exact, tolerance, tuple(re.compile(each) for each in times))

    def text(self, written: str) -> str:
        """What it says: no times, addresses or colours, and what a progress bar wrote last."""
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
        # Whole numbers count things: a row more is a row more, however many there are.
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
    """What a terminal would show: a line that is written over is gone."""
    if "\r" not in text:
        return text
    lines = text.replace("\r\n", "\n").split("\n")
    return "\n".join(next((part for part in reversed(line.split("\r")) if part.strip()), "") for line in lines)


def _squeezed(text: str) -> str:
    return _SPACES.sub(" ", text).strip()


def _parts(text: str) -> list[str | float | int]:
    """Numbers, and the words between them; columns and brackets move when a number gets a digit more."""
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
