"""The settings in force for all Applications.

In, out: values that steps read from settings, and functions of one step that others need. Never: reads a setting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from argosy.fair_share import Budget, Tenant
from argosy.gitops.application.project import Project
from argosy.gitops.application.step_results import Assessment
from argosy.gitops.diff import CompareSettings, Question
from argosy.gitops.live import Exclusions, Tracking
from argosy.gitops.policy.destination_clusters import Clusters
from argosy.gitops.policy.impersonation import Impersonation
from argosy.gitops.policy.rbac_config import AccessPolicy
from argosy.gitops.render import BuildSettings
from argosy.gitops.source.repositories import Repositories
from argosy.gitops.sync.auto_sync import HealBackoff
from argosy.gitops.sync.operation_terms import SyncSettings
from argosy.kube.objects import Manifest

RemoveAll = Callable[[Iterable[Question]], Awaitable[tuple[Mapping[Question, Manifest], tuple[str, ...]]]]
AssessAll = Callable[[Sequence[Manifest]], Awaitable[list[Assessment | None]]]


@dataclass(frozen=True)
class Rules:
    """The settings in force. Unreadable settings are listed in `faults`; their last good value stays."""

    repositories: Repositories
    assess_all: AssessAll
    remove_all: RemoveAll | None = None  # runs the real jq; without it, its expressions have no effect
    control_namespace: str = "argocd"
    build: BuildSettings = field(default_factory=BuildSettings)
    tracking: Tracking = field(default_factory=Tracking)
    exclusions: Exclusions = field(default_factory=Exclusions)
    compare: CompareSettings = field(default_factory=CompareSettings)
    sync: SyncSettings = field(default_factory=SyncSettings)
    projects: Mapping[str, Project] = field(default_factory=dict)
    clusters: Clusters = field(default_factory=Clusters)
    access: AccessPolicy = field(default_factory=AccessPolicy)  # RBAC for users of the web server
    impersonation: Impersonation = field(default_factory=Impersonation)
    signature_keys: Mapping[str, str] = field(default_factory=dict)
    reconciliation: float = 120.0  # argo: seconds after which the Git host is asked again; 0 for never
    jitter: float = 60.0
    hard_reconciliation: float = 0.0  # argo: seconds after which all sources are rendered again; 0 for never
    heal: HealBackoff = field(default_factory=HealBackoff)
    asks_before_mass_prune: bool = True
    shows_health: bool = False  # argo: True if status.resources includes health
    budget: Budget = field(default_factory=Budget)  # worker time per project
    faults: tuple[str, ...] = ()
    # faults of restricting settings that have no last good value: nothing is synced
    unread_restrictions: tuple[str, ...] = ()

    def tenant(self, project: str) -> Tenant:
        """Return the tenant that pays for rendering and health checks of this project's Applications."""
        return Tenant(project, self.budget)
