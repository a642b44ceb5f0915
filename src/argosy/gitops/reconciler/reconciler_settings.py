"""The settings in force for all Applications.

In, out: values that steps read from settings, and functions of one step that others need. Never: reads a setting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from argosy.fair_share import Budget, Tenant
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application.step_results import Assessment
from argosy.gitops.diff import DiffSettings, JqQuestion
from argosy.gitops.live import Exclusions, TrackingSettings
from argosy.gitops.policy.destination_cluster_lookup import DestinationClusters
from argosy.gitops.policy.impersonation import ImpersonationPolicy
from argosy.gitops.policy.rbac_config import AccessPolicy
from argosy.gitops.render import BuildSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.sync.auto_sync_decision import HealBackoff
from argosy.gitops.sync.effective_apply_and_prune_options import SyncSettings
from argosy.kube.objects import Manifest

EvaluateJq = Callable[[Iterable[JqQuestion]], Awaitable[tuple[Mapping[JqQuestion, Manifest], tuple[str, ...]]]]
AssessAll = Callable[[Sequence[Manifest]], Awaitable[list[Assessment | None]]]


@dataclass(frozen=True)
class ReconcilerSettings:
    """The settings in force. Unreadable settings are listed in `faults`; their last good value stays."""

    repositories: Repositories
    assess_all: AssessAll
    evaluate_jq: EvaluateJq | None = None  # runs the real jq; without it, its expressions have no effect
    control_namespace: str = "argocd"
    build: BuildSettings = field(default_factory=BuildSettings)
    tracking: TrackingSettings = field(default_factory=TrackingSettings)
    exclusions: Exclusions = field(default_factory=Exclusions)
    diff: DiffSettings = field(default_factory=DiffSettings)
    sync: SyncSettings = field(default_factory=SyncSettings)
    projects: Mapping[str, Project] = field(default_factory=dict)
    clusters: DestinationClusters = field(default_factory=DestinationClusters)
    access: AccessPolicy = field(default_factory=AccessPolicy)  # RBAC for users of the web server
    impersonation: ImpersonationPolicy = field(default_factory=ImpersonationPolicy)
    signature_keys: Mapping[str, str] = field(default_factory=dict)
    reconciliation_seconds: float = 120.0  # argo: seconds after which the Git host is asked again; 0 for never
    jitter_seconds: float = 60.0
    hard_reconciliation_seconds: float = 0.0  # argo: seconds after which all sources are rendered again; 0 for never
    heal_backoff: HealBackoff = field(default_factory=HealBackoff)
    confirms_mass_prune: bool = True
    persists_resource_health: bool = False  # argo: True if status.resources includes health
    budget: Budget = field(default_factory=Budget)  # worker time per project
    faults: tuple[str, ...] = ()
    # faults of restricting settings that have no last good value: nothing is synced
    unread_restrictions: tuple[str, ...] = ()

    def build_tenant(self, project: str) -> Tenant:
        """Return the tenant that pays for rendering and health checks of this project's Applications."""
        return Tenant(project, self.budget)
