"""The differences from Argo CD that are kept, with their reasons: the table that the stories read.

In: known_differences.toml, the version of Argo CD that runs, the differences of a story. Out: the differences without a
reason. Never: hides a difference of a story or of a version that the table does not name.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple

from support.argocd.comparison import Difference
from support.argocd.programs import TESTED_VERSION, VERSION
from support.paths import TESTS

_FILE: Final = TESTS / "argocd/known_differences.toml"
stories_by_entry: Final[dict[str, Counter[str]]] = defaultdict(Counter)  # what the stories of this run needed


class KnownDifference(NamedTuple):
    """Regular expressions that must match completely. `argocd` and `argosy` match values; a missing value is empty."""

    name: str
    versions: str
    stories: str
    paths: str
    argocd: str
    argosy: str
    reason: str

    def explains(self, story: str, difference: Difference, version: str = VERSION) -> bool:
        return (
            _matches(self.versions, version.removeprefix("v"))
            and _matches(self.stories, story)
            and _matches(self.paths, difference.path)
            and _matches(self.argocd, difference.argocd)
            and _matches(self.argosy, difference.argosy)
        )


def _matches(pattern: str, value: Any) -> bool:
    return re.fullmatch(pattern, "" if value is None else str(value), re.DOTALL) is not None


@cache
def load_known_differences() -> tuple[KnownDifference, ...]:
    tables = tomllib.loads(_FILE.read_text())
    return tuple(
        KnownDifference(
            name,
            table.get("versions", ".*"),
            table.get("stories", ".*"),
            table["paths"],
            table.get("argocd", ".*"),
            table.get("argosy", ".*"),
            table["reason"],
        )
        for name, table in tables.items()
    )


def list_unused_names() -> list[str]:
    """Return the entries that no story of this run needed: of the tested version all, of an older one only its own."""
    entries = [entry for entry in load_known_differences() if _matches(entry.versions, VERSION.removeprefix("v"))]
    if VERSION != TESTED_VERSION:
        entries = [entry for entry in entries if not _matches(entry.versions, TESTED_VERSION.removeprefix("v"))]
    return [entry.name for entry in entries if entry.name not in stories_by_entry]


def find_unexplained(story: str, differences: Iterable[Difference]) -> list[Difference]:
    return [difference for difference in differences if not _is_known(story, difference)]


def _is_known(story: str, difference: Difference) -> bool:
    for entry in load_known_differences():
        if entry.explains(story, difference):
            stories_by_entry[entry.name][story] += 1
            return True
    return False
