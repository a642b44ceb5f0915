"""The statements over the history table.

In: a connection and plain values. Out: rows as entries and events. Never: decides when to write, commit or compact.

The live state at revision R is every row ≤ R that is no deletion and that no row ≤ R replaces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import apsw

from argosy.apiserver.store.entry import ADDED, DELETED, MODIFIED, Entry, Event
from argosy.apiserver.store.seal import Seal

ROWS_PER_STATEMENT = 64
ROW_COST = 100  # bytes of a row beside its body, about

INSERT = "INSERT INTO history(rev, bucket, namespace, name, deleted, sealed, prev, body) VALUES "
SIZES = """
SELECT coalesce(max(rev), 0), coalesce(sum(length(body) + :cost) FILTER (WHERE rev > :compacted), 0) FROM history
"""
LIVE = """
SELECT bucket, namespace, name, rev, sealed, body FROM history
WHERE rev <= :revision AND deleted = 0 AND rev NOT IN
  (SELECT prev FROM history WHERE rev <= :revision AND prev > 0)
"""
EVENTS = """
SELECT h.rev, h.namespace, h.name, h.deleted, h.sealed, h.body, h.prev, p.sealed, p.body
FROM history AS h LEFT JOIN history AS p ON p.rev = h.prev
WHERE h.rev > ? AND h.rev <= ? AND h.bucket = ? ORDER BY h.rev LIMIT ?
"""


class Loaded(NamedTuple):
    """What a store starts from."""

    revision: int
    compacted: int
    history_bytes: int
    buckets: dict[str, list[Entry]]


@cache
def _insert(rows: int) -> str:
    return INSERT + ",".join(["(?,?,?,?,?,?,?,?)"] * rows)


class History:
    """The table, and the seal of the buckets that are encrypted in it."""

    def __init__(self, seal: Seal | None, encrypted_buckets: frozenset[str]) -> None:
        self._seal = seal
        self._encrypted = encrypted_buckets

    def append(self, connection: apsw.Connection, events: Sequence[Event]) -> None:
        """One transaction. A small batch is a single statement, so SQLite runs it, commit and all, off the GIL."""
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
            deleted = 1 if event.type is DELETED else 0
            values += (event.revision, event.bucket, event.namespace, event.name)
            values += (deleted, sealed, event.previous_revision, body)
        return values

    def load(self, connection: apsw.Connection) -> Loaded:
        compacted = read_compacted(connection)
        newest, size = _numbers(connection.execute(SIZES, {"cost": ROW_COST, "compacted": compacted}))
        buckets: dict[str, list[Entry]] = {}
        names: dict[str, str] = {}  # one string for a namespace, not one for each of its objects
        for bucket, namespace, name, revision, sealed, body in connection.execute(LIVE, {"revision": newest}):
            if sealed:
                body = self._open(body, bucket, namespace, name, revision)
            entry = Entry(names.setdefault(namespace, namespace), name, revision, body)
            buckets.setdefault(bucket, []).append(entry)
        # Compaction drops deletions too, so the newest row may be older than the newest revision that was given out.
        return Loaded(max(newest, compacted), compacted, size, buckets)

    def live(self, connection: apsw.Connection, bucket: str, namespace: str, revision: int) -> Iterator[Entry]:
        where = " AND bucket = :bucket" + (" AND namespace = :namespace" if namespace else "")
        values = {"revision": revision, "bucket": bucket, "namespace": namespace}
        for bucket, space, name, found, sealed, body in connection.execute(LIVE + where, values):
            yield Entry(space, name, found, self._open(body, bucket, space, name, found) if sealed else body)

    def events(self, connection: apsw.Connection, bucket: str, after: int, upto: int, limit: int) -> list[Event]:
        rows = connection.execute(EVENTS, (after, upto, bucket, limit))
        return [self._event(bucket, *row) for row in rows]

    def _event(
        self, bucket: str, revision: int, namespace: str, name: str, deleted: int, sealed: int, body: bytes,
        prev: int, prev_sealed: int, previous: bytes | None,
    ) -> Event:  # fmt: skip
        if sealed:
            body = self._open(body, bucket, namespace, name, revision)
        if prev_sealed and previous is not None:
            previous = self._open(previous, bucket, namespace, name, prev)
        kind = DELETED if deleted else MODIFIED if prev else ADDED
        return Event(revision, kind, bucket, namespace, name, body, previous, prev)

    def _open(self, body: bytes, bucket: str, namespace: str, name: str, revision: int) -> bytes:
        if self._seal is None:  # the check of the key at the start leaves no way to get here
            raise RuntimeError("an encrypted row in a store without a key")
        return self._seal.open(body, bucket, namespace, name, revision)


def read_compacted(connection: apsw.Connection) -> int:
    (compacted,) = _numbers(connection.execute("SELECT value FROM meta WHERE name = 'compacted'"))
    return compacted


def _numbers(rows: Iterator[Any]) -> list[int]:
    return [int(value) for value in next(rows)]


def compact_step(connection: apsw.Connection, low: int, high: int) -> None:
    """Forget, in one transaction, what the revisions low < r ≤ high replaced, and the deletions among them."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "DELETE FROM history WHERE rev IN (SELECT prev FROM history WHERE rev > ? AND rev <= ? AND prev > 0)",
            (low, high),
        )
        connection.execute("DELETE FROM history WHERE rev > ? AND rev <= ? AND deleted = 1", (low, high))
        connection.execute("UPDATE meta SET value = ? WHERE name = 'compacted'", (high,))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def live_revisions(connection: apsw.Connection, revision: int) -> list[tuple[str, str, str, int]]:
    rows = connection.execute(LIVE, {"revision": revision})
    return [(bucket, namespace, name, found) for bucket, namespace, name, found, _, _ in rows]
