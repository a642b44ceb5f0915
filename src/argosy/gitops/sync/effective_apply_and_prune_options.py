"""The effective options of an operation, from its request, its Application and each manifest. Pure.

In: an Application, an operation state, sync options. Out: how a task is applied, or why it is not pruned.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from argosy import annotations as names
from argosy.gitops.application import Application, OperationState, SyncRequest
from argosy.gitops.application.step_results import PlannedTask
from argosy.gitops.application.sync_annotations import has_option
from argosy.gitops.sync.observed_generation_check import DEFAULT_OBSERVED_KINDS
from argosy.gitops.sync.sync_options import CONFIRM_VALUE, SyncOptions
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import CRD

REPLACE_FIELD_MANAGER: Final = "argocd-application-controller"  # argo: the field manager of replaced objects
CLIENT_SIDE_MANAGER: Final = "kubectl-client-side-apply"
_OUR_FIELD_MANAGERS: Final = frozenset({names.FIELD_MANAGER, REPLACE_FIELD_MANAGER})
_NEVER_RECREATED_KINDS: Final = frozenset({CRD, ("", "Namespace")})


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """Apply options of one manifest."""

    replace: bool = False
    force: bool = False  # deletes and recreates objects that cannot be updated
    server_side: bool = False
    migrated_manager: str = ""  # the field manager whose fields a server-side apply takes over
    validate: bool = True
    may_recreate: bool = True


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """Sync settings of an installation."""

    wave_delay_seconds: float = 2.0  # argo: seconds between waves; the sandbox needs none
    timeout_seconds: float = 0.0  # seconds until an operation is terminated; 0: never
    max_concurrent_applies: int = 16  # objects of one kind that are applied concurrently
    crd_wait_seconds: float = 3.0  # argo: seconds to wait for a CRD to be established
    observed_kinds: tuple[str, ...] = DEFAULT_OBSERVED_KINDS  # patterns of kinds whose stale status is ignored


@dataclass(frozen=True, slots=True)
class OperationOptions:
    app: Application
    state: OperationState
    sync_options: SyncOptions = field(default_factory=SyncOptions)
    is_mass_prune: bool = False  # the prune is so large that a user must confirm it

    @property
    def request(self) -> SyncRequest:
        return self.state.request.sync

    def build_apply_options(self, task: PlannedTask) -> ApplyOptions:
        """argo: Replace and Force count on either side, and Replace overrides ServerSideApply."""
        desired, live = task.desired or {}, task.live

        def has_either_option(option: str) -> bool:
            return has_option(desired, option) or has_option(live, option)

        replaces = has_either_option("Replace=true") or (
            self.sync_options.is_on("Replace") and not has_option(desired, "Replace=false")
        )
        effective = self.sync_options.with_manifest_options(desired)
        return ApplyOptions(
            replace=replaces,
            force=self.request.force or has_either_option("Force=true"),
            server_side=effective.is_on("ServerSideApply") and not replaces,
            migrated_manager="" if self.sync_options.is_off("ClientSideApplyMigration") else self._migrated_manager,
            validate=not effective.is_off("Validate"),
            may_recreate=task.key.group_kind
            not in _NEVER_RECREATED_KINDS,  # deleting them would delete everything they contain
        )

    @property
    def _migrated_manager(self) -> str:
        return self.app.annotations.get(names.MIGRATION_MANAGER) or CLIENT_SIDE_MANAGER

    def skips_missing_kind(self, task: PlannedTask) -> bool:
        return self.sync_options.is_on("SkipDryRunOnMissingResource") or has_option(
            task.desired, "SkipDryRunOnMissingResource=true"
        )

    def is_skipped_as_in_sync(self, task: PlannedTask) -> bool:
        """argo: ApplyOutOfSyncOnly skips live objects that do not differ; hooks run anyway."""
        if task.is_hook or task.differs or not self.sync_options.is_on("ApplyOutOfSyncOnly"):
            return False
        # Objects that this operation applied before a restart do not differ any more, but are still awaited.
        return task.desired is not None and task.live is not None and not self._may_have_applied(task.live)

    def _may_have_applied(self, live: Manifest) -> bool:
        """True if this operation may have applied it: our field manager wrote it since the start, to the second."""
        since = self.state.started
        entries = live["metadata"].get("managedFields") or () if since else ()
        own_entries = (
            entry for entry in entries if entry.get("manager") in _OUR_FIELD_MANAGERS and not entry.get("subresource")
        )
        times = [str(entry.get("time") or "") for entry in own_entries]
        started_at = datetime.fromisoformat(since).replace(microsecond=0) if times else None
        return started_at is not None and any(datetime.fromisoformat(time) >= started_at for time in times if time)

    # -- pruning -----------------------------------------------------------------------------------------------

    def find_prune_refusal(self, live: Manifest) -> str:
        """Return Argo CD's reason why an extra object is not pruned; empty if it may be."""
        if not self.request.prune:
            return "ignored (requires pruning)"
        if self._prune_option(live) == "false":
            return "ignored (no prune)"
        return ""

    def must_confirm_prune(self, live: Manifest) -> bool:
        if self.find_prune_refusal(live) or self.is_prune_confirmed:
            return False
        return self.is_mass_prune or self._prune_option(live) == CONFIRM_VALUE

    @property
    def is_prune_confirmed(self) -> bool:
        return is_deletion_approved(self.app, self.state.started)

    def _prune_option(self, live: Manifest) -> str:
        return self.sync_options.with_manifest_options(live).get("Prune")

    @property
    def propagation(self) -> str:
        """argo: foreground, unless a known policy is set."""
        policy = self.sync_options.get("PrunePropagationPolicy").capitalize()
        return policy if policy in ("Foreground", "Background", "Orphan") else "Foreground"


def is_deletion_approved(app: Application, since: str) -> bool:
    """argo: True if deletions were approved by annotation since `since`; approvals have a resolution of one second."""
    text = app.annotations.get(names.DELETION_APPROVED) or ""
    if not text or not since:
        return False
    try:
        return datetime.fromisoformat(text) >= datetime.fromisoformat(since).replace(microsecond=0)
    except (ValueError, TypeError):
        return False
