"""HTTP/2 connections in memory: requests become ASGI requests, within limits, whatever a client sends."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from h2.errors import ErrorCodes
from h2.settings import SettingCodes
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.features.serve.http2 import connection, frame_budget
from argosy.features.serve.http2.preface import PREFACE
from argosy.features.serve.http2.stream import STALLED_STREAM_SECONDS
from argosy.web.middleware.request_head import is_client_gone
from support.http2 import (
    GRPC_HEADERS,
    ConnectionTerminated,
    DataReceived,
    MemoryClient,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from support.loop_clock import LoopClock, turns

pytestmark = pytest.mark.anyio
START = {"type": "http.response.start", "status": 200, "headers": [(b"Content-Type", b"application/grpc")]}


async def echo(scope: Any, receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]) -> None:
    """Answer with the body of the request, and with trailers."""
    await send({**START, "trailers": True})
    while (event := await receive())["type"] == "http.request":
        await send({"type": "http.response.body", "body": event["body"], "more_body": event["more_body"]})
        if not event["more_body"]:
            await send({"type": "http.response.trailers", "headers": [(b"grpc-status", b"0")]})


class Waiting:
    """An application that waits until it is cancelled or let go; it counts both."""

    def __init__(self) -> None:
        self.begun = self.cancelled = 0
        self.gone: list[bool] = []
        self.go = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.begun += 1
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            self.gone.append(is_client_gone(scope))
            raise
        await send(START)
        await send({"type": "http.response.body", "body": b""})


async def until(condition: Callable[[], bool], client: MemoryClient) -> None:
    async with asyncio.timeout(120):
        while not condition():
            await asyncio.sleep(0)
            client.read()


# Requests


async def test_a_request_is_answered_with_headers_data_and_trailers() -> None:
    client = MemoryClient(echo)
    stream = client.request(b"hello")
    await client.until(StreamEnded, stream)
    assert (client.status(stream), client.body(stream)) == ("200", b"hello")
    assert client.list(TrailersReceived, stream)[0].headers == [("grpc-status", "0")]
    assert not client.list(StreamReset)


async def test_a_scope_has_the_request_and_the_addresses_of_the_connection() -> None:
    scopes = []

    async def keep(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope)
        await send(START)
        await send({"type": "http.response.body", "body": b""})

    client = MemoryClient(keep)
    headers = [*GRPC_HEADERS[:3], (":path", "/a%20b?x=1"), *GRPC_HEADERS[4:], ("cookie", "a=1"), ("cookie", "b=2")]
    stream = client.request(b"", headers)
    await client.until(ResponseReceived, stream)
    (scope,) = scopes
    assert (scope["method"], scope["path"], scope["raw_path"]) == ("POST", "/a b", b"/a%20b")
    assert (scope["query_string"], scope["http_version"], scope["client"]) == (b"x=1", "2", ("10.0.0.9", 4711))
    assert (b"host", b"127.0.0.1") in scope["headers"]
    assert [value for name, value in scope["headers"] if name == b"cookie"] == [b"a=1; b=2"]


async def test_a_response_without_a_body_is_one_frame() -> None:
    async def refuse(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        await send({"type": "http.response.body", "body": b""})

    client = MemoryClient(refuse)
    stream = client.request(b"unread")
    await client.until(StreamEnded, stream)
    assert not client.list(DataReceived)
    assert client.list(ResponseReceived)[0].stream_ended


async def test_a_client_stream_is_read_while_it_is_sent() -> None:
    client = MemoryClient(echo)
    stream = client.request(None)
    for part in (b"one", b"two"):
        client.h2.send_data(stream, part)
        client.flush()
        await until(lambda part=part: client.body(stream).endswith(part), client)  # type: ignore[misc]
    client.h2.end_stream(stream)
    client.flush()
    await client.until(StreamEnded, stream)
    assert client.body(stream) == b"onetwo"


async def test_requests_that_are_not_grpc_get_505() -> None:
    client = MemoryClient(echo)
    for changes in ({":method": "GET"}, {"content-type": "application/json"}):
        headers = [(name, changes.get(name, value)) for name, value in GRPC_HEADERS]
        stream = client.request(b"", headers)
        await client.until(StreamEnded, stream)
        assert client.status(stream) == "505"
        assert b"use HTTP/1.1" in client.body(stream)


async def test_an_invalid_path_gets_400() -> None:
    client = MemoryClient(echo)
    stream = client.request(b"", [(name, "*" if name == ":path" else value) for name, value in GRPC_HEADERS])
    await client.until(StreamEnded, stream)
    assert client.status(stream) == "400"


async def test_an_application_that_fails_resets_its_request_only(caplog: pytest.LogCaptureFixture) -> None:
    async def fail(scope: Any, receive: Any, send: Any) -> None:
        raise ValueError("of ours")

    client = MemoryClient(fail)
    stream = client.request()
    assert (await client.until(StreamReset, stream)).error_code == ErrorCodes.INTERNAL_ERROR
    assert "HTTP/2 request failed" in caplog.text
    assert not client.transport.is_closed


# Flow control


async def test_a_response_waits_for_room_and_is_reset_if_there_is_none() -> None:
    async def send_much(scope: Any, receive: Any, send: Any) -> None:
        await send(START)
        await send({"type": "http.response.body", "body": b"x" * 1_000_000})

    client = MemoryClient(send_much)
    stream = client.request()
    await client.until(StreamEnded, stream)
    assert len(client.body(stream)) == 1_000_000
    clock = LoopClock()
    stalled = MemoryClient(send_much, acknowledges=False)
    stream = stalled.request()
    await until(lambda: len(stalled.body(stream)) == 65_535, stalled)
    clock.leap(STALLED_STREAM_SECONDS + 1)
    assert (await stalled.until(StreamReset, stream)).error_code == ErrorCodes.INTERNAL_ERROR


async def test_a_paused_transport_is_neither_written_to_nor_read() -> None:
    go = asyncio.Event()

    async def send_later(scope: Any, receive: Any, send: Any) -> None:
        await go.wait()
        await send(START)
        await send({"type": "http.response.body", "body": b"x" * 100})

    client = MemoryClient(send_later)
    stream = client.request()
    await turns()
    client.server.pause_writing()
    assert client.transport.is_reading_paused
    go.set()
    await turns()
    client.read()
    assert client.body(stream) == b""
    client.server.resume_writing()
    await client.until(StreamEnded, stream)
    assert (client.body(stream), client.transport.is_reading_paused) == (b"x" * 100, False)


async def test_data_that_is_not_read_fills_the_window_only() -> None:
    client = MemoryClient(Waiting())
    stream = client.request(None)
    client.read()
    sent = 0
    while room := min(client.h2.local_flow_control_window(stream), 16_384):
        client.h2.send_data(stream, b"x" * room)
        client.flush()
        client.read()
        sent += room
    assert sent == connection.STREAM_WINDOW_BYTES


# Clients that go


async def test_a_reset_cancels_the_request_and_gives_its_room_back() -> None:
    application = Waiting()
    client = MemoryClient(application)
    client.read()
    for _ in range(20):
        stream = client.request(None)
        client.h2.send_data(stream, b"x" * 16_384)
        client.h2.send_data(stream, b"x" * 16_384)
        client.flush()
        await turns()
        client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        client.flush()
        await until(lambda: not client.tasks, client)
    assert (application.cancelled, all(application.gone)) == (application.begun, True)
    client.read()
    assert client.h2.outbound_flow_control_window > connection.CONNECTION_WINDOW_BYTES // 2


async def test_a_request_that_is_reset_with_its_first_bytes_leaves_no_trace() -> None:
    client = MemoryClient(echo)
    for headers in (GRPC_HEADERS, [(name, value.replace("POST", "GET")) for name, value in GRPC_HEADERS]):
        stream = client.request(None, headers, flush=False)
        client.h2.send_data(stream, b"x" * 1000)
        client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        client.flush()
        await until(lambda: not client.tasks, client)
    stream = client.request(b"fine")
    await client.until(StreamEnded, stream)
    assert client.body(stream) == b"fine"


async def test_a_lost_connection_cancels_its_requests() -> None:
    application = Waiting()
    client = MemoryClient(application)
    for _ in range(3):
        client.request(None)
    await turns()
    client.server.lose()
    await until(lambda: not client.tasks, client)
    assert application.cancelled == 3


# The end of the server


async def test_a_stopping_server_ends_its_requests_and_accepts_no_others() -> None:
    application = Waiting()
    client = MemoryClient(application)
    first = client.request()
    await turns()
    client.server.shut_down()
    application.go.set()
    # a request that was under way; h2 itself would send none after the GOAWAY
    late = client.h2.get_next_available_stream_id()
    client.h2.send_headers(late, GRPC_HEADERS, end_stream=True)
    client.flush()
    frames = split(bytes(client.transport.written))
    assert (3, late, struct.pack(">I", ErrorCodes.REFUSED_STREAM)) in frames
    assert (7, 0, struct.pack(">II", first, ErrorCodes.NO_ERROR)) in frames
    client.transport.written.clear()
    await until_closed(client)
    frames = split(bytes(client.transport.written))
    assert [(kind, stream) for kind, stream, _ in frames] == [(1, first)]
    assert application.begun == 1


async def until_closed(client: MemoryClient) -> None:
    async with asyncio.timeout(120):
        while not client.transport.is_closed:
            await asyncio.sleep(0)


def split(data: bytes) -> list[tuple[int, int, bytes]]:
    """Split frames into kind, stream and payload."""
    frames = []
    while data:
        size, kind, stream = int.from_bytes(data[:3]), data[3], int.from_bytes(data[5:9])
        frames.append((kind, stream, data[9 : 9 + size]))
        data = data[9 + size :]
    return frames


async def test_an_idle_server_closes_at_once() -> None:
    client = MemoryClient(echo)
    client.flush()
    client.server.shut_down()
    assert client.transport.is_closed


async def test_a_client_gets_another_connection_after_many_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MAX_REQUESTS_PER_CONNECTION", 2)
    client = MemoryClient(echo)
    streams = [client.request(b"a", flush=False), client.request(b"b", flush=False)]
    client.flush()
    await until_closed(client)
    frames = split(bytes(client.transport.written))
    assert (7, 0, struct.pack(">II", streams[-1], ErrorCodes.NO_ERROR)) in frames
    assert {stream for kind, stream, _ in frames if kind == 0} == set(streams)


# Floods


def frame(kind: int, payload: bytes = b"", stream: int = 0, flags: int = 0) -> bytes:
    return len(payload).to_bytes(3) + struct.pack(">BBI", kind, flags, stream) + payload


FLOODS = {
    "settings": frame(4), "pings": frame(6, b"12345678"), "window updates": frame(8, b"\0\0\0\1"),
    "priorities": frame(2, b"\0\0\0\0\1", 5), "unknown frames": frame(99, b"x"), "empty data": frame(0, b"", 1),
}  # fmt: skip


@pytest.mark.parametrize("name", FLOODS)
async def test_frames_without_use_end_the_connection(name: str) -> None:
    client = MemoryClient(Waiting())
    client.request(None)
    client.read()
    for _ in range(frame_budget.MAX_IDLE_FRAMES // 50 + 20):
        if not client.transport.is_closed:
            client.server.receive(FLOODS[name] * 50)
    client.read()
    assert client.transport.is_closed
    assert client.list(ConnectionTerminated)[0].error_code == ErrorCodes.ENHANCE_YOUR_CALM


async def test_a_rapid_reset_ends_the_connection() -> None:
    application = Waiting()
    client = MemoryClient(application)
    while not client.transport.is_closed:
        for _ in range(10):
            stream = client.request(None, flush=False)
            client.h2.reset_stream(stream, ErrorCodes.CANCEL)
        client.flush()
    assert client.h2.get_next_available_stream_id() < 500
    client.read()
    assert client.list(ConnectionTerminated)[0].error_code == ErrorCodes.ENHANCE_YOUR_CALM
    client.server.lose()
    await until(lambda: not client.tasks, client)


async def test_endless_requests_that_are_not_grpc_end_the_connection() -> None:
    client = MemoryClient(echo)
    headers = [(name, value.replace("POST", "GET")) for name, value in GRPC_HEADERS]
    while not client.transport.is_closed:
        for _ in range(20):
            client.request(b"", headers, flush=False)
        client.flush()
        client.read()
    assert len(client.list(ResponseReceived)) < 1000
    assert client.list(ConnectionTerminated)[0].error_code == ErrorCodes.ENHANCE_YOUR_CALM


async def test_endless_continuations_end_the_connection() -> None:
    client = MemoryClient(echo)
    client.flush()
    client.server.receive(frame(1, b"", 1))
    for _ in range(100):
        client.server.receive(frame(9, b"", 1))
    assert client.transport.is_closed


async def test_a_header_that_grows_when_it_is_decompressed_ends_the_connection() -> None:
    client = MemoryClient(echo)
    client.h2.remote_settings[SettingCodes.MAX_HEADER_LIST_SIZE] = 10 << 20
    headers = [*GRPC_HEADERS, *((f"x-{number}", "y" * 1000) for number in range(100))]
    client.request(b"", headers)
    assert client.transport.is_closed


async def test_requests_whose_work_goes_on_count_after_their_reset() -> None:
    async def never_end(scope: Any, receive: Any, send: Any) -> None:
        while not done.is_set():
            try:
                await done.wait()
            except asyncio.CancelledError:
                continue

    done = asyncio.Event()
    client = MemoryClient(never_end)
    for _ in range(60):
        client.request(None)
    await turns()
    for stream in range(1, 120, 2):
        client.h2.reset_stream(stream, ErrorCodes.CANCEL)
    client.flush()
    others = [client.request(None) for _ in range(41)]
    client.read()
    assert [event.stream_id for event in client.list(StreamReset)] == others[-1:]
    assert client.list(StreamReset)[0].error_code == ErrorCodes.REFUSED_STREAM
    done.set()
    await until(lambda: not client.tasks, client)


# Time


async def test_a_client_that_sends_no_settings_is_disconnected() -> None:
    clock = LoopClock()
    client = MemoryClient(echo)
    client.server.receive(PREFACE)
    clock.leap(connection.HANDSHAKE_SECONDS + connection.CHECK_SECONDS)
    await until_closed(client)


async def test_a_header_that_is_never_complete_is_not_waited_for() -> None:
    clock = LoopClock()
    client = MemoryClient(Waiting())
    client.request(None)
    client.server.receive(frame(1, b"", 3))
    clock.leap(connection.HEADER_SECONDS + connection.CHECK_SECONDS)
    await until_closed(client)


async def test_an_idle_connection_is_closed() -> None:
    clock = LoopClock()
    client = MemoryClient(echo)
    stream = client.request(b"")
    await client.until(StreamEnded, stream)
    await turns()
    clock.leap(connection.IDLE_SECONDS + connection.CHECK_SECONDS)
    await until_closed(client)
    client.read()
    assert client.list(ConnectionTerminated)[0].error_code == ErrorCodes.NO_ERROR


@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_connection_without_a_request_is_closed_sooner(is_refused: bool) -> None:
    clock = LoopClock()
    client = MemoryClient(echo)
    if is_refused:
        client.request(b"", [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")])
    client.flush()
    await turns()
    clock.leap(connection.HEADER_SECONDS + connection.CHECK_SECONDS)
    await until_closed(client)
    client.read()
    assert client.list(ConnectionTerminated)[0].error_code == ErrorCodes.NO_ERROR


async def test_a_silent_client_must_answer_a_ping() -> None:
    clock = LoopClock()
    client = MemoryClient(Waiting())
    client.request(None)
    client.read()
    clock.leap(connection.SILENCE_SECONDS + connection.CHECK_SECONDS)
    async with asyncio.timeout(120):
        while not client.transport.written:
            await asyncio.sleep(0)
    client.read()  # which answers the PING
    clock.leap(connection.PING_SECONDS + connection.CHECK_SECONDS)
    await turns()
    assert not client.transport.is_closed
    clock.leap(connection.SILENCE_SECONDS + connection.CHECK_SECONDS)
    await turns()
    clock.leap(connection.PING_SECONDS + connection.CHECK_SECONDS)
    await until_closed(client)


# Anything


@settings(deadline=None)
@given(st.lists(st.binary(max_size=200), max_size=5), st.booleans())
def test_any_bytes_are_survived(parts: list[bytes], has_preface: bool) -> None:
    async def talk() -> None:
        client = MemoryClient(echo)
        if has_preface:
            client.flush()
        for part in parts:
            client.server.receive(part)
        await turns()
        client.server.lose()
        await turns()

    asyncio.run(talk())


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.binary(max_size=40), st.integers(0, 6), st.integers(0, 255)), max_size=12)
)
def test_any_frames_are_survived(frames: list[tuple[int, bytes, int, int]]) -> None:
    async def talk() -> None:
        client = MemoryClient(echo)
        client.request(None)
        for kind, payload, stream, flags in frames:
            client.server.receive(frame(kind, payload, stream, flags))
        await turns()
        client.server.lose()
        await turns()

    asyncio.run(talk())
