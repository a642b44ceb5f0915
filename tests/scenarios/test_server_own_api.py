"""argosy's own API: models, notebooks, environments and activity, with paging, filters and permissions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.kube.resource_key import ResourceKey
from support.rest_api import World, code, denied, denied_by_name, rest_world

pytestmark = pytest.mark.anyio
OWN = "/api/argosy/v1"
SERVICE, JOB = "InferenceService", "NotebookValidationJob"
GROUPS = {SERVICE: "serving.kserve.io", JOB: "mlops.mlops.dev"}
APIS = {SERVICE: "serving.kserve.io/v1beta1", JOB: "mlops.mlops.dev/v1alpha1"}


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def answering(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A model server that returns its input as predictions."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    size = next((int(line.split(":")[1]) for line in head.splitlines() if line.startswith("content-length")), 0)
    payload = json.loads(await reader.readexactly(size)) if size else {}
    body = json.dumps({"predictions": payload.get("instances", [])}).encode()
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    await writer.drain()
    writer.close()


@pytest.fixture(scope="module")
async def world(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    server = await asyncio.start_server(answering, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with rest_world(tmp_path_factory.mktemp("own")) as world:
        await world.application("serving", "team")
        key = ResourceKey("argoproj.io", "Application", "argocd", "serving")
        history = [{"id": 0, "revision": "1" * 40, "deployedAt": "2026-01-01T00:00:00Z", "source": {"repoURL": "x"}}]
        owned_objects = [(SERVICE, "iris"), (SERVICE, "late"), (JOB, "train")]
        rows = [{"group": GROUPS[kind], "kind": kind, "namespace": "ml", "name": name} for kind, name in owned_objects]
        await world.cluster.patch(key, {"status": {"history": history, "resources": rows}})
        await own(world, SERVICE, "iris", "serving", url=f"http://127.0.0.1:{port}", conditions=[ready("True")])
        await own(world, SERVICE, "late", "serving", conditions=[ready("False")])
        await own(world, SERVICE, "stray", "", conditions=[ready("True")])
        attempts = [{"number": number, "phase": "Succeeded", "gitCommit": "2" * 40} for number in (1, 2, 3)]
        await own(world, JOB, "train", "serving", phase="Succeeded", attempts=attempts, message="done")
        await own(world, JOB, "wild", "", phase="Pending")
        await world.seen("mlops.mlops.dev", JOB, "wild", "ml")
        await world.until(lambda: has_status(world, JOB, "wild") and has_status(world, SERVICE, "stray"))
        yield world
    server.close()


def ready(status: str) -> dict[str, str]:
    return {"type": "Ready", "status": status, "reason": "x", "message": "so it is"}


async def own(world: World, kind: str, name: str, app: str, **status: Any) -> None:
    """Create an object that belongs to an Application by its tracking annotation."""
    mark = {"argocd.argoproj.io/tracking-id": f"{app}:{GROUPS[kind]}/{kind}:ml/{name}"} if app else {}
    notebook = {"path": "notebooks/train.ipynb", "git": {"url": "https://git.example/x", "ref": "main"}}
    spec = {
        SERVICE: {"predictor": {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://models/iris"}}},
        JOB: {"notebook": notebook, "podConfig": {"containerImage": "python:3.11"}},
    }[kind]
    await world.make(kind, name, "ml", APIS[kind], spec=spec, metadata={"annotations": mark})
    key = ResourceKey(GROUPS[kind], kind, "ml", name)
    await world.cluster.patch(key, {"status": status}, subresource="status")


def has_status(world: World, kind: str, name: str) -> bool:
    return bool((world.lookout.cache.get(ResourceKey(GROUPS[kind], kind, "ml", name)) or {}).get("status"))


def names(listing: Any) -> list[str]:
    return [item["name"] for item in listing["items"]]


async def test_model_list_contains_only_visible_models_and_supports_filters(world: World) -> None:
    assert names(await world.get("ann", f"{OWN}/models")) == ["iris", "late", "stray"]
    assert names(await world.get("cid", f"{OWN}/models")) == ["iris", "late"]
    assert names(await world.get("bob", f"{OWN}/models")) == []
    assert names(await world.get("ann", f"{OWN}/models?health=Degraded")) == ["late"]
    assert names(await world.get("ann", f"{OWN}/models?q=IRIS&namespace=ml")) == ["iris", "late", "stray"]
    assert names(await world.get("ann", f"{OWN}/models?namespace=elsewhere")) == []
    listing = await world.get("ann", f"{OWN}/models?fields=items.name,items.health&limit=1")
    assert listing == {"items": [{"name": "iris", "health": "Healthy"}]}


async def test_model_list_is_paged_with_continue_tokens(world: World) -> None:
    model_names, where = [], f"{OWN}/models?limit=1"
    page = await world.get("ann", where)
    assert page["metadata"]["remainingItemCount"] == 2
    while True:
        model_names += names(page)
        if "continue" not in page["metadata"]:
            break
        page = await world.get("ann", f"{where}&continue={page['metadata']['continue']}")
    assert model_names == ["iris", "late", "stray"]
    for wrong in ("limit=-1", "limit=x", "limit=100000", "continue=%FF", "continue=!!!"):
        assert (await code(world, "ann", "GET", f"{OWN}/models?{wrong}"))[0] == 400, wrong


async def test_model_is_read_and_queried(world: World) -> None:
    model = await world.get("cid", f"{OWN}/models/ml/iris")
    assert (model["application"], model["format"], model["health"]) == ("argocd/serving", "sklearn", "Healthy")
    assert model["steps"] and model["curl"].startswith("curl")
    answer = (await world.ask("cid", "POST", f"{OWN}/models/ml/iris/try", {"question": [[1, 2]]})).json()
    assert answer["code"] == 200 and answer["answer"] == {"predictions": [[1, 2]]}
    for wrong in ({}, {"question": ""}, {"question": "x" * 200_000}, []):
        assert (await code(world, "cid", "POST", f"{OWN}/models/ml/iris/try", wrong))[0] == 400
    assert "has no URL" in (await code(world, "cid", "POST", f"{OWN}/models/ml/late/try", {"question": "x"}))[1]
    assert "no Deployment" in (await code(world, "cid", "POST", f"{OWN}/models/ml/iris/restart", {}))[1]


async def test_invisible_models_and_notebooks_are_denied_like_missing_ones(world: World) -> None:
    for kind, own_name, foreign in (("models", "iris", "stray"), ("notebooks", "train", "wild")):
        for name in (foreign, "absent"):
            await denied(world, "cid", "GET", f"{OWN}/{kind}/ml/{name}")
        await denied(world, "bob", "GET", f"{OWN}/{kind}/ml/{own_name}")
    for path in ("models/ml/iris/try", "models/ml/iris/restart", "notebooks/ml/train/runs"):  # dan may read them
        permission = await denied_by_name(world, "dan", "POST", f"{OWN}/{path}", {"question": "x"})
        assert permission.startswith("applications, action/") and permission.endswith(", sub: dan"), permission
    for name in ("7", "x", "99999999999"):
        await denied(world, "cid", "GET", f"{OWN}/notebooks/ml/train/runs/{name}")


async def test_notebooks_are_listed_with_their_runs_and_rerun(world: World) -> None:
    assert names(await world.get("cid", f"{OWN}/notebooks")) == ["train"]
    assert names(await world.get("ann", f"{OWN}/notebooks?phase=Pending")) == ["wild"]
    notebook = await world.get("cid", f"{OWN}/notebooks/ml/train")
    assert notebook["lastRun"] == 3 and notebook["notebook"] == "notebooks/train.ipynb" and len(notebook["runs"]) == 3
    first = await world.get("cid", f"{OWN}/notebooks/ml/train/runs?limit=2")
    assert [run["number"] for run in first["items"]] == [3, 2]
    rest = await world.get("cid", f"{OWN}/notebooks/ml/train/runs?continue={first['metadata']['continue']}")
    assert [run["number"] for run in rest["items"]] == [1]
    assert (await world.get("cid", f"{OWN}/notebooks/ml/train/runs/2"))["number"] == 2
    again = await world.ask("cid", "POST", f"{OWN}/notebooks/ml/train/runs", {})
    live: Any = await world.cluster.get(ResourceKey(GROUPS[JOB], JOB, "ml", "train"))
    assert again.json()["run"] == live["metadata"]["annotations"]["mlops.dev/re-run"]


async def test_activity_is_sorted_newest_first_filtered_and_paged(world: World) -> None:
    listing = await world.get("cid", f"{OWN}/activity?kind=sync")
    assert [activity["title"] for activity in listing["items"]] == ["Synced"]
    assert (await world.get("bob", f"{OWN}/activity?kind=sync"))["items"] == []
    every = (await world.get("ann", f"{OWN}/activity"))["items"]
    times = [activity["time"] for activity in every]
    assert times == sorted(times, reverse=True) and {"sync", "setting"} <= {activity["kind"] for activity in every}
    page = await world.get("ann", f"{OWN}/activity?limit=1")
    rest = await world.get("ann", f"{OWN}/activity?continue={page['metadata']['continue']}")
    assert [*page["items"], *rest["items"]] == every
    assert (await code(world, "ann", "GET", f"{OWN}/activity?kind=nonsense"))[0] == 400


async def test_environments_are_empty_without_a_repository(world: World) -> None:
    assert (await world.get("ann", f"{OWN}/environments")) == {"metadata": {}, "items": []}
