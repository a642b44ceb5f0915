"""Reads and writes the Leases of controller replicas (members), and their rosters.

In: a Lease. Out: its values, or a new Lease. Never: compares a wall-clock time: a Lease is alive while it changes.
"""

from __future__ import annotations

import math
import os
import re
import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from argosy import annotations as names
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import LEASE

LEASE_NAME_PREFIX: Final = "argosy-member-"
MEMBER_SELECTOR: Final = f"{names.MEMBER}=true"
MAX_HOST_LENGTH: Final = 180  # characters, so that the name of the Lease stays below 253

Roster = frozenset[str]
EMPTY_ROSTER: Final[Roster] = frozenset()


@dataclass(frozen=True)
class ShardingConfig:
    """Durations in seconds. No write starts shortly before the Lease expires, and none continues after it has."""

    lease_duration: float = 10.0  # until another member takes over; it owns all keys 15 s after a kill
    request_margin: float = 4.0  # time before the expiry in which no write starts; longer writes need a renewed Lease
    renew_interval: float = 2.0
    handover_grace: float = 1.0  # for running steps on keys that move to another member; then their writes are refused

    def __post_init__(self) -> None:
        if not self.renew_interval < self.lease_duration - self.request_margin < self.lease_duration:
            raise ValueError("sharding needs renew < lease - request < lease")


@dataclass(frozen=True)
class ObservedLease:
    """The Lease of another member, and since when it is unchanged, by our own clock."""

    identity: str
    uid: str
    version: str
    roster: Roster
    duration: float
    unchanged_since: float

    def is_same_version(self, other: ObservedLease) -> bool:
        return (self.uid, self.version) == (other.uid, other.version)


def build_member_identity() -> str:
    """Build an identity that is unique to this process and a valid Kubernetes name."""
    host = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().lower())[:MAX_HOST_LENGTH].strip("-")
    return f"{host or 'argosy'}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def build_lease_key(namespace: str, identity: str) -> ResourceKey:
    return ResourceKey(*LEASE, namespace, f"{LEASE_NAME_PREFIX}{identity}")


def read_lease(
    lease: Manifest, now: float, min_duration: float, observed_versions: Mapping[str, tuple[str, float]]
) -> ObservedLease:
    """Read a Lease. The last observed resourceVersion by name, and its time, tell how long it is unchanged."""
    spec = lease.get("spec") or {}
    metadata = lease["metadata"]
    version, since = observed_versions.get(metadata["name"], ("", now))
    return ObservedLease(
        identity=str(spec.get("holderIdentity") or metadata["name"].removeprefix(LEASE_NAME_PREFIX)),
        uid=str(metadata.get("uid") or ""),
        version=str(metadata.get("resourceVersion") or ""),
        roster=read_roster(lease),
        duration=max(min_duration, float(spec.get("leaseDurationSeconds") or 0.0)),
        unchanged_since=since if version and version == metadata.get("resourceVersion") else now,
    )


def read_roster(lease: Manifest) -> Roster:
    text = str((lease["metadata"].get("annotations") or {}).get(names.ROSTER) or "")
    return frozenset(filter(None, text.split(",")))


def build_lease(namespace: str, identity: str, duration: float, now: datetime) -> Manifest:
    """Build a Lease with an empty roster, which owns no keys."""
    key = build_lease_key(namespace, identity)
    metadata: dict[str, Any] = {"name": key.name, "namespace": namespace, "labels": {names.MEMBER: "true"}}
    lease: Manifest = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    lease["spec"] = {
        "holderIdentity": identity,
        "leaseDurationSeconds": math.ceil(duration),
        "acquireTime": _format_time(now),
    }
    return build_renewed_lease(lease, EMPTY_ROSTER, now)


def build_renewed_lease(lease: Manifest, roster: Roster, now: datetime) -> Manifest:
    """Return the Lease with this roster and a new renewTime, which is only informative."""
    metadata = lease["metadata"]
    annotations = {**(metadata.get("annotations") or {}), names.ROSTER: ",".join(sorted(roster))}
    return {
        **lease,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**lease["spec"], "renewTime": _format_time(now)},
    }


def _format_time(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
