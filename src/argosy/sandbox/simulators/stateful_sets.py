"""Simulates the StatefulSet controller: Pods with stable names and claims, one after another.

In: the key of a StatefulSet. Out: revisions, claims, Pods, its status. Never: starts a step before the previous one is
complete.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.errors import ClusterError
from argosy.kube.controller import Context, Requeue, Watch, owner
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.simulators.adoption import Orphans
from argosy.sandbox.simulators.constants import (
    CONTROLLER_REVISION,
    POD,
    STATEFUL_SET,
    is_dying,
    is_played_by_others,
    unmarked,
)
from argosy.sandbox.simulators.controller_revisions import (
    forget,
    newest_revision,
    owned_revisions,
    revision_name,
    template_of,
)
from argosy.sandbox.simulators.events import Happening, Recorder
from argosy.sandbox.simulators.pod_counts import FINISHED, counted, is_available, is_ready, phase_of, pods_of
from argosy.sandbox.simulators.stateful_set_pods import (
    claims_for,
    is_ordered,
    is_rolling,
    ordinal_of,
    ordinals,
    partition,
    pod_for,
    revision_of,
    shared_reference,
)
from argosy.sandbox.simulators.writes import adopt, change, create_once, denied, keep_status, patient, remove

REFUSED_SECONDS: Final = 1.0


@dataclass(frozen=True)
class Revisions:
    """The revision of the last complete rollout (current) and the one to roll out (update)."""

    current: str
    update: str
    templates: Mapping[str, Manifest]


class StatefulSets:
    name = "simulated-statefulsets"
    watches = (
        Watch(STATEFUL_SET, unmarked),
        Watch(POD, owner(STATEFUL_SET)),
        Watch(CONTROLLER_REVISION, owner(STATEFUL_SET)),
    )

    def __init__(self) -> None:
        self._orphans = Orphans(POD)
        self._events = Recorder("statefulset-controller")

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            return None
        for orphan in self._orphans.fitting(live, context.cache):
            if ordinal_of(orphan, live) >= 0:
                await adopt(orphan, live, context.cluster)
        revisions = await _revisions(live, context)
        if revisions is None:
            return None
        pods = {ordinal_of(each, live): each for each in pods_of(live, context.cache)}
        problem = ""
        try:
            await _step(live, pods, revisions, self._events, context)
        except ClusterError as error:
            if not denied(error):
                raise
            problem = error.message
            happening = Happening("FailedCreate", f"create Pod in StatefulSet {key.name} failed error: {problem}", True)
            await self._events.tell(live, [happening], context)
        again = await _report(live, list(pods.values()), revisions, context)
        return Requeue(REFUSED_SECONDS) if problem else again


# -- revisions -----------------------------------------------------------------------------------------------------


async def _revisions(live: Manifest, context: Context) -> Revisions | None:
    """Return the revisions, or None if the newest was just created: its watch event triggers the next reconcile."""
    known = owned_revisions(live, context.cache)
    if await newest_revision(live, known, context) is None:
        return None
    name, templates = revision_name(live), {str(each["metadata"]["name"]): template_of(each) for each in known}
    current = str((live.get("status") or {}).get("currentRevision") or name)
    current = current if current in templates else name
    used = {current, name, *(revision_of(each) for each in pods_of(live, context.cache))}
    await forget(live, known, used, context)
    return Revisions(current, name, templates)


# -- steps ---------------------------------------------------------------------------------------------------------


async def _step(
    live: Manifest, pods: Mapping[int, Manifest], revisions: Revisions, recorder: Recorder, context: Context
) -> None:
    """k8s: create missing Pods from the lowest ordinal, then delete surplus and old Pods from the highest."""
    is_still = await _complete(live, pods, revisions, recorder, context)
    if is_still and await _shrink(live, pods, recorder, context) and is_rolling(live):
        await _update(live, pods, revisions, recorder, context)


async def _complete(
    live: Manifest, pods: Mapping[int, Manifest], revisions: Revisions, recorder: Recorder, context: Context
) -> bool:
    """Create missing Pods; return True if all exist (and are available, in an ordered set)."""
    is_whole = True
    for ordinal in ordinals(live):
        pod = pods.get(ordinal)
        if pod is None:
            await _make(live, ordinal, revisions, recorder, context)
        elif phase_of(pod) in FINISHED and not is_dying(pod):
            await _remove(live, pod, recorder, context)
        elif not is_dying(pod) and (not is_ordered(live) or _is_well(pod, live, context)):
            continue
        is_whole = False
        if is_ordered(live):
            return False
    return is_whole


async def _make(live: Manifest, ordinal: int, revisions: Revisions, recorder: Recorder, context: Context) -> None:
    for claim in claims_for(live, ordinal):
        await create_once(claim, context.cluster)
    is_held = is_rolling(live) and ordinal < partition(live)
    revision = revisions.current if is_held else revisions.update
    pod = pod_for(live, ordinal, revisions.templates[revision], revision)
    if await create_once(pod, context.cluster):
        await recorder.tell(live, [_said(live, pod, "create")], context)


def _said(live: Manifest, pod: Manifest, verb: str) -> Happening:
    message = f"{verb} Pod {pod['metadata']['name']} in StatefulSet {live['metadata']['name']} successful"
    return Happening(f"Successful{verb.capitalize()}", message)


async def _remove(live: Manifest, pod: Manifest, recorder: Recorder, context: Context) -> None:
    await remove(pod, context.cluster)
    await recorder.tell(live, [_said(live, pod, "delete")], context)


async def _shrink(live: Manifest, pods: Mapping[int, Manifest], recorder: Recorder, context: Context) -> bool:
    """Delete Pods outside the ordinals; return True if there is none."""
    condemned = sorted((each for each in pods if each >= 0 and each not in ordinals(live)), reverse=True)
    for ordinal in condemned:
        if not is_dying(pods[ordinal]):
            await _give_up_claims(live, ordinal, pods[ordinal], context)
            await _remove(live, pods[ordinal], recorder, context)
        if is_ordered(live):
            break
    return not condemned


async def _give_up_claims(live: Manifest, ordinal: int, pod: Manifest, context: Context) -> None:
    """Make the Pod own its claims if the retention policy deletes them on scale-down."""
    policy = live["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    if policy.get("whenScaled") != "Delete":
        return
    for claim in claims_for(live, ordinal):
        found = await context.cluster.get(key_of(claim))
        if found is not None:
            await change(found, {"metadata": {"ownerReferences": [shared_reference(pod)]}}, context.cluster)


async def _update(
    live: Manifest, pods: Mapping[int, Manifest], revisions: Revisions, recorder: Recorder, context: Context
) -> None:
    """Delete the Pod with the highest ordinal that has an old revision, one at a time."""
    for ordinal in reversed(range(partition(live), ordinals(live).stop)):
        pod = pods[ordinal]
        if is_dying(pod):
            return
        if revision_of(pod) != revisions.update:
            await _remove(live, pod, recorder, context)
            return
        if not _is_well(pod, live, context):
            return


def _is_well(pod: Manifest, live: Manifest, context: Context) -> bool:
    return is_available(pod, float(live["spec"].get("minReadySeconds") or 0), context.clock.now())


# -- status --------------------------------------------------------------------------------------------------------


async def _report(live: Manifest, pods: Sequence[Manifest], revisions: Revisions, context: Context) -> Requeue | None:
    counts = counted(pods, float(live["spec"].get("minReadySeconds") or 0), context.clock.now())
    alive = [each for each in pods if not is_dying(each)]
    updated = sum(1 for each in alive if revision_of(each) == revisions.update)
    current = sum(1 for each in alive if revision_of(each) == revisions.current)
    wanted = len(ordinals(live))
    is_done = is_rolling(live) and updated == wanted == len(pods) and sum(map(is_ready, pods)) == wanted
    status: dict[str, Any] = {
        "observedGeneration": live["metadata"].get("generation", 1),
        "replicas": counts.total,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
        "updatedReplicas": updated,
        "currentReplicas": updated if is_done else current,
        "currentRevision": revisions.update if is_done else revisions.current,
        "updateRevision": revisions.update,
    }
    await keep_status(live, status, context.cluster)
    return Requeue(counts.wait) if counts.wait is not None else None
