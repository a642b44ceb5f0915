"""Simulates the ReplicaSet controller.

In: the key of a ReplicaSet. Out: the requested number of Pods, and its status. Never: changes a running Pod.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from argosy.kube.controller import Context, Requeue, Watch, owner
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.schema import selectors
from argosy.sandbox.simulators.adoption import Orphans
from argosy.sandbox.simulators.constants import (
    POD,
    REPLICA_SET,
    is_dying,
    is_played_by_others,
    letters,
    owner_of,
    pod_from,
    told,
    unmarked,
)
from argosy.sandbox.simulators.events import Recorder
from argosy.sandbox.simulators.pod_counts import counted, first_to_go, is_active, is_fresh, phase_of, pods_of
from argosy.sandbox.simulators.pod_creation import make_pods, remove_pods
from argosy.sandbox.simulators.requeue_interval import Pace
from argosy.sandbox.simulators.timestamps import left, moment_of, stamp
from argosy.sandbox.simulators.writes import adopt, keep_status, patient

MOST_AT_ONCE: Final = 100
EARLY_SECONDS: Final = 2.0


class ReplicaSets:
    name = "simulated-replicasets"
    watches = (Watch(REPLICA_SET, unmarked), Watch(POD, owner(REPLICA_SET)))

    def __init__(self) -> None:
        self._orphans = Orphans(POD)
        self._events = Recorder("replicaset-controller")
        self._pace = Pace(0.0, 0.0005)

    @patient
    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        live = context.cache.get(key)
        if live is None or is_dying(live) or is_played_by_others(live):
            self._pace.forget(key)
            return None
        if (pause := self._pace.wait(key, context.clock)) > 0:
            return Requeue(pause)
        for orphan in self._orphans.fitting(live, context.cache):
            if phase_of(orphan) not in ("Succeeded", "Failed"):
                await adopt(orphan, live, context.cluster)
        pods = pods_of(live, context.cache)
        self._pace.looked(key, len(pods), context.clock)
        active = [each for each in pods if is_active(each)]
        problem = ""
        if missing := max(_wanted(live) - len(active), 0):
            problem = await _create(live, pods, missing, self._events, context)
            if not problem and not (live.get("status") or {}).get("observedGeneration"):
                # the watch events of the Pods trigger the next reconcile, with more to report
                return None
        elif len(active) > _wanted(live):
            await _shrink(live, self._events, context)
        elif _is_early(live, active, context.clock.now()):
            return Requeue(EARLY_SECONDS)
        return await _report(live, active, problem, context)


def _is_early(live: Manifest, active: Sequence[Manifest], now: datetime) -> bool:
    """True if the new Pods are about to start; reporting later saves a write here and one on the Deployment."""
    if (live.get("status") or {}).get("observedGeneration"):
        return False
    made = [moment_of(pod["metadata"]["creationTimestamp"]) for pod in active if is_fresh(pod)]
    return any(left(each, EARLY_SECONDS, now) > 0 for each in made)


def _wanted(live: Manifest) -> int:
    return int(live["spec"].get("replicas", 1))


async def _create(live: Manifest, pods: Sequence[Manifest], missing: int, recorder: Recorder, context: Context) -> str:
    """Create missing Pods; return why they cannot be created, or an empty string.

    Names are deterministic, so that a Pod the cache does not show yet is not created twice.
    """
    taken = {str(each["metadata"]["name"]) for each in pods}
    made = []
    for name in _names(live):
        if name not in taken:
            made.append(pod_from(live["spec"]["template"], live, name))
        if len(made) >= min(missing, MOST_AT_ONCE):
            break
    return await make_pods(live, made, recorder, context)


def _names(live: Manifest) -> Iterator[str]:
    metadata = live["metadata"]
    number = 0
    while True:
        yield f"{metadata['name']}-{letters(metadata['uid'] + '/' + str(number), 5)}"
        number += 1


async def _shrink(live: Manifest, recorder: Recorder, context: Context) -> None:
    """Delete surplus Pods. Lists them from the server, because the cache may still show Pods that were just deleted."""
    uid = live["metadata"]["uid"]
    labels = str(selectors.from_label_selector(live["spec"].get("selector")))
    listing = await context.cluster.list(POD, namespace=live["metadata"]["namespace"], labels=labels)
    active = [each for each in listing.items if (owner_of(each) or {}).get("uid") == uid and is_active(each)]
    surplus = len(active) - _wanted(live)
    await remove_pods(live, first_to_go(active, max(surplus, 0)), recorder, context)


async def _report(live: Manifest, active: Sequence[Manifest], problem: str, context: Context) -> Requeue | None:
    counts = counted(active, float(live["spec"].get("minReadySeconds") or 0), context.clock.now())
    status: dict[str, Any] = {
        "replicas": counts.total,
        "fullyLabeledReplicas": counts.total,
        "readyReplicas": counts.ready,
        "availableReplicas": counts.available,
        "observedGeneration": live["metadata"].get("generation", 1),
        "conditions": _failure(live, problem, stamp(context.clock.now())),
    }
    await keep_status(live, status, context.cluster)
    waits = [each for each in (counts.wait, 1.0 if problem else None) if each is not None]
    return Requeue(min(waits)) if waits else None


def _failure(live: Manifest, problem: str, now: str) -> list[dict[str, Any]] | None:
    if not problem:
        return None
    known: Manifest = next(iter((live.get("status") or {}).get("conditions") or ()), {})
    since = known.get("lastTransitionTime") or now
    message = told(problem)
    return [
        {
            "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate",
            "message": message, "lastTransitionTime": since,
        }
    ]  # fmt: skip
