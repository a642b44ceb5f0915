"""The values of a sync, in the order in which they are created: differences, tasks, health.

In, out: values only. Never: logic that belongs to a step.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from argosy.gitops.application.operations import SyncPhase
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


class SyncStatus(enum.StrEnum):
    SYNCED = "Synced"
    OUT_OF_SYNC = "OutOfSync"
    UNKNOWN = "Unknown"


class FieldDifference(NamedTuple):
    """One differing field. `has_desired` and `has_live` tell a missing field from a null."""

    pointer: str
    desired: Any
    live: Any
    has_desired: bool = True
    has_live: bool = True
    manager: str = ""  # of the live value, from managedFields
    since: str = ""  # time of the manager's last write


@dataclass(frozen=True, slots=True)
class Pair:
    """The desired and the live manifest of one key. None: must not, or does not, exist."""

    key: ResourceKey
    desired: Manifest | None
    live: Manifest | None
    differs: bool
    predicted: Manifest | None = None  # what live would become, normalized; None if nothing differs
    compared: Manifest | None = None  # the live side, normalized


@dataclass(frozen=True, slots=True)
class AppComparison:
    """All pairs of an Application. Hooks are separate: they are run, not compared."""

    pairs: Sequence[Pair] = ()
    hooks: Sequence[Manifest] = ()  # desired
    status: SyncStatus = SyncStatus.SYNCED
    faults: Sequence[str] = ()  # of settings and manifests that cannot be compared; they become conditions


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """One object of a sync: applied in its phase and wave, or pruned if `desired` is None."""

    key: ResourceKey
    phase: SyncPhase
    wave: int
    desired: Manifest | None
    live: Manifest | None
    is_hook: bool = False
    differs: bool = True
    namespace_in_result: str = ""  # argo: of a cluster-scoped object, whose result has the namespace of the destination

    @property
    def is_prune(self) -> bool:
        return self.desired is None

    @property
    def result_key(self) -> ResourceKey:
        return self.key._replace(namespace=self.namespace_in_result) if self.namespace_in_result else self.key


class HealthStatus(enum.StrEnum):
    """The health of a live object, from best to worst, in Argo CD's spelling."""

    HEALTHY = "Healthy"
    SUSPENDED = "Suspended"
    PROGRESSING = "Progressing"
    MISSING = "Missing"
    DEGRADED = "Degraded"
    UNKNOWN = "Unknown"

    def is_worse_than(self, other: HealthStatus) -> bool:
        return _HEALTH_RANK[self] > _HEALTH_RANK[other]


_HEALTH_RANK = {health: rank for rank, health in enumerate(HealthStatus)}


@dataclass(frozen=True, slots=True)
class Assessment:
    """The health of one live object. Kinds without a health check have no Assessment."""

    health: HealthStatus | None  # argo: None is an empty health: a script that returned nil or an empty table
    message: str = ""
    rule: str = ""  # the rule that was applied
    fault: str = ""  # why the rule itself failed; health is then Unknown
