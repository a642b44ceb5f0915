"""Counts Pods as controllers do: active, ready, available; and ranks them for deletion.

In: Pods. Out: counts and choices. Never: writes; reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import remaining_delay
from argosy.sandbox.simulators.owner_references_and_marks import find_controller_reference, is_being_deleted
from argosy.sandbox.simulators.timestamps_and_durations import parse_timestamp

FINISHED_PHASES = ("Succeeded", "Failed")


class PodCounts(NamedTuple):
    total: int
    ready: int
    available: int
    seconds_until_available: float | None  # seconds until one more Pod is available


def list_owned_pods(owner: Manifest, cache: InformerCache) -> list[Manifest]:
    uid = owner["metadata"]["uid"]
    return [
        pod
        for pod in cache.list_owned(uid)
        if pod["kind"] == "Pod" and (find_controller_reference(pod) or {}).get("uid") == uid
    ]


def read_pod_phase(pod: Manifest) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_active(pod: Manifest) -> bool:
    return read_pod_phase(pod) not in FINISHED_PHASES and not is_being_deleted(pod)


def is_unprocessed(pod: Manifest) -> bool:
    """True if the Pod has not been started and no condition says why."""
    status = pod.get("status") or {}
    has_false_condition = any(condition["status"] == "False" for condition in status.get("conditions") or ())
    return not status.get("startTime") and not has_false_condition


def read_ready_since(pod: Manifest) -> str:
    """Return the time at which the Pod became ready, or an empty string."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    ready = next(
        (condition for condition in conditions if condition["type"] == "Ready" and condition["status"] == "True"), None
    )
    return str(ready.get("lastTransitionTime") or "") if ready else ""


def is_ready(pod: Manifest) -> bool:
    return bool(read_ready_since(pod))


def is_available(pod: Manifest, min_ready_seconds: float, now: datetime) -> bool:
    since = read_ready_since(pod)
    return bool(since) and (
        not min_ready_seconds or remaining_delay(parse_timestamp(since), min_ready_seconds, now) <= 0
    )


def count_pods(pods: Iterable[Manifest], min_ready_seconds: float, now: datetime) -> PodCounts:
    total = ready = available = 0
    waits = []
    for pod in pods:
        total += 1
        if since := read_ready_since(pod):
            ready += 1
            wait = remaining_delay(parse_timestamp(since), min_ready_seconds, now) if min_ready_seconds else 0.0
            if wait <= 0:
                available += 1
            else:
                waits.append(wait)
    return PodCounts(total, ready, available, min(waits, default=None))


def choose_pods_to_delete(pods: Sequence[Manifest], count: int) -> Sequence[Manifest]:
    """k8s: delete the least useful Pods first, and the youngest of equal ones."""
    youngest_first = sorted(
        pods, key=lambda pod: (str(pod["metadata"]["creationTimestamp"]), str(pod["metadata"]["name"]))
    )
    youngest_first.reverse()
    return sorted(youngest_first, key=_rank_usefulness)[:count]


def _rank_usefulness(pod: Manifest) -> tuple[bool, int, bool]:
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}
    return bool(pod["spec"].get("nodeName")), phases.get(read_pod_phase(pod), 1), is_ready(pod)
