"""gRPC-Web on a real socket: the REST routes behind it decide, and every call ends with a status."""

from __future__ import annotations

import asyncio
import http.client
import socket
import struct
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.web.middleware.grpc_gateway import MAX_ANONYMOUS_BODY_BYTES
from argosy.web.route import MAX_BODY_BYTES
from support.deadlines import HANG_SECONDS
from support.grpc_web import MEDIA, ask, ask_raw, encode_request, frame, read_frames
from support.grpc_world import APPS, PROJECTS, grpc_world
from support.rest_api import World

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with grpc_world(tmp_path_factory, "one", "two", projects=("default",)) as opened:
        yield opened


# What the routes do


async def test_a_list_has_what_the_rest_route_has(world: World) -> None:
    reply = await ask(world.client, "ann", f"{APPS}/List")
    assert reply.http_code == 200
    assert [item["metadata"]["name"] for item in reply.document()["items"]] == ["one", "two"]


async def test_an_object_has_the_same_fields_as_over_rest(world: World) -> None:
    over_rest = await world.get("ann", "/api/v1/applications/one")
    document = (await ask(world.client, "ann", f"{APPS}/Get", {"name": "one"})).document()
    assert document["spec"] == over_rest["spec"]
    assert document["metadata"]["uid"] == over_rest["metadata"]["uid"]


async def test_a_project_is_created_changed_and_deleted(world: World) -> None:
    project = {"metadata": {"name": "ml"}, "spec": {"description": "first", "sourceRepos": ["*"]}}
    created = (await ask(world.client, "ann", f"{PROJECTS}/Create", {"project": project})).document()
    assert created["spec"]["description"] == "first"
    changed = {**created, "spec": {**created["spec"], "description": "second"}}
    assert (await ask(world.client, "ann", f"{PROJECTS}/Update", {"project": changed})).status == 0
    assert (await ask(world.client, "ann", f"{PROJECTS}/Get", {"name": "ml"})).document()["spec"][
        "description"
    ] == "second"
    assert (await ask(world.client, "ann", f"{PROJECTS}/Delete", {"name": "ml"})).status == 0


async def test_a_cluster_is_found_by_its_server_and_by_its_name(world: World) -> None:
    service, config = "/cluster.ClusterService", {"bearerToken": "canary-token", "tlsClientConfig": {"insecure": True}}
    cluster = {"server": "https://prod.example.com:6443", "name": "prod", "config": config}
    created = await ask(world.client, "ann", f"{service}/Create", {"cluster": cluster})
    assert created.document()["name"] == "prod"
    named_by_id = [{"type": kind, "value": "pr%6Fd"} for kind in ("name", "name_escaped")]
    named_by_id += [{"type": "name_escaped", "value": "pr%256Fd"}, {"type": "server", "value": cluster["server"]}]
    for named in ({"server": cluster["server"]}, {"name": "prod"}, *({"id": named} for named in named_by_id)):
        listed = (await ask(world.client, "ann", f"{service}/List", named)).document()
        assert [item["name"] for item in listed["items"]] == ["prod"], named
        reply = await ask(world.client, "ann", f"{service}/Get", named)
        assert reply.document()["server"] == cluster["server"]
        assert b"canary" not in b"".join(reply.messages)
    for named in ({"name": "other"}, {"name": "prod", "id": {"type": "name", "value": "in-cluster"}}):
        assert not (await ask(world.client, "ann", f"{service}/List", named)).document()["items"]
    assert (await ask(world.client, "ann", f"{service}/List", {"id": {"type": "name", "value": "%"}})).status == 3
    change = {"cluster": {**cluster, "labels": {"tier": "ml"}}, "updatedFields": ["labels"]}
    assert (await ask(world.client, "ann", f"{service}/Update", change)).document()["labels"] == {"tier": "ml"}
    assert (await ask(world.client, "ann", f"{service}/Delete", {"name": "prod"})).status == 0
    assert (await ask(world.client, "ann", f"{service}/Get", {"name": "prod"})).status == 7


async def test_a_key_is_validated_with_its_parameters(world: World) -> None:
    query = {"repo": "ssh://git@127.0.0.1:1/a.git", "sshPrivateKey": "no key\n" * 400, "insecure": True}
    reply = await ask(world.client, "ann", "/repository.RepositoryService/ValidateAccess", query)
    assert reply.status != 0
    assert "no key" not in reply.message


async def test_a_method_without_fields_is_called_with_an_empty_message(world: World) -> None:
    version = (await ask(world.client, "", "/version.VersionService/Version")).document()
    assert version["Version"] == "1.2.3"


# Who may do what


async def test_without_a_token_the_status_is_unauthenticated(world: World) -> None:
    reply = await ask(world.client, "", f"{APPS}/List")
    assert (reply.http_code, reply.status, reply.message) == (200, 16, "no session information")


async def test_an_invalid_token_is_unauthenticated(world: World) -> None:
    assert (await ask(world.client, "eve", f"{APPS}/List")).status == 16


async def test_an_authorization_header_and_a_cookie_are_accepted(world: World) -> None:
    body = frame(b"")
    assert (await ask_raw(world.client, f"{APPS}/List", body, Authorization="Bearer ann")).status == 0
    own = f"http://127.0.0.1:{world.client.port}"
    assert (await ask_raw(world.client, f"{APPS}/List", body, Cookie="argosy=ann", Origin=own)).status == 0


async def test_the_token_wins_over_the_other_credentials(world: World) -> None:
    reply = await ask(world.client, "bob", f"{APPS}/List", Authorization="Bearer ann", Cookie="argosy=ann")
    assert not reply.document()["items"]


async def test_an_empty_token_is_none(world: World) -> None:
    reply = await ask_raw(world.client, f"{APPS}/List", frame(b""), token="", Authorization="Bearer ann")
    assert reply.status == 0


async def test_a_forbidden_and_a_missing_object_have_the_same_answer(world: World) -> None:
    forbidden = await ask(world.client, "bob", f"{APPS}/Get", {"name": "one"})
    missing = await ask(world.client, "ann", f"{APPS}/Get", {"name": "three"})
    assert (forbidden.status, forbidden.message) == (missing.status, missing.message) == (7, "permission denied")


async def test_a_reader_cannot_write(world: World) -> None:
    project = {"metadata": {"name": "mine"}}
    assert (await ask(world.client, "dan", f"{PROJECTS}/Create", {"project": project})).status == 7
    assert (await ask(world.client, "dan", f"{APPS}/Delete", {"name": "one"})).status == 7
    assert (await ask(world.client, "ann", f"{APPS}/Get", {"name": "one"})).status == 0


async def test_a_foreign_page_cannot_call_with_the_cookie_of_a_user(world: World) -> None:
    body = frame(encode_request(f"{APPS}/Delete", {"name": "one"}))
    for headers in (
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
        {},  # a browser always sends one of them with a POST
    ):
        reply = await ask_raw(world.client, f"{APPS}/Delete", body, Cookie="argosy=ann", **headers)
        assert reply.status == 7, headers
    reading = await ask_raw(
        world.client, f"{APPS}/List", frame(b""), Cookie="argosy=ann", Origin="https://evil.example"
    )
    assert (reading.status, reading.messages) == (7, [])


async def test_no_answer_allows_another_origin(world: World) -> None:
    reply = await ask_raw(world.client, f"{APPS}/List", frame(b""), token="ann", Origin="https://evil.example")
    assert reply.status == 7
    assert not [name for name in reply.headers if name.startswith("access-control")]


async def test_an_unknown_host_is_refused(world: World) -> None:
    reply = await ask_raw(world.client, f"{APPS}/List", frame(b""), token="ann", Host="evil.example")
    assert reply.status == 3
    assert "Host" in reply.message


async def test_the_answer_has_the_security_headers(world: World) -> None:
    for reply in (await ask(world.client, "ann", f"{APPS}/List"), await ask_raw(world.client, "/a.B/C", frame(b""))):
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["cache-control"] == "no-store"


async def test_secrets_are_masked_as_over_rest(world: World) -> None:
    await world.make("Secret", "repo", stringData={"url": "https://h/a.git", "password": "a-very-secret-word"},
                     metadata={"labels": {"argocd.argoproj.io/secret-type": "repository"}})  # fmt: skip
    await world.seen("", "Secret", "repo")
    reply = await ask(world.client, "ann", "/repository.RepositoryService/ListRepositories")
    assert [item["repo"] for item in reply.document()["items"]] == ["https://h/a.git"]
    assert b"a-very-secret-word" not in b"".join(reply.messages)


async def test_a_change_is_in_the_audit_log_with_its_rest_route(world: World) -> None:
    await ask(world.client, "dan", f"{APPS}/Sync", {"name": "two"})
    lines = [line for line in world.site.state.audit_trail.lines if "/two/sync" in str(line)]
    assert lines
    assert "POST /api/v1/applications/two/sync" in str(lines[0])
    assert "refused" in str(lines[0])


# Errors


async def test_an_error_is_in_the_headers_and_in_the_trailers(world: World) -> None:
    # argo: the CLI reads only the headers
    reply = await ask(world.client, "", f"{APPS}/List")
    assert reply.headers["grpc-status"] == reply.trailers["grpc-status"] == "16"
    assert reply.headers["grpc-message"] == "no session information"


@pytest.mark.parametrize(("path", "problem"), [
    ("/application.ApplicationService/Explode", "unknown method Explode for service application.ApplicationService"),
    ("/a.B/C", "unknown service a.B"),
    ("/", "unknown service "),
    ("/api/v1/applications", "unknown service api"),
])  # fmt: skip
async def test_an_unknown_method_is_not_implemented(world: World, path: str, problem: str) -> None:
    reply = await ask_raw(world.client, path, frame(b""), token="ann")
    assert (reply.http_code, reply.status, reply.message) == (200, 12, problem)


@pytest.mark.parametrize("media", ["application/grpc", "application/grpc-web-text", "application/grpc-web+json"])
async def test_other_encodings_are_not_implemented(world: World, media: str) -> None:
    answer = await asyncio.to_thread(world.client.ask, "POST", f"{APPS}/List", frame(b""), {"Content-Type": media})
    assert answer.headers["grpc-status"] == "12"
    assert media in answer.headers["grpc-message"]


async def test_the_media_type_without_an_encoding_is_accepted(world: World) -> None:
    headers = {"Content-Type": "application/grpc-web", "token": "ann"}
    answer = await asyncio.to_thread(world.client.ask, "POST", f"{APPS}/List", frame(b""), headers)
    assert read_frames(answer.body)[1] == {"grpc-status": "0"}


@pytest.mark.parametrize(("body", "problem"), [
    (b"", "cardinality violation"), (frame(b"") + frame(b""), "cardinality violation"), (b"\0", "unexpected EOF"),
    (b"\0\0\0\0\x09a", "unexpected EOF"), (frame(b"", 1), "grpc: compressed flag"), (frame(b"", 7), "grpc: received"),
    (frame(b"", 0x80), "cardinality violation"),
    *((frame(data), "grpc: failed to unmarshal") for data in (b"\xff", b"\x0a\x05a", b"\x08\x01", b"\x0b")),
])  # fmt: skip
async def test_malformed_requests_are_refused_with_the_code_of_grpc_go(world: World, body: bytes, problem: str) -> None:
    reply = await ask_raw(world.client, f"{APPS}/Get", body, token="ann")
    assert (reply.http_code, reply.status) == (200, 13)
    assert reply.message.startswith(problem)


async def test_a_rollback_without_an_id_is_refused(world: World) -> None:
    app = await world.cluster.get(_key("one"))
    reply = await ask_raw(world.client, f"{APPS}/Rollback", frame(b"\x0a\x03one"), token="ann")
    problem = 'grpc: failed to unmarshal the received message: proto: required field "id" not set'
    assert (reply.status, reply.message) == (13, problem)
    answer = await world.ask("ann", "POST", "/api/v1/applications/one/rollback", {"name": "one"})
    assert (answer.code, answer.json()["message"].split(":")[0]) == (400, "id")
    assert await world.cluster.get(_key("one")) == app


async def test_an_invalid_object_is_an_invalid_argument(world: World) -> None:
    application = {"metadata": {"name": "Not A Name"}, "spec": {"project": "default"}}
    reply = await ask(world.client, "ann", f"{APPS}/Create", {"application": application})
    assert reply.status == 3
    assert reply.message


# Limits


async def test_a_body_that_is_too_large_is_refused_before_it_is_read(world: World) -> None:
    large = frame(b"\0" * (MAX_BODY_BYTES + 1))
    assert (await ask_raw(world.client, f"{PROJECTS}/Create", large, token="ann")).status == 8


async def test_strangers_cannot_send_large_bodies(world: World) -> None:
    large = frame(b"\0" * (MAX_ANONYMOUS_BODY_BYTES + 1))
    assert (await ask_raw(world.client, f"{PROJECTS}/Create", large)).status == 16
    assert (await ask_raw(world.client, "/session.SessionService/Create", large)).status == 16


async def test_long_parameters_are_accepted_for_calls_only(world: World) -> None:
    selector = ",".join(f"label-{number}=value" for number in range(700))  # more than the URL of a browser may have
    assert len(selector) > 9000
    assert (await ask(world.client, "ann", f"{APPS}/List", {"selector": selector})).status == 0
    answer = await world.ask("ann", "GET", f"/api/v1/applications?selector={selector}")
    assert answer.code == 414


async def test_many_concurrent_calls_leave_no_slot_taken(world: World) -> None:
    replies = await asyncio.gather(*(ask(world.client, "ann", f"{APPS}/Get", {"name": "one"}) for _ in range(30)))
    assert {reply.status for reply in replies} == {0}
    limits = world.site.state.concurrency_limits
    await world.until(lambda: limits.in_flight == 0 and limits.streams == 0)


async def test_a_deadline_ends_a_stream(world: World) -> None:
    started = time.monotonic()
    reply = await ask(world.client, "ann", f"{APPS}/Watch", {"name": "one"}, grpc_timeout="400m")
    assert (reply.trailers["grpc-status"], reply.message) == ("4", "context deadline exceeded")
    assert [document["type"] for document in reply.documents()] == ["ADDED"]
    assert time.monotonic() - started < HANG_SECONDS
    await world.until(lambda: world.site.state.concurrency_limits.streams == 0)


async def test_a_deadline_of_the_past_ends_a_call(world: World) -> None:
    assert (await ask(world.client, "ann", f"{APPS}/List", grpc_timeout="1n")).status in (0, 4)
    assert (await ask(world.client, "ann", f"{APPS}/List", grpc_timeout="30S")).status == 0


async def test_a_malformed_deadline_is_refused(world: World) -> None:
    for text in ("soon", "1", "-1S", "123456789S", "1 S"):
        reply = await ask(world.client, "ann", f"{APPS}/List", grpc_timeout=text)
        assert (reply.status, "grpc-timeout" in reply.message) == (3, True), text


# Streams


class OpenCall:
    """A call whose response is read frame by frame."""

    def __init__(self, world: World, who: str, method: str, document: Any) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", world.client.port, timeout=HANG_SECONDS)
        body = frame(encode_request(method, document))
        self._connection.request("POST", method, body, {"Content-Type": MEDIA, "token": who})
        self._response = self._connection.getresponse()

    def read_frame(self) -> tuple[int, bytes]:
        flag, size = struct.unpack(">BI", self._response.read(5))
        return flag, self._response.read(size)

    def close(self) -> None:
        if self._connection.sock is not None:
            self._connection.sock.shutdown(socket.SHUT_RDWR)
        self._connection.close()


async def test_a_watch_gives_a_message_for_each_change(world: World) -> None:
    opened = await asyncio.to_thread(OpenCall, world, "ann", f"{APPS}/Watch", {"name": "two"})
    try:
        flag, first = await asyncio.to_thread(opened.read_frame)
        assert (flag, b"ADDED" in first) == (0, True)
        app = await world.cluster.get(_key("two"))
        assert app is not None
        await world.cluster.patch(_key("two"), {"metadata": {"labels": {"changed": "yes"}}})
        flag, second = await asyncio.to_thread(opened.read_frame)
        assert (flag, b"MODIFIED" in second, b"changed" in second) == (0, True, True)
    finally:
        opened.close()
    await world.until(lambda: world.site.state.concurrency_limits.streams == 0)


def _key(name: str) -> Any:
    from argosy.kube.resource_key import ResourceKey

    return ResourceKey("argoproj.io", "Application", "argocd", name)


async def test_a_watch_of_something_forbidden_has_no_message(world: World) -> None:
    reply = await ask(world.client, "bob", f"{APPS}/Watch", {"name": "one"}, grpc_timeout="300m")
    assert (reply.status, reply.messages) == (4, [])


async def test_a_stream_that_is_refused_says_so_at_once(world: World) -> None:
    reply = await ask(world.client, "", f"{APPS}/Watch", {"name": "one"})
    assert (reply.status, reply.messages) == (16, [])
    reply = await ask(world.client, "ann", f"{APPS}/PodLogs", {"name": "three"})
    assert (reply.status, reply.messages) == (7, [])
