"""Object size limits: the limits of a real API server and its etcd, and rejection before expensive work."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from argosy.kube.patch import server_side_apply
from argosy.sandbox.apiserver import storage_encoding_and_size_check
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.http.request_and_response_io import MAX_BODY_BYTES
from argosy.sandbox.apiserver.http.request_bodies import BODY_LIMITS
from argosy.sandbox.apiserver.off_loop_work import LARGE_BYTES
from argosy.sandbox.apiserver.storage_encoding_and_size_check import MAX_STORED_BYTES
from support.api_client import (
    APPLY,
    CONFIGS,
    DEFINITIONS,
    JSON_PATCH,
    MERGE,
    WIDGETS,
    Api,
    config,
    definition,
    eventually,
    version,
    widget,
)
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio
TOO_LARGE = "etcdserver: request is too large"
ENTRY = {"type": "object", "required": ["n"], "properties": {"n": {"type": "string"}, "v": {"type": "string"}}}
KEYED = {"type": "array", "items": ENTRY, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"]}
SPEC = {"type": "object", "properties": {"entries": KEYED, "text": {"type": "string"}, "size": {"type": "integer"}}}


def entries(count: int) -> list[dict[str, str]]:
    return [{"n": str(number), "v": "1"} for number in range(count)]


async def define(api: Api) -> None:
    await api.made(DEFINITIONS, definition(version(spec=SPEC)))

    async def served() -> bool:
        return (await api.get(WIDGETS)).code == 200

    await eventually(served, HANG_SECONDS)


async def test_body_over_3_mib_returns_413(api: Api) -> None:
    refused = await api.post(CONFIGS, b" " * (MAX_BODY_BYTES + 1))
    status = refused.json
    assert (refused.code, status["reason"]) == (413, "RequestEntityTooLarge")
    assert status["message"] == f"Request entity too large: limit is {MAX_BODY_BYTES}"


@pytest.mark.parametrize("way", ["create", "apply", "patch", "replace"])
async def test_object_over_the_etcd_limit_is_rejected_with_the_etcd_message(api: Api, way: str) -> None:
    await define(api)
    large = widget("a", text="x" * MAX_STORED_BYTES)
    created = await api.made(WIDGETS, widget("a", size=1)) if way in ("patch", "replace") else None
    before = await api.get(f"{WIDGETS}/a")
    match way:
        case "create":
            refused = await api.post(WIDGETS, large)
        case "apply":
            refused = await api.apply(f"{WIDGETS}/a", large)
        case "patch":
            refused = await api.patch(f"{WIDGETS}/a", {"spec": large["spec"]})
        case _:
            refused = await api.put(f"{WIDGETS}/a", {**(created or {}), "spec": large["spec"]})
    assert (refused.code, refused.message) == (500, TOO_LARGE)
    after = await api.get(f"{WIDGETS}/a")
    assert (after.code, after.body) == (before.code, before.body)


async def store_too_large_widget(api: Api, monkeypatch: pytest.MonkeyPatch, **metadata: Any) -> dict[str, Any]:
    """Store an object over the limit, as if an earlier version had written it."""
    await define(api)
    too_large = widget("a", text="x" * (MAX_STORED_BYTES + 200_000), entries=entries(200))
    too_large["metadata"].update(metadata)
    with monkeypatch.context() as without_limit:
        without_limit.setattr(storage_encoding_and_size_check, "MAX_STORED_BYTES", MAX_BODY_BYTES)
        applied = await api.apply(f"{WIDGETS}/a", too_large)
    assert applied.code == 201, applied.message
    return too_large


async def test_oversized_object_can_lose_its_finalizers_and_is_then_deleted(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_too_large_widget(api, monkeypatch, finalizers=["example.com/a", "example.com/b"])
    assert (await api.delete(f"{WIDGETS}/a")).code == 200
    for left in (["example.com/b"], None):
        released = await api.patch(f"{WIDGETS}/a", {"metadata": {"finalizers": left}})
        assert released.code == 200, released.message
    assert (await api.get(f"{WIDGETS}/a")).code == 404


async def test_patch_that_removes_the_last_finalizer_skips_the_size_limit(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_too_large_widget(api, monkeypatch, finalizers=["example.com/a"])
    await api.delete(f"{WIDGETS}/a")
    last = {"metadata": {"finalizers": None, "annotations": {"why": "x" * 1000}}}
    assert (await api.patch(f"{WIDGETS}/a", last)).code == 200
    assert (await api.get(f"{WIDGETS}/a")).code == 404


async def test_oversized_object_can_shrink_and_be_reapplied_but_not_grow(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    too_large = await store_too_large_widget(api, monkeypatch)
    same = await api.apply(f"{WIDGETS}/a", too_large)
    assert same.code == 200, same.message
    grown = await api.patch(f"{WIDGETS}/a", {"metadata": {"labels": {"a": "b"}}})
    assert (grown.code, grown.message) == (500, TOO_LARGE)
    shrunk = await api.patch(f"{WIDGETS}/a", {"spec": {"text": "x" * MAX_STORED_BYTES}})
    assert shrunk.code == 200, shrunk.message
    assert (await api.apply(f"{WIDGETS}/a", widget("a", text="x"), more="&force=true")).code == 200


async def test_object_below_the_limit_is_stored(api: Api) -> None:
    await define(api)
    assert (await api.post(WIDGETS, widget("a", text="x" * (MAX_STORED_BYTES - 2000)))).code == 201


async def test_built_in_object_size_is_measured_as_protobuf(api: Api) -> None:
    text = "\x01" * (1000 * 1024)  # six bytes each in JSON, one in protobuf: below the 1 MiB of a ConfigMap
    body = orjson.dumps(config("a"))[:-1] + b',"binaryData":{}}'
    assert (await api.post(CONFIGS, body)).code == 201
    escaped = orjson.dumps({"data": {"text": text[: 500 * 1024]}})
    assert MAX_STORED_BYTES < len(escaped) < MAX_BODY_BYTES + 1
    assert (await api.patch(f"{CONFIGS}/a", escaped)).code == 200


async def test_apply_with_oversized_managed_fields_is_rejected_before_the_merge(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    await define(api)

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("it was merged")

    monkeypatch.setattr(server_side_apply, "apply", never)
    refused = await api.apply(f"{WIDGETS}/a", widget("a", entries=entries(40_000)))
    assert (refused.code, refused.message) == (500, TOO_LARGE)


async def test_json_and_yaml_share_the_value_count_limit(api: Api) -> None:
    many = b'{"a":[' + b"1," * BODY_LIMITS.nodes + b"1]}"
    block = b"a:\n" + b"- 1\n" * BODY_LIMITS.nodes
    for media, body in (("application/json", many), ("application/yaml", many), ("application/yaml", block)):
        refused = await api.post(CONFIGS, body, media)
        assert refused.code == 400 and f"more than {BODY_LIMITS.nodes} values" in refused.message
    for patch in (APPLY, MERGE):
        refused = await api.patch(f"{CONFIGS}/a?fieldManager=m", many, patch)
        assert refused.code == 400 and f"more than {BODY_LIMITS.nodes} values" in refused.message


async def test_small_body_that_expands_to_a_large_object_is_processed_off_loop(api: Api, plane: ControlPlane) -> None:
    sizes: list[int] = []
    run = plane.registry.off_loop_executor.run

    async def noting(user: str, size: int, function: Any, *args: Any) -> Any:
        sizes.append(size)
        return await run(user, size, function, *args)

    plane.registry.off_loop_executor.run = noting  # type: ignore[method-assign]
    await api.made(CONFIGS, config("a", {"k": "x" * 1000}))
    assert max(sizes) < LARGE_BYTES
    copies = [{"op": "copy", "from": "/data/k", "path": f"/data/k{number}"} for number in range(200)]
    assert (await api.patch(f"{CONFIGS}/a", copies, JSON_PATCH)).code == 200
    assert max(sizes) >= LARGE_BYTES
    sizes.clear()
    lines = ["apiVersion: v1", "kind: ConfigMap", "metadata: {name: b}", f"data: {{k: &t {'x' * 1000},"]
    aliased = "\n".join(lines) + ",".join(f"k{number}: *t" for number in range(200)) + "}"
    assert (await api.post(CONFIGS, aliased.encode(), "application/yaml")).code == 201
    assert max(sizes) >= LARGE_BYTES
