"""Values of the store: entries (stored objects) and events (changes of entries).

In: encoded JSON from the registry. Out: frozen values, an earlier state, a digest. Never: parses a body.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
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


def undo_events(entries: Sequence[StoreEntry], events: Sequence[StoreEvent], namespace: str) -> Sequence[StoreEntry]:
    """Return the entries as they were before the given events, undoing the newest event first."""
    state = {object_path(entry.namespace, entry.name): entry for entry in entries}
    for event in reversed(events):
        if namespace and event.namespace != namespace:
            continue
        path = object_path(event.namespace, event.name)
        if event.previous is None:
            state.pop(path, None)
        else:
            state[path] = StoreEntry(event.namespace, event.name, event.previous_revision, event.previous)
    return [state[path] for path in sorted(state)]


def compute_digest(rows: Iterable[tuple[str, str, str, int]]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update("\0".join(map(str, row)).encode() + b"\n")
    return digest.hexdigest()
