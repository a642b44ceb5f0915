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
from argosy.sandbox.store import history_table as table
from argosy.sandbox.store.checksums import Damage, build_runtime_damage_error
from argosy.sandbox.store.disk_full_detection import build_storage_full_error, has_space, is_disk_full
from argosy.sandbox.store.entries_and_events import StoreEntry, StoreEvent
from argosy.sandbox.store.file_lock import FileLock
from argosy.sandbox.store.history_table import HistoryTable
from argosy.sandbox.store.journal_protocol import FatalErrorHandler, JournalListener, build_gone_error
from argosy.sandbox.store.sqlite_setup import open_reader

log = logging.getLogger(__name__)
T = TypeVar("T")

REVISIONS_PER_COMPACTION = 1_000  # revisions in one transaction, so that writes wait a few milliseconds at most
PAGES_PER_CHECKPOINT = 1_000
PAGES_PER_VACUUM = 256
EVENTS_PER_READ = 500
RETRY_INTERVAL_SECONDS = 0.05
DISK_PROBE_INTERVAL_SECONDS = 1.0
LOCK_TIMEOUT_SECONDS = 60.0


class _Batch(NamedTuple):
    seen_refusal_count: int
    events: Sequence[StoreEvent]


class SqliteJournal:
    keeps_history = True

    def __init__(
        self,
        path: Path,
        lock: FileLock,
        connection: apsw.Connection,
        history: HistoryTable,
        on_fatal_error: FatalErrorHandler,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._path, self._lock, self._connection, self._history, self._on_fatal_error = (
            path,
            lock,
            connection,
            history,
            on_fatal_error,
        )
        self._batches: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
        self._compacted = table.read_compacted(connection)
        self._compaction_target = self._compacted
        self._wal_pages = 0
        self._needs_vacuum = False
        self._refusal: ArgosyError | None = None  # why writes are refused now
        self._refusal_count = 0  # counted by the writer thread
        self._seen_refusal_count = 0  # the same count as the loop knows it
        self._read_executor: ThreadPoolExecutor | None = None
        self._read_connection: apsw.Connection | None = None
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)

    def start(self, listener: JournalListener) -> None:
        self._listener = listener
        self._closed = self._loop.create_future()
        self._thread.start()

    def write(self, events: Sequence[StoreEvent]) -> None:
        self._batches.put(_Batch(self._seen_refusal_count, events))

    def compact(self, revision: int) -> None:
        self._compaction_target = max(self._compaction_target, revision)
        self._batches.put(_Batch(self._seen_refusal_count, ()))

    # -- writer thread ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while (batch := self._wait_for_batch()) is not None:
                if self._refusal is not None:
                    self._try_to_recover()
                is_current = batch.seen_refusal_count == self._refusal_count  # else the store has withdrawn it
                if batch.events and is_current and self._run_guarded(self._append, batch.events):
                    self._call_on_loop(self._listener.on_committed)
                if self._refusal is None:
                    self._run_guarded(self._do_housekeeping)
            self._run_guarded(self._checkpoint, apsw.SQLITE_CHECKPOINT_TRUNCATE)
            self._run_guarded(self._connection.close)
        except Exception as error:  # after any other error, durability can no longer be guaranteed
            message = f"{self._path}: the store could not be written, so the process ends: {error}"
            self._on_fatal_error(message)
            self._call_on_loop(self._listener.on_failed, message)
        self._call_on_loop(self._on_writer_ended)

    def _run_guarded(self, work: Callable[..., None], *values: Any) -> bool:
        """Do the work; make the store read-only after an error that changed nothing on disk. Other errors are fatal."""
        try:
            work(*values)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            self._make_read_only(build_runtime_damage_error(self._path, error))
        except apsw.Error as error:
            if not is_disk_full(error, self._connection):
                raise
            self._make_read_only(build_storage_full_error(self._path))
        else:
            return True
        return False

    def _make_read_only(self, error: ArgosyError) -> None:
        if self._refusal is None:
            log.error("the store is read-only: %s", error)
        self._refusal = error
        self._refusal_count += 1
        self._call_on_loop(self._on_refusal_seen, self._refusal_count, error)

    def _on_refusal_seen(self, refusal_count: int, error: ArgosyError) -> None:
        """On the loop: batches sent before the refusal are not written, because the store withdraws them."""
        self._seen_refusal_count = refusal_count
        self._listener.on_refused(error)

    def _try_to_recover(self) -> None:
        if not isinstance(self._refusal, StorageFull) or not has_space(self._path):
            return
        # A new log generation: frames of the failed transaction must not follow those of the next one.
        if self._run_guarded(self._checkpoint, apsw.SQLITE_CHECKPOINT_TRUNCATE):
            self._refusal = None
            log.warning("the store can be written again: %s", self._path)
            self._call_on_loop(self._listener.on_recovered)

    def _wait_for_batch(self) -> _Batch | None:
        timeout = RETRY_INTERVAL_SECONDS if self._has_housekeeping() else None
        if self._refusal is not None:
            timeout = DISK_PROBE_INTERVAL_SECONDS
        try:
            return self._batches.get(timeout=timeout)
        except queue.Empty:
            return _Batch(self._refusal_count, ())

    def _append(self, batch: Sequence[StoreEvent]) -> None:
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                self._history.append(self._connection, batch)
                break
            except apsw.BusyError:  # another program has the file open for writing; the batch was not written
                if time.monotonic() > deadline:
                    raise
        self._wal_pages += 2 + sum(len(event.body) for event in batch) // 3_000

    def _call_on_loop(self, callback: Callable[..., None], *values: object) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *values)
        except RuntimeError:  # the loop was closed without closing the store, so no callback can run
            pass

    def _has_housekeeping(self) -> bool:
        return (
            self._compaction_target > self._compacted or self._wal_pages >= PAGES_PER_CHECKPOINT or self._needs_vacuum
        )

    def _do_housekeeping(self) -> None:
        """Do a bounded piece of housekeeping between two batches. It is retried later if the file is locked."""
        try:
            if self._wal_pages >= PAGES_PER_CHECKPOINT:
                self._checkpoint(apsw.SQLITE_CHECKPOINT_PASSIVE)
            elif self._compaction_target > self._compacted:
                self._compact_step()
            elif self._needs_vacuum:
                self._vacuum_step()
        except apsw.BusyError:
            pass

    def _compact_step(self) -> None:
        target = min(self._compaction_target, self._compacted + REVISIONS_PER_COMPACTION)
        table.compact_step(self._connection, self._compacted, target)
        self._compacted = target
        self._needs_vacuum = target == self._compaction_target
        self._wal_pages += REVISIONS_PER_COMPACTION // 4
        self._call_on_loop(self._listener.on_compacted, target)

    def _checkpoint(self, mode: int) -> None:
        try:
            pages, done = self._connection.wal_checkpoint(mode=mode)
            self._wal_pages = max(0, pages - done)
        except apsw.BusyError:
            self._wal_pages = 0  # a reader blocks it: try again after as many pages

    def _vacuum_step(self) -> None:
        """Return pages to the file system while more than a quarter of the file is free."""
        free_pages, pages = self._connection.pragma("freelist_count"), self._connection.pragma("page_count")
        self._needs_vacuum = free_pages > PAGES_PER_VACUUM and free_pages * 4 > pages
        if self._needs_vacuum:
            self._connection.execute(f"PRAGMA incremental_vacuum({PAGES_PER_VACUUM})").fetchall()
            self._wal_pages += PAGES_PER_VACUUM

    # -- reading and closing ------------------------------------------------------------------------------------

    async def list_events(self, bucket: str, after: int, until: int) -> list[StoreEvent]:
        def read(connection: apsw.Connection) -> list[StoreEvent]:
            self._check_not_compacted(connection, after)
            return self._history.list_events(connection, bucket, after, until, EVENTS_PER_READ)

        return await self._read_in_thread(read)

    async def list_live(self, bucket: str, namespace: str, revision: int) -> list[StoreEntry]:
        def read(connection: apsw.Connection) -> list[StoreEntry]:
            self._check_not_compacted(connection, revision)
            return list(self._history.list_live(connection, bucket, namespace, revision))

        return await self._read_in_thread(read)

    async def list_live_revisions(self, revision: int) -> list[tuple[str, str, str, int]] | None:
        def read(connection: apsw.Connection) -> list[tuple[str, str, str, int]]:
            self._check_not_compacted(connection, revision)
            return table.list_live_revisions(connection, revision)

        return await self._read_in_thread(read)

    def _check_not_compacted(self, connection: apsw.Connection, revision: int) -> None:
        compacted = table.read_compacted(connection)
        if revision < compacted:
            # The store must know it before its caller sees Gone.
            self._call_on_loop(self._listener.on_compacted, compacted)
            raise build_gone_error(revision, compacted)

    async def _read_in_thread(self, read: Callable[[apsw.Connection], T]) -> T:
        """Read in one transaction, so that the compacted revision and the rows are consistent."""
        if self._read_executor is None:
            self._read_executor = ThreadPoolExecutor(1, "store-reader")
        return await self._loop.run_in_executor(self._read_executor, self._read_in_transaction, read)

    def _read_in_transaction(self, read: Callable[[apsw.Connection], T]) -> T:
        if self._read_connection is None:
            self._read_connection = open_reader(self._path)
        self._read_connection.execute("BEGIN")
        try:
            return read(self._read_connection)
        except (Damage, UserError, UnicodeDecodeError, apsw.CorruptError, apsw.NotADBError) as error:
            log.error("%s is damaged: %s", self._path, error)
            raise build_runtime_damage_error(self._path, error) from error
        finally:
            self._read_connection.execute("COMMIT")

    def _on_writer_ended(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)

    async def close(self) -> None:
        if self._read_executor is not None:
            self._read_executor.submit(self._close_reader)
            self._read_executor.shutdown(wait=True)
        self._batches.put(None)
        await self._closed
        self._lock.release()

    def _close_reader(self) -> None:
        if self._read_connection is not None:
            self._read_connection.close()
