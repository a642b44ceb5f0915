"""Work on large objects runs off the event loop: other requests are served meanwhile, and no write is lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from argosy.errors import Conflict
from argosy.kube.objects import Manifest
from argosy.kube.schema import protobuf_writer
from argosy.kube.schema.builtin_go_struct_fields import Type
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.http.content_negotiation import ResponseFormat
from argosy.sandbox.apiserver.http.protobuf_yaml_list_encoder import MAX_LIST_JOB_BYTES, group_entries
from argosy.sandbox.apiserver.http.response_encoding import ResponseEncoder
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.apiserver.listing import ListOptions
from argosy.sandbox.apiserver.off_loop_work import LARGE_BYTES, MAX_WRITE_JOBS_BEFORE_READ, OffLoopExecutor
from argosy.sandbox.apiserver.registry import MAX_LARGE_ATTEMPTS
from argosy.sandbox.apiserver.write_call_and_result_types import RegistryCall
from support.api_client import CONFIGS, Api, config, deployment
from support.deadlines import HANG_SECONDS
from support.loop_clock import turns

pytestmark = pytest.mark.anyio
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
YAML = "application/yaml"
LARGE_TEXT = "x" * LARGE_BYTES


def with_variables(count: int = 3000) -> dict[str, Any]:
    manifest = deployment("large")
    [container] = manifest["spec"]["template"]["spec"]["containers"]
    container["env"] = [{"name": f"E{number}", "value": "1"} for number in range(count)]
    return manifest


@asynccontextmanager
async def busy(work: OffLoopExecutor) -> AsyncIterator[threading.Event]:
    """Occupy the thread for large work until the event is set or the block ends."""
    started, gate = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        gate.wait(HANG_SECONDS)

    holding = asyncio.create_task(work.run("somebody", LARGE_BYTES, hold))
    while not started.is_set():
        await asyncio.sleep(0.001)
    try:
        yield gate
    finally:
        gate.set()
        await holding


@pytest.mark.parametrize("way", ["apply", "create", "create as YAML", "patch", "replace"])
async def test_server_responds_while_a_large_write_is_in_progress(api: Api, plane: ControlPlane, way: str) -> None:
    large, where = with_variables(), f"{DEPLOYMENTS}/large"
    if way in ("patch", "replace"):
        await api.made(DEPLOYMENTS, deployment("large"))
    writes = {
        "apply": lambda: api.apply(where, large),
        "create": lambda: api.post(DEPLOYMENTS, large),
        "create as YAML": lambda: api.post(DEPLOYMENTS, large, YAML),
        "patch": lambda: api.patch(where, large),
        "replace": lambda: api.put(where, large),
    }
    async with busy(plane.registry.off_loop_executor):
        writing = asyncio.create_task(writes[way]())
        await turns()
        assert (await api.get("/readyz")).code == 200
        assert (await api.post(CONFIGS, config("small"))).code == 201
        assert not writing.done()
    written = await asyncio.wait_for(writing, HANG_SECONDS)
    assert written.code in (200, 201), written.message
    [container] = written.json["spec"]["template"]["spec"]["containers"]
    assert len(container["env"]) == 3000


PADDING = {"metadata": {"annotations": {"a": LARGE_TEXT}}}
TOKENS = "/api/v1/namespaces/default/serviceaccounts/default/token"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
FINALIZE = "/api/v1/namespaces/default/finalize"


@pytest.mark.parametrize("way", ["options of a deletion", "token request", "review", "finalize"])
async def test_large_bodies_that_are_not_stored_objects_do_not_block_the_loop(
    api: Api, plane: ControlPlane, way: str
) -> None:
    await api.made(CONFIGS, config("a"))
    calls = {
        "options of a deletion": lambda: api.delete(f"{CONFIGS}/a", {"kind": "DeleteOptions", "x": LARGE_TEXT}),
        "token request": lambda: api.post(TOKENS, {**PADDING, "spec": {}}),
        "review": lambda: api.post(
            REVIEWS, {**PADDING, "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}
        ),
        "finalize": lambda: api.put(FINALIZE, {"metadata": {"name": "default", **PADDING["metadata"]}, "spec": {}}),
    }
    async with busy(plane.registry.off_loop_executor):
        asking = asyncio.create_task(calls[way]())
        await turns()
        assert (await api.get("/readyz")).code == 200
        assert not asking.done()
    assert (await asyncio.wait_for(asking, HANG_SECONDS)).code < 300


async def test_small_change_of_a_large_object_does_not_block_the_loop(api: Api, plane: ControlPlane) -> None:
    await api.made(CONFIGS, config("large", {"text": LARGE_TEXT}))
    async with busy(plane.registry.off_loop_executor):
        writing = asyncio.create_task(api.patch(f"{CONFIGS}/large", {"metadata": {"labels": {"a": "b"}}}))
        reading = asyncio.create_task(api.get(f"{CONFIGS}/large", "application/yaml"))
        await turns()
        assert (await api.get(f"{CONFIGS}/large")).code == 200  # sent as stored, without any work
        assert not writing.done() and not reading.done()
    assert (await writing).code == 200 and (await reading).code == 200


async def test_in_process_large_apply_runs_off_the_loop(plane: ControlPlane) -> None:
    cluster = EmbeddedCluster(plane)
    large = with_variables()
    large["metadata"]["namespace"] = "default"
    async with busy(plane.registry.off_loop_executor):
        applying = asyncio.create_task(cluster.apply(large, manager="engine"))
        await turns()
        assert not applying.done()
    assert (await applying)["metadata"]["name"] == "large"


async def test_concurrent_write_during_a_large_change_is_kept(api: Api, plane: ControlPlane) -> None:
    await api.made(CONFIGS, config("a"))
    served = plane.registry.catalog.find_resource("", "v1", "configmaps")
    assert served is not None
    entered, gate, resource_versions = threading.Event(), threading.Event(), []

    def change(old: Manifest) -> tuple[Manifest, Sequence[str]]:
        resource_versions.append(old["metadata"]["resourceVersion"])
        entered.set()
        gate.wait(HANG_SECONDS)
        return {**old, "data": {"text": "large"}}, ()

    call = RegistryCall(body_bytes=LARGE_BYTES)
    changing = asyncio.create_task(plane.registry.read_modify_write(served, "default", "a", change, call, ""))
    while not entered.is_set():
        await asyncio.sleep(0.001)
    await api.patch(f"{CONFIGS}/a", {"metadata": {"labels": {"by": "another"}}})
    gate.set()
    written = (await changing).manifest
    assert written["data"] == {"text": "large"} and written["metadata"]["labels"] == {"by": "another"}
    assert len(resource_versions) == 2 and resource_versions[0] != resource_versions[1]


async def test_large_change_that_always_loses_the_race_is_a_conflict(api: Api, plane: ControlPlane) -> None:
    await api.made(CONFIGS, config("a"))
    served = plane.registry.catalog.find_resource("", "v1", "configmaps")
    assert served is not None
    entered, left, tries = threading.Event(), threading.Event(), 0

    def change(old: Manifest) -> tuple[Manifest, Sequence[str]]:
        nonlocal tries
        tries += 1
        left.clear()
        entered.set()
        left.wait(HANG_SECONDS)
        return {**old, "data": {"text": "large"}}, ()

    call = RegistryCall(body_bytes=LARGE_BYTES)
    changing = asyncio.create_task(plane.registry.read_modify_write(served, "default", "a", change, call, ""))
    while not changing.done():
        if entered.is_set():
            entered.clear()
            await api.patch(f"{CONFIGS}/a", {"data": {"count": str(tries)}})
            left.set()
        await asyncio.sleep(0.001)
    with pytest.raises(Conflict):
        await changing
    assert tries == MAX_LARGE_ATTEMPTS


async def test_users_take_turns_with_large_jobs() -> None:
    work = OffLoopExecutor()
    order: list[str] = []
    async with busy(work):
        jobs = [asyncio.create_task(work.run("a", LARGE_BYTES, order.append, f"a{number}")) for number in range(3)]
        await turns()
        jobs.append(asyncio.create_task(work.run("b", LARGE_BYTES, order.append, "b")))
        await turns()
    await asyncio.gather(*jobs)
    assert order == ["a0", "b", "a1", "a2"]


@pytest.mark.parametrize("user", ["another", "a"])
async def test_large_writes_run_before_large_reads(user: str) -> None:
    work = OffLoopExecutor()
    order: list[str] = []
    async with busy(work):
        jobs = [asyncio.create_task(work.run_read(user, LARGE_BYTES, order.append, f"read {n}")) for n in range(3)]
        await turns()
        jobs += [asyncio.create_task(work.run("a", LARGE_BYTES, order.append, f"write {n}")) for n in range(3)]
        await turns()
    await asyncio.gather(*jobs)
    assert order == ["write 0", "write 1", "write 2", "read 0", "read 1", "read 2"]


async def test_steps_of_a_large_write_run_without_a_read_between_them() -> None:
    work = OffLoopExecutor()
    order: list[str] = []

    async def write() -> None:
        for step in range(3):
            await work.run("a", LARGE_BYTES, order.append, f"write {step}")

    async with busy(work):
        reading = asyncio.create_task(work.run_read("b", LARGE_BYTES, order.append, "read"))
        writing = asyncio.create_task(write())
        await turns()
    await asyncio.gather(reading, writing)
    assert order == ["write 0", "write 1", "write 2", "read"]


async def test_large_read_is_not_starved_by_large_writes() -> None:
    work = OffLoopExecutor()
    reading = asyncio.Event()
    written = 0

    async def write_until_read(user: str) -> None:
        nonlocal written
        while not reading.is_set():
            await work.run(user, LARGE_BYTES, int)
            written += 1

    async def read() -> None:
        await work.run_read("reader", LARGE_BYTES, int)
        reading.set()

    async with busy(work):
        writers = [asyncio.create_task(write_until_read(f"writer {number}")) for number in range(3)]
        reader = asyncio.create_task(read())
        await turns()
    await asyncio.wait_for(asyncio.gather(reader, *writers), HANG_SECONDS)
    assert written >= MAX_WRITE_JOBS_BEFORE_READ


async def test_cancelled_waiting_job_leaves_the_queue() -> None:
    work = OffLoopExecutor()
    order: list[str] = []
    async with busy(work):
        left = asyncio.create_task(work.run("a", LARGE_BYTES, order.append, "left"))
        await turns()
        left.cancel()
        await asyncio.wait({left})
        remaining = asyncio.create_task(work.run("b", LARGE_BYTES, order.append, "kept"))
        await turns()
    await asyncio.wait_for(remaining, HANG_SECONDS)
    assert order == ["kept"]


async def test_large_write_finishes_before_a_large_list_in_progress(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        await api.made(CONFIGS, config(f"c{number}", {"text": "x" * 700_000}))
    entered, has_arrived, is_written = threading.Event(), threading.Event(), threading.Event()
    encode_message = protobuf_writer.encode_message

    def gated(type_: Type, value: Manifest) -> bytes:
        name = (value.get("metadata") or {}).get("name")
        if name == "c0":
            entered.set()
            has_arrived.wait(HANG_SECONDS)
        elif name == "c5":
            is_written.wait(HANG_SECONDS)
        return encode_message(type_, value)

    monkeypatch.setattr(protobuf_writer, "encode_message", gated)
    order: list[str] = []
    listing = asyncio.create_task(api.get(CONFIGS, "application/vnd.kubernetes.protobuf"))
    listing.add_done_callback(lambda _: order.append("list"))
    while not entered.is_set():
        await asyncio.sleep(0.001)
    writing = asyncio.create_task(api.post(CONFIGS, config("large", {"text": LARGE_TEXT})))
    writing.add_done_callback(lambda _: (order.append("write"), is_written.set()))
    await turns()
    has_arrived.set()
    assert [(await writing).code, (await listing).code] == [201, 200]
    assert order == ["write", "list"]


FORMS = [
    ResponseFormat("protobuf"),
    ResponseFormat("protobuf", "PartialObjectMetadataList"),
    *[
        ResponseFormat(encoding, representation)
        for encoding in ("yaml", "json")
        for representation in ("", "Table", "PartialObjectMetadataList")
    ],
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(filter(None, form)))
@pytest.mark.parametrize("job_bytes", [1, 1000, MAX_LIST_JOB_BYTES])
async def test_list_encoded_in_jobs_equals_list_encoded_at_once(
    api: Api, plane: ControlPlane, form: ResponseFormat, job_bytes: int
) -> None:
    texts = ["", "items:\n- items\n", "rows:\n- rows\n", "]\n}", "x" * 500, "\u2028 \U0001f600"]
    for number, text in enumerate(texts):
        await api.made(CONFIGS, config(f"c{number}", {"text": text, "items": text}))
    served = plane.registry.catalog.find_resource("", "v1", "configmaps")
    assert served is not None
    page = await plane.lister.list_page(served, "default", ListOptions(limit=4))
    assert page.continue_token
    now = plane.registry.clock()
    rendering = ResponseEncoder(served, form, {"pretty": "true", "includeObject": "Object"}, lambda: now)
    parts = [rendering.encode_page_items(group) for group in group_entries(page.entries, job_bytes)]
    assert len(parts) == {1: 4, MAX_LIST_JOB_BYTES: 1}.get(job_bytes, len(parts))
    assert rendering.join_page(page, parts) == rendering.encode_page(page)
