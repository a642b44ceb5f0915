"""The differences between the real operator and the simulated one that are kept, with their reasons.

In: kept_differences.toml, differences. Out: the differences without a reason. Never: hides one that the table does not
name.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from typing import Final, NamedTuple

from support.argocd.comparison import Difference, find_differences
from support.argocd_operator.facts import Facts
from support.paths import DATA

_FILE: Final = DATA / "argocd-operator/kept_differences.toml"


class KeptDifference(NamedTuple):
    """Regular expressions that must match completely: names of shapes and edits, objects, and paths in them."""

    name: str
    cases: str
    objects: str
    paths: str
    reason: str

    def explains(self, case: str, difference: Difference) -> bool:
        patterns = ((self.cases, case), (self.objects, difference.subject), (self.paths, difference.path))
        return all(re.fullmatch(pattern, text, re.DOTALL) for pattern, text in patterns)


@cache
def load_kept_differences() -> tuple[KeptDifference, ...]:
    return tuple(
        KeptDifference(
            name, table.get("cases", ".*"), table.get("objects", ".*"), table.get("paths", ".*"), table["reason"]
        )
        for name, table in tomllib.loads(_FILE.read_text()).items()
    )


def compare_facts(real: Facts, simulated: Facts) -> list[Difference]:
    """Compare object by object and field by field; an object that only one side has is one difference."""
    differences: list[Difference] = []
    for subject in sorted({*real, *simulated}):
        left, right = real.get(subject), simulated.get(subject)
        if left == right:
            continue
        if left is None or right is None:
            differences.append(Difference(subject, "(object)", left and "exists", right and "exists"))
        else:
            differences += find_differences(subject, left, right)
    return differences


def find_unexplained(case: str, differences: Iterable[Difference], used: Counter[str]) -> list[Difference]:
    """Return the differences without a reason, and count the used entries of the table in `used`."""
    unexplained = []
    for difference in differences:
        entry = next((entry for entry in load_kept_differences() if entry.explains(case, difference)), None)
        if entry is None:
            unexplained.append(difference)
        else:
            used[entry.name] += 1
    return unexplained
