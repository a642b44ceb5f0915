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
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

LEASE: Final = GroupKind("coordination.k8s.io", "Lease")
PREFIX: Final = "argosy-member-"
LABELS: Final = f"{names.MEMBER}=true"
MOST_HOST: Final = 180  # characters, so that the name of the Lease stays below 253

Roster = frozenset[str]
NOBODY: Final[Roster] = frozenset()


@dataclass(frozen=True)
class SharedTerms:
    """Durations in seconds. No write starts shortly before the Lease expires, and none continues after it has."""

    lease: float = 10.0  # until another member takes over; it owns all keys 15 s after a kill
    request: float = 4.0  # time before the expiry in which no write starts; longer writes need a renewed Lease
    renew: float = 2.0
    patience: float = 1.0  # for running steps on keys that move to another member; then their writes are refused

    def __post_init__(self) -> None:
        if not self.renew < self.lease - self.request < self.lease:
            raise ValueError("sharding needs renew < lease - request < lease")


@dataclass(frozen=True)
class Seen:
    """The Lease of another member, and since when it is unchanged, by our own clock."""

    identity: str
    uid: str
    version: str
    roster: Roster
    lasts: float
    since: float

    def is_same(self, other: Seen) -> bool:
        return (self.uid, self.version) == (other.uid, other.version)


def new_identity() -> str:
    """Build an identity that is unique to this process and a valid Kubernetes name."""
    host = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().lower())[:MOST_HOST].strip("-")
    return f"{host or 'argosy'}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def lease_key(namespace: str, identity: str) -> ResourceKey:
    return ResourceKey(*LEASE, namespace, f"{PREFIX}{identity}")


def read_lease(lease: Manifest, now: float, at_least: float, heard: Mapping[str, tuple[str, float]]) -> Seen:
    """Read a Lease. The last observed resourceVersion by name, and its time, tell how long it is unchanged."""
    spec = lease.get("spec") or {}
    metadata = lease["metadata"]
    version, since = heard.get(metadata["name"], ("", now))
    return Seen(
        identity=str(spec.get("holderIdentity") or metadata["name"].removeprefix(PREFIX)),
        uid=str(metadata.get("uid") or ""),
        version=str(metadata.get("resourceVersion") or ""),
        roster=roster_of(lease),
        lasts=max(at_least, float(spec.get("leaseDurationSeconds") or 0.0)),
        since=since if version and version == metadata.get("resourceVersion") else now,
    )


def roster_of(lease: Manifest) -> Roster:
    text = str((lease["metadata"].get("annotations") or {}).get(names.ROSTER) or "")
    return frozenset(filter(None, text.split(",")))


def fresh_lease(namespace: str, identity: str, lasts: float, now: datetime) -> Manifest:
    """Build a Lease with an empty roster, which owns no keys."""
    key = lease_key(namespace, identity)
    metadata: dict[str, Any] = {"name": key.name, "namespace": namespace, "labels": {names.MEMBER: "true"}}
    lease: Manifest = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    lease["spec"] = {
        "holderIdentity": identity,
        "leaseDurationSeconds": math.ceil(lasts),
        "acquireTime": _stamp(now),
    }
    return renewed(lease, NOBODY, now)


def renewed(lease: Manifest, roster: Roster, now: datetime) -> Manifest:
    """Return the Lease with this roster and a new renewTime, which is only informative."""
    metadata = lease["metadata"]
    said = {**(metadata.get("annotations") or {}), names.ROSTER: ",".join(sorted(roster))}
    return {
        **lease,
        "metadata": {**metadata, "annotations": said},
        "spec": {**lease["spec"], "renewTime": _stamp(now)},
    }


def _stamp(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
