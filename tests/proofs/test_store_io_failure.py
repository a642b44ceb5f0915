"""The store never acknowledges a write that a failing disk did not store.

A VFS fails the n-th write, sync or truncation, for n = 1, 2, 3 …, with EIO, a full disk or a partial write. The store
must report a fatal error and acknowledge nothing that SQLite did not commit; opened again on a healthy disk, it has
everything that was acknowledged. A full disk is not fatal: writes are refused, reads continue.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import pytest

from argosy.errors import TransientError, UserError
from argosy.sandbox.store import Store, sqlite_journal
from argosy.sandbox.store.history_table import HistoryTable
from argosy.sandbox.store.sqlite_journal import SqliteJournal

pytestmark = pytest.mark.tier("test", "prove")

BUCKET = "core/configmaps"
WORDS = ("write", "short", "full", "sync", "truncate")


class FalseAck(AssertionError):
    """A write was acknowledged that is not stored, or after the disk had failed."""


@dataclass
class Fault:
    """Fails call number `at` of its kind and every later one: a disk does not recover."""

    word: str
    at: int
    calls: int = 0
    struck: bool = False
    durable: int = 0  # the newest revision that SQLite committed

    def due(self, call: str) -> bool:
        if call != {"short": "write", "full": "write"}.get(self.word, self.word):
            return False
        self.calls += 1
        self.struck = self.struck or self.calls >= self.at
        return self.struck


class FailingFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], fault: Fault) -> None:
        self.fault = fault
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        if self.fault.due("write"):
            if self.fault.word == "short":
                super().xWrite(data[: len(data) // 2], offset)
            raise apsw.FullError("no space") if self.fault.word == "full" else apsw.IOError("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        if self.fault.due("sync"):
            raise apsw.IOError("sync")
        super().xSync(flags)

    def xTruncate(self, size: int) -> None:
        if self.fault.due("truncate"):
            raise apsw.IOError("truncate")
        super().xTruncate(size)


class FailingDisk(apsw.VFS):
    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__("failing", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> FailingFile:
        return FailingFile(name, flags, self.fault)


@contextmanager
def failing_disk(fault: Fault) -> Iterator[None]:
    append = HistoryTable.append

    def observed(history: HistoryTable, connection: Any, events: Any) -> None:
        append(history, connection, events)
        fault.durable = events[-1].revision

    disk = FailingDisk(fault)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(HistoryTable, "append", observed)
            patch.setattr(sqlite_journal, "has_space", lambda path: not fault.struck)
            yield
    finally:
        disk.unregister()


@dataclass
class Outcome:
    acked: dict[str, int] = field(default_factory=dict)
    fatal: list[str] = field(default_factory=list)
    is_read_only: bool = False
    refused_to_open: bool = False


async def work(path: Path, rng: random.Random, fault: Fault) -> Outcome:
    outcome = Outcome()
    try:
        store = await Store.open(path, on_fatal_error=outcome.fatal.append)
    except UserError:
        outcome.refused_to_open = True
        return outcome

    async def one() -> None:
        for _ in range(12):
            name = f"k{rng.randrange(30)}"
            entry = await store.put(BUCKET, "ns", name, lambda revision: b"%d " % revision + b"x" * 700)
            if entry.revision > fault.durable:
                raise FalseAck(f"{entry.revision} was acknowledged, the disk failed after {fault.durable}")
            outcome.acked[name] = max(entry.revision, outcome.acked.get(name, 0))

    results = await asyncio.gather(*(one() for _ in range(4)), return_exceptions=True)
    try:
        if not outcome.fatal and not store.read_only_reason:
            compaction = asyncio.ensure_future(store.compact(store.revision // 2))
            while not compaction.done() and not store.read_only_reason:
                await asyncio.sleep(0.001)
            if not compaction.done():
                compaction.cancel()
            else:
                await compaction
    except TransientError:
        pass
    for name, revision in outcome.acked.items():
        entry = store.get(BUCKET, "ns", name)
        if entry is None or entry.revision < revision:
            raise FalseAck(f"{name} was acknowledged at {revision}, and is not served")
    await store.close()
    outcome.is_read_only = bool(store.read_only_reason)
    for result in results:
        if isinstance(result, BaseException) and not isinstance(result, TransientError):
            raise result
    if any(results) and not outcome.fatal and not outcome.is_read_only:
        raise FalseAck("a write failed, and it was not fatal")
    return outcome


async def check(path: Path, outcome: Outcome) -> None:
    store = await Store.open(path)
    for name, revision in outcome.acked.items():
        entry = store.get(BUCKET, "ns", name)
        if entry is None or entry.revision < revision:
            raise FalseAck(f"{name} was acknowledged at {revision}, the store has {entry and entry.revision}")
    await store.close()
    if apsw.Connection(str(path)).pragma("integrity_check") != "ok":
        raise FalseAck("the file is corrupt")


def prove(directory: Path, rng: random.Random, word: str, most: int) -> int:
    """Fail call 1, 2, 3 … until a run ends before it meets the fault; return how many runs failed."""
    for at in range(1, most + 1):
        path, fault = directory / f"{word}-{at}.db", Fault(word, at)
        with failing_disk(fault):
            outcome = asyncio.run(work(path, rng, fault))
        asyncio.run(check(path, outcome))
        for file in directory.iterdir():
            file.unlink()
        if not fault.struck:
            assert at > 1, f"no {word} in a whole run"
            return at - 1
        if outcome.fatal and word == "full":
            raise FalseAck(f"a full disk ended the process: {outcome.fatal[0]}")
        if not outcome.refused_to_open and not outcome.fatal and not outcome.is_read_only:
            raise FalseAck(f"{word} {at} failed and nobody said so")
    return most


@pytest.fixture(autouse=True)
def much_housekeeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_journal, "PAGES_PER_CHECKPOINT", 12)


@pytest.mark.parametrize("word", WORDS)
def test_failing_disk_never_causes_a_false_acknowledgement(
    memory_path: Path, rng: random.Random, size: Callable[[int], int], word: str
) -> None:
    failed, target_count = 0, size(1_000)
    while failed < target_count:
        failed += prove(memory_path, rng, word, target_count - failed)
    print(f"{word}: {failed} failures, no false acknowledgement")


def test_proof_detects_a_writer_that_ignores_errors(
    memory_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = SqliteJournal._append

    def careless(journal: SqliteJournal, batch: Any) -> None:
        try:
            append(journal, batch)
        except apsw.Error:
            pass

    monkeypatch.setattr(SqliteJournal, "_append", careless)
    with pytest.raises(FalseAck, match="was acknowledged"):
        prove(memory_path, rng, "sync", 40)
