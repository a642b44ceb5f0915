"""Computes the state at an earlier revision, and digests of a state.

In: entries and events. Out: entries, or a digest. Never: reads a disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from argosy.sandbox.store.entries_and_events import StoreEntry, StoreEvent, object_path


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
