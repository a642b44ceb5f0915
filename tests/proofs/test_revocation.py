"""Whatever ends a right ends every stream that is open by it, and no other.

200 streams of five accounts on one server. What ends them is written to the cluster as by kubectl: the server learns of
it from its watch alone.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from argosy.desk.accounts.changing import AccountBook
from argosy.desk.accounts.passwords import Hashing
from argosy.model.names import ResourceKey
from argosy.server.identity.caller import Shown
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL
from support.signed_in_site import PASSWORD, SignedInWorld, signed_in_world

pytestmark = [pytest.mark.anyio, pytest.mark.tier("test", "prove")]
STREAMS = 200
ENDED = ("ann", "bob", "cid", "eve")
SETTINGS = ResourceKey("", "ConfigMap", CONTROL, "argocd-cm")
SECRET = ResourceKey("", "Secret", CONTROL, "argocd-secret")
Ending = Callable[[SignedInWorld, str], Awaitable[object]]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[SignedInWorld]:
    with signed_in_world(tmp_path) as made:
        for name in (*ENDED, "kept"):
            made.run(made.account(name))
        yield made


class Open:
    """One stream, until the server ends it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.ended = asyncio.create_task(self._read(reader))

    async def _read(self, reader: asyncio.StreamReader) -> None:
        while await reader.read(65536):
            pass

    def close(self) -> None:
        self.ended.cancel()
        self._writer.close()


async def opened(world: SignedInWorld, token: str) -> Open:
    reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
    head = f"GET /api/v1/stream/applications HTTP/1.1\r\nHost: 127.0.0.1:{world.port}\r\nAuthorization: Bearer {token}"
    writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode())
    assert b" 200 " in await asyncio.wait_for(reader.readline(), HANG_SECONDS)
    return Open(reader, writer)


async def by_password(world: SignedInWorld, name: str) -> None:
    await AccountBook(world.cluster, CONTROL, hashing=Hashing(4)).set_password(name, "another horse")


async def by_disabling(world: SignedInWorld, name: str) -> None:
    await world.cluster.patch(SETTINGS, {"data": {f"accounts.{name}.enabled": "false"}})


async def by_deleting_the_token(world: SignedInWorld, name: str) -> None:
    await world.cluster.patch(SECRET, {"data": {f"accounts.{name}.tokens": None}})


async def by_removing(world: SignedInWorld, name: str) -> None:
    await world.cluster.patch(SETTINGS, {"data": {f"accounts.{name}": None}})


WAYS: dict[str, Ending] = dict(zip(ENDED, (by_password, by_disabling, by_deleting_the_token, by_removing)))


async def in_loop(world: SignedInWorld, work: Awaitable[object]) -> object:
    async def done() -> object:
        return await work

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(done(), world.loop))


async def test_all_streams_of_whoever_is_ended_end_and_no_other(
    world: SignedInWorld, size: Callable[[int], int]
) -> None:
    each = max(2, size(STREAMS) // (len(ENDED) + 1))
    streams: dict[str, list[Open]] = {}
    for name in (*ENDED, "kept"):
        book = world.identities.book
        token = str(await in_loop(world, book.add_token(name)))
        streams[name] = [await opened(world, token) for _ in range(each)]
    for name, end in WAYS.items():
        await in_loop(world, end(world, name))
        await asyncio.wait_for(asyncio.gather(*(each.ended for each in streams[name])), HANG_SECONDS)
    assert not any(each.ended.done() for each in streams["kept"])
    await in_loop(world, world.cluster.patch(SECRET, {"data": {"server.secretkey": encoded("z" * 44)}}))
    await asyncio.wait_for(asyncio.gather(*(each.ended for each in streams["kept"])), HANG_SECONDS)


async def test_a_session_that_signs_out_takes_its_streams_with_it(world: SignedInWorld) -> None:
    identities = world.identities
    mine, other = [str(await in_loop(world, identities.login("ann", PASSWORD))) for _ in range(2)]
    streams = [await opened(world, token) for token in (mine, mine, other)]
    caller = await in_loop(world, identities.identify(Shown(bearer=mine)))
    await in_loop(world, identities.logout(caller))  # type: ignore[arg-type]
    await asyncio.wait_for(asyncio.gather(*(each.ended for each in streams[:2])), HANG_SECONDS)
    assert not streams[2].ended.done()
    streams[2].close()


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
