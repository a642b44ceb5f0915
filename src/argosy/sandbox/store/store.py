"""The object store of the embedded API server: objects by key, one global revision, history, watches.

In: encoded JSON by bucket (one for each resource), namespace and name. Out: committed state, snapshots, watches.
Never: returns a write that is not durable (except from `get_latest`), assigns a revision twice, or parses a body.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from argosy.errors import ArgosyError, TransientError
from argosy.sandbox.store.entries_and_events import (
    ADDED,
    DELETED,
    MODIFIED,
    EventType,
    StoreEntry,
    StoreEvent,
    compute_digest,
    object_path,
    undo_events,
)
from argosy.sandbox.store.event_window import EventWindow
from argosy.sandbox.store.history_compaction_schedule import CompactionSchedule, Retention
from argosy.sandbox.store.journal_protocol import FatalErrorHandler, MemoryJournal, StoreJournal, build_gone_error
from argosy.sandbox.store.sorted_bucket_objects import BucketIndex
from argosy.sandbox.store.staged_write_types import PendingWrite, StagedWrite, end_process
from argosy.sandbox.store.watch import BucketWatch

MAX_BATCH_WRITES = 512
EMPTY_BUCKET = BucketIndex()
DEFAULT_RETENTION = Retention()


class Store:
    """All methods run on one event loop; only the journal has threads."""

    def __init__(
        self,
        journal: StoreJournal,
        buckets: dict[str, list[StoreEntry]],
        schedule: CompactionSchedule,
        retention: Retention,
        *,
        revision: int,
        compacted: int,
    ) -> None:
        self.revision = revision
        self.compacted = compacted
        self._loop = asyncio.get_running_loop()
        self._journal, self._compaction_schedule = journal, schedule
        self._buckets = {bucket: BucketIndex(entries) for bucket, entries in buckets.items()}
        self._window = EventWindow(revision)
        self._next_revision = revision + 1
        self._staged: dict[tuple[str, str], StagedWrite] = {}
        self._pending: list[StagedWrite] = []
        self._writing: list[StagedWrite] = []
        self._flush_is_due = False
        self._failure = ""
        self._read_only_error: ArgosyError | None = None
        self._closing = False
        self._watches: set[BucketWatch] = set()
        self._refusal_callbacks: list[Callable[[], None]] = []
        self._listeners: list[Callable[[Sequence[StoreEvent]], None]] = []
        self._compactions: list[tuple[int, asyncio.Future[None]]] = []
        self._tick_seconds = min(60.0, max(0.1, retention.max_age_seconds / 8))
        journal.start(self)
        self._timer = self._loop.call_later(self._tick_seconds, self._tick_compaction)

    @classmethod
    async def open(
        cls, path: Path | None, *, key: bytes | None = None, encrypted_buckets: frozenset[str] = frozenset(),
        retention: Retention = DEFAULT_RETENTION, on_fatal_error: FatalErrorHandler = end_process,
    ) -> Store:  # fmt: skip
        """Open a store; in memory if `path` is None. Raises UserError: in use, wrong key, not a store, newer format."""
        if path is None:
            schedule = CompactionSchedule(retention, now=time.monotonic(), revision=0, history_bytes=0)
            return cls(MemoryJournal(), {}, schedule, retention, revision=0, compacted=0)
        from argosy.sandbox.store.startup import open_journal  # SQLite is not loaded for a store in memory

        journal, state = open_journal(path, key=key, encrypted_buckets=encrypted_buckets, on_fatal_error=on_fatal_error)
        schedule = CompactionSchedule(
            retention, now=time.monotonic(), revision=state.revision, history_bytes=state.history_bytes
        )
        return cls(
            journal, state.buckets, schedule, retention, revision=state.revision, compacted=state.compacted
        )  # fmt: skip

    # -- reading ------------------------------------------------------------------------------------------------

    def get(self, bucket: str, namespace: str, name: str) -> StoreEntry | None:
        index = self._buckets.get(bucket)
        return None if index is None else index.get(object_path(namespace, name))

    def get_latest(self, bucket: str, namespace: str, name: str) -> StoreEntry | None:
        """The newest state, including staged writes that are not durable: for read-modify-write, never for a reply."""
        path = object_path(namespace, name)
        staged = self._staged.get((bucket, path))
        if staged is not None:
            return None if staged.event.type is DELETED else staged.entry
        index = self._buckets.get(bucket)
        return None if index is None else index.get(path)

    def list(self, bucket: str, namespace: str = "") -> Sequence[StoreEntry]:
        index = self._buckets.get(bucket, EMPTY_BUCKET)
        return index.slice(*index.find_range(namespace))

    def count(self, bucket: str, namespace: str = "") -> int:
        low, high = self._buckets.get(bucket, EMPTY_BUCKET).find_range(namespace)
        return high - low

    async def list_at(self, bucket: str, namespace: str, revision: int) -> Sequence[StoreEntry]:
        """List the bucket as of `revision`. Raises Gone if revision < compacted."""
        if revision > self.revision:
            raise ValueError(f"revision {revision} is not committed yet, the newest is {self.revision}")
        if revision < self.compacted:
            raise build_gone_error(revision, self.compacted)
        log = self._window.get_log(bucket)
        if revision < log.floor:
            entries_on_disk = await self._journal.list_live(bucket, namespace, revision)
            return sorted(entries_on_disk, key=lambda entry: object_path(entry.namespace, entry.name))
        later_events = log.list_events_after(revision)
        entries = self.list(bucket, namespace)
        return undo_events(entries, later_events, namespace) if later_events else entries

    def get_oldest_revision_in_memory(self, bucket: str) -> int:
        """The oldest revision at which `list_at` needs no disk."""
        return self._window.get_log(bucket).floor

    def list_buckets(self) -> Iterable[str]:
        return self._buckets.keys()

    # -- writing ------------------------------------------------------------------------------------------------

    def put(self, bucket: str, namespace: str, name: str, encode_body: Callable[[int], bytes]) -> PendingWrite:
        """Stage a create or an update. The caller has checked with `get_latest` that it is allowed."""
        previous = self.get_latest(bucket, namespace, name)
        return self._stage(MODIFIED if previous else ADDED, bucket, namespace, name, encode_body, previous)

    def remove(self, bucket: str, namespace: str, name: str, encode_body: Callable[[int], bytes]) -> PendingWrite:
        previous = self.get_latest(bucket, namespace, name)
        if previous is None:
            raise KeyError(f"{bucket}/{object_path(namespace, name)} does not exist")
        return self._stage(DELETED, bucket, namespace, name, encode_body, previous)

    async def wait_until_durable(self) -> None:
        """Wait until everything that `get_latest` returns now is durable."""
        writes = self._pending or self._writing
        if writes:
            await asyncio.shield(writes[-1].done)

    def _stage(
        self, event_type: EventType, bucket: str, namespace: str, name: str, encode_body: Callable[[int], bytes],
        previous_entry: StoreEntry | None,
    ) -> PendingWrite:  # fmt: skip
        self._check_writable()
        revision = self._next_revision
        entry = StoreEntry(namespace, name, revision, encode_body(revision))
        self._next_revision = revision + 1  # only now: a body that cannot be encoded must not use up a revision
        previous, previous_revision = (previous_entry.body, previous_entry.revision) if previous_entry else (None, 0)
        event = StoreEvent(revision, event_type, bucket, namespace, name, entry.body, previous, previous_revision)
        staged = StagedWrite(event, object_path(namespace, name), entry, self._loop.create_future())
        self._staged[bucket, staged.path] = staged
        self._pending.append(staged)
        if not self._writing and not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)
        return PendingWrite(entry, staged.done)

    def _check_writable(self) -> None:
        if self._failure or self._closing:
            raise TransientError(self._failure or "the store is closing")
        if self._read_only_error is not None:
            raise copy.copy(self._read_only_error)

    def _flush(self) -> None:
        """Group commit: the writes staged while the last batch was written are the next batch."""
        self._flush_is_due = False
        if self._writing or not self._pending or self._failure:
            return
        self._writing, self._pending = self._pending[:MAX_BATCH_WRITES], self._pending[MAX_BATCH_WRITES:]
        self._journal.write([staged.event for staged in self._writing])

    def on_committed(self) -> None:
        """The batch is durable: publish it, notify watches and listeners, and only then the writers."""
        batch, self._writing = self._writing, []
        self._flush()
        events = [staged.event for staged in batch]
        written_bytes = 0
        for staged in batch:
            written_bytes += len(staged.event.body)
            self._publish(staged)
        self.revision = events[-1].revision
        for bucket in {event.bucket for event in events}:
            self._window.get_log(bucket).wake_waiters()
        self._notify_listeners(events)
        for staged in batch:
            if not staged.done.done():
                staged.done.set_result(None)
        self._compact_if_due(written_bytes + 100 * len(batch))

    def _publish(self, staged: StagedWrite) -> None:
        event, path = staged.event, staged.path
        index = self._buckets.get(event.bucket)
        if index is None:
            index = self._buckets[event.bucket] = BucketIndex()
        if event.type is DELETED:
            index.remove(path)
        else:
            index.put(path, staged.entry)
        if self._staged.get((event.bucket, path)) is staged:
            del self._staged[event.bucket, path]
        self._window.append(event)

    # -- watching -----------------------------------------------------------------------------------------------

    def watch(self, bucket: str, *, since: int) -> BucketWatch:
        """Watch the bucket after a revision. Raises Gone at once if it is compacted; waits if it is in the future."""
        if since < self.compacted:
            raise build_gone_error(since, self.compacted)
        watch = BucketWatch(
            bucket, self._window.get_log(bucket), self._journal,
            since=since, get_newest_revision=lambda: self.revision, on_close=self._watches.discard,
        )  # fmt: skip
        self._watches.add(watch)
        return watch

    def subscribe(self, callback: Callable[[Sequence[StoreEvent]], None]) -> Callable[[], None]:
        """Call back on the loop with every committed batch, in order. Call the returned function to unsubscribe."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback) if callback in self._listeners else None

    def add_refusal_callback(self, callback: Callable[[], None]) -> None:
        """Call back when staged writes are withdrawn, so that values derived from them can be discarded."""
        self._refusal_callbacks.append(callback)

    def _notify_listeners(self, events: Sequence[StoreEvent]) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(events)
            except Exception as error:  # an error in one listener must stop neither the writers nor the other listeners
                self._loop.call_exception_handler({"message": "a listener of the store failed", "exception": error})

    # -- compaction ---------------------------------------------------------------------------------------------

    async def compact(self, revision: int) -> None:
        """Forget everything that is not part of the state at `revision` or later. Returns when done."""
        self._check_writable()
        if revision > self.revision:
            raise ValueError(f"revision {revision} is not committed yet, the newest is {self.revision}")
        if revision <= self.compacted:
            return
        done: asyncio.Future[None] = self._loop.create_future()
        self._compactions.append((revision, done))
        self._journal.compact(revision)
        await done

    def on_compacted(self, revision: int) -> None:
        self.compacted = max(self.compacted, revision)
        if not self._journal.keeps_history:
            self._window.drop_events_up_to(revision)
        for compaction in [compaction for compaction in self._compactions if compaction[0] <= self.compacted]:
            self._compactions.remove(compaction)
            if not compaction[1].done():
                compaction[1].set_result(None)

    def _compact_if_due(self, written_bytes: int) -> None:
        if not self._journal.keeps_history and self._window.floor > self.compacted:
            self.on_compacted(self._window.floor)
        target = self._compaction_schedule.record_progress(
            now=time.monotonic(), revision=self.revision, written_bytes=written_bytes
        )
        if target is not None and target > self.compacted:
            self._journal.compact(target)

    def _tick_compaction(self) -> None:
        self._compact_if_due(0)
        self._timer = self._loop.call_later(self._tick_seconds, self._tick_compaction)

    # -- checks, failures and closing ---------------------------------------------------------------------------

    def compute_state_digest(self, bucket: str | None = None) -> str:
        """Hash of every key and its revision in memory."""
        buckets = sorted(self._buckets) if bucket is None else [bucket]
        return compute_digest(
            (name, entry.namespace, entry.name, entry.revision) for name in buckets for entry in self.list(name)
        )

    async def matches_disk(self) -> bool:
        """True if memory and disk hold the same state at the current revision. Raises Gone if it is compacted."""
        memory_digest, revision = self.compute_state_digest(), self.revision
        rows = await self._journal.list_live_revisions(revision)
        if rows is None:
            return True
        rows.sort(key=lambda row: (row[0], object_path(row[1], row[2])))
        return compute_digest(rows) == memory_digest

    @property
    def read_only_reason(self) -> str:
        """Why writes are refused now; empty if writes are possible."""
        return str(self._read_only_error or "")

    def on_refused(self, error: ArgosyError) -> None:
        """No staged write reached the disk: withdraw them all, and refuse further writes until `on_recovered`."""
        self._read_only_error = error
        staged = [*self._writing, *self._pending]
        self._writing, self._pending = [], []
        self._staged.clear()
        self._next_revision = self.revision + 1  # a revision without a row would look like a lost row
        for callback in self._refusal_callbacks:
            callback()
        self._fail_futures([write.done for write in staged], error)

    def on_recovered(self) -> None:
        self._read_only_error = None

    def on_failed(self, message: str) -> None:
        """The journal has failed. Writes that were not acknowledged never will be."""
        self._failure = message
        futures = [staged.done for staged in (*self._writing, *self._pending)] + [done for _, done in self._compactions]
        self._writing, self._pending, self._compactions = [], [], []
        self._fail_futures(futures, TransientError(message))

    def _fail_futures(self, futures: Iterable[asyncio.Future[None]], error: ArgosyError) -> None:
        for done in futures:
            if not done.done():
                done.set_exception(error)
                done.exception()  # retrieved, so that asyncio does not report futures that no writer awaits

    def close_watches(self, bucket: str = "") -> None:
        """Close every watch, or every watch of a bucket."""
        for watch in tuple(self._watches):
            if not bucket or watch.bucket == bucket:
                watch.close()

    async def close(self) -> None:
        """Write what is staged, close the watches, release the file."""
        if self._closing:
            return
        self._closing = True
        self._timer.cancel()
        while (self._pending or self._writing) and not self._failure:
            try:
                await self.wait_until_durable()
            except ArgosyError:
                break
        self.close_watches()
        await self._journal.close()
        for _, done in self._compactions:
            if not done.done():
                done.cancel()
