"""The engine caches full objects only of kinds that Applications use, and only metadata of other kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, config_map, engine_room
from support.real_server import REAL

pytestmark = pytest.mark.anyio
ROLE = ResourceKey("rbac.authorization.k8s.io", "Role", "ml", "reader")
RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
MORE = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]


@pytest.fixture(params=["embedded", pytest.param("wire", marks=pytest.mark.tier("all")), REAL])
async def room(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Room]:
    server = request.getfixturevalue("real_server") if request.param == "real" else None
    async with engine_room(tmp_path, flavour=request.param, server=server) as opened_room:
        yield opened_room


def role(rules: list[dict[str, Any]], name: str = "reader", namespace: str | None = None) -> Manifest:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata, "rules": rules}


async def eventually(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not is_so():
            await asyncio.sleep(0.02)


async def test_cache_holds_only_metadata_until_an_application_uses_the_kind(room: Room) -> None:
    await room.cluster.create(role(RULES, "strangers", "ml"))
    cached, stranger = room.engine.cache.get, ROLE._replace(name="strangers")
    await eventually(lambda: cached(stranger))
    cached_role = cached(stranger) or {}
    assert cached_role.keys() == {"apiVersion", "kind", "metadata"} and "managedFields" not in cached_role["metadata"]
    room.repository.push({"app/role.yaml": role(RULES)})
    await room.deliver(syncPolicy={"automated": {}})
    await room.until_synced()
    await eventually(lambda: (cached(ROLE) or {}).get("rules") == RULES and (cached(stranger) or {}).get("rules"))
    assert (cached(ROLE) or {})["metadata"]["managedFields"]
    assert "managedFields" not in (cached(stranger) or {})["metadata"]


async def test_object_older_than_its_application_is_compared_in_full(room: Room) -> None:
    """managedFields are fetched too if the cache lacks them, so the fields of an ignored manager keep their values."""
    settings = {**config_map(a="theirs"), "metadata": {"name": "settings", "namespace": "ml"}}
    for manifest in (role(MORE, namespace="ml"), settings):
        await room.cluster.create(manifest, manager="tuner")
    room.repository.push({"app/role.yaml": role(RULES), "app/settings.yaml": config_map(a="ours")})
    left = [{"group": "*", "kind": "*", "managedFieldsManagers": ["tuner"]}]
    options = {"automated": {}, "syncOptions": ["RespectIgnoreDifferences=true"]}
    await room.deliver(ignoreDifferences=left, syncPolicy=options)
    await room.until_synced()
    assert (await room.cluster.get(ROLE) or {})["rules"] == MORE
    assert (await room.get("ConfigMap", "settings") or {})["data"] == {"a": "theirs"}


async def test_fetched_object_is_dropped_with_the_object_or_its_application(room: Room) -> None:
    """An untracked object is fetched in full while it exists and an Application wants it."""

    def count_fetched() -> int:
        connection = room.engine.reconciler.local_destination.cluster
        comparisons = [memo.get_connection(connection).comparison for memo in room.engine.reconciler.memos]
        return sum(len(memo.full_objects) + len(memo.converted) for memo in comparisons)

    settings = {**config_map(a="theirs"), "metadata": {"name": "settings", "namespace": "ml"}}
    room.repository.push({"app/settings.yaml": config_map(a="ours")})
    created = await room.cluster.create(settings)
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    assert count_fetched() == 1
    await room.cluster.delete(key_of(created))
    await eventually(lambda: room.engine.cache.get(key_of(created)) is None)
    await room.settled()
    assert count_fetched() == 0
    await room.cluster.create(settings)
    await eventually(lambda: room.engine.cache.get(key_of(created)))
    await room.settled()
    assert count_fetched() == 1
    await room.cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "models"))
    await eventually(lambda: count_fetched() == 0)


async def test_object_is_pruned_when_no_application_uses_its_kind_any_more(room: Room) -> None:
    room.repository.push({"app/role.yaml": role(RULES), "app/settings.yaml": config_map(a="ours")})
    await room.deliver(syncPolicy={"automated": {"prune": True}})
    await room.until_synced()
    room.repository.push({"app/role.yaml": None})
    await room.until_gone("rbac.authorization.k8s.io/Role", "reader")
    await room.until_synced()


async def test_managed_fields_of_applications_are_cached(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="ours")})
    await room.deliver()
    await room.until(lambda status: status.get("sync", {}).get("status") == "OutOfSync")
    app = ResourceKey("argoproj.io", "Application", CONTROL, "models")
    assert (room.engine.cache.get(app) or {})["metadata"]["managedFields"]
