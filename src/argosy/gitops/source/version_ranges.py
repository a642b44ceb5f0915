"""Semantic version ranges, and the newest tag in a range.

In: a range such as `^1.2`, tags. Out: a tag. Never: raises for text that is not a range; it is an ordinary name then.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering
from typing import NamedTuple

_PRERELEASE_AND_BUILD = r"(?:-(?P<pre>[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
_VERSION = re.compile(
    r"v?(?P<major>\d{1,18})(?:\.(?P<minor>\d{1,18}))?(?:\.(?P<patch>\d{1,18}))?" + _PRERELEASE_AND_BUILD, re.ASCII
)
_PART = r"(?:\d{1,18}|[xX*])"
_TERM = re.compile(
    r"(?P<sign>=>|>=|<=|=<|!=|~>|=|>|<|~|\^|)\s*"
    rf"v?(?P<major>{_PART})(?:\.(?P<minor>{_PART}))?(?:\.(?P<patch>{_PART}))?{_PRERELEASE_AND_BUILD}",
    re.ASCII,
)
_HYPHEN = re.compile(r"(\S+)\s+-\s+(\S+)")
_TERM_SEPARATOR = re.compile(r"\s*,\s*|\s+|$")
MAX_RANGE_LENGTH = 256


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class SemanticVersion:
    """A semantic version; missing parts are zero."""

    numbers: tuple[int, int, int]
    prerelease: str = ""

    def _sort_key(self) -> tuple[object, ...]:
        # Numeric identifiers sort before alphanumeric ones, and a release after its pre-releases.
        parts = [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.prerelease.split(".") if part]
        return (self.numbers, not self.prerelease, parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SemanticVersion) and self._sort_key() == other._sort_key()

    def __lt__(self, other: SemanticVersion) -> bool:
        return self._sort_key() < other._sort_key()

    def __hash__(self) -> int:
        return hash((self.numbers, self.prerelease))


class _RangeTerm(NamedTuple):
    operator: str
    version: SemanticVersion
    given_parts: int  # how many of major, minor, patch are given as numbers

    def matches(self, version: SemanticVersion) -> bool:
        numbers, given_parts = version.numbers, self.given_parts
        is_same_prefix = numbers[:given_parts] == self.version.numbers[:given_parts]
        match self.operator:
            case "!=":
                return not (is_same_prefix if 0 < given_parts < 3 else version == self.version)
            case ">":
                return (
                    version > self.version
                    if given_parts in (0, 3)
                    else numbers[:given_parts] > self.version.numbers[:given_parts]
                )
            case "<":
                return version < self.version
            case ">=" | "=>":
                return version >= self.version
            case "<=" | "=<":
                return (
                    numbers[:given_parts] <= self.version.numbers[:given_parts]
                    if 0 < given_parts < 3
                    else version <= self.version
                )
            case "^":
                return version >= self.version and self._is_in_caret_range(numbers)
            case "~" | "~>":
                return version >= self.version and self._is_in_tilde_range(numbers)
        return (
            version == self.version
            if given_parts == 3
            else version >= self.version and self._is_in_tilde_range(numbers)
        )

    def _is_in_tilde_range(self, numbers: tuple[int, int, int]) -> bool:
        bound = self.version.numbers
        if self.given_parts == 0 or (self.given_parts == 3 and not any(bound)):  # argo: ~0.0.0 admits everything
            return True
        fixed_parts = 1 if self.given_parts == 1 else 2
        return numbers[:fixed_parts] == bound[:fixed_parts]

    def _is_in_caret_range(self, numbers: tuple[int, int, int]) -> bool:
        """True if the versions agree up to the first given number that is not zero."""
        bound = self.version.numbers
        for position in range(self.given_parts):
            if bound[position] or position == self.given_parts - 1:
                return numbers[: position + 1] == bound[: position + 1]
        return True


class VersionRange(NamedTuple):
    """Groups joined by ||; a version matches if it satisfies all terms of one group."""

    groups: tuple[tuple[_RangeTerm, ...], ...]

    def matches(self, version: SemanticVersion) -> bool:
        return any(_matches_group(group, version) for group in self.groups)


def _matches_group(group: tuple[_RangeTerm, ...], version: SemanticVersion) -> bool:
    # argo: pre-releases match only if the range names one, such as the `-0` of `>=1.2.0-0`.
    if version.prerelease and not any(term.version.prerelease for term in group):
        return False
    return all(term.matches(version) for term in group)


def parse_version(text: str) -> SemanticVersion | None:
    if len(text) > MAX_RANGE_LENGTH or not (match := _VERSION.fullmatch(text)):
        return None
    numbers = (int(match["major"]), int(match["minor"] or 0), int(match["patch"] or 0))
    return SemanticVersion(numbers, match["pre"] or "")


def parse_range(text: str) -> VersionRange | None:
    if len(text) > MAX_RANGE_LENGTH:
        return None
    text = _HYPHEN.sub(r">=\1 <=\2", text)
    groups = [_parse_group(part.strip()) for part in text.split("||")]
    return VersionRange(tuple(group for group in groups if group)) if all(groups) else None


def _parse_group(text: str) -> tuple[_RangeTerm, ...]:
    terms: list[_RangeTerm] = []
    position = 0
    while position < len(text):
        match = _TERM.match(text, position)
        if not match:
            return ()
        terms.append(_build_term(match))
        position = match.end()
        gap = _TERM_SEPARATOR.match(text, position)
        if not gap or (gap.end() == len(text) and "," in gap[0]):
            return ()
        position = gap.end()
    return tuple(terms)


def _build_term(match: re.Match[str]) -> _RangeTerm:
    numbers = [0, 0, 0]
    given_parts = 0
    for position, part in enumerate((match["major"], match["minor"], match["patch"])):
        if part is None or not part.isdigit():
            break
        numbers[position], given_parts = int(part), position + 1
    return _RangeTerm(
        match["sign"], SemanticVersion((numbers[0], numbers[1], numbers[2]), match["pre"] or ""), given_parts
    )


def find_newest_tag(ref: str, tags: Iterable[str], prefix: str = "") -> str | None:
    """Return the tag that a ref selects; None if the ref is no version and no range, or if no tag is in the range.

    A full version is a pin: it selects the tag of that name even if there is none.
    """
    if parse_version(ref):
        return prefix + ref
    if not (version_range := parse_range(ref)):
        return None
    best: tuple[SemanticVersion, str] | None = None
    for tag in tags:
        version = parse_version(tag.removeprefix(prefix)) if tag.startswith(prefix) else None
        if version and version_range.matches(version) and (best is None or version > best[0]):
            best = (version, tag)
    return best[1] if best else None
