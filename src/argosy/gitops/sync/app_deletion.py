"""Deletes an Application's resources, one call at a time, as far as possible without waiting.

In: an Application being deleted, its live objects, its hooks. Out: the finalizers that remain, and when to call again.
Never: waits; deletes an object in a version that `find_refusal` did not check. The finalizers record the progress, so a
restart continues.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from argosy import annotations as names
from argosy.errors import ClusterError, Conflict
from argosy.gitops.application import Application, Phase, Progress
from argosy.gitops.application.finalizers import BACKGROUND, CLEAN, OF_HOOKS, OF_RESOURCES, is_served
from argosy.gitops.application.hooks import DeletePolicy, is_hook, phases, wave
from argosy.gitops.application.step_results import Task
from argosy.gitops.sync import hooks
from argosy.gitops.sync.apply import ROUNDS, Wish, apply
from argosy.gitops.sync.live_lookup import read_live
from argosy.gitops.sync.operation_terms import How, is_approved
from argosy.gitops.sync.options import CONFIRM, SyncOptions, outlives
from argosy.gitops.sync.prune import MayDelete
from argosy.gitops.sync.sync_plan import Occasion, prepare_hooks
from argosy.gitops.sync.task_health import AssessAll
from argosy.gitops.sync.task_states import Turn, shown, verdict, waiting_text
from argosy.gitops.sync.wave_step import DELETING
from argosy.kube.client import Cluster, Propagation
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

_FINALIZERS: Final = {
    Phase.PRE_DELETE: names.PRE_DELETE_FINALIZER,
    Phase.POST_DELETE: names.POST_DELETE_FINALIZER,
}


@dataclass(frozen=True, slots=True)
class Deleted:
    """Write the finalizers, and the condition DeletionError if `error` is set.

    Nothing is left to do if the finalizers are unchanged and `wait` and `message` are empty.
    """

    finalizers: tuple[str, ...]
    message: str = ""
    wait: float | None = None
    error: str = ""


def finalizers_for(app: Application, desired: Iterable[Manifest]) -> tuple[str, ...]:
    """argo: return the finalizers that an Application needs so that its deletion hooks will run."""
    there = {phase for manifest in desired if is_hook(manifest) for phase in phases(manifest)}
    wanted = [each for phase, name in _FINALIZERS.items() if phase in there for each in (name, name + CLEAN)]
    kept = [each for each in app.finalizers if each not in OF_HOOKS or each in wanted]
    return tuple(dict.fromkeys([*kept, *wanted]))


def awaits_hooks(app: Application) -> bool:
    """True if the next step of the deletion needs the hooks, so that they must be known."""
    if names.PRE_DELETE_FINALIZER in app.finalizers:
        return True
    return not OF_RESOURCES & set(app.finalizers) and any(map(is_served, app.finalizers))


async def delete_further(
    app: Application,
    live: Mapping[ResourceKey, Manifest],
    desired_hooks: Sequence[Manifest],
    *,
    cluster: Cluster,
    assess_all: AssessAll,
    may_delete: MayDelete,
) -> Deleted:
    """argo: PreDelete hooks, resources from the highest wave down, PostDelete hooks, then the hooks themselves."""
    deletion = _Deletion(app, live, desired_hooks, cluster, assess_all, may_delete)
    if names.PRE_DELETE_FINALIZER in app.finalizers:
        return await deletion.run_hooks(Phase.PRE_DELETE)
    if OF_RESOURCES & set(app.finalizers):
        return await deletion.delete_resources()
    if names.POST_DELETE_FINALIZER in app.finalizers:
        return await deletion.run_hooks(Phase.POST_DELETE)
    for phase, name in _FINALIZERS.items():
        if name + CLEAN in app.finalizers:
            return await deletion.clean(phase)
    return Deleted(app.finalizers)


@dataclass(slots=True)
class _Deletion:
    app: Application
    live: Mapping[ResourceKey, Manifest]
    desired: Sequence[Manifest]
    cluster: Cluster
    assess_all: AssessAll
    may_delete: MayDelete

    def _turns(self, phase: Phase) -> list[Turn]:
        occasion = Occasion(self.app, "", self.app.deleted)
        made = prepare_hooks(self.desired, phase, occasion)
        found = [Turn(Task(key_of(each), phase, wave(each), each, None, is_hook=True), None) for each in made]
        return sorted(found, key=lambda turn: (turn.task.wave, turn.key))

    async def run_hooks(self, phase: Phase) -> Deleted:
        """argo: all hooks at once; here a later wave waits for earlier ones, as in a sync."""
        for _, group in groupby(self._turns(phase), key=lambda turn: turn.task.wave):
            ends = [(turn, *await self._run(turn)) for turn in group]
            said = []
            for turn, progress, message in ends:
                if progress not in (Progress.RUNNING, Progress.SUCCEEDED):
                    await self._remove(turn)  # argo: it is created again until it succeeds
                    said.append(f"{phase} hook {shown(turn.key)} failed: {message}")
            if error := "; ".join(said):
                return Deleted(self.app.finalizers, error, DELETING, error)
            if running := [turn for turn, progress, _ in ends if progress is Progress.RUNNING]:
                return Deleted(self.app.finalizers, waiting_text(running), None)
        return self._without(_FINALIZERS[phase])

    async def _run(self, turn: Turn) -> tuple[Progress, str]:
        turn.live = await self.cluster.get(turn.key)
        if turn.live is not None and not turn.is_ours:
            turn.live = await hooks.remove(turn.key, turn.live, self.cluster, Propagation.FOREGROUND)
            if turn.live is not None:
                return Progress.RUNNING, ""
        if turn.live is None:
            assert turn.task.desired is not None
            wish = Wish(turn.key, turn.task.desired, None, How(), self.app.deleted)
            turn.live = (await apply(wish, self.cluster)).live
        if turn.live is None:
            return Progress.RUNNING, ""
        (assessment,) = await self.assess_all([turn.live])
        return verdict(assessment, is_hook=True) or (Progress.RUNNING, "")

    async def _remove(self, turn: Turn) -> None:
        if turn.live is not None:
            await hooks.remove(turn.key, turn.live, self.cluster, Propagation.FOREGROUND)

    async def clean(self, phase: Phase) -> Deleted:
        """Remove hooks that have succeeded."""
        for turn in self._turns(phase):
            turn.live = await read_live(turn.key, self.cluster)
            if turn.live is None:
                continue
            if turn.has_policy(DeletePolicy.HOOK_SUCCEEDED):
                await self._remove(turn)
            else:
                await hooks.release(turn.key, turn.live, self.cluster)
        return self._without(_FINALIZERS[phase] + CLEAN)

    async def delete_resources(self) -> Deleted:
        options = SyncOptions.of(self.app.policy.options)
        going = [key for key, each in self.live.items() if self._goes(key, each, options)]
        left = {
            key: found
            for key in going
            if (found := await read_live(key, self.cluster)) is not None and self._goes(key, found, options)
        }
        if not left:
            return self._without(*OF_RESOURCES)
        unconfirmed = [key for key, each in left.items() if self._must_confirm(each, options)]
        if unconfirmed:
            more = f" and {len(unconfirmed) - 1} more resources" if len(unconfirmed) > 1 else ""
            said = f"waiting for deletion confirmation of {shown(unconfirmed[0])}{more}"
            return Deleted(self.app.finalizers, said)
        highest = max(wave(each) for each in left.values())
        now = {key: each for key, each in left.items() if wave(each) == highest}
        for key, each in now.items():
            await self._delete(key, each, options)
        first, *others = now
        more = f" and {len(others)} more resources" if others else ""
        return Deleted(self.app.finalizers, f"waiting for deletion of {shown(first)}{more}", DELETING)

    async def _delete(self, key: ResourceKey, known: Manifest, options: SyncOptions) -> None:
        """Delete only the version that was checked: another Application may take the object over at any moment."""
        propagation = Propagation.BACKGROUND if BACKGROUND in self.app.finalizers else Propagation.FOREGROUND
        found: Manifest | None = known
        if is_hook(known):
            await hooks.release(key, known, self.cluster)
            found = await read_live(key, self.cluster)
        for _ in range(ROUNDS):  # after many conflicts the next call tries again
            if found is None or not self._goes(key, found, options) or self._must_confirm(found, options):
                return
            metadata = found["metadata"]
            if metadata.get("deletionTimestamp"):
                return
            uid, version = metadata.get("uid"), metadata.get("resourceVersion")
            try:
                await self.cluster.delete(key, propagation=propagation, uid=uid, version=version)
                return
            except Conflict:
                found = await read_live(key, self.cluster)
            except ClusterError as error:
                if error.code != 404:
                    raise
                return

    def _goes(self, key: ResourceKey, manifest: Manifest, options: SyncOptions) -> bool:
        """argo: False for objects that stay when their Application is deleted."""
        if key == self.app.key or outlives(manifest, options):
            return False
        if is_hook(manifest) and {Phase.PRE_DELETE, Phase.POST_DELETE} & set(phases(manifest)):
            return False
        return not self.may_delete(manifest)

    def _must_confirm(self, manifest: Manifest, options: SyncOptions) -> bool:
        if options.with_own(manifest).value("Delete") != CONFIRM:
            return False
        return not is_approved(self.app, self.app.deleted)

    def _without(self, *finalizers: str) -> Deleted:
        kept = tuple(each for each in self.app.finalizers if each not in finalizers)
        return Deleted(kept, wait=0.0 if kept else None)
