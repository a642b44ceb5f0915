"""Deletes an Application's resources, one call at a time, as far as possible without waiting.

In: an Application being deleted, its live objects, its hooks. Out: the finalizers that remain, and when to call again.
Never: waits; deletes an object in a version that `find_refusal` did not check. The finalizers record the progress, so a
restart continues.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from argosy import annotations as names
from argosy.errors import ClusterError, Conflict, PolicyError
from argosy.gitops.application import Application, OperationPhase, SyncPhase
from argosy.gitops.application.finalizer_names import (
    BACKGROUND_FINALIZER,
    CLEANUP_SUFFIX,
    HOOK_FINALIZERS,
    RESOURCE_FINALIZERS,
    is_controller_finalizer,
)
from argosy.gitops.application.step_results import PlannedTask
from argosy.gitops.application.sync_annotations import DeletePolicy, is_hook, list_hook_phases, read_wave
from argosy.gitops.sync import hook_release_and_deletion
from argosy.gitops.sync.apply import MAX_CONFLICT_ATTEMPTS
from argosy.gitops.sync.client_side_apply_patch_builder import set_namespace
from argosy.gitops.sync.effective_apply_and_prune_options import is_deletion_approved
from argosy.gitops.sync.live_object_fetch import fetch_live
from argosy.gitops.sync.prune import FindDeletionRefusal
from argosy.gitops.sync.sync_options import CONFIRM_VALUE, SyncOptions, find_keep_reason
from argosy.gitops.sync.sync_plan import OperationContext, prepare_hooks
from argosy.gitops.sync.task_health import AssessAll
from argosy.gitops.sync.task_states import SyncTask, format_key, format_waiting_message, phase_from_health
from argosy.gitops.sync.wave_step import DELETION_CHECK_SECONDS
from argosy.kube.client import Cluster, Propagation
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey

_FINALIZER_BY_PHASE: Final = {
    SyncPhase.PRE_DELETE: names.PRE_DELETE_FINALIZER,
    SyncPhase.POST_DELETE: names.POST_DELETE_FINALIZER,
}


@dataclass(frozen=True, slots=True)
class DeletionStep:
    """Write the finalizers, and the condition DeletionError if `error` is set.

    Nothing is left to do if the finalizers are unchanged and `wait` and `message` are empty.
    """

    finalizers: tuple[str, ...]
    message: str = ""
    wait: float | None = None
    error: str = ""


def compute_finalizers(app: Application, desired: Iterable[Manifest]) -> tuple[str, ...]:
    """argo: return the finalizers that an Application needs so that its deletion hooks will run."""
    hook_phases = {phase for manifest in desired if is_hook(manifest) for phase in list_hook_phases(manifest)}
    needed = [
        finalizer
        for phase, name in _FINALIZER_BY_PHASE.items()
        if phase in hook_phases
        for finalizer in (name, name + CLEANUP_SUFFIX)
    ]
    existing = [finalizer for finalizer in app.finalizers if finalizer not in HOOK_FINALIZERS or finalizer in needed]
    return tuple(dict.fromkeys([*existing, *needed]))


def needs_hooks_for_next_step(app: Application) -> bool:
    """True if the next step of the deletion needs the hooks, so that they must be known."""
    if names.PRE_DELETE_FINALIZER in app.finalizers:
        return True
    return not RESOURCE_FINALIZERS & set(app.finalizers) and any(map(is_controller_finalizer, app.finalizers))


async def advance_deletion(
    app: Application,
    live: Mapping[ResourceKey, Manifest],
    desired_hooks: Sequence[Manifest],
    *,
    cluster: Cluster,
    assess_all: AssessAll,
    find_refusal: FindDeletionRefusal,
    find_hook_refusal: Callable[[ResourceKey], str],
) -> DeletionStep:
    """argo: PreDelete hooks, resources from the highest wave down, PostDelete hooks, then the hooks themselves.

    `find_hook_refusal` says why the project does not permit a hook. Raises PolicyError for such a hook.
    """
    deletion = _Deletion(app, live, desired_hooks, cluster, assess_all, find_refusal, find_hook_refusal)
    if names.PRE_DELETE_FINALIZER in app.finalizers:
        return await deletion.run_hooks(SyncPhase.PRE_DELETE)
    if RESOURCE_FINALIZERS & set(app.finalizers):
        return await deletion.delete_resources()
    if names.POST_DELETE_FINALIZER in app.finalizers:
        return await deletion.run_hooks(SyncPhase.POST_DELETE)
    for phase, name in _FINALIZER_BY_PHASE.items():
        if name + CLEANUP_SUFFIX in app.finalizers:
            return await deletion.remove_finished_hooks(phase)
    return DeletionStep(app.finalizers)


@dataclass(slots=True)
class _Deletion:
    app: Application
    live: Mapping[ResourceKey, Manifest]
    desired: Sequence[Manifest]
    cluster: Cluster
    assess_all: AssessAll
    find_refusal: FindDeletionRefusal
    find_hook_refusal: Callable[[ResourceKey], str]

    def _plan_hooks(self, phase: SyncPhase) -> list[SyncTask]:
        operation = OperationContext(self.app, "", self.app.deletion_timestamp)
        prepared_hooks = prepare_hooks(self.desired, phase, operation)
        planned = [
            SyncTask(PlannedTask(key_of(hook), phase, read_wave(hook), hook, None, is_hook=True), None)
            for hook in prepared_hooks
        ]
        return sorted(planned, key=lambda turn: (turn.planned.wave, turn.key))

    async def run_hooks(self, phase: SyncPhase) -> DeletionStep:
        """argo: all hooks at once; here a later wave waits for earlier ones, as in a sync."""
        planned = self._plan_hooks(phase)
        self._check_permissions(phase, planned)
        for _, group in groupby(planned, key=lambda task: task.planned.wave):
            results = [(task, *await self._run_hook(task)) for task in group]
            errors = []
            for task, progress, message in results:
                if progress not in (OperationPhase.RUNNING, OperationPhase.SUCCEEDED):
                    await self._remove_hook(task)  # argo: it is created again until it succeeds
                    errors.append(f"{phase} hook {format_key(task.key)} failed: {message}")
            if error := "; ".join(errors):
                return DeletionStep(self.app.finalizers, error, DELETION_CHECK_SECONDS, error)
            if running := [task for task, progress, _ in results if progress is OperationPhase.RUNNING]:
                return DeletionStep(self.app.finalizers, format_waiting_message(running), None)
        return self._remove_finalizers(_FINALIZER_BY_PHASE[phase])

    def _check_permissions(self, phase: SyncPhase, hooks: Sequence[SyncTask]) -> None:
        """Refuse all hooks if one is not permitted: who may write to Git must not reach beyond the project."""
        refusals = [
            f"{phase} hook {format_key(task.key)} is not permitted: {reason}"
            for task in hooks
            if (reason := self.find_hook_refusal(task.key))
        ]
        if refusals:
            raise PolicyError("; ".join(refusals))

    async def _run_hook(self, task: SyncTask) -> tuple[OperationPhase, str]:
        task.live = await self.cluster.get(task.key)
        if task.live is not None and not task.is_own_hook:
            task.live = await hook_release_and_deletion.delete_hook(
                task.key, task.live, self.cluster, Propagation.FOREGROUND
            )
            if task.live is not None:
                return OperationPhase.RUNNING, ""
        if task.live is None:
            assert task.planned.desired is not None
            # argo: created, not applied, so it has no annotation with its last applied configuration
            hook = set_namespace(task.planned.desired, task.key)
            task.live = await self.cluster.create(hook, manager=names.FIELD_MANAGER)
        (assessment,) = await self.assess_all([task.live])
        return phase_from_health(assessment, is_hook=True) or (OperationPhase.RUNNING, "")

    async def _remove_hook(self, task: SyncTask) -> None:
        if task.live is not None:
            await hook_release_and_deletion.delete_hook(task.key, task.live, self.cluster, Propagation.FOREGROUND)

    async def remove_finished_hooks(self, phase: SyncPhase) -> DeletionStep:
        """Remove hooks that have succeeded."""
        for task in self._plan_hooks(phase):
            if self.find_hook_refusal(task.key):
                continue  # argo: the project may have changed since it ran
            task.live = await fetch_live(task.key, self.cluster)
            if task.live is None:
                continue
            if task.has_policy(DeletePolicy.HOOK_SUCCEEDED):
                await self._remove_hook(task)
            else:
                await hook_release_and_deletion.remove_hook_finalizer(task.key, task.live, self.cluster)
        return self._remove_finalizers(_FINALIZER_BY_PHASE[phase] + CLEANUP_SUFFIX)

    async def delete_resources(self) -> DeletionStep:
        options = SyncOptions.from_lists(self.app.policy.options)
        deletable_keys = [key for key, manifest in self.live.items() if self._is_deletable(key, manifest, options)]
        remaining = {
            key: current
            for key in deletable_keys
            if (current := await fetch_live(key, self.cluster)) is not None
            and self._is_deletable(key, current, options)
        }
        if not remaining:
            return self._remove_finalizers(*RESOURCE_FINALIZERS)
        unconfirmed = [key for key, manifest in remaining.items() if self._must_confirm_deletion(manifest, options)]
        if unconfirmed:
            more = f" and {len(unconfirmed) - 1} more resources" if len(unconfirmed) > 1 else ""
            message = f"waiting for deletion confirmation of {format_key(unconfirmed[0])}{more}"
            return DeletionStep(self.app.finalizers, message)
        highest = max(read_wave(manifest) for manifest in remaining.values())
        wave_objects = {key: manifest for key, manifest in remaining.items() if read_wave(manifest) == highest}
        for key, manifest in wave_objects.items():
            await self._delete_checked(key, manifest, options)
        first, *other_keys = wave_objects
        more = f" and {len(other_keys)} more resources" if other_keys else ""
        return DeletionStep(
            self.app.finalizers, f"waiting for deletion of {format_key(first)}{more}", DELETION_CHECK_SECONDS
        )

    async def _delete_checked(self, key: ResourceKey, checked: Manifest, options: SyncOptions) -> None:
        """Delete only the version that was checked: another Application may take the object over at any moment."""
        propagation = Propagation.BACKGROUND if BACKGROUND_FINALIZER in self.app.finalizers else Propagation.FOREGROUND
        current: Manifest | None = checked
        if is_hook(checked):
            await hook_release_and_deletion.remove_hook_finalizer(key, checked, self.cluster)
            current = await fetch_live(key, self.cluster)
        for _ in range(MAX_CONFLICT_ATTEMPTS):  # after many conflicts the next call tries again
            if (
                current is None
                or not self._is_deletable(key, current, options)
                or self._must_confirm_deletion(current, options)
            ):
                return
            metadata = current["metadata"]
            if metadata.get("deletionTimestamp"):
                return
            uid, version = metadata.get("uid"), metadata.get("resourceVersion")
            try:
                await self.cluster.delete(key, propagation=propagation, uid=uid, version=version)
                return
            except Conflict:
                current = await fetch_live(key, self.cluster)
            except ClusterError as error:
                if error.code != 404:
                    raise
                return

    def _is_deletable(self, key: ResourceKey, manifest: Manifest, options: SyncOptions) -> bool:
        """argo: False for objects that stay when their Application is deleted. PreDelete hooks do not stay."""
        if key == self.app.key or find_keep_reason(manifest, options):
            return False
        if is_hook(manifest) and SyncPhase.POST_DELETE in list_hook_phases(manifest):
            return False
        return not self.find_refusal(manifest)

    def _must_confirm_deletion(self, manifest: Manifest, options: SyncOptions) -> bool:
        if options.with_manifest_options(manifest).get("Delete") != CONFIRM_VALUE:
            return False
        return not is_deletion_approved(self.app, self.app.deletion_timestamp)

    def _remove_finalizers(self, *finalizers: str) -> DeletionStep:
        remaining = tuple(finalizer for finalizer in self.app.finalizers if finalizer not in finalizers)
        return DeletionStep(remaining, wait=0.0 if remaining else None)
