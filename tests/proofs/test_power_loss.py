"""Acknowledged writes survive power loss, on a simulated disk.

A VFS records every write, truncation, deletion and sync of the store. An image is a possible disk state after power
loss: everything that was synced, and of the rest nothing, everything, a prefix, any subset, or any subset with torn
sectors. The store opens every image. Some images are written to, followed by a second power loss.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from argosy.errors import UserError
from argosy.sandbox.store import Retention, Store, lost_database_detection, sqlite_journal, sqlite_setup

pytestmark = pytest.mark.tier("test", "prove")

BUCKETS = ("core/configmaps", "core/secrets")
KEY = bytes(range(32))
SECTOR = 512
NAME = "argosy.db"
MODES = ("none", "all", "beginning", "part", "torn")


class Lost(AssertionError):
    """An image without an acknowledged write, or one that cannot be opened."""


class Step(NamedTuple):
    what: str  # write, truncate, delete, sync, sync directory, ack, issue
    file: str = ""
    offset: int = 0  # offset of a write; size of a truncation; revision of an ack or issue
    data: bytes = b""


State = dict[tuple[str, str], int]  # bucket and name → revision


@dataclass
class Recording:
    steps: list[Step] = field(default_factory=list)
    states: dict[int, State] = field(default_factory=lambda: {0: {}})  # after each revision


class RecordedFile(apsw.VFSFile):
    def __init__(self, name: Any, flags: list[int], steps: list[Step]) -> None:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.file, self.steps = Path(path).name if path else "", steps
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        self.steps.append(Step("write", self.file, offset, bytes(data)))
        super().xWrite(data, offset)

    def xTruncate(self, size: int) -> None:
        self.steps.append(Step("truncate", self.file, size))
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self.steps.append(Step("sync", self.file))


class RecordingDisk(apsw.VFS):
    def __init__(self, steps: list[Step]) -> None:
        self.steps = steps
        super().__init__("recording", "unix", makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> RecordedFile:
        return RecordedFile(name, flags, self.steps)

    def xDelete(self, name: str, syncdir: bool) -> None:
        super().xDelete(name, syncdir)
        self.steps.append(Step("delete", Path(name).name, int(syncdir)))


@contextmanager
def recording_disk(steps: list[Step]) -> Iterator[None]:
    disk = RecordingDisk(steps)

    create = lost_database_detection.create_durable_file

    def create_durable_file(file: Path) -> None:
        create(file)
        steps.append(Step("sync directory"))

    with pytest.MonkeyPatch.context() as patch:
        for module in (sqlite_setup, lost_database_detection):  # both sync the directory without SQLite
            patch.setattr(module, "create_durable_file", create_durable_file)
        try:
            yield
        finally:
            disk.unregister()


def open_store(path: Path) -> Any:
    return Store.open(path, key=KEY, encrypted_buckets=frozenset({BUCKETS[1]}), retention=Retention(max_revisions=60))


async def work(
    path: Path, rng: random.Random, recording: Recording, rounds: int, sizes: Sequence[int] = (10, 300, 900, 6000)
) -> None:
    """Write one to twelve entries at a time, with compaction, checkpoints and a restart in between."""
    steps = recording.steps
    store = await open_store(path)
    for turn in range(rounds):
        if turn == rounds // 2:
            await store.close()
            store = await open_store(path)
        commits = []
        for _ in range(rng.choice((1, 1, 2, 5, 12))):
            bucket, name = rng.choice(BUCKETS), f"k{rng.randrange(12)}"
            delete = rng.random() < 0.25 and store.get_latest(bucket, "ns", name) is not None
            filler = b"x" * rng.choice(sizes)
            commit = (store.remove if delete else store.put)(bucket, "ns", name, lambda r: b"%d " % r + filler)  # noqa: B023
            state = dict(recording.states[commit.entry.revision - 1])
            state.pop((bucket, name), None) if delete else state.update({(bucket, name): commit.entry.revision})
            recording.states[commit.entry.revision] = state
            steps.append(Step("issue", offset=commit.entry.revision))
            commits.append(commit)
        for commit in commits:
            entry = await commit
            steps.append(Step("ack", offset=entry.revision))
        if rng.random() < 0.1:
            await store.compact(rng.randint(store.compacted, store.revision))
    await store.close()


@dataclass
class Disk:
    """Synced file contents, and the steps after the last sync."""

    synced: dict[str, bytearray] = field(default_factory=dict)
    pending: list[Step] = field(default_factory=list)
    acked: int = 0
    issued: int = 0

    def take(self, step: Step) -> None:
        if step.what == "ack":
            self.acked = max(self.acked, step.offset)
        elif step.what == "issue":
            self.issued = step.offset
        elif step.what == "sync":
            # Syncing a new file also syncs its directory, and so all earlier deletions.
            with_directory = step.file not in self.synced
            settled = [s for s in self.pending if s.file == step.file or (with_directory and s.what == "delete")]
            self.pending = [s for s in self.pending if s not in settled]
            self.synced.setdefault(step.file, bytearray())
            apply(self.synced, settled)
        elif step.what == "sync directory":
            apply(self.synced, [s for s in self.pending if s.what == "delete"])
            self.pending = [s for s in self.pending if s.what != "delete"]
        else:
            self.pending.append(step)

    def image(self, rng: random.Random, mode: str) -> dict[str, bytearray]:
        chosen = self.pending
        if mode == "none":
            chosen = []
        elif mode == "beginning":
            chosen = chosen[: rng.randint(0, len(chosen))]
        elif mode == "part":
            chosen = [step for step in chosen if rng.random() < 0.5]
        elif mode == "torn":
            chosen = [torn for step in chosen for torn in tear(step, rng)]
        files = {name: bytearray(content) for name, content in self.synced.items()}
        apply(files, chosen)
        return files


def tear(step: Step, rng: random.Random) -> list[Step]:
    """Return a random subset of the sectors of a write."""
    if step.what != "write":
        return [step] if rng.random() < 0.5 else []
    pieces, at = [], 0
    while at < len(step.data):
        end = min(len(step.data), at + SECTOR - (step.offset + at) % SECTOR)
        if rng.random() < 0.6:
            pieces.append(Step("write", step.file, step.offset + at, step.data[at:end]))
        at = end
    return pieces


def apply(files: dict[str, bytearray], steps: list[Step]) -> None:
    for step in steps:
        if step.what == "delete":
            files.pop(step.file, None)
            continue
        content = files.setdefault(step.file, bytearray())
        if step.what == "truncate":
            del content[step.offset :]
            content.extend(bytes(step.offset - len(content)))
        else:
            end = step.offset + len(step.data)
            content.extend(bytes(max(0, end - len(content))))
            content[step.offset : end] = step.data


async def check(path: Path, disk: Disk, states: dict[int, State], description: str) -> None:
    try:
        store = await open_store(path)
    except (UserError, apsw.Error) as error:
        raise Lost(f"{description}: {error}") from error
    try:
        if not disk.acked <= store.revision <= disk.issued:
            raise Lost(f"{description}: revision {store.revision}, acknowledged {disk.acked}, issued {disk.issued}")
        revisions = {(bucket, entry.name): entry.revision for bucket in BUCKETS for entry in store.list(bucket)}
        if revisions != states[store.revision]:
            raise Lost(f"{description}: the state is not that of revision {store.revision}")
        if any(int(entry.body.split()[0]) != entry.revision for bucket in BUCKETS for entry in store.list(bucket)):
            raise Lost(f"{description}: a body of another revision")
    finally:
        await store.close()


def write_image(directory: Path, files: dict[str, bytearray]) -> Path:
    for old in directory.iterdir():
        old.unlink()
    for name, content in files.items():
        if name.startswith(NAME) and not name.endswith("-shm"):
            (directory / name).write_bytes(content)
    return directory / NAME


def prove(directory: Path, rng: random.Random, images: int) -> int:
    """Record a workload and open that many images of it; return how often the main file was synced (checkpoints)."""
    work_path, image_path = directory / "work", directory / "image"
    for path in (work_path, image_path):
        path.mkdir(exist_ok=True)
        for old in path.iterdir():
            old.unlink()
    recording = Recording()
    with recording_disk(recording.steps):
        asyncio.run(work(work_path / NAME, rng, recording, rounds=50))
    moments = sorted(rng.randrange(len(recording.steps)) for _ in range(images))
    disk, done = Disk(synced={NAME: bytearray()}), 0
    for number, moment in enumerate(moments):
        for step in recording.steps[done:moment]:
            disk.take(step)
        done = max(done, moment)
        mode = MODES[number % len(MODES)]
        path = write_image(image_path, disk.image(rng, mode))
        asyncio.run(check(path, disk, recording.states, f"image {number} ({mode}) at step {moment}"))
        if number % 20 == 0 and (answer := apsw.Connection(str(path)).pragma("integrity_check")) != "ok":
            raise Lost(f"image {number} ({mode}) at step {moment}: {answer}")
    return sum(step.what == "sync" and step.file == NAME for step in recording.steps)


def choose_cut(rng: random.Random, steps: list[Step]) -> int:
    """Choose a step, usually just before a sync of the write-ahead log, where a whole transaction may be torn."""
    syncs = [index for index, step in enumerate(steps) if step.what == "sync" and step.file == f"{NAME}-wal"]
    return rng.choice(syncs) if syncs and rng.random() < 0.8 else rng.randrange(len(steps))


def prove_second_cut(directory: Path, rng: random.Random, pairs: int) -> None:
    """Cut the power, let the store write to the resulting image, cut the power again, and open the result."""
    work_path, image_path = directory / "work", directory / "image"
    for path in (work_path, image_path):
        path.mkdir(exist_ok=True)
    write_image(work_path, {})
    first = Recording()
    with recording_disk(first.steps):
        asyncio.run(work(work_path / NAME, rng, first, rounds=12))
    for number in range(pairs):
        moment = choose_cut(rng, first.steps)
        disk = Disk(synced={NAME: bytearray()})
        for step in first.steps[:moment]:
            disk.take(step)
        files = disk.image(rng, MODES[number % len(MODES)])
        path = write_image(image_path, files)
        second = Recording(states=dict(first.states))
        with recording_disk(second.steps):
            asyncio.run(work(path, rng, second, rounds=4, sizes=(10, 300)))
        disk = Disk(synced=files, acked=disk.acked, issued=disk.issued)
        moment_2 = choose_cut(rng, second.steps)
        for step in second.steps[:moment_2]:
            disk.take(step)
        path = write_image(image_path, disk.image(rng, rng.choice(MODES)))
        description = f"pair {number}, first cut at step {moment}, second at step {moment_2}"
        asyncio.run(check(path, disk, second.states, description))


@pytest.fixture(autouse=True)
def much_housekeeping(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_journal, "PAGES_PER_CHECKPOINT", 25)
    monkeypatch.setattr(sqlite_journal, "PAGES_PER_VACUUM", 4)
    monkeypatch.setattr(sqlite_journal, "REVISIONS_PER_COMPACTION", 30)


def test_no_acknowledged_write_is_lost_by_power_loss(
    memory_path: Path, rng: random.Random, size: Callable[[int], int]
) -> None:
    images, done, checkpoints = size(10_000), 0, 0
    while done < images:
        checkpoints += prove(memory_path, rng, min(500, images - done))
        done += min(500, images - done)
    print(f"{done} images, {checkpoints} checkpoints, none lost, none corrupt")
    assert checkpoints >= done / 100, "too little housekeeping for a proof"


def test_second_power_loss_loses_nothing_and_the_store_still_opens(
    memory_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch, size: Callable[..., int]
) -> None:
    monkeypatch.setattr(sqlite_journal, "PAGES_PER_CHECKPOINT", 200)  # torn transactions stay in the log
    pairs, done = size(3_000, test=60), 0
    while done < pairs:
        prove_second_cut(memory_path, rng, min(60, pairs - done))
        done += min(60, pairs - done)
    print(f"{done} pairs of power cuts, none lost, none called damaged")


@pytest.mark.parametrize(("setting", "value"), [("NORMAL", 1), ("OFF", 0)])
def test_proof_detects_a_weaker_synchronous_setting(
    memory_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch, setting: str, value: int
) -> None:
    monkeypatch.setitem(sqlite_setup.PRAGMAS, "synchronous", (setting, value))
    with pytest.raises(Lost):
        prove(memory_path, rng, 300)
