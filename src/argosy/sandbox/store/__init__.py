"""The store of the embedded API server: one global revision, durable writes, watches that miss nothing.

`compacted` is the oldest revision whose state can still be read. A read at revision r (`list_at`) and a watch from r
succeed if r >= compacted and raise Gone if r < compacted. The only other source of Gone is an open watch that fell
behind both the events in memory and the history on disk.
"""

from argosy.sandbox.store.entries_and_events import (
    ADDED,
    DELETED,
    MODIFIED,
    EventType,
    StoreEntry,
    StoreEvent,
    object_path,
)
from argosy.sandbox.store.history_compaction_schedule import Retention
from argosy.sandbox.store.sqlite_setup import has_store
from argosy.sandbox.store.staged_write_types import PendingWrite, end_process
from argosy.sandbox.store.store import Store
from argosy.sandbox.store.watch import BucketWatch

__all__ = [
    "ADDED",
    "DELETED",
    "MODIFIED",
    "BucketWatch",
    "EventType",
    "PendingWrite",
    "Retention",
    "Store",
    "StoreEntry",
    "StoreEvent",
    "end_process",
    "has_store",
    "object_path",
]  # fmt: skip
