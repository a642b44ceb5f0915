"""SQL statements on the history table.

In: a connection and plain values. Out: rows as entries and events. Never: decides when to write, commit or compact.

The live state at revision R is every row ≤ R that is not a deletion and that no row ≤ R replaces. Every revision after
the compacted one has a row, and the row that it replaces still exists: compaction only removes rows that were replaced
at or before the compacted revision.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from typing import Any, NamedTuple

import apsw

from argosy.sandbox.store.checksums import Damage, compute_compacted_checksum, compute_row_checksum, format_object_name
from argosy.sandbox.store.encryption import BodyCipher
from argosy.sandbox.store.entries_and_events import ADDED, DELETED, MODIFIED, StoreEntry, StoreEvent

ROWS_PER_STATEMENT = 64
EVENT_BYTES_PER_READ = 1 << 20  # each slow watch holds its own copy of what it reads
ROW_OVERHEAD_BYTES = 100  # approximate bytes of a row without its body

INSERT_SQL = "INSERT INTO history(rev, bucket, namespace, name, deleted, sealed, prev, body, sum) VALUES "
# Text is read as bytes: a name that is not UTF-8 is damage, and the error must name its revision.
SELECT_ROWS_SQL = """
SELECT rev, CAST(bucket AS BLOB), CAST(namespace AS BLOB), CAST(name AS BLOB), deleted, sealed, prev, body, sum
FROM history
"""
SELECT_ALL_ROWS_SQL = SELECT_ROWS_SQL + "ORDER BY rev"
SELECT_BUCKET_ROWS_SQL = SELECT_ROWS_SQL + "WHERE rev <= ? AND bucket = ? ORDER BY rev"
COLUMN_COUNT = 9
SELECT_EVENTS_SQL = """
SELECT
  h.rev, CAST(h.bucket AS BLOB), CAST(h.namespace AS BLOB), CAST(h.name AS BLOB),
  h.deleted, h.sealed, h.prev, h.body, h.sum,
  p.rev, CAST(p.bucket AS BLOB), CAST(p.namespace AS BLOB), CAST(p.name AS BLOB),
  p.deleted, p.sealed, p.prev, p.body, p.sum
FROM history AS h LEFT JOIN history AS p ON p.rev = h.prev
WHERE h.rev > ? AND h.rev <= ? AND h.bucket = ? ORDER BY h.rev LIMIT ?
"""
SELECT_COMPACTED_SQL = "SELECT name, value FROM meta WHERE name IN ('compacted', 'compacted_sum')"
SELECT_LIVE_REVISIONS_SQL = """
SELECT bucket, namespace, name, rev FROM history
WHERE rev <= :revision AND deleted = 0 AND rev NOT IN
  (SELECT prev FROM history WHERE rev <= :revision AND prev > 0)
"""


class HistoryRow(NamedTuple):
    """One row as it is in the file; `body` may be encrypted."""

    revision: int
    bucket: str
    namespace: str
    name: str
    deleted: int
    sealed: int
    prev: int
    body: bytes


class LoadedState(NamedTuple):
    """State that a store starts from."""

    revision: int
    compacted: int
    history_bytes: int
    buckets: dict[str, list[StoreEntry]]


@cache
def _build_insert_sql(row_count: int) -> str:
    return INSERT_SQL + ",".join(["(?,?,?,?,?,?,?,?,?)"] * row_count)


class HistoryTable:
    """Reads and writes the history table; encrypts the bodies of some buckets."""

    def __init__(self, cipher: BodyCipher | None, encrypted_buckets: frozenset[str]) -> None:
        self._cipher = cipher
        self._encrypted_buckets = encrypted_buckets

    def append(self, connection: apsw.Connection, events: Sequence[StoreEvent]) -> None:
        """Insert in one transaction. A small batch is one statement, so SQLite runs and commits it without the GIL."""
        if len(events) <= ROWS_PER_STATEMENT:
            connection.execute(_build_insert_sql(len(events)), self._to_row_values(events))
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            for start in range(0, len(events), ROWS_PER_STATEMENT):
                chunk = events[start : start + ROWS_PER_STATEMENT]
                connection.execute(_build_insert_sql(len(chunk)), self._to_row_values(chunk))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _to_row_values(self, events: Sequence[StoreEvent]) -> list[Any]:
        values: list[Any] = []
        for event in events:
            body, sealed = event.body, 0
            if self._cipher is not None and event.bucket in self._encrypted_buckets:
                body, sealed = self._cipher.encrypt(body, event.bucket, event.namespace, event.name, event.revision), 1
            row = HistoryRow(
                event.revision, event.bucket, event.namespace, event.name,
                1 if event.type is DELETED else 0, sealed, event.previous_revision, body,
            )  # fmt: skip
            values += (*row, compute_row_checksum(*row))
        return values

    def load(self, connection: apsw.Connection) -> LoadedState:
        """Load the whole state. Raises Damage if a row was changed or is missing."""
        compacted = read_compacted(connection)
        newest_revision = history_bytes = 0
        replay = StateReplay(compacted)
        for row in _read_checked_rows(connection, SELECT_ALL_ROWS_SQL):
            if row.revision > compacted:
                if row.revision != max(newest_revision, compacted) + 1:
                    raise Damage(f"revision {max(newest_revision, compacted) + 1} is missing")
                history_bytes += len(row.body) + ROW_OVERHEAD_BYTES
            newest_revision = row.revision
            replay.add(row)
        buckets: dict[str, list[StoreEntry]] = {}
        namespaces: dict[str, str] = {}  # share one string per namespace among its objects
        for row in replay.live.values():
            entry = StoreEntry(
                namespaces.setdefault(row.namespace, row.namespace), row.name, row.revision, self._get_body(row)
            )
            buckets.setdefault(row.bucket, []).append(entry)
        # Compaction drops deletions too, so the newest row may be older than the newest assigned revision.
        return LoadedState(max(newest_revision, compacted), compacted, history_bytes, buckets)

    def list_live(
        self, connection: apsw.Connection, bucket: str, namespace: str, revision: int
    ) -> Iterator[StoreEntry]:
        replay = StateReplay(read_compacted(connection))
        for row in _read_checked_rows(connection, SELECT_BUCKET_ROWS_SQL, (revision, bucket)):
            replay.add(row)
        for row in replay.live.values():
            if not namespace or row.namespace == namespace:
                yield StoreEntry(row.namespace, row.name, row.revision, self._get_body(row))

    def list_events(
        self, connection: apsw.Connection, bucket: str, after: int, until: int, limit: int
    ) -> list[StoreEvent]:
        """The oldest events after `after`: at most `limit`, and at most about EVENT_BYTES_PER_READ bytes."""
        events: list[StoreEvent] = []
        total_bytes = 0
        with closing(connection.execute(SELECT_EVENTS_SQL, (after, until, bucket, limit))) as rows:
            for values in rows:
                event = self._read_event(values)
                events.append(event)
                total_bytes += len(event.body) + len(event.previous or b"")
                if total_bytes >= EVENT_BYTES_PER_READ:
                    break
        return events

    def _read_event(self, values: tuple[Any, ...]) -> StoreEvent:
        row = _read_checked_row(values[:COLUMN_COUNT])
        previous = None
        if row.prev:
            previous = self._get_body(_read_checked_row(values[COLUMN_COUNT:]))
        event_type = DELETED if row.deleted else MODIFIED if row.prev else ADDED
        return StoreEvent(
            row.revision, event_type, row.bucket, row.namespace, row.name, self._get_body(row), previous, row.prev
        )

    def _get_body(self, row: HistoryRow) -> bytes:
        return self._decrypt_body(row) if row.sealed else row.body

    def _decrypt_body(self, row: HistoryRow) -> bytes:
        if self._cipher is None:  # unreachable: the key was checked at startup
            raise RuntimeError("an encrypted row in a store without a key")
        return self._cipher.decrypt(row.body, row.bucket, row.namespace, row.name, row.revision)


class StateReplay:
    """Builds the state from rows in order. Each row names the revision it replaces, so a missing row is noticed."""

    def __init__(self, compacted: int) -> None:
        self.live: dict[tuple[str, str, str], HistoryRow] = {}
        self._compacted = compacted

    def add(self, row: HistoryRow) -> None:
        key = row[1:4]
        live_row = self.live.get(key)
        is_compacted = live_row is None and row.revision <= self._compacted
        if row.prev != (live_row.revision if live_row else 0) and not is_compacted:
            object_text = format_object_name(*key)
            raise Damage(f"{object_text} at revision {row.revision} replaces revision {row.prev}, which is missing")
        if row.deleted:
            self.live.pop(key, None)
        else:
            self.live[key] = row


def _read_checked_rows(
    connection: apsw.Connection, statement: str, values: tuple[Any, ...] = ()
) -> Iterator[HistoryRow]:
    """Closes the cursor even if a row is damaged: an open one would keep the snapshot as long as the error is kept."""
    with closing(connection.execute(statement, values)) as rows:
        for row in rows:
            yield _read_checked_row(row)


def _read_checked_row(values: tuple[Any, ...]) -> HistoryRow:
    try:
        revision, bucket, namespace, name, deleted, sealed, prev, body, checksum = values
        row = HistoryRow(revision, bucket.decode(), namespace.decode(), name.decode(), deleted, sealed, prev, body)
        if compute_row_checksum(*row) == checksum:
            return row
    except (AttributeError, TypeError, UnicodeDecodeError):  # another type than was written, or not UTF-8
        raise Damage(f"the row of revision {values[0]} cannot be read") from None
    object_text = format_object_name(row.bucket, row.namespace, row.name)
    raise Damage(f"{object_text} at revision {row.revision} is not as it was written")


def read_compacted(connection: apsw.Connection) -> int:
    with closing(connection.execute(SELECT_COMPACTED_SQL)) as rows:
        values = dict(rows)
    compacted = values.get("compacted")
    if not isinstance(compacted, int) or values.get("compacted_sum") != compute_compacted_checksum(compacted):
        raise Damage("the number of the oldest revision is not as it was written")
    return compacted


def compact_step(connection: apsw.Connection, low: int, high: int) -> None:
    """Delete, in one transaction, the rows that revisions low < r ≤ high replaced, and the deletions among them."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "DELETE FROM history WHERE rev IN (SELECT prev FROM history WHERE rev > ? AND rev <= ? AND prev > 0)",
            (low, high),
        )
        connection.execute("DELETE FROM history WHERE rev > ? AND rev <= ? AND deleted = 1", (low, high))
        connection.execute("UPDATE meta SET value = ? WHERE name = 'compacted'", (high,))
        checksum = compute_compacted_checksum(high)
        connection.execute("UPDATE meta SET value = ? WHERE name = 'compacted_sum'", (checksum,))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def list_live_revisions(connection: apsw.Connection, revision: int) -> list[tuple[str, str, str, int]]:
    with closing(connection.execute(SELECT_LIVE_REVISIONS_SQL, {"revision": revision})) as rows:
        return list(rows)
