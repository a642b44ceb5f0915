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

from argosy.sandbox.store.checksums import Damage, compacted_checksum, object_name, row_checksum
from argosy.sandbox.store.encryption import Seal
from argosy.sandbox.store.entries import ADDED, DELETED, MODIFIED, Entry, Event

ROWS_PER_STATEMENT = 64
EVENT_BYTES_PER_READ = 1 << 20  # each slow watch holds its own copy of what it reads
ROW_COST = 100  # approximate bytes of a row without its body

INSERT = "INSERT INTO history(rev, bucket, namespace, name, deleted, sealed, prev, body, sum) VALUES "
# Text is read as bytes: a name that is not UTF-8 is damage, and the error must name its revision.
ROWS = """
SELECT rev, CAST(bucket AS BLOB), CAST(namespace AS BLOB), CAST(name AS BLOB), deleted, sealed, prev, body, sum
FROM history
"""
ALL_ROWS = ROWS + "ORDER BY rev"
BUCKET_ROWS = ROWS + "WHERE rev <= ? AND bucket = ? ORDER BY rev"
COLUMN_COUNT = 9
EVENTS = """
SELECT
  h.rev, CAST(h.bucket AS BLOB), CAST(h.namespace AS BLOB), CAST(h.name AS BLOB),
  h.deleted, h.sealed, h.prev, h.body, h.sum,
  p.rev, CAST(p.bucket AS BLOB), CAST(p.namespace AS BLOB), CAST(p.name AS BLOB),
  p.deleted, p.sealed, p.prev, p.body, p.sum
FROM history AS h LEFT JOIN history AS p ON p.rev = h.prev
WHERE h.rev > ? AND h.rev <= ? AND h.bucket = ? ORDER BY h.rev LIMIT ?
"""
COMPACTED = "SELECT name, value FROM meta WHERE name IN ('compacted', 'compacted_sum')"
LIVE_REVISIONS = """
SELECT bucket, namespace, name, rev FROM history
WHERE rev <= :revision AND deleted = 0 AND rev NOT IN
  (SELECT prev FROM history WHERE rev <= :revision AND prev > 0)
"""


class Row(NamedTuple):
    """One row as it is in the file; `body` may be encrypted."""

    revision: int
    bucket: str
    namespace: str
    name: str
    deleted: int
    sealed: int
    prev: int
    body: bytes


class Loaded(NamedTuple):
    """State that a store starts from."""

    revision: int
    compacted: int
    history_bytes: int
    buckets: dict[str, list[Entry]]


@cache
def _insert(rows: int) -> str:
    return INSERT + ",".join(["(?,?,?,?,?,?,?,?,?)"] * rows)


class History:
    """Reads and writes the history table; encrypts the bodies of some buckets."""

    def __init__(self, seal: Seal | None, encrypted_buckets: frozenset[str]) -> None:
        self._seal = seal
        self._encrypted = encrypted_buckets

    def append(self, connection: apsw.Connection, events: Sequence[Event]) -> None:
        """Insert in one transaction. A small batch is one statement, so SQLite runs and commits it without the GIL."""
        if len(events) <= ROWS_PER_STATEMENT:
            connection.execute(_insert(len(events)), self._values(events))
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            for first in range(0, len(events), ROWS_PER_STATEMENT):
                piece = events[first : first + ROWS_PER_STATEMENT]
                connection.execute(_insert(len(piece)), self._values(piece))
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _values(self, events: Sequence[Event]) -> list[Any]:
        values: list[Any] = []
        for event in events:
            body, sealed = event.body, 0
            if self._seal is not None and event.bucket in self._encrypted:
                body, sealed = self._seal.close(body, event.bucket, event.namespace, event.name, event.revision), 1
            row = Row(
                event.revision, event.bucket, event.namespace, event.name,
                1 if event.type is DELETED else 0, sealed, event.previous_revision, body,
            )  # fmt: skip
            values += (*row, row_checksum(*row))
        return values

    def load(self, connection: apsw.Connection) -> Loaded:
        """Load the whole state. Raises Damage if a row was changed or is missing."""
        compacted = read_compacted(connection)
        newest = size = 0
        replay = Replay(compacted)
        for row in _checked_rows(connection, ALL_ROWS):
            if row.revision > compacted:
                if row.revision != max(newest, compacted) + 1:
                    raise Damage(f"revision {max(newest, compacted) + 1} is missing")
                size += len(row.body) + ROW_COST
            newest = row.revision
            replay.add(row)
        buckets: dict[str, list[Entry]] = {}
        names: dict[str, str] = {}  # share one string per namespace among its objects
        for row in replay.live.values():
            entry = Entry(names.setdefault(row.namespace, row.namespace), row.name, row.revision, self._body(row))
            buckets.setdefault(row.bucket, []).append(entry)
        # Compaction drops deletions too, so the newest row may be older than the newest assigned revision.
        return Loaded(max(newest, compacted), compacted, size, buckets)

    def live(self, connection: apsw.Connection, bucket: str, namespace: str, revision: int) -> Iterator[Entry]:
        replay = Replay(read_compacted(connection))
        for row in _checked_rows(connection, BUCKET_ROWS, (revision, bucket)):
            replay.add(row)
        for row in replay.live.values():
            if not namespace or row.namespace == namespace:
                yield Entry(row.namespace, row.name, row.revision, self._body(row))

    def events(self, connection: apsw.Connection, bucket: str, after: int, upto: int, limit: int) -> list[Event]:
        """The oldest events after `after`: at most `limit`, and at most about EVENT_BYTES_PER_READ bytes."""
        events: list[Event] = []
        size = 0
        with closing(connection.execute(EVENTS, (after, upto, bucket, limit))) as rows:
            for values in rows:
                event = self._event(values)
                events.append(event)
                size += len(event.body) + len(event.previous or b"")
                if size >= EVENT_BYTES_PER_READ:
                    break
        return events

    def _event(self, values: tuple[Any, ...]) -> Event:
        row = _checked_row(values[:COLUMN_COUNT])
        previous = None
        if row.prev:
            previous = self._body(_checked_row(values[COLUMN_COUNT:]))
        kind = DELETED if row.deleted else MODIFIED if row.prev else ADDED
        return Event(row.revision, kind, row.bucket, row.namespace, row.name, self._body(row), previous, row.prev)

    def _body(self, row: Row) -> bytes:
        return self._open(row) if row.sealed else row.body

    def _open(self, row: Row) -> bytes:
        if self._seal is None:  # unreachable: the key was checked at startup
            raise RuntimeError("an encrypted row in a store without a key")
        return self._seal.open(row.body, row.bucket, row.namespace, row.name, row.revision)


class Replay:
    """Builds the state from rows in order. Each row names the revision it replaces, so a missing row is noticed."""

    def __init__(self, compacted: int) -> None:
        self.live: dict[tuple[str, str, str], Row] = {}
        self._compacted = compacted

    def add(self, row: Row) -> None:
        key = row[1:4]
        known = self.live.get(key)
        is_compacted = known is None and row.revision <= self._compacted
        if row.prev != (known.revision if known else 0) and not is_compacted:
            which = object_name(*key)
            raise Damage(f"{which} at revision {row.revision} replaces revision {row.prev}, which is missing")
        if row.deleted:
            self.live.pop(key, None)
        else:
            self.live[key] = row


def _checked_rows(connection: apsw.Connection, statement: str, values: tuple[Any, ...] = ()) -> Iterator[Row]:
    """Closes the cursor even if a row is damaged: an open one would keep the snapshot as long as the error is kept."""
    with closing(connection.execute(statement, values)) as rows:
        for row in rows:
            yield _checked_row(row)


def _checked_row(values: tuple[Any, ...]) -> Row:
    try:
        revision, bucket, namespace, name, deleted, sealed, prev, body, checksum = values
        row = Row(revision, bucket.decode(), namespace.decode(), name.decode(), deleted, sealed, prev, body)
        if row_checksum(*row) == checksum:
            return row
    except (AttributeError, TypeError, UnicodeDecodeError):  # another type than was written, or not UTF-8
        raise Damage(f"the row of revision {values[0]} cannot be read") from None
    which = object_name(row.bucket, row.namespace, row.name)
    raise Damage(f"{which} at revision {row.revision} is not as it was written")


def read_compacted(connection: apsw.Connection) -> int:
    with closing(connection.execute(COMPACTED)) as rows:
        values = dict(rows)
    compacted = values.get("compacted")
    if not isinstance(compacted, int) or values.get("compacted_sum") != compacted_checksum(compacted):
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
        checksum = compacted_checksum(high)
        connection.execute("UPDATE meta SET value = ? WHERE name = 'compacted_sum'", (checksum,))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def live_revisions(connection: apsw.Connection, revision: int) -> list[tuple[str, str, str, int]]:
    with closing(connection.execute(LIVE_REVISIONS, {"revision": revision})) as rows:
        return list(rows)
