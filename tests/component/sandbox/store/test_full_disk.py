"""A full disk: the store refuses writes with a message, serves reads, and accepts writes again once there is space."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from argosy.errors import StorageFull, UserError
from argosy.kube.client.private_file_writer import write_private
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.control_plane import ControlPlane, ControlPlaneFiles
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.store import Store, sqlite_journal
from support.api_client import TOKEN, Api
from support.deadlines import wait_until_async
from support.small_disk import fill_disk, mounted_disk

BUCKET = "configmaps"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted_disk(tmp_path / "disk") as folder:
        yield folder


@pytest.fixture(autouse=True)
def quick_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_journal, "DISK_PROBE_INTERVAL_SECONDS", 0.02)


def body(revision: int) -> bytes:
    return b'{"rev":%d,"data":"%s"}' % (revision, b"x" * 20_000)


async def write_until_full(store: Store) -> tuple[int, str]:
    for number in range(1_000):
        try:
            await store.put(BUCKET, "ns", f"k{number}", body)
        except StorageFull as error:
            return number, str(error)
    raise AssertionError("the disk was never full")


def test_store_is_read_only_while_the_disk_is_full(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = small_disk / "argosy.db"
    ended: list[str] = []

    async def scenario() -> int:
        store = await Store.open(path, on_fatal_error=ended.append)
        watch = store.watch(BUCKET, since=0)
        ballast = fill_disk(small_disk)
        written, message = await write_until_full(store)
        assert f"the disk that holds {path} is full" in message and "reads go on" in message
        assert store.read_only_reason == message
        for _ in range(5):
            with pytest.raises(StorageFull, match="is full"):
                await store.put(BUCKET, "ns", "more", body)
        assert store.count(BUCKET) == written == store.revision and store.get_latest(BUCKET, "ns", "more") is None
        event_count = 0
        while event_count < written:
            event_count += len(await watch.next_batch(timeout=0))
        ballast.unlink()
        await wait_until_async(lambda: not store.read_only_reason, "there is space again")
        entry = await store.put(BUCKET, "ns", "after", lambda revision: b"{}")
        assert entry.revision == written + 1
        assert [event.name for event in await watch.next_batch()] == ["after"]
        assert await store.matches_disk()
        await store.close()
        return written

    with caplog.at_level(logging.INFO):
        written = asyncio.run(scenario())
    assert not ended
    levels = [record.levelname for record in caplog.records if "store" in record.getMessage()]
    assert levels == ["ERROR", "WARNING"], caplog.text

    async def count() -> int:
        store = await Store.open(path)
        total = store.count(BUCKET)
        await store.close()
        return total

    assert asyncio.run(count()) == written + 1


def test_failed_write_leaves_no_frames_in_the_write_ahead_log(small_disk: Path) -> None:
    """If a power loss tears a later transaction, such frames after it would look like damage."""
    log = small_disk / "argosy.db-wal"

    async def scenario() -> None:
        store = await Store.open(small_disk / "argosy.db")
        await store.put(BUCKET, "ns", "kept", body)
        ballast = fill_disk(small_disk)
        await write_until_full(store)
        assert log.stat().st_size > 0
        ballast.unlink()
        await wait_until_async(lambda: not store.read_only_reason, "there is space again")
        assert log.stat().st_size == 0
        await store.close()

    asyncio.run(scenario())


def test_acknowledged_writes_survive_a_stop_with_a_full_disk(small_disk: Path) -> None:
    path = small_disk / "argosy.db"

    async def fill() -> int:
        store = await Store.open(path)
        fill_disk(small_disk)
        written, _ = await write_until_full(store)
        await store.close()
        return written

    async def count() -> int:
        store = await Store.open(path)
        total = store.count(BUCKET)
        await store.close()
        return total

    written = asyncio.run(fill())
    (small_disk / "ballast").unlink()
    assert asyncio.run(count()) == written


def test_open_on_a_full_disk_is_an_error_that_names_the_file(small_disk: Path) -> None:
    path = small_disk / "argosy.db"

    async def open_and_close() -> None:
        store = await Store.open(path)
        await store.put(BUCKET, "ns", "a", body)
        await store.close()

    asyncio.run(open_and_close())
    ballast = fill_disk(small_disk)
    with pytest.raises(UserError, match="the disk that holds it is full; free some space, then start again") as caught:
        asyncio.run(open_and_close())
    assert caught.value.where == str(path)
    ballast.unlink()
    asyncio.run(open_and_close())


def test_key_write_on_a_full_disk_is_an_error_that_names_the_file(small_disk: Path) -> None:
    ballast = fill_disk(small_disk)
    with pytest.raises(UserError, match="cannot be written, because the disk is full") as caught:
        write_private(small_disk / "secret.key", bytes(100_000))
    assert caught.value.where == str(small_disk / "secret.key")
    assert [file.name for file in small_disk.iterdir()] == ["ballast"]
    ballast.unlink()
    write_private(small_disk / "secret.key", bytes(32))


def service(number: int) -> Manifest:
    metadata = {"name": f"s{number}", "namespace": "default", "annotations": {"x": "x" * 20_000}}
    spec = {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_000 + number}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


SERVICES = "/api/v1/namespaces/default/services"


@pytest.mark.anyio
async def test_api_server_on_a_full_disk_returns_507_and_is_live_but_not_ready(small_disk: Path) -> None:
    folder = ControlPlaneFiles(small_disk / "argosy.db", small_disk / "secret.key", small_disk / "token.key")
    async with ControlPlane.open(folder, admin_token=TOKEN) as plane:
        api = Api(plane)
        assert (await api.post(SERVICES, service(0))).code == 201
        ballast = fill_disk(small_disk)
        number = 1
        while (answer := await api.post(SERVICES, service(number))).code == 201:
            number += 1
        assert answer.code == 507 and answer.json["reason"] == "InsufficientStorage"
        assert answer.json["kind"] == "Status" and "is full" in answer.message and "free some space" in answer.message
        assert (await api.get(f"{SERVICES}/s0")).code == 200
        assert len((await api.get(SERVICES)).json["items"]) >= number
        assert (await api.get("/livez")).code == 200 and (await api.get("/healthz")).code == 200
        ready = await api.get("/readyz")
        assert ready.code == 500 and b"[-]store failed: the disk that holds" in ready.body
        with pytest.raises(StorageFull):
            await EmbeddedCluster(plane).create(service(number + 1))
        ballast.unlink()
        await wait_until_async(lambda: not plane.store.read_only_reason, "there is space again")
        assert (await api.get("/readyz")).code == 200
        assert (await api.post(SERVICES, service(number))).code == 201, "its port is taken by a write that failed"
