"""Clients that do not read their responses: how much memory they hold, and when they are disconnected."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from typing import Any

import orjson
import pytest

from argosy.errors import ClusterError
from argosy.kube.client import User
from argosy.sandbox.apiserver.control_plane import MAX_WATCHES_PER_USER, ControlPlane
from argosy.sandbox.apiserver.http.asgi import ApiServerApp
from argosy.sandbox.apiserver.http.protocol_limits import FLOW_CONTROL_EXTENSION
from argosy.sandbox.apiserver.http.request_and_response_io import (
    RESPONSE_TIMEOUT_SECONDS,
    WRITE_CHUNK_BYTES,
    WRITE_TIMEOUT_SECONDS,
)
from argosy.sandbox.apiserver.http.user_memory_and_watch_limits import WatchLimit, WriteBudget
from support.api_client import CONFIGS, TABLE_OF, TOKEN, Api, config, named
from support.deadlines import HANG_SECONDS
from support.loop_clock import LoopClock, turns

pytestmark = pytest.mark.anyio
OBJECTS, OBJECT_BYTES = 30, 20_000
PARTIAL = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
WATCH = f"{CONFIGS}?watch=true&resourceVersion=0"


class SlowClient:
    """Client that reads nothing of a response body until `read_on` is called."""

    def __init__(self) -> None:
        self.code = 0
        self.taken = b""
        self.waiting = 0  # bytes handed over and not read yet
        self.largest = 0
        self.is_aborted = False
        self._reading = asyncio.Event()
        self._left = asyncio.Event()

    def read_on(self) -> None:
        self._reading.set()

    def abort(self) -> None:
        self.is_aborted = True
        self._left.set()

    async def receive(self) -> dict[str, Any]:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.code = message["status"]
            return
        body = message.get("body", b"")
        self.largest = max(self.largest, len(body))
        self.waiting = len(body)
        if body:
            await self._reading.wait()
        self.taken += body
        self.waiting = 0

    @property
    def events(self) -> list[Any]:
        return [orjson.loads(line) for line in self.taken.splitlines()]


@asynccontextmanager
async def unread(app: ApiServerApp, path: str, token: str = TOKEN, **headers: str) -> AsyncIterator[SlowClient]:
    client = SlowClient()
    url_path, _, query = path.partition("?")
    pairs: Mapping[str, str] = {"authorization": f"Bearer {token}", **headers}
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in pairs.items()]
    scope = {"type": "http", "method": "GET", "path": url_path, "query_string": query.encode(), "headers": raw}
    scope["extensions"] = {FLOW_CONTROL_EXTENSION: {"abort": client.abort}}
    task = asyncio.create_task(app(scope, client.receive, client.send))
    try:
        yield client
    finally:
        client.abort()
        client.read_on()
        await asyncio.wait_for(task, HANG_SECONDS)


async def fill(api: Api) -> None:
    for number in range(OBJECTS):
        await api.made(CONFIGS, config(f"c{number:02}", {"text": "x" * OBJECT_BYTES}))


async def until(true: Any) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not true():
            await asyncio.sleep(0)


async def test_unread_watch_buffers_one_chunk_of_its_initial_events(api: Api, plane: ControlPlane) -> None:
    await fill(api)
    app = ApiServerApp(plane)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(unread(app, WATCH)) for _ in range(10)]
        await until(lambda: all(client.waiting for client in clients))
        assert max(client.largest for client in clients) <= WRITE_CHUNK_BYTES
        assert 0 < app.budget.used_bytes <= len(clients) * (WRITE_CHUNK_BYTES + 2 * OBJECT_BYTES)
        clients[0].read_on()
        await until(lambda: len(clients[0].events) == OBJECTS)
        assert [event["type"] for event in clients[0].events] == ["ADDED"] * OBJECTS
    assert app.budget.used_bytes == 0


@pytest.mark.parametrize("accept", ["application/json", TABLE_OF, PARTIAL])
async def test_list_sent_in_chunks_equals_list_sent_at_once(api: Api, plane: ControlPlane, accept: str) -> None:
    await fill(api)
    app = ApiServerApp(plane)
    whole = (await api.get(f"{CONFIGS}?pretty=true", accept)).json
    async with unread(app, CONFIGS, accept=accept) as client:
        await until(lambda: client.waiting)
        assert client.largest <= WRITE_CHUNK_BYTES and client.code == 200
        client.read_on()
        await until(lambda: client.taken.endswith(b"]}\n"))
    sent = orjson.loads(client.taken)
    for row in [*sent.get("rows", ()), *whole.get("rows", ())]:
        row["cells"] = row["cells"][:1]  # the last cell is an age
    assert sent == whole


async def test_list_sent_in_chunks_is_compressed_if_client_accepts_gzip(api: Api) -> None:
    await fill(api)
    packed = await api.get(CONFIGS, accept_encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip" and len(packed.body) < OBJECT_BYTES
    assert zlib.decompress(packed.body, zlib.MAX_WBITS | 16) == (await api.get(CONFIGS)).body


async def test_large_protobuf_list_is_sent_in_chunks_and_counted(api: Api, plane: ControlPlane) -> None:
    await fill(api)
    app = ApiServerApp(plane)
    async with unread(app, CONFIGS, accept="application/vnd.kubernetes.protobuf") as client:
        await until(lambda: client.waiting)
        assert client.largest <= WRITE_CHUNK_BYTES
        assert app.budget.used_bytes > OBJECTS * OBJECT_BYTES
    assert app.budget.used_bytes == 0


async def test_unread_watch_ends_with_410_after_compaction(api: Api, plane: ControlPlane) -> None:
    await fill(api)
    app = ApiServerApp(plane)
    async with unread(app, WATCH) as client:
        await until(lambda: client.waiting)
        await api.patch(f"{CONFIGS}/c00", {"data": {"text": "new"}})
        await plane.store.compact(plane.store.revision)
        client.read_on()
        await until(lambda: client.taken and client.events[-1]["type"] == "ERROR")
        status = client.events[-1]["object"]
        assert (status["code"], status["reason"]) == (410, "Expired")
        assert status["message"].startswith("too old resource version: ")
        assert len(client.events) < OBJECTS


@pytest.mark.parametrize("path", [WATCH, CONFIGS])
async def test_client_that_does_not_read_for_a_minute_is_disconnected(
    api: Api, plane: ControlPlane, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    await fill(api)
    app = ApiServerApp(plane)
    clock = LoopClock()
    async with unread(app, path) as client:
        await until(lambda: client.waiting)
        clock.leap(WRITE_TIMEOUT_SECONDS - 1)
        await turns()
        assert not client.is_aborted
        clock.leap(2)
        await until(lambda: client.is_aborted)
        assert "did not read its response" in caplog.text and app.budget.used_bytes == 0
        assert not client.taken


async def test_unread_list_is_aborted_by_the_response_timeout(api: Api, plane: ControlPlane) -> None:
    await fill(api)
    clock = LoopClock()
    async with unread(ApiServerApp(plane), CONFIGS) as client:
        await until(lambda: client.waiting)
        clock.leap(RESPONSE_TIMEOUT_SECONDS)
        await until(lambda: client.is_aborted)


async def account(api: Api, name: str) -> str:
    await api.made("/api/v1/namespaces/default/serviceaccounts", named("v1", "ServiceAccount", name))
    request = named("authentication.k8s.io/v1", "TokenRequest", name, spec={})
    response = await api.post(f"/api/v1/namespaces/default/serviceaccounts/{name}/token", request)
    return str(response.json["status"]["token"])


async def test_open_watches_are_limited_per_user() -> None:
    async with ControlPlane.open(admin_token=TOKEN, max_watches_per_user=3) as plane:
        api = Api(plane)
        first, second = await account(api, "first"), await account(api, "second")
        app = ApiServerApp(plane)
        async with AsyncExitStack() as stack:
            for _ in range(2):
                await stack.enter_async_context(unread(app, WATCH, first))
            async with unread(app, WATCH, first) as last:
                await until(lambda: last.code)
                async with unread(app, WATCH, first) as refused:
                    refused.read_on()
                    await until(lambda: refused.taken)
                status = orjson.loads(refused.taken)
                assert (refused.code, status["reason"], status["kind"]) == (429, "TooManyRequests", "Status")
                assert status["details"]["retryAfterSeconds"] > 0 and "3 open watches" in status["message"]
                assert "argosy sandbox start --max-watches-per-user" in status["message"]
                for token in (second, *[TOKEN] * 4):  # k8s: system:masters is exempt
                    other = await stack.enter_async_context(unread(app, WATCH, token))
                    await until(lambda other=other: other.code)
                    assert other.code == 200
            again = await stack.enter_async_context(unread(app, WATCH, first))
            await until(lambda: again.code)
            assert again.code == 200


def test_watch_limit_allows_ten_replicas_to_watch_300_kinds() -> None:
    replicas, kinds = 10, 300
    limit, user = WatchLimit(MAX_WATCHES_PER_USER), User("system:serviceaccount:default:controllers")
    with ExitStack() as stack:
        for _ in range(replicas * kinds):
            stack.enter_context(limit.count(user))


def test_write_budget_limits_a_user_to_half_of_what_is_free() -> None:
    budget = WriteBudget(total=1000)

    def take(user: str) -> int:
        with pytest.raises(ClusterError) as refused:
            while True:
                held = budget.hold(user, 10)
                held.__enter__()
                reservations.append(held)
        assert refused.value.code == 429
        return budget.get_used_by(user)

    reservations: list[Any] = []
    assert [take("a"), take("b"), take("c")] == [500, 250, 120]
    for held in reservations:
        held.__exit__(None, None, None)
    assert budget.used_bytes == 0


def test_response_larger_than_budget_is_allowed_if_user_holds_nothing() -> None:
    budget = WriteBudget(total=1000)
    with budget.hold("a", 5000):
        with pytest.raises(ClusterError), budget.hold("a", 1):
            pass
        with budget.hold("b", 1):
            assert budget.used_bytes == 5001
    assert budget.used_bytes == 0
