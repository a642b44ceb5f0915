"""Plays scheduler and kubelet for Pods.

In: the key of a Pod. Out: its Node, then its status, then its end. Never: touches a Pod on a Node that is real.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from argosy.addons.simulators import nodes, pod_status
from argosy.addons.simulators.containers import Acting, Actor, act
from argosy.addons.simulators.names import (
    CLAIM,
    DEPLOYMENT,
    JOB,
    NODE,
    POD,
    REPLICA_SET,
    STATEFUL_SET,
    STORAGE_CLASS,
    is_dying,
    is_played_by_others,
    own_key,
    owner_of,
    unmarked,
)
from argosy.addons.simulators.times import Moments, left, moment_of, stamp
from argosy.addons.simulators.volumes import SELECTED_NODE, claims_of, waits_for_consumer
from argosy.addons.simulators.wishes import NONE, Fault, Wishes, asked, read_wishes
from argosy.addons.simulators.writing import change, keep_status, patient, remove
from argosy.model.errors import UserError
from argosy.model.manifest import Manifest, key_of
from argosy.model.names import ResourceKey, split_api_version
from argosy.runtime import Cache, Context, Requeue, Watch

ABOVE = (REPLICA_SET, DEPLOYMENT, STATEFUL_SET, JOB)
FINISHED = ("Succeeded", "Failed")
STOPPED = "stopped"


class Pods:
    """What is remembered only says whom to wake; who starts anew looks at every Pod anyhow."""

    name = "simulated-pods"

    def __init__(self) -> None:
        self._moments = Moments()
        self._homeless: set[ResourceKey] = set()
        self._asked: dict[str, dict[str, str]] = {}
        self._cache: Cache | None = None
        self.watches = (
            Watch(POD, unmarked),
            Watch(CLAIM, self._waiting),
            Watch(STORAGE_CLASS, self._waiting),
            Watch(NODE, self._waiting),
            *(Watch(kind, self._below, metadata_only=True) for kind in ABOVE),
        )

    def _waiting(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._homeless)

    def _below(self, manifest: Manifest) -> Iterable[ResourceKey]:
        """The Pods of a workload, when it asks for something else than before."""
        uid, wishes = manifest["metadata"]["uid"], asked(manifest)
        if self._cache is None or self._asked.get(uid, {}) == wishes:
            return
        self._asked[uid] = wishes
        rest = [manifest]
        while rest:
            for each in self._cache.owned(rest.pop()["metadata"]["uid"]):
                if each["kind"] == "Pod":
                    yield key_of(each)
                else:
                    rest.append(each)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        self._cache = context.cache
        pod = context.cache.get(key)
        self._homeless.discard(key)
        if pod is None or is_played_by_others(pod):
            return None
        if not pod["spec"].get("nodeName"):
            return None if is_dying(pod) else await self._schedule(pod, context)
        node = context.cache.get(own_key(NODE, "", pod["spec"]["nodeName"]))
        if node is None or not nodes.is_played(node):
            return None
        if is_dying(pod):
            return await self._stop(pod, context)
        return await self._play(pod, nodes.address_of(node), context)

    # -- the scheduler -------------------------------------------------------------------------------------------

    async def _schedule(self, pod: Manifest, context: Context) -> Requeue | None:
        if pod["spec"].get("schedulingGates"):
            return None  # k8s: whoever set them takes them off, and that wakes us
        node, why = nodes.choose(pod, context.cache.list(NODE))
        if _wishes(pod, context.cache)[0].fail is Fault.UNSCHEDULABLE:
            why = "0/1 nodes are available: 1 Insufficient cpu."
        if not why and node is not None:
            why = await _unbound(pod, str(node["metadata"]["name"]), context)
        if why or node is None:
            self._homeless.add(key_of(pod))
            await keep_status(pod, pod_status.unscheduled(pod, why, stamp(context.clock.now())), context.cluster)
            return None
        metadata = pod["metadata"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"], "uid": metadata["uid"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"]},
        }
        await context.cluster.create(binding, subresource_of=key_of(pod))
        return None

    # -- the kubelet ---------------------------------------------------------------------------------------------

    async def _play(self, pod: Manifest, address: str, context: Context) -> Requeue | None:
        status, now = pod.get("status") or {}, context.clock.now()
        if status.get("phase") in FINISHED:
            return None
        wishes, problem = _wishes(pod, context.cache)
        actor = Actor(pod, wishes, now, self._moments, _failed_siblings(pod, wishes, context.cache))
        if problem and status.get("phase") in (None, "Pending"):
            await keep_status(pod, pod_status.not_understood(actor, problem, address), context.cluster)
            return None
        acting = act(actor)
        ends = [*_eviction(actor, acting), *_deadline(actor, acting)]
        for wait, reason, message in ends:
            if wait <= 0:
                await keep_status(pod, pod_status.failed(pod, reason, message), context.cluster)
                return None
        await keep_status(pod, pod_status.status_of(actor, acting, address), context.cluster)
        waits = [wait for wait in (acting.wait, *(each[0] for each in ends)) if wait is not None]
        return Requeue(min(waits)) if waits else None

    async def _stop(self, pod: Manifest, context: Context) -> Requeue | None:
        """A process that obeys ends at once; `stop-after` asks for one that does not, until its grace is over."""
        wishes, _ = _wishes(pod, context.cache)
        phase = (pod.get("status") or {}).get("phase")
        wait = _until_stopped(pod, wishes, context.clock.now())
        if wait > 0 and phase not in FINISHED:
            return Requeue(wait)
        if pod["metadata"].get("finalizers") and phase not in FINISHED:
            await keep_status(pod, pod_status.failed(pod, "", STOPPED), context.cluster)
            return None
        if pod["metadata"].get("deletionGracePeriodSeconds") == 0 and pod["metadata"].get("finalizers"):
            return None  # it is for others now
        await remove(pod, context.cluster, grace=0)
        return None


def _wishes(pod: Manifest, cache: Cache) -> tuple[Wishes, str]:
    """And what is wrong with them, if anything is."""
    chain = [asked(pod)]
    above, depth = pod, 0
    while (reference := owner_of(above)) is not None and depth < 3:
        group, _ = split_api_version(reference["apiVersion"])
        found = cache.get(ResourceKey(group, reference["kind"], pod["metadata"]["namespace"], reference["name"]))
        if found is None:
            break
        chain.append(asked(found))
        above, depth = found, depth + 1
    try:
        return read_wishes(chain), ""
    except UserError as error:
        return NONE, str(error)


def _failed_siblings(pod: Manifest, wishes: Wishes, cache: Cache) -> int:
    """Only some wishes depend on it, and counting takes time where there are many."""
    reference = owner_of(pod)
    if reference is None or (wishes.fail_times is None and wishes.fail is not Fault.EVICTED):
        return 0
    pods = (each for each in cache.owned(reference["uid"]) if each["kind"] == "Pod")
    return sum(1 for each in pods if (each.get("status") or {}).get("phase") == "Failed")


def _eviction(actor: Actor, acting: Acting) -> Iterable[tuple[float, str, str]]:
    """In how many seconds a Pod is ended from outside, and why."""
    if actor.wishes.fail is Fault.EVICTED and acting.phase == "Running" and not actor.failed_before:
        began: dict[str, Any] = acting.state.get("running") or {}
        since = actor.moments.read(actor.uid, began["startedAt"]) if began else actor.now
        yield left(since, actor.wishes.run_for, actor.now), "Evicted", "The node was low on resource: memory."


def _deadline(actor: Actor, acting: Acting) -> Iterable[tuple[float, str, str]]:
    limit = actor.pod["spec"].get("activeDeadlineSeconds")
    if limit is not None and acting.phase in ("Pending", "Running"):
        began = (actor.pod.get("status") or {}).get("startTime")
        since = actor.moments.read(actor.uid, began) if began else actor.now
        message = "Pod was active on the node longer than the specified deadline"
        yield left(since, float(limit), actor.now), "DeadlineExceeded", message


def _until_stopped(pod: Manifest, wishes: Wishes, now: datetime) -> float:
    metadata = pod["metadata"]
    grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
    end = moment_of(metadata["deletionTimestamp"])  # k8s: asked for so many seconds before
    return left(end, min(wishes.stop_after, grace) - grace, now)


async def _unbound(pod: Manifest, node: str, context: Context) -> str:
    """Why its volumes keep a Pod from being scheduled; claims that wait for a Pod are told that it is here."""
    waits = False
    for name in claims_of(pod):
        claim = context.cache.get(own_key(CLAIM, pod["metadata"]["namespace"], name))
        if claim is None or is_dying(claim):
            return f'persistentvolumeclaim "{name}" not found'
        if (claim.get("status") or {}).get("phase") == "Bound":
            continue
        if not waits_for_consumer(claim, context.cache):
            return "pod has unbound immediate PersistentVolumeClaims"
        waits = True
        if SELECTED_NODE not in (claim["metadata"].get("annotations") or {}):
            await change(claim, {"metadata": {"annotations": {SELECTED_NODE: node}}}, context.cluster)
    return "waiting for a volume to be created" if waits else ""
