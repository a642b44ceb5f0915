"""The differences from Argo CD that are kept, with their reasons: the table that the stories read.

In: known_differences.toml, the differences of a story. Out: the differences without a reason. Never: hides a difference
of a story that the table does not name.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any, Final, NamedTuple

from support.argocd.comparison import Difference
from support.paths import TESTS

_FILE: Final = TESTS / "argocd/known_differences.toml"
stories_by_entry: Final[dict[str, Counter[str]]] = defaultdict(Counter)  # what the stories of this run needed


class KnownDifference(NamedTuple):
    """Regular expressions that must match completely. `argocd` and `argosy` match values; a missing value is empty."""

    name: str
    stories: str
    paths: str
    argocd: str
    argosy: str
    reason: str

    def explains(self, story: str, difference: Difference) -> bool:
        return (
            _matches(self.stories, story)
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
            table.get("stories", ".*"),
            table["paths"],
            table.get("argocd", ".*"),
            table.get("argosy", ".*"),
            table["reason"],
        )
        for name, table in tables.items()
    )


def find_unexplained(story: str, differences: Iterable[Difference]) -> list[Difference]:
    return [difference for difference in differences if not _is_known(story, difference)]


def _is_known(story: str, difference: Difference) -> bool:
    for entry in load_known_differences():
        if entry.explains(story, difference):
            stories_by_entry[entry.name][story] += 1
            return True
    return False
