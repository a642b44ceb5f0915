"""Values of the store: entries (stored objects) and events (changes of entries).

In: encoded JSON from the registry. Out: frozen values. Never: parses a body.
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
class StoreEntry:
    """One object in its state as of `revision`."""

    namespace: str
    name: str
    revision: int
    body: bytes


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """One change. `body` of a DELETED event is the last state, with the revision of the deletion."""

    revision: int
    type: EventType
    bucket: str
    namespace: str
    name: str
    body: bytes
    previous: bytes | None
    previous_revision: int = 0


def object_path(namespace: str, name: str) -> str:
    """Path of an object in its bucket, which is also its sort key.

    k8s: objects are ordered by the bytes of `namespace/name` as one string, so `team-a/x` comes before `team/x`.
    """
    return f"{namespace}/{name}" if namespace else name
