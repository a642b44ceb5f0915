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
from argosy.sandbox.store.bucket import Shelf
from argosy.sandbox.store.commit import Commit, Staged, end_process
from argosy.sandbox.store.entries import ADDED, DELETED, MODIFIED, Entry, Event, EventType, path_of
from argosy.sandbox.store.event_window import Window
from argosy.sandbox.store.journal import Fatal, Journal, MemoryJournal, gone
from argosy.sandbox.store.retention import Marks, Retention
from argosy.sandbox.store.snapshot import digest_of, undo
from argosy.sandbox.store.watch import Watch

LARGEST_BATCH = 512
EMPTY = Shelf()
DEFAULT = Retention()


class Store:
    """All methods run on one event loop; only the journal has threads."""

    def __init__(
        self, journal: Journal, buckets: dict[str, list[Entry]], marks: Marks, retention: Retention, *,
        revision: int, compacted: int,
    ) -> None:  # fmt: skip
        self.revision = revision
        self.compacted = compacted
        self._loop = asyncio.get_running_loop()
        self._journal, self._marks = journal, marks
        self._shelves = {bucket: Shelf(entries) for bucket, entries in buckets.items()}
        self._window = Window(revision)
        self._next_revision = revision + 1
        self._staged: dict[tuple[str, str], Staged] = {}
        self._pending: list[Staged] = []
        self._writing: list[Staged] = []
        self._flush_is_due = False
        self._failure = ""
        self._read_only: ArgosyError | None = None
        self._closing = False
        self._watches: set[Watch] = set()
        self._on_refusal: list[Callable[[], None]] = []
        self._listeners: list[Callable[[Sequence[Event]], None]] = []
        self._compactions: list[tuple[int, asyncio.Future[None]]] = []
        self._tick_seconds = min(60.0, max(0.1, retention.age / 8))
        journal.start(self)
        self._timer = self._loop.call_later(self._tick_seconds, self._tick)

    @classmethod
    async def open(
        cls, path: Path | None, *, key: bytes | None = None, encrypted_buckets: frozenset[str] = frozenset(),
        retention: Retention = DEFAULT, fatal: Fatal = end_process,
    ) -> Store:  # fmt: skip
        """Open a store; in memory if `path` is None. Raises UserError: in use, wrong key, not a store, newer format."""
        if path is None:
            marks = Marks(retention, now=time.monotonic(), revision=0, history_bytes=0)
            return cls(MemoryJournal(), {}, marks, retention, revision=0, compacted=0)
        from argosy.sandbox.store.startup import open_journal  # SQLite is not loaded for a store in memory

        journal, loaded = open_journal(path, key=key, encrypted_buckets=encrypted_buckets, fatal=fatal)
        marks = Marks(retention, now=time.monotonic(), revision=loaded.revision, history_bytes=loaded.history_bytes)
        return cls(
            journal, loaded.buckets, marks, retention, revision=loaded.revision, compacted=loaded.compacted
        )  # fmt: skip

    # -- reading ------------------------------------------------------------------------------------------------

    def get(self, bucket: str, namespace: str, name: str) -> Entry | None:
        shelf = self._shelves.get(bucket)
        return None if shelf is None else shelf.get(path_of(namespace, name))

    def latest(self, bucket: str, namespace: str, name: str) -> Entry | None:
        """The newest state, including staged writes that are not durable: for read-modify-write, never for a reply."""
        path = path_of(namespace, name)
        staged = self._staged.get((bucket, path))
        if staged is not None:
            return None if staged.event.type is DELETED else staged.entry
        shelf = self._shelves.get(bucket)
        return None if shelf is None else shelf.get(path)

    def list(self, bucket: str, namespace: str = "") -> Sequence[Entry]:
        shelf = self._shelves.get(bucket, EMPTY)
        return shelf.slice(*shelf.span(namespace))

    def count(self, bucket: str, namespace: str = "") -> int:
        low, high = self._shelves.get(bucket, EMPTY).span(namespace)
        return high - low

    async def list_at(self, bucket: str, namespace: str, revision: int) -> Sequence[Entry]:
        """List the bucket as of `revision`. Raises Gone if revision < compacted."""
        if revision > self.revision:
            raise ValueError(f"revision {revision} is not committed yet, the newest is {self.revision}")
        if revision < self.compacted:
            raise gone(revision, self.compacted)
        log = self._window.log(bucket)
        if revision < log.floor:
            found = await self._journal.live(bucket, namespace, revision)
            return sorted(found, key=lambda entry: path_of(entry.namespace, entry.name))
        later = log.after(revision)
        entries = self.list(bucket, namespace)
        return undo(entries, later, namespace) if later else entries

    def in_memory_since(self, bucket: str) -> int:
        """The oldest revision at which `list_at` needs no disk."""
        return self._window.log(bucket).floor

    def buckets(self) -> Iterable[str]:
        return self._shelves.keys()

    # -- writing ------------------------------------------------------------------------------------------------

    def put(self, bucket: str, namespace: str, name: str, body: Callable[[int], bytes]) -> Commit:
        """Stage a create or an update. The caller has checked with `get_latest` that it is allowed."""
        before = self.latest(bucket, namespace, name)
        return self._stage(MODIFIED if before else ADDED, bucket, namespace, name, body, before)

    def remove(self, bucket: str, namespace: str, name: str, body: Callable[[int], bytes]) -> Commit:
        before = self.latest(bucket, namespace, name)
        if before is None:
            raise KeyError(f"{bucket}/{path_of(namespace, name)} does not exist")
        return self._stage(DELETED, bucket, namespace, name, body, before)

    async def settled(self) -> None:
        """Wait until everything that `get_latest` returns now is durable."""
        last = self._pending or self._writing
        if last:
            await asyncio.shield(last[-1].done)

    def _stage(
        self, kind: EventType, bucket: str, namespace: str, name: str, body: Callable[[int], bytes],
        before: Entry | None,
    ) -> Commit:  # fmt: skip
        self._refuse_if_ended()
        revision = self._next_revision
        entry = Entry(namespace, name, revision, body(revision))
        self._next_revision = revision + 1  # only now: a body that cannot be encoded must not use up a revision
        previous, previous_revision = (before.body, before.revision) if before else (None, 0)
        event = Event(revision, kind, bucket, namespace, name, entry.body, previous, previous_revision)
        staged = Staged(event, path_of(namespace, name), entry, self._loop.create_future())
        self._staged[bucket, staged.path] = staged
        self._pending.append(staged)
        if not self._writing and not self._flush_is_due:
            self._flush_is_due = True
            self._loop.call_soon(self._flush)
        return Commit(entry, staged.done)

    def _refuse_if_ended(self) -> None:
        if self._failure or self._closing:
            raise TransientError(self._failure or "the store is closing")
        if self._read_only is not None:
            raise copy.copy(self._read_only)

    def _flush(self) -> None:
        """Group commit: the writes staged while the last batch was written are the next batch."""
        self._flush_is_due = False
        if self._writing or not self._pending or self._failure:
            return
        self._writing, self._pending = self._pending[:LARGEST_BATCH], self._pending[LARGEST_BATCH:]
        self._journal.write([staged.event for staged in self._writing])

    def committed(self) -> None:
        """The batch is durable: publish it, notify watches and listeners, and only then the writers."""
        batch, self._writing = self._writing, []
        self._flush()
        events = [staged.event for staged in batch]
        written = 0
        for staged in batch:
            written += len(staged.event.body)
            self._show(staged)
        self.revision = events[-1].revision
        for bucket in {event.bucket for event in events}:
            self._window.log(bucket).wake()
        self._tell(events)
        for staged in batch:
            if not staged.done.done():
                staged.done.set_result(None)
        self._keep_bounds(written + 100 * len(batch))

    def _show(self, staged: Staged) -> None:
        event, path = staged.event, staged.path
        shelf = self._shelves.get(event.bucket)
        if shelf is None:
            shelf = self._shelves[event.bucket] = Shelf()
        if event.type is DELETED:
            shelf.remove(path)
        else:
            shelf.put(path, staged.entry)
        if self._staged.get((event.bucket, path)) is staged:
            del self._staged[event.bucket, path]
        self._window.append(event)

    # -- watching -----------------------------------------------------------------------------------------------

    def watch(self, bucket: str, *, since: int) -> Watch:
        """Watch the bucket after a revision. Raises Gone at once if it is compacted; waits if it is in the future."""
        if since < self.compacted:
            raise gone(since, self.compacted)
        watch = Watch(
            bucket, self._window.log(bucket), self._journal,
            since=since, newest=lambda: self.revision, forget=self._watches.discard,
        )  # fmt: skip
        self._watches.add(watch)
        return watch

    def subscribe(self, callback: Callable[[Sequence[Event]], None]) -> Callable[[], None]:
        """Call back on the loop with every committed batch, in order. Call the returned function to unsubscribe."""
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback) if callback in self._listeners else None

    def on_refusal(self, callback: Callable[[], None]) -> None:
        """Call back when staged writes are withdrawn, so that values derived from them can be discarded."""
        self._on_refusal.append(callback)

    def _tell(self, events: Sequence[Event]) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(events)
            except Exception as error:  # an error in one listener must stop neither the writers nor the other listeners
                self._loop.call_exception_handler({"message": "a listener of the store failed", "exception": error})

    # -- compaction ---------------------------------------------------------------------------------------------

    async def compact(self, revision: int) -> None:
        """Forget everything that is not part of the state at `revision` or later. Returns when done."""
        self._refuse_if_ended()
        if revision > self.revision:
            raise ValueError(f"revision {revision} is not committed yet, the newest is {self.revision}")
        if revision <= self.compacted:
            return
        done: asyncio.Future[None] = self._loop.create_future()
        self._compactions.append((revision, done))
        self._journal.compact(revision)
        await done

    def compacted_to(self, revision: int) -> None:
        self.compacted = max(self.compacted, revision)
        if not self._journal.keeps_history:
            self._window.drop(revision)
        for waiting in [waiting for waiting in self._compactions if waiting[0] <= self.compacted]:
            self._compactions.remove(waiting)
            if not waiting[1].done():
                waiting[1].set_result(None)

    def _keep_bounds(self, written: int) -> None:
        if not self._journal.keeps_history and self._window.floor > self.compacted:
            self.compacted_to(self._window.floor)
        target = self._marks.passed(now=time.monotonic(), revision=self.revision, written=written)
        if target is not None and target > self.compacted:
            self._journal.compact(target)

    def _tick(self) -> None:
        self._keep_bounds(0)
        self._timer = self._loop.call_later(self._tick_seconds, self._tick)

    # -- checks, failures and closing ---------------------------------------------------------------------------

    def digest(self, bucket: str | None = None) -> str:
        """Hash of every key and its revision in memory."""
        buckets = sorted(self._shelves) if bucket is None else [bucket]
        return digest_of(
            (name, entry.namespace, entry.name, entry.revision) for name in buckets for entry in self.list(name)
        )

    async def matches_disk(self) -> bool:
        """True if memory and disk hold the same state at the current revision. Raises Gone if it is compacted."""
        mine, revision = self.digest(), self.revision
        rows = await self._journal.live_revisions(revision)
        if rows is None:
            return True
        rows.sort(key=lambda row: (row[0], path_of(row[1], row[2])))
        return digest_of(rows) == mine

    @property
    def read_only(self) -> str:
        """Why writes are refused now; empty if writes are possible."""
        return str(self._read_only or "")

    def refused(self, error: ArgosyError) -> None:
        """No staged write reached the disk: withdraw them all, and refuse further writes until `on_recovered`."""
        self._read_only = error
        staged = [*self._writing, *self._pending]
        self._writing, self._pending = [], []
        self._staged.clear()
        self._next_revision = self.revision + 1  # a revision without a row would look like a lost row
        for callback in self._on_refusal:
            callback()
        self._fail([each.done for each in staged], error)

    def recovered(self) -> None:
        self._read_only = None

    def failed(self, message: str) -> None:
        """The journal has failed. Writes that were not acknowledged never will be."""
        self._failure = message
        waiting = [staged.done for staged in (*self._writing, *self._pending)] + [done for _, done in self._compactions]
        self._writing, self._pending, self._compactions = [], [], []
        self._fail(waiting, TransientError(message))

    def _fail(self, waiting: Iterable[asyncio.Future[None]], error: ArgosyError) -> None:
        for done in waiting:
            if not done.done():
                done.set_exception(error)
                done.exception()  # retrieved, so that asyncio does not report futures that no writer awaits

    def end_watches(self, bucket: str = "") -> None:
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
                await self.settled()
            except ArgosyError:
                break
        self.end_watches()
        await self._journal.close()
        for _, done in self._compactions:
            if not done.done():
                done.cancel()
