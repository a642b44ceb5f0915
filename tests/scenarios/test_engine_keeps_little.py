"""The engine keeps in memory what applications have, and of all else no more than is read of it."""

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


async def test_of_a_kind_that_no_application_has_metadata_is_kept_and_all_of_it_once_one_does(room: Room) -> None:
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


async def test_what_lived_before_an_application_wants_it_is_looked_at_as_a_whole(room: Room) -> None:
    """Its writers are asked for, too, where the cache does not have them: what is theirs keeps its value."""
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


async def test_what_was_asked_for_is_forgotten_with_what_it_was_asked_of(room: Room) -> None:
    """A stranger's is asked for as a whole, for as long as it is there and an application wants it."""
    looker = room.engine.reconciler.local_destination.comparer
    settings = {**config_map(a="theirs"), "metadata": {"name": "settings", "namespace": "ml"}}
    room.repository.push({"app/settings.yaml": config_map(a="ours")})
    created = await room.cluster.create(settings)
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    assert looker.count_fetched() == 1
    await room.cluster.delete(key_of(created))
    await eventually(lambda: room.engine.cache.get(key_of(created)) is None)
    await room.settled()
    assert looker.count_fetched() == 0
    await room.cluster.create(settings)
    await eventually(lambda: room.engine.cache.get(key_of(created)))
    await room.settled()
    assert looker.count_fetched() == 1
    await room.cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "models"))
    await eventually(lambda: looker.count_fetched() == 0)


async def test_a_resource_to_prune_whose_kind_no_application_has_any_more_is_pruned(room: Room) -> None:
    room.repository.push({"app/role.yaml": role(RULES), "app/settings.yaml": config_map(a="ours")})
    await room.deliver(syncPolicy={"automated": {"prune": True}})
    await room.until_synced()
    room.repository.push({"app/role.yaml": None})
    await room.until_gone("rbac.authorization.k8s.io/Role", "reader")
    await room.until_synced()


async def test_who_wrote_an_application_is_kept(room: Room) -> None:
    room.repository.push({"app/settings.yaml": config_map(a="ours")})
    await room.deliver()
    await room.until(lambda status: status.get("sync", {}).get("status") == "OutOfSync")
    app = ResourceKey("argoproj.io", "Application", CONTROL, "models")
    assert (room.engine.cache.get(app) or {})["metadata"]["managedFields"]
