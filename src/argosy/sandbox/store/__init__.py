"""The store of the embedded API server: one global revision, durable writes, watches that miss nothing.

`compacted` is the oldest revision whose state can still be read. A read at revision r (`list_at`) and a watch from r
succeed if r >= compacted and raise Gone if r < compacted. The only other source of Gone is an open watch that fell
behind both the events in memory and the history on disk.
"""

from argosy.sandbox.store.commit import Commit, end_process
from argosy.sandbox.store.database import holds_store
from argosy.sandbox.store.entries import ADDED, DELETED, MODIFIED, Entry, Event, EventType, path_of
from argosy.sandbox.store.retention import Retention
from argosy.sandbox.store.store import Store
from argosy.sandbox.store.watch import Watch

__all__ = [
    "ADDED", "DELETED", "MODIFIED", "Commit", "Entry", "Event", "EventType", "Retention", "Store", "Watch",
    "end_process", "holds_store", "path_of",
]  # fmt: skip
