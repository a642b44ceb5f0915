"""What an operation may do, and how it does it, as its request, its application and each manifest say. Pure.

In: an application, an operation's state, options. Out: for a task, how it is applied or why it is not pruned.
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

REPLACER: Final = "argocd-application-controller"  # argo: who owns what is replaced: the program itself
MIGRATED: Final = "kubectl-client-side-apply"
DEFINITION: Final = ("apiextensions.k8s.io", "CustomResourceDefinition")
_WRITERS: Final = frozenset({names.FIELD_MANAGER, REPLACER})
_KEPT: Final = frozenset({DEFINITION, ("", "Namespace")})


@dataclass(frozen=True, slots=True)
class How:
    """How one manifest is applied."""

    replaces: bool = False
    forces: bool = False  # deletes and makes anew what cannot be changed
    on_server: bool = False
    migrates: str = ""  # whose fields become ours when it is applied on the server's side
    validates: bool = True
    may_recreate: bool = True


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """Of an installation."""

    wave_delay: float = 2.0  # argo: seconds between waves; an embedded cluster needs none
    timeout: float = 0.0  # seconds until an operation is terminated; 0: never
    parallel: int = 16  # objects of a kind that are applied at the same time
    definition_patience: float = 3.0  # argo: seconds until custom resources are tried whatever their definition says
    observed_kinds: tuple[str, ...] = DEFAULT_OBSERVED_KINDS  # patterns: a stale status of these is not believed


@dataclass(frozen=True, slots=True)
class Terms:
    app: Application
    state: OperationState
    options: SyncOptions = field(default_factory=SyncOptions)
    is_mass: bool = False  # so much would go that somebody must agree first

    @property
    def request(self) -> SyncRequest:
        return self.state.request.sync

    def how(self, task: Task) -> How:
        """argo: Replace and Force count from either side, and Replace beats ServerSideApply."""
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
            may_recreate=task.key.group_kind not in _KEPT,  # with them would go all that they hold
        )

    @property
    def _migrated(self) -> str:
        return self.app.annotations.get(names.MIGRATION_MANAGER) or MIGRATED

    def skips_missing_kind(self, task: Task) -> bool:
        return self.options.is_on("SkipDryRunOnMissingResource") or has_option(
            task.desired, "SkipDryRunOnMissingResource=true"
        )

    def is_left_alone(self, task: Task) -> bool:
        """argo: ApplyOutOfSyncOnly spares what is there and does not differ; hooks run all the same."""
        if task.is_hook or task.differs or not self.options.is_on("ApplyOutOfSyncOnly"):
            return False
        # What this operation applied before it was taken up again does not differ any more, but is still awaited.
        return task.desired is not None and task.live is not None and not self._wrote(task.live)

    def _wrote(self, live: Manifest) -> bool:
        """Whether this operation may have applied it: we did since it began, and time is known to the second."""
        since = self.state.started
        entries = live["metadata"].get("managedFields") or () if since else ()
        ours = (each for each in entries if each.get("manager") in _WRITERS and not each.get("subresource"))
        times = [str(each.get("time") or "") for each in ours]
        begun = datetime.fromisoformat(since).replace(microsecond=0) if times else None
        return begun is not None and any(datetime.fromisoformat(time) >= begun for time in times if time)

    # -- pruning -----------------------------------------------------------------------------------------------

    def keeps(self, live: Manifest) -> str:
        """Why an extra manifest stays though nothing else speaks against; Argo CD's words."""
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
        """argo: foreground where nothing, or nothing known, is said."""
        word = self.options.value("PrunePropagationPolicy").capitalize()
        return word if word in ("Foreground", "Background", "Orphan") else "Foreground"


def is_approved(app: Application, since: str) -> bool:
    """argo: whether somebody approved deletions, not before `since`; people approve by the second."""
    text = app.annotations.get(names.DELETION_APPROVED) or ""
    if not text or not since:
        return False
    try:
        return datetime.fromisoformat(text) >= datetime.fromisoformat(since).replace(microsecond=0)
    except (ValueError, TypeError):
        return False
