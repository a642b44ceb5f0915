"""Server streams of gRPC-Web on a real socket: each ends with its real status, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest

from argosy.errors import TransientError, UserError
from argosy.web.api.stream_frames import build_stream, encode_frame
from argosy.web.request import RequestContext
from argosy.web.responses import StreamResponse
from argosy.web.route import RequiresPermission, ResolvedObject, Route, SignedIn
from support.grpc_web import Reply, call
from support.page_site import KnownPeople, a_site, anything, nothing, on_a_socket

WATCH = "/application.ApplicationService/Watch"
WATCHED = {"type": "ADDED", "application": {"metadata": {"name": "one"}}}
pytestmark = pytest.mark.anyio


async def watch(chunks: AsyncIterator[bytes], people: KnownPeople | None = None, **headers: str) -> Reply:
    """Watch a route that answers with these chunks."""

    async def answer(request: RequestContext) -> StreamResponse:
        return build_stream(request, chunks)

    async def find_subject(request: RequestContext) -> ResolvedObject:
        return ResolvedObject(None, "ml/one")

    access = RequiresPermission("applications", "get", find_subject) if people else SignedIn()
    route = Route("GET", "/api/v1/stream/applications", access, answer)
    async with on_a_socket(a_site(people=people), (route,)) as (client, _):
        return await asyncio.to_thread(call, client, "ann", WATCH, {}, **headers)


async def send_one_and_fail(error: Exception) -> AsyncIterator[bytes]:
    yield encode_frame(WATCHED, events=False)
    raise error


@pytest.mark.parametrize(("error", "code", "message"), [
    (UserError("is wrong", where="selector"), 3, "selector: is wrong"),
    (TransientError("the cluster is gone"), 14, "the cluster is gone"),
    (ValueError("of ours"), 13, "internal server error; see the server log for error id "),
])  # fmt: skip
async def test_a_stream_that_fails_ends_with_the_status_of_its_error(error: Exception, code: int, message: str) -> None:
    reply = await watch(send_one_and_fail(error))
    assert [document["type"] for document in reply.documents()] == ["ADDED"]
    assert reply.status == code
    assert reply.message.startswith(message)
    assert "of ours" not in reply.message


async def test_a_stream_that_ends_by_itself_ends_without_an_error() -> None:
    async def send_one() -> AsyncIterator[bytes]:
        yield encode_frame(WATCHED, events=False)

    reply = await watch(send_one())
    assert (reply.status, len(reply.messages)) == (0, 1)


async def send_one_and_wait() -> AsyncIterator[bytes]:
    yield encode_frame(WATCHED, events=False)
    await asyncio.Event().wait()


@pytest.mark.parametrize(("reason", "code", "message"), [
    ("forbidden", 7, "permission denied"), ("signed out", 16, "no session information"),
    ("expired", 16, "no session information"),
])  # fmt: skip
async def test_a_stream_of_a_caller_who_lost_the_right_to_it_says_so(reason: str, code: int, message: str) -> None:
    people = KnownPeople({"ann": anything})

    async def revoke_soon() -> AsyncIterator[bytes]:
        yield encode_frame(WATCHED, events=False)
        if reason == "forbidden":
            people.allowed["ann"] = nothing
        else:
            (people.past if reason == "expired" else people.gone).add("ann")
        await asyncio.Event().wait()

    reply = await watch(revoke_soon(), people)
    assert len(reply.messages) == 1
    assert (reply.status, reply.message) == (code, message)


async def test_a_stream_ends_with_the_server() -> None:
    async def answer(request: RequestContext) -> StreamResponse:
        return build_stream(request, send_one_and_wait())

    route = Route("GET", "/api/v1/stream/applications", SignedIn(), answer)
    async with on_a_socket(a_site(), (route,)) as (client, application):
        calling = asyncio.create_task(asyncio.to_thread(call, client, "ann", WATCH, {}))
        while application.site.state.concurrency_limits.streams == 0:
            await asyncio.sleep(0.01)
        application.close()
        reply = await calling
    assert (reply.status, reply.message) == (14, "the server is shutting down")


async def test_a_long_line_that_arrives_in_pieces_is_one_message() -> None:
    labels = {f"label-{number}": "x" * 60 for number in range(2000)}
    document: dict[str, Any] = {"type": "ADDED", "application": {"metadata": {"name": "one", "labels": labels}}}
    line = orjson.dumps({"result": document}) + b"\n"

    async def send_pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(line), 1000):
            yield line[start : start + 1000]
        yield line + line

    reply = await watch(send_pieces())
    assert reply.status == 0
    assert [document["application"]["metadata"]["labels"] for document in reply.documents()] == [labels] * 3


async def test_lines_that_are_no_message_are_left_out() -> None:
    async def send_other_lines() -> AsyncIterator[bytes]:
        yield b"\n[1]\nno json\n" + encode_frame(WATCHED, events=False)

    assert len((await watch(send_other_lines())).messages) == 1


async def test_a_message_that_cannot_be_encoded_ends_the_stream() -> None:
    async def send_another_type() -> AsyncIterator[bytes]:
        yield encode_frame(WATCHED, events=False) + encode_frame({"type": 1}, events=False)

    reply = await watch(send_another_type())
    assert (reply.status, len(reply.messages)) == (13, 1)
    assert reply.message.startswith("cannot encode the response: ")


async def test_an_unary_response_that_cannot_be_encoded_is_an_internal_error() -> None:
    from argosy.web.responses import JsonResponse

    async def answer(request: RequestContext) -> JsonResponse:
        return JsonResponse({"items": "text"})

    route = Route("GET", "/api/v1/applications", SignedIn(), answer)
    async with on_a_socket(a_site(), (route,)) as (client, _):
        reply = await asyncio.to_thread(call, client, "ann", "/application.ApplicationService/List", {})
    assert (reply.status, reply.messages) == (13, [])
    assert reply.message.startswith("cannot encode the response: ")
