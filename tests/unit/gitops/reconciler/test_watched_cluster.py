"""A watched cluster watches what is declared: required kinds always, and each watch gets only its kinds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from argosy.gitops.engine.engine import Engine, EngineOptions
from argosy.gitops.live import TrackingSettings
from argosy.gitops.reconciler.watched_cluster import WatchedObjects
from argosy.kube.client import Cluster
from argosy.kube.controller import EVERY_KIND, SYSTEM_CLOCK, ChangeWatch, InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import APP_PROJECT, APPLICATION, CONFIG_MAP, SECRET
from support.deadlines import HANG_SECONDS, wait_until_async
from support.engine import furnish, shared_crew

pytestmark = pytest.mark.anyio


class Changes:
    def __init__(self) -> None:
        self.kinds: set[str] = set()

    def add(self, before: Manifest | None, after: Manifest | None) -> None:
        self.kinds.add(key_of(after or before or {}).kind)


@asynccontextmanager
async def running(watched: WatchedObjects) -> AsyncIterator[None]:
    informers = asyncio.create_task(watched.informers.run())
    try:
        async with asyncio.timeout(HANG_SECONDS):
            await watched.informers.wait_synced()
        yield
    finally:
        informers.cancel()
        await asyncio.wait({informers})


def build_watched_objects(cluster: Cluster, *kinds: GroupKind) -> WatchedObjects:
    """Watch these kinds, and those that a declaration requires."""
    return WatchedObjects(
        cluster, InformerCache(), TrackingSettings, lambda kind, verbs: kind in kinds, SYSTEM_CLOCK
    )  # fmt: skip


async def test_watch_gets_changes_of_its_own_kinds(cluster: Cluster, namespace: str) -> None:
    config_maps, everything = Changes(), Changes()
    watched = build_watched_objects(cluster, CONFIG_MAP, SECRET)
    watched.add_watches([ChangeWatch((CONFIG_MAP,), config_maps.add), ChangeWatch(EVERY_KIND, everything.add)])
    async with running(watched):
        for kind in ("ConfigMap", "Secret"):
            metadata = {"name": "one", "namespace": namespace}
            await cluster.create({"apiVersion": "v1", "kind": kind, "metadata": metadata})
        await wait_until_async(lambda: {"ConfigMap", "Secret"} <= everything.kinds)
    assert config_maps.kinds == {"ConfigMap"}


async def test_required_kind_is_watched_although_settings_exclude_it(cluster: Cluster) -> None:
    watched = build_watched_objects(cluster)
    watched.add_watches([ChangeWatch((SECRET,), Changes().add), ChangeWatch((CONFIG_MAP,), Changes().add, True)])
    async with running(watched):
        assert watched.informers.watched_kinds == {CONFIG_MAP}


async def test_engine_watches_applications_and_settings_although_settings_exclude_all_kinds(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await furnish(cluster)
    monkeypatch.setattr(Engine, "_is_watched", lambda self, kind, verbs: False)
    engine = Engine(cluster, EngineOptions(tmp_path), "argocd", render_pool=shared_crew())
    async with running(engine.watched):
        assert engine.informers.watched_kinds == {APPLICATION, APP_PROJECT, CONFIG_MAP, SECRET}
