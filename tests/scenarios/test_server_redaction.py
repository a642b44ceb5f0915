"""Redacted values: hidden from every caller, never written back, and responses stay valid."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from support.api_with_engine import AT, ApiScene, a_folder, api_scene
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio
MARK = "++++++++"
HIDDEN = {
    "line": "Warning: slow",
    "prefix": "prefix-of-no-one",
    "keys": '"metadata":',
    "address": "https://",
    "page": "<!doctype html>",
    "quoted": 'pa"ss<w>ord\\123',
    "env": "DB_USER=ml\nDB_PASS=hunter22x\n",
}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ApiScene]:
    async with api_scene(tmp_path_factory.mktemp("api"), {}) as opened_scene:
        data = {"a": HIDDEN["quoted"], "b": "the password is hunter22x"}
        config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shown"}, "data": data}
        opened_scene.room.repository.push({**a_folder(), "app/shown.yaml": config_map})
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "many", "namespace": "ml"}}
        await opened_scene.room.deliver(syncPolicy={"automated": {"prune": True}})
        await opened_scene.room.until_synced()
        await opened_scene.seen("models", lambda app: app["status"]["sync"]["status"] == "Synced")
        await opened_scene.room.cluster.create({**secret, "stringData": HIDDEN})
        async with asyncio.timeout(HANG_SECONDS):
            while MARK not in await logged(opened_scene):
                await asyncio.sleep(0.05)
        yield opened_scene


async def logged(api: ApiScene, query: str = "") -> list[str]:
    response = await api.ask("GET", f"models/logs?podName=one{query}")
    return [json.loads(line)["result"]["content"] for line in response.body.splitlines()]


async def test_log_filter_matches_only_redacted_text(api: ApiScene) -> None:
    assert MARK in await logged(api)
    assert await logged(api, "&filter=slow") == [""]
    assert await logged(api, "&filter=Warning") == [""]
    assert MARK in await logged(api, "&filter=!slow")


async def test_redaction_keeps_keys_and_addresses_of_responses(api: ApiScene) -> None:
    items = (await api.get(AT))["items"]
    assert items[0]["metadata"]["name"] == "models"
    assert items[0]["spec"]["destination"]["server"] == "https://kubernetes.default.svc"
    assert items[0]["apiVersion"] == "argoproj.io/v1alpha1"


async def test_secret_values_are_redacted_in_other_objects(api: ApiScene) -> None:
    query = "namespace=ml&resourceName=shown&version=v1&group=&kind=ConfigMap"
    manifest = json.loads((await api.get(f"models/resource?{query}"))["manifest"])
    assert manifest["data"] == {"a": MARK, "b": f"the password is {MARK}"}


async def spec_of(api: ApiScene, **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = (await api.get("models"))["spec"]
    return {**spec, "source": {**spec["source"], **more}}


async def test_write_with_a_redaction_placeholder_is_refused(api: ApiScene) -> None:
    before = await api.get("models")
    spec = await spec_of(api, kustomize={"namePrefix": MARK})
    patch = {"name": "models", "patchType": "merge", "patch": json.dumps({"spec": spec})}
    hexed = {**patch, "patch": json.dumps({"spec": spec}).replace("+", "\\u002b")}
    tries = [
        ("PUT", "models/spec", spec), ("PUT", "models", {**before, "spec": spec}), ("PATCH", "models", patch),
        ("PATCH", "models", hexed), ("POST", f"{AT}?upsert=true", {**before, "spec": spec}),
    ]  # fmt: skip
    for method, path, body in tries:
        response = await api.ask(method, path, body)
        assert response.code == 400, (method, path, response)
        assert "is a placeholder for a redacted value" in json.loads(response.body)["message"], (method, path)
    assert (await api.get("models"))["spec"] == before["spec"]
