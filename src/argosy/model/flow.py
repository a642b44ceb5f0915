"""The nouns that travel through the rooms, in the order in which they come to be.

In, out: nothing but values. Never: logic that a room could hold.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from argosy.model.tree import Tree


@dataclass(frozen=True, slots=True)
class Checkout:
    """A source at one revision: the commit's id, and its files."""

    tree: Tree
    revision: str


class Health(enum.StrEnum):
    """How a live manifest fares, best to worst, in Argo CD's spelling."""

    HEALTHY = "Healthy"
    SUSPENDED = "Suspended"
    PROGRESSING = "Progressing"
    MISSING = "Missing"
    DEGRADED = "Degraded"
    UNKNOWN = "Unknown"

    def is_worse_than(self, other: Health) -> bool:
        return _WORSE[self] > _WORSE[other]


_WORSE = {health: place for place, health in enumerate(Health)}


@dataclass(frozen=True, slots=True)
class Assessment:
    """What came of judging one live manifest. A kind that has no health gives None instead."""

    health: Health | None  # argo: None is its empty health: a script that returned nil or an empty table
    message: str = ""
    rule: str = ""  # which rule judged
    fault: str = ""  # why the rule itself failed; health is then Unknown
