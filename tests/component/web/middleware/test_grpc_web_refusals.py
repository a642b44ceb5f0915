"""gRPC-Web on a real socket: calls that end before or without their REST request, and what is recorded about them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from argosy.web.grpc.rest_requests import MAX_PARAMETERS
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import Route, SignedIn
from support.deadlines import HANG_SECONDS
from support.grpc_web import MEDIA, ask, ask_raw, encode_request, frame
from support.grpc_world import APPS, grpc_world
from support.page_site import a_site, on_a_socket
from support.rest_api import World

REPOSITORIES = "/repository.RepositoryService"
pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with grpc_world(tmp_path_factory, "one") as opened:
        yield opened


def find_lines(world: World, what: str) -> list[tuple[str, int]]:
    """Return who did this, and the code of the result."""
    lines = world.site.state.audit_trail.lines
    return [(str(line["who"]), int(line["code"])) for line in lines if line["what"] == what]


# Deadlines


async def test_a_change_goes_on_after_the_deadline_of_its_call_and_is_recorded() -> None:
    started, allowed = asyncio.Event(), asyncio.Event()

    async def sync_slowly(request: RequestContext) -> JsonResponse:
        started.set()
        await allowed.wait()
        return JsonResponse({})

    site = a_site()
    route = Route("POST", "/api/v1/applications/{name}/sync", SignedIn(), sync_slowly)
    async with on_a_socket(site, (route,)) as (client, _):
        body = frame(encode_request(f"{APPS}/Sync", {"name": "one"}))
        calling = asyncio.create_task(ask_raw(client, f"{APPS}/Sync", body, token="ann", grpc_timeout="700m"))
        async with asyncio.timeout(HANG_SECONDS):
            await started.wait()
        reply = await calling
        assert (reply.status, reply.message) == (4, "context deadline exceeded")
        assert not site.state.audit_trail.lines
        allowed.set()
        async with asyncio.timeout(HANG_SECONDS):
            while not site.state.audit_trail.lines:
                await asyncio.sleep(0.01)
    [line] = site.state.audit_trail.lines
    assert (line["who"], line["what"], line["code"]) == ("ann", "POST /api/v1/applications/one/sync", 200)


async def test_a_reading_call_ends_at_its_deadline_and_is_counted() -> None:
    async def wait(request: RequestContext) -> JsonResponse:
        await asyncio.Event().wait()
        raise AssertionError

    site = a_site()
    route = Route("GET", "/api/v1/applications/{name}", SignedIn(), wait)
    async with on_a_socket(site, (route,)) as (client, _):
        body = frame(encode_request(f"{APPS}/Get", {"name": "one"}))
        assert (await ask_raw(client, f"{APPS}/Get", body, token="ann", grpc_timeout="200m")).status == 4
        assert site.state.concurrency_limits.in_flight == 0
    assert site.state.request_counter.requests[("GET", route.path, 504)] == 1


async def test_a_call_that_the_server_does_not_wait_for_ends_with_the_server() -> None:
    started = asyncio.Event()

    async def wait(request: RequestContext) -> JsonResponse:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    route = Route("GET", "/api/v1/applications", SignedIn(), wait)
    site = a_site()
    async with on_a_socket(site, (route,)) as (client, _):
        calling = asyncio.create_task(ask_raw(client, f"{APPS}/List", frame(b""), token="ann"))
        async with asyncio.timeout(HANG_SECONDS):
            await started.wait()
    reply = await calling
    assert (reply.status, reply.message) == (14, "the server is shutting down")
    assert site.state.request_counter.requests[("GET", route.path, 504)] == 1


async def test_a_change_that_is_not_complete_when_the_server_stops_is_recorded_as_failed() -> None:
    started = asyncio.Event()

    async def wait(request: RequestContext) -> JsonResponse:
        started.set()
        await asyncio.Event().wait()
        raise AssertionError

    site = a_site()
    route = Route("POST", "/api/v1/applications/{name}/sync", SignedIn(), wait)
    async with on_a_socket(site, (route,)) as (client, _):
        body = frame(encode_request(f"{APPS}/Sync", {"name": "one"}))
        calling = asyncio.create_task(ask_raw(client, f"{APPS}/Sync", body, token="ann"))
        async with asyncio.timeout(HANG_SECONDS):
            await started.wait()
    assert (await calling).status == 14
    async with asyncio.timeout(HANG_SECONDS):
        while not site.state.audit_trail.lines:
            await asyncio.sleep(0.01)
    [line] = site.state.audit_trail.lines
    assert (line["who"], line["result"], line["code"]) == ("ann", "failed", 504)


async def test_a_method_without_a_route_is_not_implemented() -> None:
    async with on_a_socket(a_site(), ()) as (client, _):
        assert (await ask_raw(client, f"{APPS}/List", frame(b""), token="ann")).status == 12


# Strangers


async def test_a_stranger_is_refused_before_the_body_is_read(world: World) -> None:
    head = f"POST {APPS}/Create HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {MEDIA}\r\nContent-Length: 60000\r\n\r\n"

    def send_head() -> bytes:
        with socket.create_connection(("127.0.0.1", world.client.port), timeout=HANG_SECONDS) as connection:
            connection.sendall(head.encode())
            return connection.recv(4096)

    assert b"grpc-status: 16\r\n" in await asyncio.to_thread(send_head)


async def test_a_refused_change_is_recorded_as_over_rest(world: World) -> None:
    for body in (frame(encode_request(f"{APPS}/Delete", {"name": "one"})), b"junk"):
        assert (await ask_raw(world.client, f"{APPS}/Delete", body)).status == 16
    assert find_lines(world, f"POST {APPS}/Delete") == [("nobody", 401)]  # the same twice
    counts = world.site.state.request_counter.requests
    assert counts[("DELETE", "/api/v1/applications/{name}", 401)] == 2


async def test_a_malformed_change_is_recorded(world: World) -> None:
    assert (await ask_raw(world.client, f"{APPS}/Rollback", frame(b"\xff"), token="ann")).status == 13
    assert (await ask_raw(world.client, f"{APPS}/Rollback", b"\1\0\0\0\0", token="ann")).status == 13
    assert (await ask(world.client, "ann", f"{APPS}/Rollback", {"id": 1})).status == 3  # no name
    assert find_lines(world, f"POST {APPS}/Rollback") == [("ann", 400)]  # the same, three times


async def test_a_malformed_read_is_counted_but_not_in_the_audit_log(world: World) -> None:
    counts, key = world.site.state.request_counter.requests, ("GET", "/api/v1/applications/{name}", 400)
    before = counts[key]
    assert (await ask_raw(world.client, f"{APPS}/Get", frame(b"\xff"), token="ann")).status == 13
    assert counts[key] == before + 1
    assert not find_lines(world, f"POST {APPS}/Get")


async def test_an_unknown_method_is_counted(world: World) -> None:
    counts = world.site.state.request_counter.requests
    before = counts[("POST", "", 501)]
    assert (await ask_raw(world.client, f"{APPS}/Explode", frame(b""), token="ann")).status == 12
    assert counts[("POST", "", 501)] == before + 1


async def test_a_client_that_leaves_while_it_sends_is_recorded(world: World) -> None:
    head = f"POST {APPS}/Patch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {MEDIA}\r\nContent-Length: 60\r\n"
    with socket.create_connection(("127.0.0.1", world.client.port), timeout=HANG_SECONDS) as connection:
        connection.sendall(f"{head}token: ann\r\n\r\nabc".encode())
        await world.until(lambda: world.site.state.concurrency_limits.in_flight == 1)
    await world.until(lambda: find_lines(world, f"POST {APPS}/Patch") == [("ann", 499)])
    assert world.site.state.concurrency_limits.in_flight == 0


# Names and parameters that a URL cannot have


@pytest.mark.parametrize("name", [".", "..", "a\0b", "a/../b"])
async def test_a_name_that_no_path_can_have_is_that_of_nothing(world: World, name: str) -> None:
    for method in ("Get", "Delete", "ResourceTree"):
        document = {"applicationName": name} if method == "ResourceTree" else {"name": name}
        reply = await ask(world.client, "ann", f"{APPS}/{method}", document)
        assert (reply.status, reply.message) == (7, "permission denied"), method
    for method in ("/cluster.ClusterService/Get", "/applicationset.ApplicationSetService/Get"):
        reply, missing = [await ask(world.client, "ann", method, {"name": text}) for text in (name, "missing")]
        assert reply.status == missing.status != 0, method
    assert (await world.ask("ann", "GET", "/api/v1/applications/..")).code == 404


async def test_thousands_of_parameters_are_accepted(world: World) -> None:
    reply = await ask(world.client, "ann", f"{APPS}/List", {"projects": [f"p-{number}" for number in range(5000)]})
    assert (reply.status, reply.document()["items"] or []) == (0, [])
    reply = await ask(world.client, "ann", f"{APPS}/List", {"projects": ["default"] * (MAX_PARAMETERS + 1)})
    assert reply.status == 8


async def test_a_parameter_may_be_longer_than_any_url(world: World) -> None:
    query = {"repo": "ssh://git@127.0.0.1:1/a.git", "sshPrivateKey": "k" * (700 << 10), "insecure": True}
    reply = await ask(world.client, "ann", f"{REPOSITORIES}/ValidateAccess", query)
    assert reply.status not in (0, 8, 13)


async def test_a_long_name_is_an_invalid_argument(world: World) -> None:
    assert (await ask(world.client, "ann", f"{APPS}/Get", {"name": "a" * 10_000})).status == 3


async def test_json_that_is_nested_too_deeply_is_refused_with_a_reason(world: World) -> None:
    value = b'{"a":' * 300 + b"1" + b"}" * 300
    for tag in b"\x0a\x52\x3a\x0a\x12\x0a":  # raw, valuesObject, helm, source, spec, application
        value = bytes([tag]) + _size(value) + value
    reply = await ask_raw(world.client, f"{APPS}/Create", frame(value), token="ann")
    assert (reply.status, reply.message.partition(": json")[2]) == (
        13, ": nested more than 100 levels deep: flatten the data",
    )  # fmt: skip


def _size(data: bytes) -> bytes:
    return bytes([len(data) & 127 | 128, len(data) >> 7]) if len(data) > 127 else bytes([len(data)])
