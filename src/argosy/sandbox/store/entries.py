"""What the store keeps and tells: entries, and the events that changed them.

In: encoded JSON from the registry. Out: frozen values. Never: looks into a body.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED


@dataclass(frozen=True, slots=True)
class Entry:
    """One object as it is since `revision`."""

    namespace: str
    name: str
    revision: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Event:
    """One change. `body` of a DELETED event is the last state, carrying the revision of the deletion."""

    revision: int
    type: EventType
    bucket: str
    namespace: str
    name: str
    body: bytes
    previous: bytes | None
    previous_revision: int = 0


def path_of(namespace: str, name: str) -> str:
    """Where an object stands in its bucket.

    k8s: objects are ordered by the bytes of `namespace/name` as one string, so `team-a/x` comes before `team/x`.
    """
    return f"{namespace}/{name}" if namespace else name
