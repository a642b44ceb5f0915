"""The store on disk: SQLite settings, encryption, lock, migrations, compaction, and failures."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import apsw
import pytest

from argosy.errors import Gone, UserError
from argosy.sandbox.store import Retention, Store, history_table, sqlite_journal, sqlite_setup
from argosy.sandbox.store.checksums import Damage, compute_row_checksum
from support.deadlines import HANG_SECONDS, wait_until_async
from support.proof_scale import is_full

T = TypeVar("T")
B, SECRETS = "core/configmaps", "core/secrets"
KEY, OTHER_KEY = bytes(32), bytes([1]) * 32


def body(revision: int) -> bytes:
    return b'{"metadata":{"resourceVersion":"%d"}}' % revision


def with_store(path: Path, scenario: Callable[[Store], Awaitable[T]], **options: object) -> T:
    async def main() -> T:
        store = await Store.open(path, **options)  # type: ignore[arg-type]
        try:
            return await asyncio.wait_for(scenario(store), HANG_SECONDS)
        finally:
            await store.close()

    return asyncio.run(main())


async def fill(store: Store, *names: str) -> None:
    for name in names:
        await store.put(B, "ns", name, body)


async def nothing(store: Store) -> int:
    return store.revision


def refusal(path: Path, **options: object) -> str:
    with pytest.raises(UserError) as caught:
        with_store(path, nothing, **options)
    return str(caught.value)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "argosy.db"


def test_objects_history_and_revision_survive_a_restart(path: Path) -> None:
    async def first(store: Store) -> tuple[object, str]:
        await fill(store, "b", "a", "a", "c")
        await store.remove(B, "ns", "c", body)
        return store.list(B), store.compute_state_digest()

    async def second(store: Store) -> tuple[object, str]:
        assert store.revision == 5 and await store.matches_disk()
        assert [event.revision for event in await store.watch(B, since=0).next_batch()] == [1, 2, 3, 4, 5]
        assert (await store.put(B, "ns", "d", body)).revision == 6
        await store.remove(B, "ns", "d", body)
        return store.list(B), store.compute_state_digest()

    assert with_store(path, first) == with_store(path, second)


def test_revision_does_not_go_back_if_the_newest_row_is_a_compacted_deletion(path: Path) -> None:
    async def first(store: Store) -> None:
        await fill(store, "a")
        await store.remove(B, "ns", "a", body)
        await store.compact(2)

    with_store(path, first)
    assert with_store(path, nothing) == 2


def test_sqlite_durability_settings_are_in_force(path: Path) -> None:
    async def settings(store: Store) -> dict[str, object]:
        connection = store._journal._connection  # type: ignore[attr-defined]
        return {name: connection.pragma(name) for name in ("journal_mode", "synchronous", "wal_autocheckpoint")}

    assert with_store(path, settings) == {"journal_mode": "wal", "synchronous": 2, "wal_autocheckpoint": 0}


def test_setting_that_sqlite_ignores_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sqlite_setup.PRAGMAS, "journal_mode", ("DELETE", "wal"))
    assert "SQLite refuses journal_mode" in refusal(path)


def test_reader_connection_cannot_write(path: Path) -> None:
    with_store(path, nothing)
    with pytest.raises(apsw.ReadOnlyError):
        sqlite_setup.open_reader(path).execute("DELETE FROM history")


def test_store_files_are_readable_only_by_their_owner(path: Path) -> None:
    async def modes(store: Store) -> set[str]:
        await fill(store, "a")
        return {oct(stat.S_IMODE(file.stat().st_mode)) for file in path.parent.iterdir()}

    assert with_store(path, modes) == {"0o600"}


def test_sqlite_with_the_wal_reset_bug_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.2")
    assert "WAL-reset" in refusal(path)
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.51.3")
    assert with_store(path, nothing) == 0


def test_bodies_of_encrypted_buckets_are_not_on_disk_in_plain_text(path: Path) -> None:
    async def write(store: Store) -> None:
        await store.put(SECRETS, "ns", "a", lambda revision: b'{"data":"hunter2"}')
        await store.put(SECRETS, "ns", "a", lambda revision: b'{"data":"hunter2-new"}')
        await store.put(B, "ns", "a", lambda revision: b'{"data":"in-plain-sight"}')
        raw = b"".join(file.read_bytes() for file in path.parent.iterdir())
        assert b"hunter2" not in raw and b"in-plain-sight" in raw

    async def read(store: Store) -> None:
        entry = store.get(SECRETS, "ns", "a")
        assert entry is not None and entry.body == b'{"data":"hunter2-new"}'
        events = await store.watch(SECRETS, since=0).next_batch()
        assert [event.body for event in events] == [b'{"data":"hunter2"}', b'{"data":"hunter2-new"}']
        assert events[1].previous == b'{"data":"hunter2"}'
        assert (await store.list_at(SECRETS, "", 1))[0].body == b'{"data":"hunter2"}'

    options = {"key": KEY, "encrypted_buckets": frozenset({SECRETS})}
    with_store(path, write, **options)
    with_store(path, read, **options)
    assert "key does not fit" in refusal(path, key=OTHER_KEY, encrypted_buckets=frozenset({SECRETS}))
    assert "its key is needed" in refusal(path)
    assert "must have 32 bytes" in refusal(path, key=b"short")
    assert with_store(path, nothing, **options) == 3


def test_encrypted_body_moved_to_another_name_is_refused(path: Path) -> None:
    async def write(store: Store) -> None:
        await store.put(SECRETS, "ns", "a", body)

    options = {"key": KEY, "encrypted_buckets": frozenset({SECRETS})}
    with_store(path, write, **options)
    connection = apsw.Connection(str(path))
    ((columns, body_on_disk),) = connection.execute("SELECT json_array(rev, deleted, sealed, prev), body FROM history")
    revision, deleted, sealed, prev = json.loads(columns)
    checksum = compute_row_checksum(revision, SECRETS, "ns", "b", deleted, sealed, prev, body_on_disk)
    connection.execute("UPDATE history SET name = 'b', sum = ?", (checksum,))
    connection.close()
    assert "core/secrets/ns/b at revision 1 cannot be decrypted" in refusal(path, **options)


def test_encryption_without_a_key_is_refused(path: Path) -> None:
    assert "a key is needed to encrypt core/secrets" in refusal(path, encrypted_buckets=frozenset({SECRETS}))


def test_second_open_is_refused_and_names_the_owning_process(path: Path) -> None:
    async def scenario(store: Store) -> None:
        code = (
            "import asyncio, pathlib, sys\nfrom argosy.sandbox.store import Store\n"
            "asyncio.run(Store.open(pathlib.Path(sys.argv[1])))"
        )
        await fill(store, "a")
        before = {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        ran = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True, env=environment, check=False
        )
        assert f"process {os.getpid()} has this store open; stop it first" in ran.stderr
        assert str(path) in ran.stderr
        with pytest.raises(UserError, match="stop it first"):
            await Store.open(path)
        after = {file.name: file.read_bytes() for file in path.parent.iterdir() if not file.name.endswith("-shm")}
        assert after == before

    with_store(path, scenario)
    assert with_store(path, nothing) == 1


def test_forked_child_does_not_keep_the_store_lock(path: Path) -> None:
    async def main() -> int:
        store = await Store.open(path)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, b"x")
            time.sleep(HANG_SECONDS)
            os._exit(0)
        os.read(reading, 1)
        os.close(reading)
        os.close(writing)
        await store.close()
        return child

    child = asyncio.run(main())
    try:
        assert with_store(path, nothing) == 0
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)


def test_open_waits_for_a_lock_that_is_released_soon(path: Path) -> None:
    path.parent.mkdir()
    with open(f"{path}.lock", "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        let_go: list[bool] = []

        def let_it_go() -> None:
            let_go.append(True)
            fcntl.flock(held, fcntl.LOCK_UN)

        threading.Timer(0.1, let_it_go).start()
        assert with_store(path, nothing) == 0
        assert let_go, "it was open before the lock was let go"


def test_files_that_are_not_a_store_are_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("this is no database at all, but it is long enough to look at" * 20)
    assert "not an argosy store" in refusal(text)
    foreign = tmp_path / "foreign.db"
    apsw.Connection(str(foreign)).execute("CREATE TABLE other(x)")
    content = foreign.read_bytes()
    assert "another program" in refusal(foreign)
    assert foreign.read_bytes() == content


def test_store_of_a_newer_argosy_is_refused(path: Path) -> None:
    with_store(path, nothing)
    apsw.Connection(str(path)).pragma("user_version", sqlite_setup.SCHEMA_VERSION + 1)
    assert "newer argosy" in refusal(path)


def test_older_store_is_migrated_step_by_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def write(store: Store) -> None:
        await fill(store, "a")

    with_store(path, write)
    monkeypatch.setattr(sqlite_setup, "SCHEMA_VERSION", 4)
    assert "cannot upgrade" in refusal(path)
    monkeypatch.setitem(sqlite_setup.MIGRATIONS, 2, "CREATE TABLE second(x)")
    monkeypatch.setitem(sqlite_setup.MIGRATIONS, 3, "INSERT INTO second VALUES(3)")
    assert with_store(path, nothing) == 1
    connection = apsw.Connection(str(path))
    assert connection.pragma("user_version") == 4
    assert connection.execute("SELECT x FROM second").fetchall() == [(3,)]


@pytest.mark.parametrize("read", ["events", "live", "list_live_revisions"])
def test_damaged_row_does_not_leave_a_read_transaction_open(path: Path, read: str) -> None:
    """A snapshot that stays open would keep the write-ahead log from ever being emptied.

    The test keeps references to the cursors, like an interpreter that frees them later: only closing them ends the
    snapshot.
    """

    async def write(store: Store) -> None:
        await fill(store, "a", "b", "c")

    cursors: list[apsw.Cursor] = []

    def hold_cursor(connection: apsw.Connection) -> apsw.Cursor:
        cursors.append(apsw.Cursor(connection))
        return cursors[-1]

    with_store(path, write)
    writer = sqlite_setup.open_writer(path)
    writer.execute("UPDATE history SET name = CAST(x'ff' AS TEXT) WHERE rev = 2")
    reader = sqlite_setup.open_reader(path)
    reader.cursor_factory = hold_cursor
    table = history_table.HistoryTable(None, frozenset())
    reader.execute("BEGIN")
    with pytest.raises((Damage, UnicodeDecodeError)) as caught:
        if read == "events":
            table.list_events(reader, B, 0, 3, 100)
        elif read == "live":
            list(table.list_live(reader, B, "", 3))
        else:
            history_table.list_live_revisions(reader, 3)
    reader.execute("COMMIT")
    assert cursors
    assert reader.txn_state("main") == apsw.SQLITE_TXN_NONE, caught.value
    reader.close()
    writer.close()


def make_format_1(path: Path, *bodies: bytes) -> None:
    """A store in the format that argosy wrote before rows had checksums."""
    path.parent.mkdir(parents=True)
    connection = apsw.Connection(str(path))
    connection.pragma("journal_mode", "WAL")
    connection.execute("""
CREATE TABLE history(
  rev INTEGER PRIMARY KEY, bucket TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  deleted INTEGER NOT NULL, sealed INTEGER NOT NULL, prev INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE meta(name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES('compacted', 0);
""")
    for number, body_on_disk in enumerate(bodies, 1):
        row = (number, B, "ns", f"k{number}", body_on_disk)
        connection.execute("INSERT INTO history VALUES(?, ?, ?, ?, 0, 0, 0, ?)", row)
    connection.execute(f"PRAGMA application_id = {sqlite_setup.APPLICATION_ID}; PRAGMA user_version = 1")
    connection.close()


def test_store_without_checksums_gets_them(path: Path) -> None:
    make_format_1(path, body(1), body(2))

    async def look(store: Store) -> list[bytes]:
        return [entry.body for entry in store.list(B)]

    assert with_store(path, look) == [body(1), body(2)]
    assert with_store(path, look) == [body(1), body(2)]
    apsw.Connection(str(path)).execute("UPDATE history SET body = ? WHERE rev = 2", (body(3),))
    assert "core/configmaps/ns/k2 at revision 2 is not as it was written" in refusal(path)


def test_damaged_store_without_checksums_is_refused_and_unchanged(path: Path) -> None:
    make_format_1(path, body(1), b'{"metadata"')
    before = path.read_bytes()
    assert "the row of revision 2 is not JSON" in refusal(path)
    assert path.read_bytes() == before


def test_damaged_store_is_refused_with_a_restore_hint(path: Path) -> None:
    async def write(store: Store) -> None:
        await fill(store, *(f"k{number}" for number in range(300)))

    with_store(path, write)
    content = bytearray(path.read_bytes())
    content[8192:40960] = b"\xff" * 32768
    path.write_bytes(content)
    assert "restore it from a copy" in refusal(path)


def test_compaction_and_writes_retry_while_the_database_is_locked(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_journal, "RETRY_INTERVAL_SECONDS", 0.001)
    monkeypatch.setattr(sqlite_setup, "BUSY_TIMEOUT_MILLISECONDS", 5)
    locked = Counter[str]()  # how often each function met the lock

    def count_locks(holder: object, name: str) -> None:
        function = getattr(holder, name)

        def counted(*arguments: object) -> None:
            try:
                function(*arguments)
            except apsw.BusyError:
                locked[name] += 1
                raise

        monkeypatch.setattr(holder, name, counted)

    count_locks(history_table, "compact_step")
    count_locks(history_table.HistoryTable, "append")

    async def scenario(store: Store) -> None:
        await fill(store, *"aaaaaaaaaa")
        intruder = apsw.Connection(str(path))
        for turn in range(3):
            intruder.execute("BEGIN IMMEDIATE")
            locked.clear()
            compaction = asyncio.create_task(store.compact(2 + turn))
            await wait_until_async(lambda: locked["compact_step"] > 2, "compaction meets the lock again and again")
            commit = store.put(B, "ns", "b", body)
            await wait_until_async(lambda: locked["append"] > 2, "a write meets the lock again and again")
            assert not compaction.done() and store.get(B, "ns", "b") != commit.entry
            intruder.execute("COMMIT")
            await asyncio.gather(compaction, commit)
            assert store.compacted == 2 + turn
        intruder.close()

    with_store(path, scenario)


def test_open_reader_does_not_block_writes_or_later_checkpoints(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_journal, "PAGES_PER_CHECKPOINT", 10)

    async def scenario(store: Store) -> None:
        await fill(store, "a")
        reader = apsw.Connection(str(path))
        reader.execute("BEGIN; SELECT * FROM history").fetchall()
        await fill(store, *["b"] * 200)
        reader.execute("COMMIT")
        reader.close()
        await fill(store, *["c"] * 200)
        assert path.with_name("argosy.db-wal").stat().st_size < 5 * 1024 * 1024

    with_store(path, scenario)


@pytest.mark.tier("test", "prove")
def test_file_size_stays_bounded_under_many_writes_to_few_objects(path: Path) -> None:
    async def scenario(store: Store) -> None:
        for _ in range(200 if is_full() else 30):
            commits = [store.put(B, "ns", f"k{number}", lambda r: b"x" * 2_000) for number in range(100)]
            await asyncio.gather(*commits)
        await wait_until_async(lambda: store.compacted >= store.revision - 1_100, "old history is given up")

    with_store(path, scenario, retention=Retention(max_revisions=1_000))
    with_store(path, scenario, retention=Retention(max_revisions=1_000))
    # Without compaction, 40,000 writes of 2 kB would be 80 MB, and 6,000 would be 12 MB; 100 objects and 1,000
    # revisions of history are 2.2 MB.
    assert path.stat().st_size < 8 * 1024 * 1024


def test_history_over_the_size_limit_is_compacted_after_a_restart(path: Path) -> None:
    async def write(store: Store) -> None:
        for _ in range(30):
            await store.put(B, "ns", "a", lambda revision: b"x" * 1_000)

    async def look(store: Store) -> None:
        await store.put(B, "ns", "a", body)
        await wait_until_async(lambda: store.compacted >= 30, "old history is given up")
        with pytest.raises(Gone):
            store.watch(B, since=29)

    with_store(path, write)
    with_store(path, look, retention=Retention(max_bytes=10_000))


def test_failed_write_ends_the_process_without_an_acknowledgement(path: Path) -> None:
    code = """
import asyncio, pathlib, resource, sys
from argosy.sandbox.store import Store
async def main():
    store = await Store.open(pathlib.Path(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
    for number in range(1000):
        await store.put("b", "ns", f"k{number}", lambda revision: b"x" * 5000)
        print(number, flush=True)
asyncio.run(main())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ran = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, env=environment, check=False
    )
    assert ran.returncode == 70
    assert ran.stderr.startswith(f"argosy: {path}: the store could not be written, so the process ends: ")
    acknowledged = len(ran.stdout.split())
    assert acknowledged > 0

    async def count(store: Store) -> int:
        return store.count("b")

    assert with_store(path, count) == acknowledged
