"""Lost files of a store: an empty or missing database never becomes a new store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from argosy.errors import UserError
from argosy.sandbox.store import Store

BUCKET = "configmaps"
DATABASE, LOG, MARK = "argosy.db", "argosy.db-wal", "argosy.db.initialized"


def truncate(database: Path) -> None:
    os.truncate(database, 0)


def keep_header_page(database: Path) -> None:
    """A database without tables: the result of `journal_mode=WAL` on an empty file."""
    database.unlink()
    connection = apsw.Connection(str(database))
    connection.pragma("journal_mode", "WAL")
    connection.close()


async def make_closed(folder: Path) -> None:
    store = await Store.open(folder / DATABASE)
    await store.put(BUCKET, "ns", "a", lambda revision: b"{}")
    await store.close()


async def make_killed(folder: Path) -> None:
    """Creates the files as `kill -9` leaves them."""
    store = await Store.open(folder / "open" / DATABASE)
    await store.put(BUCKET, "ns", "a", lambda revision: b"{}")
    for name in (DATABASE, LOG):
        shutil.copyfile(folder / "open" / name, folder / name)
    await store.close()


def read_files(folder: Path) -> dict[str, bytes]:
    """Every file except the lock, which names its last owner, and the empty files that SQLite creates to read a
    database.
    """
    files = [file for file in folder.iterdir() if file.is_file() and not file.name.endswith((".lock", "-shm"))]
    return {file.name: file.read_bytes() for file in files if file.name != LOG or file.stat().st_size}


async def refuse(folder: Path) -> str:
    before = read_files(folder)
    with pytest.raises(UserError) as refused:
        await Store.open(folder / DATABASE)
    assert read_files(folder) == before
    return str(refused.value)


@pytest.mark.parametrize("lose", [truncate, Path.unlink, keep_header_page])
async def test_lost_database_of_a_stopped_store_is_refused(tmp_path: Path, lose: Callable[[Path], None]) -> None:
    await make_closed(tmp_path)
    lose(tmp_path / DATABASE)
    refusal = await refuse(tmp_path)
    assert refusal.startswith(f"{tmp_path / DATABASE}: the store is damaged ({DATABASE} ")
    assert "restore it from a copy of the data folder" in refusal


@pytest.mark.parametrize(("lose", "words"), [(truncate, "is empty"), (Path.unlink, "is missing")])
async def test_lost_database_is_refused_while_its_log_contains_transactions(
    tmp_path: Path, lose: Callable[[Path], None], words: str
) -> None:
    await make_killed(tmp_path)
    lose(tmp_path / DATABASE)
    assert f"the store is damaged ({DATABASE} {words}" in await refuse(tmp_path)


async def test_first_start_killed_before_the_store_was_created_can_be_repeated(tmp_path: Path) -> None:
    (tmp_path / DATABASE).touch(mode=0o600)
    (tmp_path / LOG).touch(mode=0o600)
    await make_closed(tmp_path)
    keep_header_page(tmp_path / DATABASE)
    (tmp_path / MARK).unlink()
    await make_closed(tmp_path)
    assert (tmp_path / MARK).exists()


async def test_store_without_the_initialized_mark_is_opened_and_gets_one(tmp_path: Path) -> None:
    await make_closed(tmp_path)
    (tmp_path / MARK).unlink()
    store = await Store.open(tmp_path / DATABASE)
    assert [entry.name for entry in store.list(BUCKET)] == ["a"]
    await store.close()
    assert (tmp_path / MARK).stat().st_mode & 0o777 == 0o600
