"""The compared state of an Application: desired and live manifests, health and conditions.

In, out: values. Never: does I/O.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from argosy.gitops.application.step_results import AppComparison, Assessment, HealthStatus, SyncStatus
from argosy.gitops.reconciler.desired_state_values import DesiredState
from argosy.gitops.status.conditions import AppCondition
from argosy.gitops.status.resources import ResourceStatus
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


@dataclass(frozen=True, slots=True)
class AppState:
    """If something could not be determined, `comparison` is Unknown and a condition says why."""

    desired: DesiredState
    comparison: AppComparison
    live: Mapping[ResourceKey, Manifest]
    resources: Sequence[ResourceStatus] | None = None  # None: not known
    health: Assessment = field(default_factory=lambda: Assessment(HealthStatus.UNKNOWN))
    conditions: tuple[AppCondition, ...] = ()
    orphan_count: int = 0  # objects in its namespace that no Application tracks, if its project watches them
    shared_resource: str = ""  # about the first object that another Application tracks too
    is_invalid: bool = False  # the Application is invalid, so nothing was compared

    @property
    def is_complete(self) -> bool:
        """True if everything is known and verified, so that it may be synced."""
        return self.comparison.status is not SyncStatus.UNKNOWN and self.desired.is_verified
