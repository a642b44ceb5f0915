"""The effective options of an operation, from its request, its Application and each manifest. Pure.

In: an Application, an operation state, sync options. Out: how a task is applied, or why it is not pruned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from argosy import annotations as names
from argosy.gitops.application import Application, OperationState, SyncRequest
from argosy.gitops.application.hooks import has_option
from argosy.gitops.application.step_results import Task
from argosy.gitops.sync.options import CONFIRM, SyncOptions
from argosy.gitops.sync.stale_status import DEFAULT_OBSERVED_KINDS
from argosy.kube.objects import Manifest

REPLACER: Final = "argocd-application-controller"  # argo: the field manager of replaced objects
MIGRATED: Final = "kubectl-client-side-apply"
DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_WRITERS: Final = frozenset({names.FIELD_MANAGER, REPLACER})
_KEPT: Final = frozenset({DEFINITION, ("", "Namespace")})


@dataclass(frozen=True, slots=True)
class How:
    """Apply options of one manifest."""

    replaces: bool = False
    forces: bool = False  # deletes and recreates objects that cannot be updated
    on_server: bool = False
    migrates: str = ""  # the field manager whose fields a server-side apply takes over
    validates: bool = True
    may_recreate: bool = True


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """Sync settings of an installation."""

    wave_delay: float = 2.0  # argo: seconds between waves; the sandbox needs none
    timeout: float = 0.0  # seconds until an operation is terminated; 0: never
    parallel: int = 16  # objects of one kind that are applied concurrently
    definition_patience: float = 3.0  # argo: seconds to wait for a CRD to be established
    observed_kinds: tuple[str, ...] = DEFAULT_OBSERVED_KINDS  # patterns of kinds whose stale status is ignored


@dataclass(frozen=True, slots=True)
class Terms:
    app: Application
    state: OperationState
    options: SyncOptions = field(default_factory=SyncOptions)
    is_mass: bool = False  # the prune is so large that a user must confirm it

    @property
    def request(self) -> SyncRequest:
        return self.state.request.sync

    def how(self, task: Task) -> How:
        """argo: Replace and Force count on either side, and Replace overrides ServerSideApply."""
        desired, live = task.desired or {}, task.live

        def asks(option: str) -> bool:
            return has_option(desired, option) or has_option(live, option)

        replaces = asks("Replace=true") or (self.options.is_on("Replace") and not has_option(desired, "Replace=false"))
        own = self.options.with_own(desired)
        return How(
            replaces=replaces,
            forces=self.request.force or asks("Force=true"),
            on_server=own.is_on("ServerSideApply") and not replaces,
            migrates="" if self.options.is_off("ClientSideApplyMigration") else self._migrated,
            validates=not own.is_off("Validate"),
            may_recreate=task.key.group_kind not in _KEPT,  # deleting them would delete everything they contain
        )

    @property
    def _migrated(self) -> str:
        return self.app.annotations.get(names.MIGRATION_MANAGER) or MIGRATED

    def skips_missing_kind(self, task: Task) -> bool:
        return self.options.is_on("SkipDryRunOnMissingResource") or has_option(
            task.desired, "SkipDryRunOnMissingResource=true"
        )

    def is_left_alone(self, task: Task) -> bool:
        """argo: ApplyOutOfSyncOnly skips live objects that do not differ; hooks run anyway."""
        if task.is_hook or task.differs or not self.options.is_on("ApplyOutOfSyncOnly"):
            return False
        # Objects that this operation applied before a restart do not differ any more, but are still awaited.
        return task.desired is not None and task.live is not None and not self._wrote(task.live)

    def _wrote(self, live: Manifest) -> bool:
        """True if this operation may have applied it: our field manager wrote it since the start, to the second."""
        since = self.state.started
        entries = live["metadata"].get("managedFields") or () if since else ()
        ours = (each for each in entries if each.get("manager") in _WRITERS and not each.get("subresource"))
        times = [str(each.get("time") or "") for each in ours]
        begun = datetime.fromisoformat(since).replace(microsecond=0) if times else None
        return begun is not None and any(datetime.fromisoformat(time) >= begun for time in times if time)

    # -- pruning -----------------------------------------------------------------------------------------------

    def keeps(self, live: Manifest) -> str:
        """Return Argo CD's reason why an extra object is not pruned; empty if it may be."""
        if not self.request.prune:
            return "ignored (requires pruning)"
        if self._prune_option(live) == "false":
            return "ignored (no prune)"
        return ""

    def must_confirm(self, live: Manifest) -> bool:
        if self.keeps(live) or self.is_confirmed:
            return False
        return self.is_mass or self._prune_option(live) == CONFIRM

    @property
    def is_confirmed(self) -> bool:
        return is_approved(self.app, self.state.started)

    def _prune_option(self, live: Manifest) -> str:
        return self.options.with_own(live).value("Prune")

    @property
    def propagation(self) -> str:
        """argo: foreground, unless a known policy is set."""
        word = self.options.value("PrunePropagationPolicy").capitalize()
        return word if word in ("Foreground", "Background", "Orphan") else "Foreground"


def is_approved(app: Application, since: str) -> bool:
    """argo: True if deletions were approved by annotation since `since`; approvals have a resolution of one second."""
    text = app.annotations.get(names.DELETION_APPROVED) or ""
    if not text or not since:
        return False
    try:
        return datetime.fromisoformat(text) >= datetime.fromisoformat(since).replace(microsecond=0)
    except (ValueError, TypeError):
        return False
