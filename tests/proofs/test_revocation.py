"""Revoking access ends every stream opened with it, and no other stream.

200 streams of five accounts on one server. The revocation is written to the cluster as if by kubectl: the server learns
of it only from its watch.
"""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from argosy.kube.resource_key import ResourceKey
from argosy.web.auth.account_password_token_store import AccountStore
from argosy.web.auth.authenticator import Authenticator
from argosy.web.auth.caller import Caller, RequestCredentials
from argosy.web.auth.passwords import PasswordHasher
from argosy.web.auth.session_revocation import SessionRevocations
from argosy.web.middleware import stream_redaction_and_reauthorization as streams_of_server
from support.deadlines import HANG_SECONDS, wait_until_async
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
    with signed_in_world(tmp_path) as opened_world:
        for name in (*ENDED, "kept"):
            opened_world.run(opened_world.account(name))
        yield opened_world


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
    await AccountStore(world.cluster, CONTROL, hashing=PasswordHasher(4)).set_password(name, "another horse")


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


async def opened_by_token(world: SignedInWorld, name: str, count: int) -> list[Open]:
    token = str(await in_loop(world, world.identities.account_store.add_token(name)))
    return [await opened(world, token) for _ in range(count)]


async def check_ended(streams: list[Open], seconds: float = HANG_SECONDS) -> None:
    _, still_open = await asyncio.wait([stream.ended for stream in streams], timeout=seconds)
    assert not still_open, f"{len(still_open)} of {len(streams)} streams are still open"


async def test_revoking_an_account_ends_all_its_streams_and_no_others(
    world: SignedInWorld, size: Callable[[int], int]
) -> None:
    count = max(2, size(STREAMS) // (len(ENDED) + 1))
    streams = {name: await opened_by_token(world, name, count) for name in (*ENDED, "kept")}
    for name, end in WAYS.items():
        await in_loop(world, end(world, name))
        await check_ended(streams[name])
    assert not any(stream.ended.done() for stream in streams["kept"])
    await in_loop(world, world.cluster.patch(SECRET, {"data": {"server.secretkey": encoded("z" * 44)}}))
    await check_ended(streams["kept"])


@pytest.mark.tier("all", "prove")
async def test_logout_ends_the_streams_of_that_session_only(world: SignedInWorld) -> None:
    identities = world.identities
    own_token, other = [str(await in_loop(world, identities.login("ann", PASSWORD))) for _ in range(2)]
    streams = [await opened(world, token) for token in (own_token, own_token, other)]
    caller = await in_loop(world, identities.identify(RequestCredentials(bearer=own_token)))
    await in_loop(world, identities.logout(caller))  # type: ignore[arg-type]
    await check_ended(streams[:2])
    assert not streams[2].ended.done()
    streams[2].close()


@pytest.mark.tier("all", "prove")
async def test_proof_detects_a_server_that_checks_only_token_expiry(
    world: SignedInWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the bug, streams stay open after every kind of revocation. After the bug is removed, they end."""
    check_counts = Counter[str]()

    def still(self: Authenticator, caller: Caller) -> bool:
        check_counts[caller.name] += 1
        return not self.is_expired(caller)

    monkeypatch.setattr(streams_of_server, "PERMISSION_CHECK_SECONDS", 0.05)
    streams = {name: await opened_by_token(world, name, 1) for name in ENDED}
    with monkeypatch.context() as broken:
        broken.setattr(Authenticator, "is_still_valid", still)
        for name, end in WAYS.items():
            await in_loop(world, end(world, name))
            check_counts.clear()
            await wait_until_async(lambda name=name: check_counts[name] > 2, f"it is looked whether {name} still may")
            with pytest.raises(AssertionError, match="1 of 1 streams are still open"):
                await check_ended(streams[name], seconds=0.1)
    for name in ENDED:
        await check_ended(streams[name])


@pytest.mark.tier("all", "prove")
async def test_proof_detects_a_server_that_ignores_revoked_sessions(
    world: SignedInWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked_sessions: list[str] = []

    def is_over(self: SessionRevocations, session: str, began: int, revoked: object) -> bool:
        checked_sessions.append(session)
        return False

    monkeypatch.setattr(streams_of_server, "PERMISSION_CHECK_SECONDS", 0.05)
    identities = world.identities
    token = str(await in_loop(world, identities.login("ann", PASSWORD)))
    stream = await opened(world, token)
    with monkeypatch.context() as broken:
        broken.setattr(SessionRevocations, "is_revoked", is_over)
        caller = await in_loop(world, identities.identify(RequestCredentials(bearer=token)))
        await in_loop(world, identities.logout(caller))  # type: ignore[arg-type]
        checked_sessions.clear()
        await wait_until_async(lambda: len(checked_sessions) > 2, "it is looked whether the session was ended")
        with pytest.raises(AssertionError, match="1 of 1 streams are still open"):
            await check_ended([stream], seconds=0.1)
    await check_ended([stream])


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
