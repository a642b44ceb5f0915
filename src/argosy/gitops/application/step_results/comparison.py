"""The nouns of a sync, in the order in which they come to be: what differs, whose turn it is, how it fares.

In, out: nothing but values. Never: logic that a room could hold.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from argosy.gitops.application.operations import Phase
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest


class SyncStatus(enum.StrEnum):
    SYNCED = "Synced"
    OUT_OF_SYNC = "OutOfSync"
    UNKNOWN = "Unknown"


class Difference(NamedTuple):
    """One field that is not as desired. Where a side has no such field, `has_` says so: null is a value too."""

    pointer: str
    desired: Any
    live: Any
    has_desired: bool = True
    has_live: bool = True
    manager: str = ""  # who wrote the live value, by managedFields
    since: str = ""  # and when


@dataclass(frozen=True, slots=True)
class Pair:
    """One key: as Git asks for it and as it lives. None means: must not, or does not, exist."""

    key: ResourceKey
    desired: Manifest | None
    live: Manifest | None
    differs: bool
    predicted: Manifest | None = None  # what live would become, both made comparable; None where nothing differs
    compared: Manifest | None = None  # the live side of that


@dataclass(frozen=True, slots=True)
class Comparison:
    """All pairs of an application. Hooks are apart: they are run, not compared."""

    pairs: Sequence[Pair] = ()
    hooks: Sequence[Manifest] = ()  # desired
    status: SyncStatus = SyncStatus.SYNCED
    faults: Sequence[str] = ()  # of settings and of manifests that cannot be compared; they become conditions


@dataclass(frozen=True, slots=True)
class Task:
    """One key's turn in a sync: applied in its phase and wave, or pruned where desired is None."""

    key: ResourceKey
    phase: Phase
    wave: int
    desired: Manifest | None
    live: Manifest | None
    is_hook: bool = False
    differs: bool = True

    @property
    def is_prune(self) -> bool:
        return self.desired is None


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
