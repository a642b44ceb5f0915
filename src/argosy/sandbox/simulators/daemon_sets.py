"""Simulates the DaemonSet controller: one Pod on each eligible Node.

In: the key of a DaemonSet. Out: revisions, Pods, its status. Never: creates a Pod for a real Node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from argosy.kube.controller import Context, Requeue, Watch, owner
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.sandbox.simulators.constants import (
    CONTROLLER_REVISION,
    DAEMON_SET,
    NODE,
    POD,
    is_dying,
    is_played_by_others,
    unmarked,
)
from argosy.sandbox.simulators.controller_revisions import REVISION, forget, hash_of, newest_revision, owned_revisions
from argosy.sandbox.simulators.daemon_set_pods import Spread, bounds, is_of, is_well, pod_for, spread
from argosy.sandbox.simulators.events import Happening, Recorder
from argosy.sandbox.simulators.pod_counts import FINISHED, counted, phase_of, pods_of
from argosy.sandbox.simulators.pod_creation import make_pods, remove_pods
from argosy.sandbox.simulators.writes import keep_status, patient


class DaemonSets:
    name = "simulated-daemonsets"

    def __init__(self) -> None:
        self._known: set[ResourceKey] = set()
        self._events = Recorder("daemonset-controller")
        self.watches = (
            Watch(DAEMON_SET, unmarked),
            Watch(POD, owner(DAEMON_SET)),
            Watch(CONTROLLER_REVISION, owner(DAEMON_SET)),
            Watch(NODE, self._all),
        )

    def _all(self, _: Manifest) -> Iterable[ResourceKey]:
        return tuple(self._known)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        live = context.cache.get(key)
        self._known.discard(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            return None
        self._known.add(key)
        revisions = owned_revisions(live, context.cache)
        revision = await newest_revision(live, revisions, context)
        if revision is None:
            return None
        mark = hash_of(str(revision["metadata"]["name"]))
        pods = pods_of(live, context.cache)
        found = spread(live, context.cache.list(NODE), pods)
        problem = await self._step(live, found, mark, context)
        used = {f"{live['metadata']['name']}-{each['metadata'].get('labels', {}).get(REVISION)}" for each in pods}
        await forget(live, revisions, {revision["metadata"]["name"], *used}, context)
        wait = await _report(live, found, mark, context)
        waits = [each for each in (wait, 1.0 if problem else None) if each is not None]
        return Requeue(min(waits)) if waits else None

    async def _step(self, live: Manifest, found: Spread, mark: str, context: Context) -> str:
        """Create and delete Pods; return why Pods could not be created, or an empty string."""
        await remove_pods(live, found.stray, self._events, context)
        for node in found.wanted:
            for pod in found.pods.get(node, ()):
                if phase_of(pod) in FINISHED and not is_dying(pod):
                    which = f"{pod['metadata']['namespace']}/{pod['metadata']['name']} on node {node}"
                    message = f"Found failed daemon pod {which}, will try to kill it"
                    await self._events.tell(live, [Happening("FailedDaemonPod", message, is_warning=True)], context)
                    await remove_pods(live, [pod], self._events, context)
        missing = [node for node in found.wanted if not found.pods.get(node)]
        problem = await self._make(live, missing, found, mark, context)
        if (live["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
            problem = await self._roll(live, found, mark, context) or problem
        return problem

    async def _roll(self, live: Manifest, found: Spread, mark: str, context: Context) -> str:
        """Replace Pods of old revisions within the limits of the rolling update."""
        may_miss, surge = bounds(live, len(found.wanted))
        is_surging = surge > 0
        now, waiting = context.clock.now(), []
        for node in found.wanted:
            here = [each for each in found.pods.get(node, ()) if not is_dying(each)]
            old = [each for each in here if not is_of(each, mark)]
            well = [each for each in here if is_well(each, live, now)]
            if any(is_of(each, mark) for each in well):
                await remove_pods(live, old, self._events, context)
            elif len(old) < len(here) or not here:  # the new Pod is starting
                surge, may_miss = surge - 1, may_miss - 1
            elif not well and not is_surging:
                may_miss -= 1
                # k8s: an unavailable Pod may be replaced at once
                await remove_pods(live, old, self._events, context)
            else:
                waiting.append((node, old))
        if is_surging:
            return await self._make(live, [node for node, _ in waiting[: max(surge, 0)]], found, mark, context)
        for _, old in waiting[: max(may_miss, 0)]:
            await remove_pods(live, old, self._events, context)
        return ""

    async def _make(self, live: Manifest, on: Sequence[str], found: Spread, mark: str, context: Context) -> str:
        taken = {node: [str(each["metadata"]["name"]) for each in found.pods.get(node, ())] for node in on}
        return await make_pods(live, [pod_for(live, node, mark, taken[node]) for node in on], self._events, context)


async def _report(live: Manifest, found: Spread, mark: str, context: Context) -> float | None:
    """k8s: every Node counts once, however many Pods it has."""
    first = [_shown(found.pods.get(node, ()), mark) for node in found.wanted]
    there = [each for each in first if each is not None]
    counts = counted(there, float(live["spec"].get("minReadySeconds") or 0), context.clock.now())
    wanted = len(found.wanted)
    status: dict[str, Any] = {
        "currentNumberScheduled": len(there),
        "desiredNumberScheduled": wanted,
        "numberMisscheduled": len({id(each) for each in found.stray if not is_dying(each)}),
        "numberReady": counts.ready,
        "numberAvailable": counts.available,
        "numberUnavailable": wanted - counts.available,
        "updatedNumberScheduled": sum(1 for each in there if is_of(each, mark)),
        "observedGeneration": live["metadata"].get("generation", 1),
    }
    await keep_status(live, status, context.cluster)
    return counts.wait


def _shown(pods: Sequence[Manifest], mark: str) -> Manifest | None:
    alive = [each for each in pods if not is_dying(each)]
    return next((each for each in alive if is_of(each, mark)), next(iter(alive), None))
