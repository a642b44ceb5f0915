"""Journal on SQLite: one thread writes, another reads old history.

In: batches, and a revision to compact to. Out: durable commits, in order. Never: lets a second connection write or
checkpoint; gives up compacting because the file was locked. A full disk or a damaged page makes it read-only.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from argosy.errors import ArgosyError, StorageFull, UserError
from argosy.sandbox.store import history as table
from argosy.sandbox.store.checksums import Damage, damaged_while_running
from argosy.sandbox.store.database import open_reader
from argosy.sandbox.store.disk_space import has_space, is_full, storage_full
from argosy.sandbox.store.entries import Entry, Event
from argosy.sandbox.store.file_lock import FileLock
from argosy.sandbox.store.history import History
from argosy.sandbox.store.journal import Fatal, Listener, gone

log = logging.getLogger(__name__)
T = TypeVar("T")

COMPACTION_STEP = 1_000  # revisions in one transaction, so that writes wait a few milliseconds at most
CHECKPOINT_PAGES = 1_000
VACUUM_PAGES = 256
EVENTS_PER_READ = 500
RETRY_SECONDS = 0.05
PROBE_SECONDS = 1.0
LOCKED_SECONDS = 60.0


class _Batch(NamedTuple):
    refusals_seen: int
    events: Sequence[Event]


class DiskJournal:
    keeps_history = True

    def __init__(self, path: Path, lock: FileLock, connection: apsw.Connection, history: History, fatal: Fatal) -> None:
        self._loop = asyncio.get_running_loop()
        self._path, self._lock, self._connection, self._history, self._fatal = path, lock, connection, history, fatal
        self._batches: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
        self._compacted = table.read_compacted(connection)
        self._target = self._compacted
        self._wal_pages = 0
        self._vacuum = False
        self._refusal: ArgosyError | None = None  # why writes are refused now
        self._refusals = 0  # counted by the writer thread
        self._refusals_seen = 0  # the same count as the loop knows it
        self._reading: ThreadPoolExecutor | None = None
        self._reader: apsw.Connection | None = None
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)

    def start(self, listener: Listener) -> None:
        self._listener = listener
        self._closed = self._loop.create_future()
        self._thread.start()

    def write(self, events: Sequence[Event]) -> None:
        self._batches.put(_Batch(self._refusals_seen, events))

    def compact(self, revision: int) -> None:
        self._target = max(self._target, revision)
        self._batches.put(_Batch(self._refusals_seen, ()))

    # -- writer thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while (batch := self._next()) is not None:
                if self._refusal is not None:
                    self._try_to_recover()
                is_current = batch.refusals_seen == self._refusals  # else the store has withdrawn it
                if batch.events and is_current and self._guarded(self._append, batch.events):
                    self._tell(self._listener.committed)
                if self._refusal is None:
                    self._guarded(self._one_chore)
            self._guarded(self._checkpoint, apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._guarded(self._connection.close)
        except Exception as error:  # after any other error, durability can no longer be guaranteed
            message = f"{self._path}: the store could not be written, so the process ends: {error}"
            self._fatal(message)
            self._tell(self._listener.failed, message)
        self._tell(self._end)

    def _guarded(self, work: Callable[..., None], *values: Any) -> bool:
        """Do the work; make the store read-only after an error that changed nothing on disk. Other errors are fatal."""
        try:
            work(*values)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            self._refuse(damaged_while_running(self._path, error))
        except apsw.Error as error:
            if not is_full(error, self._connection):
                raise
            self._refuse(storage_full(self._path))
        else:
            return True
        return False

    def _refuse(self, error: ArgosyError) -> None:
        if self._refusal is None:
            log.error("the store is read-only: %s", error)
        self._refusal = error
        self._refusals += 1
        self._tell(self._see_refusal, self._refusals, error)

    def _see_refusal(self, number: int, error: ArgosyError) -> None:
        """On the loop: batches sent before the refusal are not written, because the store withdraws them."""
        self._refusals_seen = number
        self._listener.refused(error)

    def _try_to_recover(self) -> None:
        if not isinstance(self._refusal, StorageFull) or not has_space(self._path):
            return
        # A new log generation: frames of the failed transaction must not follow those of the next one.
        if self._guarded(self._checkpoint, apsw.SQLITE_CHECKPOINT_TRUNCATE):
            self._refusal = None
            log.warning("the store can be written again: %s", self._path)
            self._tell(self._listener.recovered)

    def _next(self) -> _Batch | None:
        timeout = RETRY_SECONDS if self._has_chores() else None
        if self._refusal is not None:
            timeout = PROBE_SECONDS
        try:
            return self._batches.get(timeout=timeout)
        except queue.Empty:
            return _Batch(self._refusals, ())

    def _append(self, batch: Sequence[Event]) -> None:
        deadline = time.monotonic() + LOCKED_SECONDS
        while True:
            try:
                self._history.append(self._connection, batch)
                break
            except apsw.BusyError:  # another program has the file open for writing; the batch was not written
                if time.monotonic() > deadline:
                    raise
        self._wal_pages += 2 + sum(len(event.body) for event in batch) // 3_000

    def _tell(self, callback: Callable[..., None], *values: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *values)
        except RuntimeError:  # the loop was closed without closing the store, so no callback can run
            pass

    def _has_chores(self) -> bool:
        return self._target > self._compacted or self._wal_pages >= CHECKPOINT_PAGES or self._vacuum

    def _one_chore(self) -> None:
        """Do a bounded piece of housekeeping between two batches. It is retried later if the file is locked."""
        try:
            if self._wal_pages >= CHECKPOINT_PAGES:
                self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
            elif self._target > self._compacted:
                self._compact_step()
            elif self._vacuum:
                self._vacuum_step()
        except apsw.BusyError:
            pass

    def _compact_step(self) -> None:
        upto = min(self._target, self._compacted + COMPACTION_STEP)
        table.compact_step(self._connection, self._compacted, upto)
        self._compacted = upto
        self._vacuum = upto == self._target
        self._wal_pages += COMPACTION_STEP // 4
        self._tell(self._listener.compacted_to, upto)

    def _checkpoint(self, mode: int) -> None:
        try:
            pages, done = self._connection.wal_checkpoint(mode=mode)
            self._wal_pages = max(0, pages - done)
        except apsw.BusyError:
            self._wal_pages = 0  # a reader blocks it: try again after as many pages

    def _vacuum_step(self) -> None:
        """Return pages to the file system while more than a quarter of the file is free."""
        free, pages = self._connection.pragma("freelist_count"), self._connection.pragma("page_count")
        self._vacuum = free > VACUUM_PAGES and free * 4 > pages
        if self._vacuum:
            self._connection.execute(f"PRAGMA incremental_vacuum({VACUUM_PAGES})").fetchall()
            self._wal_pages += VACUUM_PAGES

    # -- reading and closing ------------------------------------------------------------------------------------

    async def events(self, bucket: str, after: int, upto: int) -> list[Event]:
        def read(connection: apsw.Connection) -> list[Event]:
            self._refuse_compacted(connection, after)
            return self._history.events(connection, bucket, after, upto, EVENTS_PER_READ)

        return await self._read(read)

    async def live(self, bucket: str, namespace: str, revision: int) -> list[Entry]:
        def read(connection: apsw.Connection) -> list[Entry]:
            self._refuse_compacted(connection, revision)
            return list(self._history.live(connection, bucket, namespace, revision))

        return await self._read(read)

    async def live_revisions(self, revision: int) -> list[tuple[str, str, str, int]] | None:
        def read(connection: apsw.Connection) -> list[tuple[str, str, str, int]]:
            self._refuse_compacted(connection, revision)
            return table.live_revisions(connection, revision)

        return await self._read(read)

    def _refuse_compacted(self, connection: apsw.Connection, revision: int) -> None:
        compacted = table.read_compacted(connection)
        if revision < compacted:
            self._tell(self._listener.compacted_to, compacted)  # the store must know it before its caller sees Gone
            raise gone(revision, compacted)

    async def _read(self, read: Callable[[apsw.Connection], T]) -> T:
        """Read in one transaction, so that the compacted revision and the rows are consistent."""
        if self._reading is None:
            self._reading = ThreadPoolExecutor(1, "store-reader")
        return await self._loop.run_in_executor(self._reading, self._in_snapshot, read)

    def _in_snapshot(self, read: Callable[[apsw.Connection], T]) -> T:
        if self._reader is None:
            self._reader = open_reader(self._path)
        self._reader.execute("BEGIN")
        try:
            return read(self._reader)
        except (Damage, UserError, UnicodeDecodeError, apsw.CorruptError, apsw.NotADBError) as error:
            log.error("%s is damaged: %s", self._path, error)
            raise damaged_while_running(self._path, error) from error
        finally:
            self._reader.execute("COMMIT")

    def _end(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)

    async def close(self) -> None:
        if self._reading is not None:
            self._reading.submit(self._close_reader)
            self._reading.shutdown(wait=True)
        self._batches.put(None)
        await self._closed
        self._lock.release()

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
