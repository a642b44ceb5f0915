"""Simulates the kubelet for Pods, and asks the scheduler for a Node where a Pod has none.

In: the key of a Pod. Out: its Node, then its status, then its deletion. Never: touches a Pod on a real Node.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from argosy.errors import UserError
from argosy.kube.controller import Cache, Context, Requeue, Watch
from argosy.kube.names import ResourceKey, split_api_version
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps import remaining_delay
from argosy.sandbox.simulators import nodes, pod_events, pod_status
from argosy.sandbox.simulators.constants import (
    CLAIM,
    CRON_JOB,
    DAEMON_SET,
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
from argosy.sandbox.simulators.containers import Acting, Actor, act
from argosy.sandbox.simulators.events import Recorder
from argosy.sandbox.simulators.fault_injection import NONE, Fault, Wishes, asked, read_wishes
from argosy.sandbox.simulators.pod_processes import Doing, Processes
from argosy.sandbox.simulators.scheduler import Scheduler
from argosy.sandbox.simulators.timestamps import Moments, left, moment_of, stamp
from argosy.sandbox.simulators.writes import keep_status, patient, remove

ABOVE = (REPLICA_SET, DEPLOYMENT, STATEFUL_SET, DAEMON_SET, JOB, CRON_JOB)
FINISHED = ("Succeeded", "Failed")
STOPPED = "stopped"
RUN_HERE = "containers run as confined local processes (argosy)"
LOW_ON_MEMORY = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 92Mi."


class Pods:
    """The in-memory state only decides which Pods to enqueue; after a restart every Pod is reconciled anyway."""

    name = "simulated-pods"

    def __init__(self, processes: Processes | None = None) -> None:
        self._processes = processes or Processes()
        self._moments = Moments()
        self._scheduler = Scheduler()
        self._events = Recorder("kubelet")
        self._failed: dict[str, frozenset[str]] = {}  # uids of failed Pods by the uid of their owner
        self._stopping: set[ResourceKey] = set()
        self._asked: dict[str, dict[str, str]] = {}
        self._cache: Cache | None = None
        self.watches = (
            Watch(POD, unmarked),
            Watch(POD, self._scheduler.freed),
            *(Watch(kind, self._scheduler.waiting) for kind in (CLAIM, STORAGE_CLASS, NODE)),
            *(Watch(kind, self._below, metadata_only=True) for kind in ABOVE),
        )

    def _below(self, manifest: Manifest) -> Iterable[ResourceKey]:
        """Enqueue the Pods of a workload whose simulation annotations changed."""
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
        self._scheduler.open(context.cache)
        self._scheduler.forget(key)
        pod = context.cache.get(key)
        if pod is None:
            await self._processes.forget_gone(key, context.clock.now())
        if pod is None or is_played_by_others(pod):
            return None
        if not pod["spec"].get("nodeName"):
            # k8s: the controller that set a scheduling gate removes it
            if not is_dying(pod) and not pod["spec"].get("schedulingGates"):
                await self._scheduler.schedule(pod, _wishes(pod, context.cache)[0], context)
            return None
        node = context.cache.get(own_key(NODE, "", pod["spec"]["nodeName"]))
        if node is None or not nodes.is_played(node):
            return None
        if is_dying(pod):
            return await self._stop(pod, context)
        return await self._play(pod, nodes.address_of(node), context)

    async def _play(self, pod: Manifest, address: str, context: Context) -> Requeue | None:
        """Compute and write the next status of a running Pod."""
        status, now = pod.get("status") or {}, context.clock.now()
        if status.get("phase") in FINISHED:
            return None
        wishes, problem = _wishes(pod, context.cache)
        actor = Actor(pod, wishes, now, self._moments, self._failed_before(pod, wishes))
        if problem and status.get("phase") in (None, "Pending"):
            await self._report(pod, pod_status.not_understood(actor, problem, address), wishes, context)
            return None
        doing = await self._processes.step(pod, context) if self._is_process(wishes) else None
        acting = act(actor) if doing is None else _acting(doing)
        ends = [*_eviction(actor, acting), *_deadline(actor, acting)]
        for wait, reason, message in ends:
            if wait <= 0:
                await self._processes.end(pod, now)
                await self._report(pod, pod_status.failed(pod, reason, message, stamp(now)), wishes, context)
                return None
        wanted = pod_status.status_of(actor, acting, address)
        if doing is not None:
            told_by = {"containerStatuses": doing.containers, "initContainerStatuses": doing.init or None}
            wanted |= {"message": RUN_HERE, **told_by}
        await self._report(pod, wanted, wishes, context)
        waits = [wait for wait in (acting.wait, *(each[0] for each in ends)) if wait is not None]
        return Requeue(min(waits)) if waits else None

    def _is_process(self, wishes: Wishes) -> bool:
        """True if the Pod runs as a process; an injected fault is always simulated."""
        return wishes.is_process and wishes.fail is None and self._processes.is_open

    def _failed_before(self, pod: Manifest, wishes: Wishes) -> int:
        """Count failed Pods of the same owner, including deleted ones. Only some settings need the count."""
        uid = str((owner_of(pod) or {}).get("uid") or "")
        if not uid or self._cache is None or (wishes.fail_times is None and wishes.fail is not Fault.EVICTED):
            self._failed.pop(uid, None)
            return 0
        pods = (each for each in self._cache.owned(uid) if each["kind"] == "Pod")
        found = {str(each["metadata"]["uid"]) for each in pods if (each.get("status") or {}).get("phase") == "Failed"}
        self._failed[uid] = self._failed.get(uid, frozenset()) | found
        return len(self._failed[uid])

    async def _report(self, pod: Manifest, wanted: dict[str, Any], wishes: Wishes, context: Context) -> None:
        if await keep_status(pod, wanted, context.cluster):
            if wanted["phase"] == "Failed" and (owner := owner_of(pod)):
                self._failed[owner["uid"]] = self._failed.get(owner["uid"], frozenset()) | {pod["metadata"]["uid"]}
            await self._events.tell(pod, pod_events.between(pod, wanted, wishes), context)

    async def _stop(self, pod: Manifest, context: Context) -> Requeue | None:
        """Delete a terminating Pod: at once, or after `stop-after` seconds within the grace period."""
        wishes, _ = _wishes(pod, context.cache)
        phase = (pod.get("status") or {}).get("phase")
        wait = _until_stopped(pod, wishes, context.clock.now())
        wait = max(wait, await self._processes.stop(pod, context.clock.now()))
        if phase not in FINISHED and key_of(pod) not in self._stopping:
            self._stopping.add(key_of(pod))
            await self._events.tell(pod, pod_events.stopping(pod), context)
        if wait > 0 and phase not in FINISHED:
            return Requeue(wait)
        self._stopping.discard(key_of(pod))
        if pod["metadata"].get("finalizers") and phase not in FINISHED:
            await keep_status(pod, pod_status.failed(pod, "", STOPPED, stamp(context.clock.now())), context.cluster)
            return None
        if pod["metadata"].get("deletionGracePeriodSeconds") == 0 and pod["metadata"].get("finalizers"):
            return None  # the remaining finalizers belong to others
        await remove(pod, context.cluster, grace=0)
        return None


def _acting(doing: Doing) -> Acting:
    """Summarize the process states of all containers for the Pod's conditions."""
    first = doing.containers[0]
    return Acting(doing.phase, first["state"], ready=doing.is_ready, wait=doing.wait)


def _wishes(pod: Manifest, cache: Cache) -> tuple[Wishes, str]:
    """Read the settings of a Pod and its owners; also return what is wrong with them, or an empty string."""
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


def _eviction(actor: Actor, acting: Acting) -> Iterable[tuple[float, str, str]]:
    """Yield (seconds until the Pod fails, reason, message) for an injected eviction."""
    if actor.wishes.fail is Fault.EVICTED and acting.phase == "Running" and not actor.failed_before:
        began: dict[str, Any] = acting.state.get("running") or {}
        since = actor.moments.read(actor.uid, began["startedAt"]) if began else actor.now
        yield left(since, actor.wishes.run_for, actor.now), pod_status.EVICTED, LOW_ON_MEMORY


def _deadline(actor: Actor, acting: Acting) -> Iterable[tuple[float, str, str]]:
    """Yield (seconds until the Pod fails, reason, message) for `activeDeadlineSeconds`."""
    limit = actor.pod["spec"].get("activeDeadlineSeconds")
    if limit is not None and acting.phase in ("Pending", "Running"):
        began = (actor.pod.get("status") or {}).get("startTime")
        since = actor.moments.read(actor.uid, began) if began else actor.now
        message = "Pod was active on the node longer than the specified deadline"
        yield left(since, float(limit), actor.now), "DeadlineExceeded", message


def _until_stopped(pod: Manifest, wishes: Wishes, now: datetime) -> float:
    metadata = pod["metadata"]
    grace = float(metadata.get("deletionGracePeriodSeconds") or 0)
    # k8s: deletion was requested one grace period earlier
    end = moment_of(metadata["deletionTimestamp"])
    return remaining_delay(end - timedelta(seconds=grace), min(wishes.stop_after, grace), now)
