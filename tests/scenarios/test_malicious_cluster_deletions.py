"""A destination cluster with false deletions, uids and versions: no wrong object is deleted, and syncs recover."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.controller import informer
from support.deadlines import wait_until_async
from support.engine import Room, config_map, engine_room
from support.lying_cluster import Lie, LyingCluster, Request, http_answer
from support.remote_clusters import Far, far_cluster

AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}
NAMES = ("settings", "extra")
FALSE_EVENTS = "events of deletion for what is there"
FALSE_VERSIONS = "versions that go backwards"  # k8s: a watch from a future resourceVersion delivers no events
SUCCESS = {"kind": "Status", "apiVersion": "v1", "status": "Success"}


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with engine_room(tmp_path) as opened_room:
        yield opened_room


@pytest.fixture
async def far(tmp_path: Path) -> AsyncIterator[Far]:
    async with far_cluster(tmp_path) as remote_cluster:
        yield remote_cluster


def named(request: Request) -> str:
    parts = request.route.split("/configmaps/")
    return parts[1] if len(parts) == 2 else ""


def not_found(request: Request) -> bytes:
    status = {"kind": "Status", "code": 404, "reason": "NotFound", "details": {"name": named(request)}}
    return http_answer(status, 404)


def changing(change: Callable[[dict[str, Any]], None]) -> Callable[[LyingCluster], Lie]:
    """Change the metadata of ConfigMaps in every response, also in watch events."""

    def change_object(document: dict[str, Any]) -> None:
        manifest = document.get("object", document)
        if isinstance(manifest.get("metadata"), dict) and manifest["metadata"].get("namespace") == "ml":
            change(manifest["metadata"])

    def make(liar: LyingCluster) -> Lie:
        return lambda request: liar.rewritten(request, change_object) if "/configmaps" in request.route else None

    return make


def deleting_events(liar: LyingCluster) -> Lie:
    def change(event: dict[str, Any]) -> None:
        if event.get("type") in ("ADDED", "MODIFIED"):
            event["type"] = "DELETED"

    return lambda request: (
        liar.rewritten(request, change) if request.is_watch and "/configmaps" in request.route else None
    )


uids, versions = itertools.count(), itertools.count(10**6, -1)
LIES: dict[str, Callable[[LyingCluster], Lie]] = {
    "a deletion that does not happen": lambda liar: (
        lambda request: http_answer(SUCCESS) if request.method == "DELETE" and named(request) else None
    ),
    "what is listed is not found": lambda liar: (
        lambda request: not_found(request) if request.method in ("GET", "PATCH") and named(request) else None
    ),
    "an end that does not come": changing(
        lambda metadata: metadata.update(deletionTimestamp="2026-01-01T00:00:00Z", finalizers=["x.io/never"])
    ),
    "another uid in each answer": changing(lambda metadata: metadata.update(uid=f"uid-{next(uids)}")),
    FALSE_VERSIONS: changing(lambda metadata: metadata.update(resourceVersion=str(next(versions)))),
    FALSE_EVENTS: deleting_events,
}


def deletions(liar: LyingCluster) -> list[tuple[str, dict[str, Any]]]:
    return [
        (named(request), json.loads(request.body or b"{}").get("preconditions") or {})
        for request in liar.requests
        if request.method == "DELETE"
    ]


@pytest.mark.tier("all")
@pytest.mark.parametrize("name", LIES)
async def test_false_answers_about_deletions_delete_no_wrong_object(
    room: Room, far: Far, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with LyingCluster(lambda request: None, far.server, far.sandbox.endpoint.token).serving() as liar:
        files = {f"app/{map_name}.yaml": config_map(map_name, a="1") for map_name in NAMES}
        room.repository.push(files)
        far.server = liar.address
        await far.declare(room, config=json.dumps({"tlsClientConfig": {}}))
        await room.deliver("distant", destination={"server": liar.address, "namespace": "ml"}, syncPolicy=AUTOMATED)
        await room.until_synced(name="distant")
        metadata = {"name": "bystander", "namespace": "ml"}
        bystander = await far.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        settings = await far.get("ConfigMap", "settings")
        assert settings is not None
        liar.lie = LIES[name](liar)
        await liar.cut()
        revision = room.repository.push({"app/settings.yaml": config_map("settings", a="2"), "app/extra.yaml": None})
        request_count = len(liar.requests)
        await wait_until_async(lambda: liar.lies_told > 0, "the lie is told")
        await wait_until_async(lambda: len(liar.requests) > request_count + 3, "the engine works on")
        liar.lie = lambda request: None
        if name in (FALSE_EVENTS, FALSE_VERSIONS):
            # The cache is wrong until the next list, and a new commit is synced without backoff.
            monkeypatch.setattr(informer, "RELIST_INTERVAL_SECONDS", 0.0)
            revision = room.repository.push({"unrelated.yaml": ""})
        await liar.cut()
        await room.until_synced(revision, name="distant")
        assert await far.until("ConfigMap", "extra", gone=True) is None
        after = await far.get("ConfigMap", "settings")
        assert after is not None
        assert (after["data"], after["metadata"]["uid"]) == ({"a": "2"}, settings["metadata"]["uid"])
        assert await far.get("ConfigMap", "bystander") == bystander
        assert {deleted_name for deleted_name, _ in deletions(liar)} <= {"extra"}
        assert all(preconditions.get("uid") for _, preconditions in deletions(liar))
