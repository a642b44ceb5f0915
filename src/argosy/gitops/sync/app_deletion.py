"""Deletes an Application's resources, one call at a time, as far as possible without waiting.

In: an Application being deleted, its live objects, its hooks. Out: the finalizers that remain, and when to call again.
Never: waits; deletes an object in a version that `find_refusal` did not check. The finalizers record the progress, so a
restart continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from argosy import annotations as names
from argosy.gitops.application import Application, SyncPhase
from argosy.gitops.application.finalizer_names import (
    BACKGROUND_FINALIZER,
    CLEANUP_SUFFIX,
    HOOK_FINALIZERS,
    RESOURCE_FINALIZERS,
    is_controller_finalizer,
)
from argosy.gitops.application.sync_annotations import is_hook, list_hook_phases, read_wave
from argosy.gitops.sync.checked_deletion import delete_checked
from argosy.gitops.sync.deletion_hooks import DeletionHooks
from argosy.gitops.sync.deletion_step import DeletionChecks, DeletionStep
from argosy.gitops.sync.effective_apply_and_prune_options import is_deletion_approved
from argosy.gitops.sync.live_object_fetch import fetch_live
from argosy.gitops.sync.sync_options import CONFIRM_VALUE, SyncOptions, find_keep_reason
from argosy.gitops.sync.task_health import AssessAll
from argosy.gitops.sync.task_states import format_key
from argosy.gitops.sync.wave_step import DELETION_CHECK_SECONDS
from argosy.kube.client import Cluster, Propagation
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey

_FINALIZER_BY_PHASE: Final = {
    SyncPhase.PRE_DELETE: names.PRE_DELETE_FINALIZER,
    SyncPhase.POST_DELETE: names.POST_DELETE_FINALIZER,
}


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
    checks: DeletionChecks,
    last_error: str = "",
) -> DeletionStep:
    """argo: PreDelete hooks, resources from the highest wave down, PostDelete hooks, then the hooks themselves.

    `last_error` is the message of the condition DeletionError. Raises PolicyError if the project forbids a hook.
    """

    def list_hooks(phase: SyncPhase) -> DeletionHooks:
        return DeletionHooks(phase, app, live, desired_hooks, cluster, assess_all, checks, last_error)

    if names.PRE_DELETE_FINALIZER in app.finalizers:
        return await list_hooks(SyncPhase.PRE_DELETE).run() or _remove_finalizers(app, names.PRE_DELETE_FINALIZER)
    if RESOURCE_FINALIZERS & set(app.finalizers):
        return await _ResourceDeletion(app, live, cluster, checks).advance()
    if names.POST_DELETE_FINALIZER in app.finalizers:
        return await list_hooks(SyncPhase.POST_DELETE).run() or _remove_finalizers(app, names.POST_DELETE_FINALIZER)
    for phase, name in _FINALIZER_BY_PHASE.items():
        if name + CLEANUP_SUFFIX in app.finalizers:
            await list_hooks(phase).release()
            return _remove_finalizers(app, name + CLEANUP_SUFFIX)
    return DeletionStep(app.finalizers)


def _remove_finalizers(app: Application, *finalizers: str) -> DeletionStep:
    remaining = tuple(finalizer for finalizer in app.finalizers if finalizer not in finalizers)
    return DeletionStep(remaining, wait=0.0 if remaining else None)


@dataclass(slots=True)
class _ResourceDeletion:
    app: Application
    live: Mapping[ResourceKey, Manifest]
    cluster: Cluster
    checks: DeletionChecks

    async def advance(self) -> DeletionStep:
        options = SyncOptions.from_lists(self.app.policy.options)
        deletable_keys = [key for key, manifest in self.live.items() if self._is_deletable(key, manifest, options)]
        remaining = {
            key: current
            for key in deletable_keys
            if (current := await fetch_live(key, self.cluster)) is not None
            and self._is_deletable(key, current, options)
        }
        if not remaining:
            return _remove_finalizers(self.app, *RESOURCE_FINALIZERS)
        unconfirmed = [key for key, manifest in remaining.items() if self._must_confirm_deletion(manifest, options)]
        if unconfirmed:
            more = f" and {len(unconfirmed) - 1} more resources" if len(unconfirmed) > 1 else ""
            message = f"waiting for deletion confirmation of {format_key(unconfirmed[0])}{more}"
            return DeletionStep(self.app.finalizers, message)
        highest = max(read_wave(manifest) for manifest in remaining.values())
        wave_objects = {key: manifest for key, manifest in remaining.items() if read_wave(manifest) == highest}
        propagation = Propagation.BACKGROUND if BACKGROUND_FINALIZER in self.app.finalizers else Propagation.FOREGROUND

        def find_refusal(current: Manifest) -> str:
            is_kept = not self._is_deletable(key_of(current), current, options)
            return "it is kept" if is_kept or self._must_confirm_deletion(current, options) else ""

        for key, manifest in wave_objects.items():
            await delete_checked(key, manifest, self.cluster, propagation, find_refusal)
        first, *other_keys = wave_objects
        more = f" and {len(other_keys)} more resources" if other_keys else ""
        return DeletionStep(
            self.app.finalizers, f"waiting for deletion of {format_key(first)}{more}", DELETION_CHECK_SECONDS
        )

    def _is_deletable(self, key: ResourceKey, manifest: Manifest, options: SyncOptions) -> bool:
        """argo: False for objects that stay when their Application is deleted. PreDelete hooks do not stay."""
        if key == self.app.key or find_keep_reason(manifest, options):
            return False
        if is_hook(manifest) and SyncPhase.POST_DELETE in list_hook_phases(manifest):
            return False
        return not self.checks.find_refusal(manifest)

    def _must_confirm_deletion(self, manifest: Manifest, options: SyncOptions) -> bool:
        if options.with_manifest_options(manifest).get("Delete") != CONFIRM_VALUE:
            return False
        return not is_deletion_approved(self.app, self.app.deletion_timestamp)
