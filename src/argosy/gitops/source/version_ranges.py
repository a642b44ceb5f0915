"""Semantic version ranges, and the newest tag in a range.

In: a range such as `^1.2`, tags. Out: a tag. Never: raises for text that is not a range; it is an ordinary name then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering
from typing import NamedTuple

_TAIL = r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
_VERSION = re.compile(r"v?(?P<major>\d{1,18})(?:\.(?P<minor>\d{1,18}))?(?:\.(?P<patch>\d{1,18}))?" + _TAIL, re.ASCII)
_PART = r"(?:\d{1,18}|[xX*])"
_TERM = re.compile(
    r"(?P<sign>=>|>=|<=|=<|!=|~>|=|>|<|~|\^|)\s*"
    rf"v?(?P<major>{_PART})(?:\.(?P<minor>{_PART}))?(?:\.(?P<patch>{_PART}))?{_TAIL}",
    re.ASCII,
)
_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")
_GAP = re.compile(r"\s*,\s*|\s+|$")
LONGEST = 256


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """A semantic version; missing parts are zero."""

    numbers: tuple[int, int, int]
    pre: str = ""

    def _order(self) -> tuple[object, ...]:
        # Numeric identifiers sort before alphanumeric ones, and a release after its pre-releases.
        parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.pre.split(".") if part]
        return (self.numbers, not self.pre, parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self._order() == other._order()

    def __lt__(self, other: Version) -> bool:
        return self._order() < other._order()

    def __hash__(self) -> int:
        return hash((self.numbers, self.pre))


class _Term(NamedTuple):
    sign: str
    version: Version
    given: int  # how many of major, minor, patch are given as numbers

    def admits(self, version: Version) -> bool:
        numbers, given = version.numbers, self.given
        same = numbers[:given] == self.version.numbers[:given]
        match self.sign:
            case "!=":
                return not (same if 0 < given < 3 else version == self.version)
            case ">":
                return version > self.version if given in (0, 3) else numbers[:given] > self.version.numbers[:given]
            case "<":
                return version < self.version
            case ">=" | "=>":
                return version >= self.version
            case "<=" | "=<":
                return numbers[:given] <= self.version.numbers[:given] if 0 < given < 3 else version <= self.version
            case "^":
                return version >= self.version and self._is_compatible(numbers)
            case "~" | "~>":
                return version >= self.version and self._is_near(numbers)
        return version == self.version if given == 3 else version >= self.version and self._is_near(numbers)

    def _is_near(self, numbers: tuple[int, int, int]) -> bool:
        wanted = self.version.numbers
        if self.given == 0 or (self.given == 3 and not any(wanted)):  # argo: ~0.0.0 admits everything
            return True
        kept = 1 if self.given == 1 else 2
        return numbers[:kept] == wanted[:kept]

    def _is_compatible(self, numbers: tuple[int, int, int]) -> bool:
        """True if the versions agree up to the first given number that is not zero."""
        wanted = self.version.numbers
        for place in range(self.given):
            if wanted[place] or place == self.given - 1:
                return numbers[: place + 1] == wanted[: place + 1]
        return True


class Range(NamedTuple):
    """Groups joined by ||; a version matches if it satisfies all terms of one group."""

    groups: tuple[tuple[_Term, ...], ...]

    def admits(self, version: Version) -> bool:
        return any(_group_admits(group, version) for group in self.groups)


def _group_admits(group: tuple[_Term, ...], version: Version) -> bool:
    # argo: pre-releases match only if the range names one, such as the `-0` of `>=1.2.0-0`.
    if version.pre and not any(term.version.pre for term in group):
        return False
    return all(term.admits(version) for term in group)


def parse_version(text: str) -> Version | None:
    if len(text) > LONGEST or not (found := _VERSION.fullmatch(text)):
        return None
    numbers = (int(found["major"]), int(found["minor"] or 0), int(found["patch"] or 0))
    return Version(numbers, found["pre"] or "")


def parse_range(text: str) -> Range | None:
    if len(text) > LONGEST:
        return None
    text = _HYPHEN.sub(r">=\1 <=\2", text)
    groups = [_parse_group(part.strip()) for part in text.split("||")]
    return Range(tuple(group for group in groups if group)) if all(groups) else None


def _parse_group(text: str) -> tuple[_Term, ...]:
    terms: list[_Term] = []
    place = 0
    while place < len(text):
        found = _TERM.match(text, place)
        if not found:
            return ()
        terms.append(_term(found))
        place = found.end()
        gap = _GAP.match(text, place)
        if not gap or (gap.end() == len(text) and "," in gap[0]):
            return ()
        place = gap.end()
    return tuple(terms)


def _term(found: re.Match[str]) -> _Term:
    numbers = [0, 0, 0]
    given = 0
    for place, part in enumerate((found["major"], found["minor"], found["patch"])):
        if part is None or not part.isdigit():
            break
        numbers[place], given = int(part), place + 1
    return _Term(found["sign"], Version((numbers[0], numbers[1], numbers[2]), found["pre"] or ""), given)


def newest_tag(ref: str, tags: Iterable[str], prefix: str = "") -> str | None:
    """Return the tag that a ref selects; None if the ref is no version and no range, or if no tag is in the range.

    A full version is a pin: it selects the tag of that name even if there is none.
    """
    if parse_version(ref):
        return prefix + ref
    if not (wanted := parse_range(ref)):
        return None
    best: tuple[Version, str] | None = None
    for tag in tags:
        version = parse_version(tag.removeprefix(prefix)) if tag.startswith(prefix) else None
        if version and wanted.admits(version) and (best is None or version > best[0]):
            best = (version, tag)
    return best[1] if best else None
