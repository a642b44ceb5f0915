"""Computes the replica counts of old and new ReplicaSets during a rollout.

In: a Deployment and its ReplicaSets. Out: the next replica count of each. Never: writes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from argosy.kube.objects import Manifest, get_annotation
from argosy.sandbox.simulators.deployment_replica_set_manifests import (
    DESIRED_REPLICAS_ANNOTATION,
    MAX_REPLICAS_ANNOTATION,
)


@dataclass(frozen=True)
class RolloutBounds:
    """Limits that hold at every moment of a rolling update."""

    desired: int
    max_surge: int
    max_unavailable: int

    @property
    def max_total(self) -> int:
        return self.desired + self.max_surge

    @property
    def min_available(self) -> int:
        return self.desired - self.max_unavailable


def read_rollout_bounds(deployment: Manifest) -> RolloutBounds:
    spec = deployment["spec"]
    desired = int(spec.get("replicas", 1))
    strategy = spec.get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return RolloutBounds(desired, 0, desired)
    rolling_update = strategy.get("rollingUpdate") or {}
    surge = resolve_int_or_percent(rolling_update.get("maxSurge", "25%"), desired, round_up=True)
    unavailable = resolve_int_or_percent(rolling_update.get("maxUnavailable", "25%"), desired, round_up=False)
    if not surge and not unavailable:  # k8s: if both round to 0, the rollout could not proceed
        unavailable = 1
    return RolloutBounds(desired, surge, min(unavailable, desired))


def resolve_int_or_percent(value: Any, total: int, *, round_up: bool) -> int:
    """Resolve an int-or-percent value against a total."""
    text = str(value)
    if not text.endswith("%"):
        return int(text)
    fraction = int(text[:-1]) * total / 100
    return math.ceil(fraction) if round_up else math.floor(fraction)


def read_replicas(replica_set: Manifest | None) -> int:
    return int(replica_set["spec"].get("replicas", 1)) if replica_set else 0


def read_status_count(replica_set: Manifest | None, field: str) -> int:
    return int(((replica_set or {}).get("status") or {}).get(field) or 0)


def compute_initial_size(bounds: RolloutBounds, old: Sequence[Manifest]) -> int:
    """Return the initial replicas of a new ReplicaSet."""
    return max(min(bounds.max_total - sum(map(read_replicas, old)), bounds.desired), 0)


def compute_next_size(bounds: RolloutBounds, new: Manifest, old: Sequence[Manifest]) -> int:
    """Return the next replicas of the new ReplicaSet in a rolling update."""
    current = read_replicas(new)
    if current >= bounds.desired:
        return bounds.desired
    surge_left = bounds.max_total - current - sum(map(read_replicas, old))
    return current + max(min(surge_left, bounds.desired - current), 0)


def compute_scale_downs(bounds: RolloutBounds, new: Manifest, old: Sequence[Manifest]) -> list[tuple[Manifest, int]]:
    """Return the old ReplicaSets to scale down and their new sizes, oldest first; unavailable Pods go first."""
    total = read_replicas(new) + sum(map(read_replicas, old))
    unavailable_new = read_replicas(new) - read_status_count(new, "availableReplicas")
    removable = total - bounds.min_available - max(unavailable_new, 0)
    sizes = {id(replica_set): read_replicas(replica_set) for replica_set in old}
    for replica_set in old:
        unavailable = min(
            max(sizes[id(replica_set)] - read_status_count(replica_set, "availableReplicas"), 0), max(removable, 0)
        )
        sizes[id(replica_set)] -= unavailable
        removable -= unavailable
    available = read_status_count(new, "availableReplicas") + sum(
        read_status_count(replica_set, "availableReplicas") for replica_set in old
    )
    removable = min(removable, available - bounds.min_available)
    for replica_set in old:
        fewer = min(sizes[id(replica_set)], max(removable, 0))
        sizes[id(replica_set)] -= fewer
        removable -= fewer
    return [
        (replica_set, sizes[id(replica_set)])
        for replica_set in old
        if sizes[id(replica_set)] != read_replicas(replica_set)
    ]


def has_desired_changed(bounds: RolloutBounds, active: Sequence[Manifest]) -> bool:
    """True if spec.replicas changed since these ReplicaSets got their sizes."""
    return any(
        get_annotation(replica_set, DESIRED_REPLICAS_ANNOTATION) not in ("", str(bounds.desired))
        for replica_set in active
    )


def compute_proportional_sizes(bounds: RolloutBounds, active: Sequence[Manifest]) -> list[tuple[Manifest, int]]:
    """k8s: scaling during a rollout is distributed over all ReplicaSets in proportion. `active` is oldest first."""
    total = sum(map(read_replicas, active))
    change = (bounds.max_total if bounds.desired else 0) - total
    ordered = sorted(active if change < 0 else reversed(active), key=read_replicas, reverse=True)
    sizes: list[int] = []
    for replica_set in ordered:
        delta = _compute_proportional_change(bounds, replica_set, total) if change else 0
        distributed = sum(sizes) - sum(map(read_replicas, ordered[: len(sizes)]))
        delta = min(delta, change - distributed) if change > 0 else max(delta, change - distributed)
        sizes.append(read_replicas(replica_set) + delta)
    sizes[0] = max(sizes[0] + total + change - sum(sizes), 0)  # the remainder of rounding
    return list(zip(ordered, sizes))


def _compute_proportional_change(bounds: RolloutBounds, replica_set: Manifest, total: int) -> int:
    if not bounds.desired:
        return -read_replicas(replica_set)
    previous_max = get_annotation(replica_set, MAX_REPLICAS_ANNOTATION)
    base = int(previous_max) if previous_max.isdigit() and int(previous_max) else total
    return math.floor(read_replicas(replica_set) * bounds.max_total / base + 0.5) - read_replicas(replica_set)
