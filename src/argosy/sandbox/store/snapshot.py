"""Computes the state at an earlier revision, and digests of a state.

In: entries and events. Out: entries, or a digest. Never: reads a disk.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from argosy.sandbox.store.entries import Entry, Event, path_of


def undo(entries: Sequence[Entry], later: Sequence[Event], namespace: str) -> Sequence[Entry]:
    """Return the entries as they were before the given events, undoing the newest event first."""
    state = {path_of(entry.namespace, entry.name): entry for entry in entries}
    for event in reversed(later):
        if namespace and event.namespace != namespace:
            continue
        path = path_of(event.namespace, event.name)
        if event.previous is None:
            state.pop(path, None)
        else:
            state[path] = Entry(event.namespace, event.name, event.previous_revision, event.previous)
    return [state[path] for path in sorted(state)]


def digest_of(rows: Iterable[tuple[str, str, str, int]]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update("\0".join(map(str, row)).encode() + b"\n")
    return digest.hexdigest()
