"""The write-ahead log after power losses: a torn transaction is dropped and never makes a later one look damaged."""

from __future__ import annotations

import logging
import shutil
import tracemalloc
from pathlib import Path

import apsw
import pytest

from argosy.errors import UserError
from argosy.sandbox.store import Store, sqlite_setup, wal_checksum_check

HEADER_BYTES, FRAME_BYTES = 32, 24 + 4096
BUCKET = "configmaps"


def log_of(database: Path) -> Path:
    return database.with_name(database.name + "-wal")


def copy_as_killed(database: Path, folder: Path) -> Path:
    """Copy the files of an open store, as a power loss leaves them."""
    folder.mkdir()
    shutil.copyfile(database, folder / database.name)
    shutil.copyfile(log_of(database), log_of(folder / database.name))
    return folder / database.name


def tear(database: Path, first_frame: int) -> None:
    """Zero one frame, as if its write did not reach the disk and later ones did."""
    with log_of(database).open("r+b") as log:
        log.seek(HEADER_BYTES + first_frame * FRAME_BYTES)
        log.write(bytes(FRAME_BYTES))


def count_frames(database: Path) -> int:
    return (log_of(database).stat().st_size - HEADER_BYTES) // FRAME_BYTES


async def put(store: Store, name: str, size: int) -> None:
    await store.put(BUCKET, "ns", name, lambda revision: b"x" * size)


@pytest.mark.anyio
async def test_two_torn_transactions_in_a_row_are_dropped(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "argosy.db")
    await put(store, "kept", 10)
    before = count_frames(tmp_path / "argosy.db")
    await put(store, "first", 12 * 4096)
    database = copy_as_killed(tmp_path / "argosy.db", tmp_path / "once")
    await store.close()
    tear(database, before)

    store = await Store.open(database)
    assert [entry.name for entry in store.list(BUCKET)] == ["kept"]
    log = log_of(database)
    start = before if log.stat().st_size else 0  # the second transaction is written here
    await put(store, "second", 4 * 4096)
    twice = copy_as_killed(database, tmp_path / "twice")
    await store.close()
    tear(twice, start)

    store = await Store.open(twice)
    assert [entry.name for entry in store.list(BUCKET)] == ["kept"]
    await store.close()


@pytest.mark.anyio
async def test_write_ahead_log_is_empty_after_start(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "argosy.db")
    await put(store, "kept", 50_000)
    database = copy_as_killed(tmp_path / "argosy.db", tmp_path / "killed")
    await store.close()
    assert log_of(database).stat().st_size > 50_000
    store = await Store.open(database)
    assert log_of(database).stat().st_size == 0
    assert [entry.name for entry in store.list(BUCKET)] == ["kept"]
    await store.close()


@pytest.mark.anyio
async def test_store_starts_while_another_program_reads_it(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "argosy.db")
    await put(store, "kept", 50_000)
    database = copy_as_killed(tmp_path / "argosy.db", tmp_path / "killed")
    await store.close()
    reader = apsw.Connection(str(database))
    reader.execute("BEGIN")
    assert reader.execute("SELECT count(*) FROM history").fetchall() == [(1,)]
    store = await Store.open(database)
    await put(store, "later", 10)
    assert [entry.name for entry in store.list(BUCKET)] == ["kept", "later"]
    reader.close()
    await store.close()


@pytest.mark.anyio
async def test_large_write_ahead_log_is_checked_in_bounded_memory_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = await Store.open(tmp_path / "argosy.db")
    await put(store, "large", 1_000_000)
    database = copy_as_killed(tmp_path / "argosy.db", tmp_path / "killed")
    await store.close()
    monkeypatch.setattr(wal_checksum_check, "LARGE_LOG_BYTES", 900_000)
    caplog.set_level(logging.INFO)
    peak = peak_bytes_of_check(database)
    (record,) = caplog.records
    assert record.getMessage().startswith(f"checking the write-ahead log {log_of(database)} (1 MB)")
    with log_of(database).open("r+b") as log:
        log.write(b"\0")  # a half-written header, so that the pages are compared with the database
    shutil.copyfile(tmp_path / "argosy.db", database)
    peak = max(peak, peak_bytes_of_check(database))
    assert peak < 500_000


def write_generations(database: Path) -> tuple[bytes, bytes]:
    """Write a log whose frames all commit, checkpoint it, and overwrite it with one long transaction.

    Return the log before and after that transaction.
    """
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; CREATE TABLE t(body)").fetchall()
    for _ in range(60):
        connection.execute("INSERT INTO t VALUES('x')")
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    before = log_of(database).read_bytes()
    connection.execute("INSERT INTO t VALUES(zeroblob(?))", (80 * 4096,))
    after = log_of(database).read_bytes()
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()
    return before, after


def test_torn_header_with_the_commit_size_of_an_older_generation_is_no_damage(tmp_path: Path) -> None:
    """The sector that ends within the header of frame 41 keeps its old bytes: page, commit size; new are the salts."""
    database = tmp_path / "argosy.db"
    before, after = write_generations(database)
    start = HEADER_BYTES + 41 * FRAME_BYTES
    assert (start + 8) % 512 == 0 and before[start + 4 : start + 8] != bytes(4) == after[start + 4 : start + 8]
    sector = slice(start + 8 - 512, start + 8)
    log_of(database).write_bytes(after[: sector.start] + before[sector] + after[sector.stop :])
    wal_checksum_check.check_wal(database)
    assert apsw.Connection(str(database)).execute("SELECT count(*) FROM t").fetchall() == [(60,)]


def write_transactions(connection: apsw.Connection, *page_counts: int) -> None:
    """Write a transaction of that many pages for each number: one frame for each page."""
    for count in page_counts:
        connection.execute("BEGIN")
        for table in range(count):
            connection.execute(f"UPDATE t{table} SET body = body + 1")
        connection.execute("COMMIT")


BODY_OFFSET, SALTS_OFFSET = 1_000, 8


def check_second_generation(database: Path, damaged_frame: int, *page_counts: int, offset: int = BODY_OFFSET) -> None:
    """Check a log that overwrites an older one, after one frame was damaged at an offset."""
    connection = apsw.Connection(str(database))
    connection.execute("PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0").fetchall()
    for table in range(4):
        connection.execute(f"CREATE TABLE t{table}(body); INSERT INTO t{table} VALUES(0)")
    write_transactions(connection, *[1] * 60)
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    write_transactions(connection, *page_counts)
    with log_of(database).open("r+b") as log:
        log.seek(HEADER_BYTES + damaged_frame * FRAME_BYTES + offset)
        log.write(b"damaged")
    try:
        wal_checksum_check.check_wal(database)
    finally:
        connection.close()


@pytest.mark.parametrize("frame", [40, 41, 42])
def test_damaged_frame_of_an_overwritten_log_is_reported(tmp_path: Path, frame: int) -> None:
    with pytest.raises(wal_checksum_check.Damage, match="acknowledged transactions in"):
        check_second_generation(tmp_path / "argosy.db", frame, *[1] * 50)


@pytest.mark.parametrize("frame", [0, 40, 48])
def test_damaged_salts_are_not_taken_for_an_older_generation(tmp_path: Path, frame: int) -> None:
    with pytest.raises(wal_checksum_check.Damage, match="acknowledged transactions in"):
        check_second_generation(tmp_path / "argosy.db", frame, *[1] * 50, offset=SALTS_OFFSET)


def test_intact_commit_in_a_split_header_counts_as_acknowledged(tmp_path: Path) -> None:
    """The last transaction but one has the frames 38 to 41, of which 39 is damaged."""
    with pytest.raises(wal_checksum_check.Damage, match="1 acknowledged transactions in"):
        check_second_generation(tmp_path / "argosy.db", 39, *[1] * 38, 4, 1)


def test_damaged_commit_in_a_split_header_looks_like_a_torn_write(tmp_path: Path) -> None:
    """The documented limit: nothing distinguishes it from a power loss during the last transaction."""
    check_second_generation(tmp_path / "argosy.db", 41, *[1] * 38, 4, 1)


@pytest.mark.anyio
@pytest.mark.parametrize("restarts", [0, 1])
async def test_log_that_was_never_overwritten_has_no_such_limit(tmp_path: Path, restarts: int) -> None:
    for _ in range(restarts):
        store = await Store.open(tmp_path / "argosy.db")
        await put(store, "earlier", 10)
        await store.close()
    store = await Store.open(tmp_path / "argosy.db")
    for number in range(43):
        await put(store, f"k{number}", 10)
    assert count_frames(tmp_path / "argosy.db") == 43
    database = copy_as_killed(tmp_path / "argosy.db", tmp_path / "killed")
    await store.close()
    with log_of(database).open("r+b") as log:
        log.seek(HEADER_BYTES + 41 * FRAME_BYTES + 1_000)
        log.write(b"damaged")
    with pytest.raises(UserError, match="1 acknowledged transactions in"):
        await Store.open(database)


def peak_bytes_of_check(database: Path) -> int:
    tracemalloc.start()
    try:
        wal_checksum_check.check_wal(database)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_write_ahead_log_is_empty_after_a_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A migration writes the whole store into the log. After a kill, the next start would have to check all of it."""
    database = tmp_path / "argosy.db"
    sqlite_setup.open_writer(database).close()
    monkeypatch.setattr(sqlite_setup, "SCHEMA_VERSION", 3)
    monkeypatch.setitem(sqlite_setup.MIGRATIONS, 2, "CREATE TABLE large AS SELECT randomblob(100000)")
    connection = sqlite_setup.open_writer(database)
    assert connection.execute("SELECT count(*) FROM large").fetchall() == [(1,)]
    assert log_of(database).stat().st_size == 0
    connection.close()
