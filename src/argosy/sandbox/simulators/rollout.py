"""Computes the replica counts of old and new ReplicaSets during a rollout.

In: a Deployment and its ReplicaSets. Out: the next replica count of each. Never: writes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argosy.kube.objects import Manifest, annotation
from argosy.sandbox.simulators.pod_templates import MOST, WANTED


@dataclass(frozen=True)
class Bounds:
    """Limits that hold at every moment of a rolling update."""

    wanted: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        return self.wanted + self.surge

    @property
    def least_available(self) -> int:
        return self.wanted - self.unavailable


def bounds_of(deployment: Manifest) -> Bounds:
    spec = deployment["spec"]
    wanted = int(spec.get("replicas", 1))
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return Bounds(wanted, 0, wanted)
    rolling = strategy.get("rollingUpdate") or {}
    surge = share(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    if not surge and not unavailable:  # k8s: if both round to 0, the rollout could not proceed
        unavailable = 1
    return Bounds(wanted, surge, min(unavailable, wanted))


def share(value: Any, whole: int, *, up: bool) -> int:
    """Resolve an int-or-percent value against a total."""
    text = str(value)
    if not text.endswith("%"):
        return int(text)
    part = int(text[:-1]) * whole / 100
    return math.ceil(part) if up else math.floor(part)


def replicas(replica_set: Manifest | None) -> int:
    return int(replica_set["spec"].get("replicas", 1)) if replica_set else 0


def counted(replica_set: Manifest | None, field: str) -> int:
    return int(((replica_set or {}).get("status") or {}).get(field) or 0)


def first_size(bounds: Bounds, old: Sequence[Manifest]) -> int:
    """Return the initial replicas of a new ReplicaSet."""
    return max(min(bounds.most - sum(map(replicas, old)), bounds.wanted), 0)


def next_size(bounds: Bounds, new: Manifest, old: Sequence[Manifest]) -> int:
    """Return the next replicas of the new ReplicaSet in a rolling update."""
    has = replicas(new)
    if has >= bounds.wanted:
        return bounds.wanted
    room = bounds.most - has - sum(map(replicas, old))
    return has + max(min(room, bounds.wanted - has), 0)


def shrunk(bounds: Bounds, new: Manifest, old: Sequence[Manifest]) -> list[tuple[Manifest, int]]:
    """Return the old ReplicaSets to scale down and their new sizes, oldest first; unavailable Pods go first."""
    total = replicas(new) + sum(map(replicas, old))
    missing_of_new = replicas(new) - counted(new, "availableReplicas")
    may_go = total - bounds.least_available - max(missing_of_new, 0)
    sizes = {id(each): replicas(each) for each in old}
    for each in old:
        useless = min(max(sizes[id(each)] - counted(each, "availableReplicas"), 0), max(may_go, 0))
        sizes[id(each)] -= useless
        may_go -= useless
    available = counted(new, "availableReplicas") + sum(counted(each, "availableReplicas") for each in old)
    may_go = min(may_go, available - bounds.least_available)
    for each in old:
        fewer = min(sizes[id(each)], max(may_go, 0))
        sizes[id(each)] -= fewer
        may_go -= fewer
    return [(each, sizes[id(each)]) for each in old if sizes[id(each)] != replicas(each)]


def is_rescaled(bounds: Bounds, active: Sequence[Manifest]) -> bool:
    """True if spec.replicas changed since these ReplicaSets got their sizes."""
    return any(annotation(each, WANTED) not in ("", str(bounds.wanted)) for each in active)


def proportions(bounds: Bounds, active: Sequence[Manifest]) -> list[tuple[Manifest, int]]:
    """k8s: scaling during a rollout is distributed over all ReplicaSets in proportion. `active` is oldest first."""
    total = sum(map(replicas, active))
    rest = (bounds.most if bounds.wanted else 0) - total
    ordered = sorted(active if rest < 0 else reversed(active), key=replicas, reverse=True)
    sizes: list[int] = []
    for each in ordered:
        share = _share_of_change(bounds, each, total) if rest else 0
        given = sum(sizes) - sum(map(replicas, ordered[: len(sizes)]))
        share = min(share, rest - given) if rest > 0 else max(share, rest - given)
        sizes.append(replicas(each) + share)
    sizes[0] = max(sizes[0] + total + rest - sum(sizes), 0)  # the remainder of rounding
    return list(zip(ordered, sizes))


def _share_of_change(bounds: Bounds, which: Manifest, total: int) -> int:
    if not bounds.wanted:
        return -replicas(which)
    before = annotation(which, MOST)
    whole = int(before) if before.isdigit() and int(before) else total
    return math.floor(replicas(which) * bounds.most / whole + 0.5) - replicas(which)
