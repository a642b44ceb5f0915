"""A too deeply nested object is truncated and named in the log; the other objects of its kind stay readable."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import ClusterError, TransientError
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.client.cluster_client import KubeCluster, connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.deep_json_truncation import (
    MAX_TOKENS,
    TRUNCATION_LEVEL,
    TRUNCATION_MARK,
    read_deep_json,
    truncate_objects,
)
from argosy.kube.client.response_validator import read_event, read_response_json
from argosy.kube.client.transport import encode_json
from argosy.kube.controller.cache import InformerCache
from argosy.kube.controller.clock import SystemClock
from argosy.kube.controller.informer import Informer
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP
from support.deadlines import wait_until_async
from support.lying_cluster import LyingCluster, Request, chunked, http_answer

pytestmark = pytest.mark.anyio
KEY = ResourceKey("", "ConfigMap", "ml", "deep")


def nested(levels: int, sign: str = "{}") -> str:
    opening = '{"a":' if sign == "{}" else "["
    return opening * levels + "1" + sign[1] * levels


def manifest_text(name: str, data: str, version: str = "1") -> str:
    metadata = json.dumps({"name": name, "namespace": "ml", "uid": name, "resourceVersion": version})
    return f'{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {metadata}, "data": {data}}}'


def depth_of(value: Any) -> int:
    depth, containers = 0, [value]
    while containers:
        depth += 1
        children = [
            child
            for container in containers
            for child in (container.values() if isinstance(container, dict) else container)
        ]
        containers = [child for child in children if isinstance(child, dict | list)]
    return depth


@contextlib.asynccontextmanager
async def cluster_with(data: str) -> AsyncIterator[KubeCluster]:
    """A cluster with three objects, the second deeply nested: in lists, watches and responses to writes."""
    items = [manifest_text("first", '{"a": "1"}'), manifest_text("deep", data), manifest_text("last", '{"a": "[{"}')]

    def answer(request: Request) -> bytes | None:
        if request.is_watch:
            events = [f'{{"type": "MODIFIED", "object": {item}}}\n' for item in items]
            return chunked("".join(events).encode())
        if request.route.endswith("/configmaps"):
            return http_answer(f'{{"metadata": {{"resourceVersion": "1"}}, "items": [{",".join(items)}]}}'.encode())
        return http_answer(items[1].encode()) if request.route.endswith("/deep") else None

    async with LyingCluster(answer).serving() as server, await connect(Connection(server.address)) as cluster:
        yield cluster


DEPTHS = {
    "255 levels": nested(255), "1000 levels": nested(1000), "1022 levels of lists": nested(1022, "[]"),
    "3000 levels": nested(3000), "9000 levels of lists": nested(9000, "[]"),
    "wide and deep": f'{{"x": {nested(300)}, "y": [{nested(1500)}], "z": "kept"}}',
}  # fmt: skip


@pytest.mark.parametrize("name", DEPTHS)
async def test_list_returns_all_objects_and_logs_the_truncated_one(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async with cluster_with(DEPTHS[name]) as cluster:
        manifests = (await cluster.list(CONFIG_MAP, namespace="ml")).items
    assert [item["metadata"]["name"] for item in manifests] == ["first", "deep", "last"]
    assert [manifests[0]["data"], manifests[2]["data"]] == [{"a": "1"}, {"a": "[{"}]
    assert depth_of(manifests[1]) == TRUNCATION_LEVEL + 1  # the last level is an empty container
    (line,) = [record.getMessage() for record in caplog.records if "levels deep" in record.getMessage()]
    assert "ml/deep" in line


@pytest.mark.parametrize("name", DEPTHS)
async def test_watch_continues_after_a_truncated_object(name: str) -> None:
    async with cluster_with(DEPTHS[name]) as cluster:
        events = [event async for event in cluster.watch(CONFIG_MAP, since="1", namespace="ml")]
    assert [event.manifest["metadata"]["name"] for event in events] == ["first", "deep", "last"]
    assert depth_of(events[1].manifest) == TRUNCATION_LEVEL + 1


@pytest.mark.parametrize("call", ["get", "apply", "patch"])
async def test_deep_object_can_be_read_and_written(call: str) -> None:
    async with cluster_with(nested(2000)) as cluster:
        manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "deep", "namespace": "ml"}}
        match call:
            case "get":
                config_map = await cluster.get(KEY)
            case "apply":
                config_map = await cluster.apply(manifest, manager="argosy")
            case _:
                config_map = await cluster.patch(KEY, {"data": {}})
    assert config_map is not None
    assert config_map["metadata"]["uid"] == "deep"


async def test_informer_caches_all_objects_of_the_kind() -> None:
    async with cluster_with(nested(5000)) as cluster:
        cache = InformerCache()
        async with _informed(cluster, cache):
            await wait_until_async(lambda: len(list(cache.keys(CONFIG_MAP))) == 3)


@contextlib.asynccontextmanager
async def _informed(cluster: Cluster, cache: InformerCache) -> AsyncIterator[None]:
    informer = Informer(cluster, CONFIG_MAP, cache, clock=SystemClock(), namespace="ml")
    task = asyncio.create_task(informer.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("levels", [230, 249, 250, 251, 252, 253, 254, 255, 1020, 1021, 1022, 1023, 1024])
@pytest.mark.parametrize("neighbour", ["{}", nested(300), nested(2000)], ids=["flat", "deep", "deeper"])
async def test_object_is_truncated_the_same_in_lists_watches_and_get(levels: int, neighbour: str) -> None:
    text = manifest_text("deep", nested(levels))
    in_list = read_response_json(f'{{"items": [{manifest_text("other", neighbour)}, {text}]}}'.encode(), "host")[
        "items"
    ][1]
    event = f'{{"type": "MODIFIED", "object": {text}}}'.encode()
    in_watch = read_event(event, CONFIG_MAP, "ml", "host", is_namespaced=True)
    assert in_watch is not None
    assert in_list == in_watch[1] == read_response_json(text.encode(), "host")


@pytest.mark.parametrize("sign", ["{}", "[]"])
async def test_truncated_content_is_never_written_back(sign: str) -> None:
    async with cluster_with(nested(2000, sign)) as cluster:
        live = await cluster.get(KEY)
        assert live is not None
        operation = {"op": "replace", "path": "/data", "value": live["data"]}
        writes = [
            lambda: cluster.apply(live, manager="argosy"),
            lambda: cluster.patch(KEY, {"data": live["data"]}),
            lambda: cluster.patch(KEY, [operation], kind_of_patch=PatchKind.JSON),
        ]
        for write in writes:
            with pytest.raises(ClusterError, match="nested more than 200 levels deep") as refused:
                await write()
            assert refused.value.code == 400 and "would delete" in str(refused.value)


def test_text_similar_to_the_truncation_mark_can_be_written() -> None:
    for text in (
        TRUNCATION_MARK,
        json.dumps([TRUNCATION_MARK]),
        json.dumps({TRUNCATION_MARK: ""}, separators=(",", ":")),
    ):
        assert json.loads(encode_json({"data": {"a": text}}, KEY)) == {"data": {"a": text}}


def test_objects_within_the_depth_limit_of_git_are_not_truncated() -> None:
    item = json.loads(manifest_text("deep", nested(240)))
    assert truncate_objects(item) == []
    deep = {"items": [json.loads(manifest_text("deep", nested(300)))]}
    assert truncate_objects(deep) == ["ml/deep"]
    value, levels = deep["items"][0]["data"], 0
    while "a" in value:
        value, levels = value["a"], levels + 1
    assert levels >= 150


@pytest.mark.parametrize("text", [
    b"[" * 100_000, b'{"a":' * 5000, b"]" * 3000 + b"[" * 3000, b"[" * 3000 + b"}" * 3000, b'["' + b"[" * 5000,
    b"[" * (MAX_TOKENS + 5) + b"]" * (MAX_TOKENS + 5),
])  # fmt: skip
def test_deep_text_that_is_invalid_or_too_large_is_a_json_error(text: bytes) -> None:
    with pytest.raises(json.JSONDecodeError):
        read_deep_json(text)


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "deeps.x.io"},
    "spec": {
        "group": "x.io", "scope": "Namespaced", "names": {"plural": "deeps", "singular": "deep", "kind": "Deep"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}],
    },
}  # fmt: skip


async def test_sandbox_refuses_too_deep_patches_and_still_lists_the_kind(cluster: Cluster) -> None:
    await cluster.create(DEFINITION)

    async def is_served() -> bool:
        return GroupKind("x.io", "Deep") in await cluster.kinds()

    await wait_until_async(is_served)
    key = ResourceKey("x.io", "Deep", "default", "deep")
    for name in ("deep", "flat"):
        metadata = {"name": name, "namespace": "default"}
        spec = json.loads(nested(80))
        await cluster.create({"apiVersion": "x.io/v1", "kind": "Deep", "metadata": metadata, "spec": spec})
    with pytest.raises(ClusterError, match="nested more than 250 levels deep") as refused:
        for step in range(1, 10):
            operation = {"op": "replace", "path": "/spec" + "/a" * 40 * step, "value": json.loads(nested(80))}
            await cluster.patch(key, [operation], kind_of_patch=PatchKind.JSON)
    assert refused.value.code == 400
    assert not isinstance(refused.value, TransientError)
    assert len((await cluster.list(GroupKind("x.io", "Deep"), namespace="default")).items) == 2
