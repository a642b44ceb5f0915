"""Counts Pods as controllers do: active, ready, available; and ranks them for deletion.

In: Pods. Out: counts and choices. Never: writes; reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import NamedTuple

from argosy.kube.controller import Cache
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import remaining_delay
from argosy.sandbox.simulators.constants import is_dying, owner_of
from argosy.sandbox.simulators.timestamps import moment_of

FINISHED = ("Succeeded", "Failed")


class Counts(NamedTuple):
    total: int
    ready: int
    available: int
    wait: float | None  # seconds until one more Pod is available


def pods_of(owner: Manifest, cache: Cache) -> list[Manifest]:
    uid = owner["metadata"]["uid"]
    return [each for each in cache.owned(uid) if each["kind"] == "Pod" and (owner_of(each) or {}).get("uid") == uid]


def phase_of(pod: Manifest) -> str:
    return str((pod.get("status") or {}).get("phase") or "Pending")


def is_active(pod: Manifest) -> bool:
    return phase_of(pod) not in FINISHED and not is_dying(pod)


def is_fresh(pod: Manifest) -> bool:
    """True if the Pod has not been started and no condition says why."""
    status = pod.get("status") or {}
    refused = any(each["status"] == "False" for each in status.get("conditions") or ())
    return not status.get("startTime") and not refused


def ready_since(pod: Manifest) -> str:
    """Return the time at which the Pod became ready, or an empty string."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    found = next((each for each in conditions if each["type"] == "Ready" and each["status"] == "True"), None)
    return str(found.get("lastTransitionTime") or "") if found else ""


def is_ready(pod: Manifest) -> bool:
    return bool(ready_since(pod))


def is_available(pod: Manifest, min_ready: float, now: datetime) -> bool:
    since = ready_since(pod)
    return bool(since) and (not min_ready or remaining_delay(moment_of(since), min_ready, now) <= 0)


def counted(pods: Iterable[Manifest], min_ready: float, now: datetime) -> Counts:
    total = ready = available = 0
    waits = []
    for pod in pods:
        total += 1
        if since := ready_since(pod):
            ready += 1
            wait = remaining_delay(moment_of(since), min_ready, now) if min_ready else 0.0
            if wait <= 0:
                available += 1
            else:
                waits.append(wait)
    return Counts(total, ready, available, min(waits, default=None))


def first_to_go(pods: Sequence[Manifest], count: int) -> Sequence[Manifest]:
    """k8s: delete the least useful Pods first, and the youngest of equal ones."""
    by_age = sorted(pods, key=lambda pod: (str(pod["metadata"]["creationTimestamp"]), str(pod["metadata"]["name"])))
    by_age.reverse()
    return sorted(by_age, key=_use)[:count]


def _use(pod: Manifest) -> tuple[bool, int, bool]:
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}
    return bool(pod["spec"].get("nodeName")), phases.get(phase_of(pod), 1), is_ready(pod)
