"""A damaged store file is reported: nothing is lost silently, and nothing is served that was never written.

Bytes of a store are flipped, zeroed, replaced or cut off, in the database and in its write-ahead log. When it is opened
again, the store either fails with an error that names the file and the next step, and leaves all files unchanged, or it
has exactly its previous state. Only the last transaction of a log may be missing: a crash leaves the same bytes.
"""

from __future__ import annotations

import asyncio
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from argosy.errors import ClusterError, UserError
from argosy.sandbox.store import Store, history_table, startup
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.tier("test", "prove")

CONFIGS, SECRETS = "configmaps", "secrets"
KEY = bytes(range(32))
DATABASE, LOG = "argosy.db", "argosy.db-wal"


class SilentDamage(AssertionError):
    """A damaged store was opened with a state that was never written, or failed without a readable error."""


class State(NamedTuple):
    revision: int
    objects: dict[tuple[str, str, str], tuple[int, bytes]]


async def open_store(folder: Path) -> Store:
    return await Store.open(folder / DATABASE, key=KEY, encrypted_buckets=frozenset({SECRETS}))


def state_of(store: Store) -> State:
    objects = {
        (bucket, entry.namespace, entry.name): (entry.revision, entry.body)
        for bucket in store.list_buckets()
        for entry in store.list(bucket)
    }
    return State(store.revision, objects)


async def fill(store: Store, rng: random.Random, rounds: int) -> State:
    """Write, change and remove objects; return the state before the last write."""
    before = state_of(store)
    for number in range(rounds):
        before = state_of(store)
        bucket, name = rng.choice((CONFIGS, SECRETS)), f"k{rng.randrange(40)}"
        if number % 7 == 6 and store.get(bucket, "ns", name):
            await store.remove(bucket, "ns", name, lambda revision: b'{"last":%d}' % revision)
        else:
            filler = b"x" * rng.choice((10, 300, 6_000))
            await store.put(
                bucket, "ns", name, lambda revision, filler=filler: b'{"rev":%d,"data":"%s"}' % (revision, filler)
            )
    return before


async def make_closed(folder: Path, rng: random.Random) -> State:
    store = await open_store(folder)
    await fill(store, rng, 120)
    await store.compact(60)
    await fill(store, rng, 40)
    state = state_of(store)
    await store.close()
    return state


async def make_killed(folder: Path, copy: Path, rng: random.Random) -> tuple[State, State]:
    """Copy the files as `kill -9` leaves them, with a log. Returns the state, and the one before the last write."""
    store = await open_store(folder)
    before = await fill(store, rng, 60)
    copy.mkdir()
    for name in (DATABASE, LOG):
        shutil.copyfile(folder / name, copy / name)
    state = state_of(store)
    await store.close()
    return state, before


def damage(data: bytes, rng: random.Random) -> bytes:
    """A damaged copy."""
    damaged = bytearray(data)
    at = rng.randrange(len(damaged))
    match rng.randrange(10):
        case 0:
            del damaged[at:]
        case 1:
            damaged[at : at + 512] = bytes(len(damaged[at : at + 512]))
        case 2:
            damaged[at : at + 512] = rng.randbytes(len(damaged[at : at + 512]))
        case 3:
            for _ in range(8):
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        case 4:  # the first hundred bytes are the header of a database, the first 32 that of a log
            damaged[rng.randrange(100)] ^= 1 << rng.randrange(8)
        case _:
            damaged[at] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def judge(folder: Path, *allowed: State) -> bool:
    """Returns True if the store refused to open. Raises SilentDamage."""
    before = {name: (folder / name).read_bytes() for name in (DATABASE, LOG) if (folder / name).exists()}

    async def look() -> State:
        store = await asyncio.wait_for(open_store(folder), HANG_SECONDS)
        try:
            state = state_of(store)
            await read_history(store)
        finally:
            await store.close()
        return state

    try:
        state = asyncio.run(look())
    except UserError as error:
        if not str(error).startswith(str(folder / DATABASE)) or ";" not in str(error):
            raise SilentDamage(f"no sentence: {error}") from error
        if any((folder / name).read_bytes() != data for name, data in before.items()):
            raise SilentDamage("a store that was refused was changed") from error
        return True
    except Exception as error:
        raise SilentDamage(f"not a sentence: {error!r}") from error
    if state not in allowed:
        raise SilentDamage(f"revision {state.revision} with {len(state.objects)} objects was never there")
    return False


async def read_history(store: Store) -> None:
    for bucket in (CONFIGS, SECRETS):
        watch = store.watch(bucket, since=store.compacted)
        while await watch.next_batch(timeout=0):
            pass
        watch.close()


def prove_database(folder: Path, rng: random.Random, cases: int) -> int:
    """Returns how many damaged databases were refused."""
    state = asyncio.run(make_closed(folder, rng))
    whole = (folder / DATABASE).read_bytes()
    refused = 0
    for _ in range(cases):
        (folder / DATABASE).write_bytes(damage(whole, rng))
        refused += judge(folder, state)
        for file in folder.iterdir():
            file.unlink()
    return refused


def prove_log(folder: Path, rng: random.Random, cases: int) -> int:
    copy = folder / "copy"
    state, before = asyncio.run(make_killed(folder, copy, rng))
    database, log = (copy / DATABASE).read_bytes(), (copy / LOG).read_bytes()
    refused = 0
    for _ in range(cases):
        for file in copy.iterdir():
            file.unlink()
        (copy / DATABASE).write_bytes(database)
        (copy / LOG).write_bytes(flip_in_log(log, rng))
        refused += judge(copy, state, before)
    return refused


def flip_in_log(log: bytes, rng: random.Random) -> bytes:
    """Flip one bit. Truncation is not damage here: a crash may also leave a truncated log."""
    damaged = bytearray(log)
    at = rng.randrange(32) if rng.randrange(4) == 0 else rng.randrange(len(log))
    damaged[at] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def test_damaged_database_is_refused_or_unchanged(
    memory_path: Path, rng: random.Random, size: Callable[..., int]
) -> None:
    cases = size(6_000, test=60)
    refused = prove_database(memory_path, rng, cases)
    assert refused > cases // 2
    print(f"{cases} damaged databases, {refused} refused, the others as they were")


def test_damaged_log_is_refused_or_in_a_state_that_a_crash_leaves(
    memory_path: Path, rng: random.Random, size: Callable[..., int]
) -> None:
    cases = size(3_000, test=40)
    refused = prove_log(memory_path, rng, cases)
    assert refused > cases // 2
    print(f"{cases} damaged logs, {refused} refused, the others as a crash leaves them")


def test_page_damaged_at_runtime_gives_internal_error_and_objects_are_served(memory_path: Path) -> None:
    path = memory_path / DATABASE

    async def scenario() -> None:
        store = await open_store(memory_path)
        for number in range(30):
            await store.put(CONFIGS, "ns", f"k{number}", lambda revision: b'{"data":"%s"}' % (b"x" * 3_000))
        await store.close()
        store = await open_store(memory_path)  # history written before is read from the file
        with path.open("r+b") as file:
            data = file.read().replace(b"x" * 1_000, b"y" * 1_000)
            file.seek(0)
            file.write(data)
        with pytest.raises(ClusterError) as caught:
            await read_history(store)
        assert caught.value.code == 500 and caught.value.reason == "InternalError"
        assert str(path) in str(caught.value) and "is not as it was written" in str(caught.value)
        with pytest.raises(ClusterError, match="is damaged"):
            await store.list_at(CONFIGS, "", 29)
        assert store.count(CONFIGS) == 30
        await store.put(CONFIGS, "ns", "later", lambda revision: b"{}")
        await store.close()

    asyncio.run(scenario())
    with pytest.raises(UserError, match="is not as it was written"):
        asyncio.run(open_store(memory_path))


def test_proof_detects_a_store_without_checksums(
    memory_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    def careless(values: tuple[object, ...]) -> object:
        revision, bucket, namespace, name, *rest, _ = values
        texts = (part.decode() for part in (bucket, namespace, name))  # type: ignore[attr-defined]
        return history_table.HistoryRow(revision, *texts, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(history_table, "_read_checked_row", careless)
    with pytest.raises(SilentDamage):
        prove_database(memory_path, rng, 60)


def test_proof_detects_a_store_that_does_not_check_its_log(
    memory_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "check_wal", lambda path: None)
    with pytest.raises(SilentDamage, match="was never there"):
        prove_log(memory_path, rng, 60)
