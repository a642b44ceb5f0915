"""Leases that say who shares the work, and whom each obeys. In: a Lease. Out: what it says; and the other way around.

Never: reads a time of day: whether a Lease is alive is seen by its changes.
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
MOST_HOST: Final = 180  # letters, so that the name of the Lease stays below what a name may have

Roster = frozenset[str]
NOBODY: Final[Roster] = frozenset()


@dataclass(frozen=True)
class SharedTerms:
    """Nobody begins a call shortly before its Lease ends, and none goes on longer than the Lease, renewed or not."""

    lease: float = 10.0  # until another takes over, so that it has all of it 15 s after a kill
    request: float = 4.0  # kept free for a call that changes something; longer ones need a Lease that is renewed
    renew: float = 2.0
    patience: float = 1.0  # for what is under way on what goes to another; then nothing of it may change any more

    def __post_init__(self) -> None:
        if not self.renew < self.lease - self.request < self.lease:
            raise ValueError("shared work needs renew < lease - request < lease")


@dataclass(frozen=True)
class Seen:
    """The Lease of another, and since when it has been as it is, by our own clock."""

    identity: str
    uid: str
    version: str
    roster: Roster
    lasts: float
    since: float

    def is_same(self, other: Seen) -> bool:
        return (self.uid, self.version) == (other.uid, other.version)


def new_identity() -> str:
    """One for each process, and a name that Kubernetes takes."""
    host = re.sub(r"[^a-z0-9-]+", "-", socket.gethostname().lower())[:MOST_HOST].strip("-")
    return f"{host or 'argosy'}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def lease_key(namespace: str, identity: str) -> ResourceKey:
    return ResourceKey(*LEASE, namespace, f"{PREFIX}{identity}")


def read_lease(lease: Manifest, now: float, at_least: float, heard: Mapping[str, tuple[str, float]]) -> Seen:
    """`heard`: of each by its name, the version that was seen last, and when that was."""
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
    """One that obeys nobody and has nothing."""
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
    """The same with a roster, and a time of day for people."""
    metadata = lease["metadata"]
    said = {**(metadata.get("annotations") or {}), names.ROSTER: ",".join(sorted(roster))}
    return {
        **lease,
        "metadata": {**metadata, "annotations": said},
        "spec": {**lease["spec"], "renewTime": _stamp(now)},
    }


def _stamp(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
