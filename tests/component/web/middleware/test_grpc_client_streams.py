"""Files that a client streams: rendered as the Application's own, under its permissions, and never written."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import json
import re
import struct
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from argosy.features.applications.read.sent_files_api import MAX_BODY_BYTES, MAX_QUERY_BYTES
from argosy.gitops.source.archive_tree import MAX_ARCHIVE_BYTES, MAX_UNPACKED_BYTES
from argosy.web.request_limits import MAX_UPLOADS_PER_CALLER
from support.deadlines import wait_until_async
from support.grpc_native import NativeClient, ask_native
from support.grpc_web import Reply, call_raw, encode_request, frame
from support.grpc_world import grpc_world
from support.rest_api import World
from support.sent_files import build_documents, pack

METHOD = "/application.ApplicationService/GetManifestsWithFiles"
ROUTE = "/api/v1/applications/manifestsWithFiles"
CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {key: local}\n"
KUSTOMIZATION = "resources: [%s]\nnamePrefix: my-\n"
QUERY = frame(encode_request(METHOD, {"query": {"name": "one", "checksum": "x"}}))
pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with grpc_world(tmp_path_factory, "one", projects=("default", "team")) as opened:
        await opened.add_applications("two", project="team")
        yield opened


async def render(world: World, files: Mapping[str, str | bytes], who: str = "ann", **query: str) -> Reply:
    documents = build_documents(pack(files), **query)
    return await asyncio.to_thread(ask_native, world.client.port, who, METHOD, documents)


def names(reply: Reply) -> list[str]:
    return [json.loads(text)["metadata"]["name"] for text in reply.document()["manifests"]]


async def test_files_are_rendered_at_the_path_of_the_application(world: World) -> None:
    reply = await render(world, {"app/a.yaml": CONFIG % "a", "app/b.yaml": CONFIG % "b", "other/c.yaml": CONFIG % "c"})
    assert names(reply) == ["a", "b"]
    document = reply.document()
    manifest = json.loads(document["manifests"][0])
    assert (manifest["data"], manifest["metadata"].get("namespace")) == ({"key": "local"}, None)
    assert manifest["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] == "one:/ConfigMap:ml/a"
    assert (document["namespace"], document["sourceType"]) == ("ml", "Directory")


async def test_a_kustomization_is_rendered_with_its_base(world: World) -> None:
    files = {
        "app/kustomization.yaml": KUSTOMIZATION % "../base", "base/kustomization.yaml": "resources: [a.yaml]\n",
        "base/a.yaml": CONFIG % "a",
    }  # fmt: skip
    reply = await render(world, files)
    assert (names(reply), reply.document()["sourceType"]) == (["my-a"], "Kustomize")


async def test_the_same_files_give_the_same_and_others_do_not(world: World) -> None:
    for text in ("a", "b", "a"):
        assert names(await render(world, {"app/a.yaml": CONFIG % text})) == [text]


async def test_rest_and_grpc_web_take_the_same_documents(world: World) -> None:
    documents = list(build_documents(pack({"app/a.yaml": CONFIG % "a"})))
    web = b"".join(frame(encode_request(METHOD, document)) for document in documents)
    assert names(await asyncio.to_thread(call_raw, world.client, METHOD, web, {"token": "ann"})) == ["a"]
    lines = b"\n".join(json.dumps(document).encode() for document in documents)
    answer = await world.raw("POST", ROUTE, lines, authorization="Bearer ann", content_type="application/json")
    assert [json.loads(text)["metadata"]["name"] for text in answer.json()["manifests"]] == ["a"]


async def test_a_secret_that_is_sent_is_returned_masked(world: World) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: canary-of-a-file}\n"
    reply = await render(world, {"app/s.yaml": secret})
    assert (reply.status, b"canary" in b"".join(reply.messages)) == (0, False)


async def test_who_may_not_get_the_application_gets_the_same_answer_as_for_a_missing_one(world: World) -> None:
    files = {"app/a.yaml": CONFIG % "a"}
    denied = (7, "permission denied")
    for who, name in (("bob", "one"), ("cid", "one"), ("ann", "three")):
        reply = await render(world, files, who, name=name)
        assert (reply.status, reply.message) == denied, (who, name)
    assert names(await render(world, files, "cid", name="two")) == ["a"]
    assert names(await render(world, files, "dan", name="two", project="team", appNamespace="argocd")) == ["a"]
    assert (await render(world, files, "")).status == 16


async def test_no_repository_is_read_for_a_remote_base(world: World) -> None:
    world.repository.push({"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": CONFIG % "remote"})
    base = f"{world.repository.url}//base?ref=main"
    reply = await render(world, {"app/kustomization.yaml": KUSTOMIZATION % base})
    assert reply.status != 0
    assert "remote bases are not fetched" in reply.message


@pytest.mark.parametrize(("documents", "problem"), [
    ([], "cardinality violation"),
    ([{"chunk": {"chunk": "eA=="}}], "the first document needs the field query"),
    ([{"query": {"checksum": "x"}}], "application name is missing"),
    ([{"query": {"name": "one", "checksum": "x"}}], "file checksum validation error"),
    ([{"query": {"name": "one", "checksum": hashlib.sha256(b"").hexdigest()}}], "not compressed|truncated"),
    ([*build_documents(b"no archive")], "not compressed"),
    ([*build_documents(pack({"../a": "x"}))], "path with .."),
    ([*build_documents(gzip.compress(bytes(MAX_UNPACKED_BYTES + 1)))], "more than [0-9]+ bytes unpacked"),
    ([*build_documents(pack({"app/a.yaml": "apiVersion: v1\nkind: [ConfigMap"}))], "a.yaml"),
    ([*build_documents(pack({"other/a.yaml": ""}))], "app path does not exist"),
])  # fmt: skip
async def test_files_that_cannot_be_rendered_are_refused(world: World, documents: list[Any], problem: str) -> None:
    reply = await asyncio.to_thread(ask_native, world.client.port, "ann", METHOD, documents)
    assert reply.status != 0
    assert re.search(problem, reply.message), reply.message
    assert "internal server error" not in reply.message


async def test_an_archive_that_is_too_large_is_refused(world: World) -> None:
    documents = build_documents(bytes(MAX_ARCHIVE_BYTES + 1), size=1 << 20)
    reply = await asyncio.to_thread(ask_native, world.client.port, "ann", METHOD, documents)
    assert (reply.status, "max size" in reply.message) == (3, True)

    def send_without_end() -> Reply:
        with NativeClient(world.client.port) as client:
            stream = client.begin(METHOD, {"token": "ann"})
            client.send(stream, QUERY)
            part = frame(encode_request(METHOD, {"chunk": {"chunk": base64.b64encode(bytes(60_000)).decode()}}))
            for _ in range(MAX_BODY_BYTES // len(part) + 2):
                if not client.send(stream, part):
                    break
            return client.read(stream, METHOD)

    assert (await asyncio.to_thread(send_without_end)).status == 8


async def test_permission_is_checked_before_the_files_are_sent(world: World) -> None:
    def send_query_only() -> Reply:
        with NativeClient(world.client.port) as client:
            stream = client.begin(METHOD, {"token": "bob"})
            client.send(stream, QUERY)
            return client.read(stream, METHOD)

    reply = await asyncio.to_thread(send_query_only)
    assert (reply.status, reply.message) == (7, "permission denied")


@pytest.mark.parametrize("size", [MAX_QUERY_BYTES, 8 << 20])
async def test_a_query_that_is_larger_than_any_real_one_is_refused(world: World, size: int) -> None:
    def send_header_of_frame() -> Reply:
        with NativeClient(world.client.port) as client:
            stream = client.begin(METHOD, {"token": "ann"})
            client.send(stream, frame(b"", 0x80) + struct.pack(">BI", 0, size + 1))
            return client.read(stream, METHOD)

    reply = await asyncio.to_thread(send_header_of_frame)
    assert (reply.status, "larger than max" in reply.message) == (8, True)
    line = json.dumps({"query": {"name": "one", "checksum": "x" * size}}).encode()[: size + 1]
    answer = await world.raw("POST", ROUTE, line, authorization="Bearer ann", content_type="application/json")
    assert (answer.code, "first line of the body" in answer.body.decode()) == (413, True)


async def test_uploads_that_are_not_complete_count_until_they_end(world: World) -> None:
    files = {"app/a.yaml": CONFIG % "a"}
    with NativeClient(world.client.port) as client:

        def begin_uploads() -> None:
            for _ in range(MAX_UPLOADS_PER_CALLER):
                client.send(client.begin(METHOD, {"token": "ann"}), QUERY)

        await asyncio.to_thread(begin_uploads)

        async def is_refused() -> bool:
            reply = await render(world, files)
            return (reply.status, "too many uploads" in reply.message) == (8, True)

        await wait_until_async(is_refused)
        assert (await render(world, files, "dan", name="two")).status == 0

    async def is_accepted() -> bool:
        return (await render(world, files)).status == 0

    await wait_until_async(is_accepted)


async def test_uploads_of_one_caller_are_few_at_once(world: World) -> None:
    limits = world.site.state.concurrency_limits
    with limits.limit_upload("ann"), limits.limit_upload("ann"):
        reply = await render(world, {"app/a.yaml": CONFIG % "a"})
        assert (reply.status, "too many uploads" in reply.message) == (8, True)
        assert (await render(world, {"app/a.yaml": CONFIG % "a"}, "dan")).status == 0
