"""gRPC over HTTP/2 on a real socket: the same routes, permissions and statuses as over gRPC-Web."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from argosy.web.middleware.grpc_gateway import MAX_ANONYMOUS_BODY_BYTES
from argosy.web.route import MAX_BODY_BYTES
from support.deadlines import HANG_SECONDS
from support.grpc_native import NativeClient, ask_native, call_native
from support.grpc_web import Reply, call, encode_request, frame
from support.grpc_world import APPS, PROJECTS, grpc_world
from support.rest_api import World

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with grpc_world(tmp_path_factory, "one", "two") as opened:
        yield opened


async def ask(world: World, who: str, method: str, *documents: Any, **headers: str) -> Reply:
    return await asyncio.to_thread(ask_native, world.client.port, who, method, documents or ({},), **headers)


async def ask_raw(world: World, method: str, body: bytes, **headers: str) -> Reply:
    sent = {name.replace("_", "-"): text for name, text in headers.items()}
    return await asyncio.to_thread(call_native, world.client.port, method, body, sent)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not holds():
            await asyncio.sleep(0.01)


async def test_a_call_has_the_same_answer_as_over_grpc_web(world: World) -> None:
    for who, method, document in (
        ("ann", f"{APPS}/List", {}),
        ("ann", f"{APPS}/Get", {"name": "one"}),
        ("ann", f"{APPS}/Get", {"name": "three"}),
        ("bob", f"{APPS}/Get", {"name": "one"}),
        ("dan", f"{PROJECTS}/Create", {"project": {"metadata": {"name": "mine"}}}),
        ("", f"{APPS}/List", {}),
        ("eve", f"{APPS}/List", {}),
        ("", "/version.VersionService/Version", {}),
        ("ann", f"{PROJECTS}/Get", {}),
    ):
        native = await ask(world, who, method, document)
        web = await asyncio.to_thread(call, world.client, who, method, document)
        assert (native.status, native.message, native.messages) == (web.status, web.message, web.messages), method
        assert native.http_code == 200


async def test_a_project_is_created_and_deleted_on_one_connection(world: World) -> None:
    def talk() -> list[int]:
        with NativeClient(world.client.port) as client:
            replies = []
            for method, document in (
                ("Create", {"project": {"metadata": {"name": "ml"}, "spec": {"sourceRepos": ["*"]}}}),
                ("Get", {"name": "ml"}), ("Delete", {"name": "ml"}), ("Get", {"name": "ml"}),
            ):  # fmt: skip
                path = f"{PROJECTS}/{method}"
                stream = client.begin(path, {"token": "ann"})
                client.send(stream, frame(encode_request(path, document)), is_last=True)
                replies.append(client.read(stream, path).status)
            return replies

    assert (await asyncio.to_thread(talk))[:3] == [0, 0, 0]


async def test_unknown_methods_and_media_are_unimplemented(world: World) -> None:
    for method, headers in (
        ("/other.Service/Get", {}), (f"{APPS}/Other", {}), (f"{APPS}/List", {"content_type": "application/grpc+json"}),
    ):  # fmt: skip
        assert (await ask_raw(world, method, frame(b""), token="ann", **headers)).status == 12


async def test_grpc_web_is_accepted_over_http_2(world: World) -> None:
    def talk() -> bytes:
        with NativeClient(world.client.port) as client:
            stream = client.begin("/version.VersionService/Version", {"content-type": "application/grpc-web+proto"})
            client.send(stream, frame(b""), is_last=True)
            with pytest.raises(AssertionError):  # its status is no trailer
                client.read(stream, "")
        return b""

    await asyncio.to_thread(talk)


async def test_a_malformed_message_and_two_messages_are_internal_errors(world: World) -> None:
    for body in (frame(b"\xff"), frame(b"") * 2, b"", b"\0\0\0\0\5x", frame(b"", 1)):
        assert (await ask_raw(world, f"{APPS}/List", body, token="ann")).status == 13, body


async def test_a_body_that_is_too_large_is_refused(world: World) -> None:
    large = await ask_raw(world, f"{APPS}/Create", frame(b"x" * (MAX_BODY_BYTES + 1)), token="ann")
    assert large.status == 8
    login = await ask_raw(world, "/session.SessionService/Create", frame(b"x" * (MAX_ANONYMOUS_BODY_BYTES + 1)))
    assert login.status == 16


async def test_a_deadline_ends_a_stream(world: World) -> None:
    reply = await ask(world, "ann", f"{APPS}/Watch", {}, grpc_timeout="300m")
    assert (reply.status, reply.message) == (4, "context deadline exceeded")
    assert {document["application"]["metadata"]["name"] for document in reply.documents()} == {"one", "two"}


async def test_a_watch_ends_when_its_client_resets_it(world: World) -> None:
    limits = world.site.state.concurrency_limits
    before = limits.streams

    def watch_and_reset() -> NativeClient:
        client = NativeClient(world.client.port)
        stream = client.begin(f"{APPS}/Watch", {"token": "ann"})
        client.send(stream, frame(b""), is_last=True)
        client._receive()
        client.h2.reset_stream(stream, 8)
        client.flush()
        return client

    client = await asyncio.to_thread(watch_and_reset)
    with client:
        await until(lambda: limits.streams == before)


# What browsers could send


async def test_a_cookie_is_not_trusted_from_another_origin(world: World) -> None:
    method, body = (
        f"{PROJECTS}/Create",
        frame(encode_request(f"{PROJECTS}/Create", {"project": {"metadata": {"name": "x"}}})),
    )
    own = f"http://127.0.0.1:{world.client.port}"
    for headers in ({"origin": "https://evil.example.com"}, {"origin": "null"}, {}, {"sec_fetch_site": "cross-site"}):
        reply = await ask_raw(world, method, body, cookie="argosy=ann", **headers)
        assert reply.status == 7, headers
    listed = await ask_raw(world, f"{APPS}/List", frame(b""), cookie="argosy=ann", origin=own)
    assert listed.status == 0
    foreign = await ask_raw(world, f"{APPS}/List", frame(b""), cookie="argosy=ann", origin="https://evil.example.com")
    assert foreign.status == 7


async def test_an_unknown_host_is_refused(world: World) -> None:
    reply = await ask_raw(world, f"{APPS}/List", frame(b""), token="ann", host="evil.example.com")
    assert reply.status != 0
    assert "unknown Host header" in reply.message


async def test_too_many_headers_are_refused(world: World) -> None:
    many = {f"x_{number}": "y" for number in range(200)}
    assert (await ask_raw(world, f"{APPS}/List", frame(b""), token="ann", **many)).status != 0
