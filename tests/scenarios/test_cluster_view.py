"""ClusterView over an embedded cluster: cached reads, listeners, and the freshness that it reports."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import TransientError
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.diff_presentation import list_differing_objects
from argosy.gitops.cluster_view import cluster_view as lookouts
from argosy.gitops.cluster_view.cluster_view import ClusterView, open_cluster_view
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.kube.client import Catalog, Cluster, Listing, WatchEvent
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, config_map, engine_room, shared_crew

pytestmark = pytest.mark.anyio
SETTINGS = ResourceKey("", "ConfigMap", "ml", "settings")


class Watched(ReadYourWritesClient):
    """Records the calls to a cluster, and can simulate an unreachable one."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, lambda key: None)
        self.asked: list[str] = []
        self.is_away = False
        self.left = asyncio.Event()

    def _come(self, call: str) -> None:
        self.asked.append(call)
        if self.is_away:
            raise TransientError("the server is away")

    async def kinds(self) -> Catalog:
        self._come("kinds")
        return await self._cluster.kinds()

    async def get(self, key: ResourceKey) -> Manifest | None:
        self._come(f"get {key.kind}")
        return await super().get(key)

    async def list(self, kind: GroupKind, **selectors: Any) -> Listing:
        self._come(f"list {kind.kind}")
        return await super().list(kind, **selectors)

    async def watch(self, kind: GroupKind, **selectors: Any) -> AsyncIterator[WatchEvent]:  # type: ignore[override]
        self._come(f"watch {kind.kind}")
        events = super().watch(kind, **selectors)
        while True:
            next_event, leaving = asyncio.ensure_future(anext(events)), asyncio.ensure_future(self.left.wait())
            try:
                await asyncio.wait({next_event, leaving}, return_when=asyncio.FIRST_COMPLETED)
                if self.left.is_set():
                    raise TransientError("the server is away")
                yield next_event.result()
            finally:
                next_event.cancel()
                leaving.cancel()

    def leave(self) -> None:
        self.is_away = True
        self.left.set()

    def come_back(self) -> None:
        self.is_away = False
        self.left.clear()


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with engine_room(tmp_path) as opened_room:
        opened_room.repository.push({"app/settings.yaml": config_map(a="one", b="two")})
        await opened_room.deliver()
        await opened_room.until(lambda status: status["sync"]["status"] == "OutOfSync")
        await opened_room.sync()
        await opened_room.until_synced()
        yield opened_room


@pytest.fixture
async def cluster(room: Room) -> Watched:
    return Watched(room.cluster)


@pytest.fixture
async def lookout(cluster: Watched, tmp_path: Path) -> AsyncIterator[ClusterView]:
    repositories = Repositories(tmp_path / "lookout", SourceSettings())
    desk = ApplicationService(cluster, "a test", CONTROL, CONTROL)
    async with open_cluster_view(desk, repositories, shared_crew()) as opened_view:
        yield opened_view


async def until(holds: Callable[[], Any], lookout: ClusterView) -> None:
    """Wait until the condition holds; check it after every change."""
    changed = asyncio.Event()
    stop = lookout.add_listener(lambda before, after: changed.set())
    try:
        async with asyncio.timeout(HANG_SECONDS):
            while not holds():
                changed.clear()
                await changed.wait()
    finally:
        stop()


async def test_rows_follow_changes_of_applications(room: Room, lookout: ClusterView) -> None:
    row = lookout.find_row(CONTROL, "models")
    assert row is not None and (row.sync, row.differing, row.objects) == ("Synced", 0, 1)
    assert lookout.list_rows() is lookout.list_rows()
    await room.change(a="other")
    await until(lambda: (row := lookout.find_row(CONTROL, "models")) and row.sync == "OutOfSync", lookout)
    assert [(application_row.name, application_row.differing) for application_row in lookout.list_rows()] == [
        ("models", 1)
    ]
    await room.deliver("another")
    await until(lambda: len(lookout.list_rows()) == 2, lookout)
    await room.cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "another"))
    await until(lambda: len(lookout.list_rows()) == 1, lookout)


async def test_watched_objects_are_read_without_api_calls(room: Room, cluster: Watched, lookout: ClusterView) -> None:
    await room.change(a="other")
    await until(lambda: _live(lookout) == "other", lookout)
    cluster.asked.clear()
    app = await lookout.reader.service.load_application("models")
    look = await lookout.reader.compare(app)
    assert [str(differing_object.key.name) for differing_object in list_differing_objects(look.comparison)] == [
        "settings"
    ]
    assert [node.key for node in await lookout.reader.build_tree(app)] == [SETTINGS]
    assert list(await lookout.reader.assess_managed_objects(app)) == []
    assert await lookout.reader.list_orphans(app) == []
    assert [application.name for application in await lookout.reader.service.list_applications()] == ["models"]
    assert set(cluster.asked) <= {"kinds"}


def _live(lookout: ClusterView) -> str:
    return ((lookout.cache.get(SETTINGS) or {}).get("data") or {}).get("a", "")


async def test_unwatched_object_is_fetched_and_dropped_when_it_is_gone(
    room: Room, cluster: Watched, lookout: ClusterView
) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "one", "namespace": "ml"}}
    await room.cluster.create(lease)
    key = ResourceKey("coordination.k8s.io", "Lease", "ml", "one")
    await lookout.reader.load_objects([key])
    assert lookout.cache.get(key) is not None
    await room.cluster.delete(key)
    await lookout.reader.load_objects([key])
    assert lookout.cache.get(key) is None
    assert cluster.asked.count("get Lease") == 2


async def test_view_follows_changes_of_projects_and_exclusions(room: Room, lookout: ClusterView) -> None:
    assert "team" not in lookout.rules.projects
    await room.project("team")
    await until(lambda: "team" in lookout.rules.projects, lookout)
    excluded = "- apiGroups: ['']\n  kinds: [ConfigMap]\n"
    await room.configure({"resource.exclusions": excluded})
    await until(lambda: not lookout.is_fully_cached(GroupKind("", "ConfigMap")), lookout)


@pytest.mark.tier("all")
async def test_view_caches_objects_of_a_kind_created_later(room: Room, lookout: ClusterView) -> None:
    kind = GroupKind("example.com", "Toy")
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"plural": "toys", "kind": "Toy", "singular": "toy"}
    await room.cluster.create({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "toys.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    })  # fmt: skip
    async with asyncio.timeout(HANG_SECONDS):
        while kind not in await room.cluster.kinds():
            await asyncio.sleep(0.02)
    metadata = {"name": "a", "namespace": "ml"}
    await room.cluster.create({"apiVersion": "example.com/v1", "kind": "Toy", "metadata": metadata})
    await until(lambda: lookout.cache.get(ResourceKey("example.com", "Toy", "ml", "a")), lookout)


async def test_disconnected_view_reports_its_last_fresh_time_and_still_answers(
    cluster: Watched, lookout: ClusterView
) -> None:
    fresh = lookout.as_of
    assert fresh.is_up and fresh.changed_at is not None
    cluster.leave()
    async with asyncio.timeout(HANG_SECONDS):
        while lookout.as_of.is_up:
            await asyncio.sleep(0.02)
    stale = lookout.as_of
    assert (
        stale.fresh_at >= fresh.fresh_at
        and stale.reason == "the server is away"
        and lookout.as_of.fresh_at == stale.fresh_at
    )
    assert [
        node.key for node in await lookout.reader.build_tree(await lookout.reader.service.load_application("models"))
    ] == [SETTINGS]
    cluster.come_back()
    async with asyncio.timeout(HANG_SECONDS):
        while not lookout.as_of.is_up:
            await asyncio.sleep(0.02)


class Mute(Watched):
    """A remote server that can stop answering silently: its watches stay open without events."""

    is_mute = False

    async def version(self) -> str:
        if self.is_mute:
            await asyncio.Event().wait()
        return "v1.32.0"


@pytest.mark.tier("all")
async def test_silent_server_is_detected_by_the_reachability_check(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookouts, "REACHABILITY_CHECK_INTERVAL_SECONDS", 0.05)
    monkeypatch.setattr(lookouts, "REACHABILITY_TIMEOUT_SECONDS", 0.2)
    cluster = Mute(room.cluster)
    desk = ApplicationService(cluster, "a test", CONTROL, CONTROL)
    async with open_cluster_view(desk, Repositories(tmp_path / "mute", SourceSettings()), shared_crew()) as lookout:
        assert lookout.as_of.is_up
        muted = datetime.now(UTC)
        cluster.is_mute = True
        async with asyncio.timeout(HANG_SECONDS):
            while lookout.as_of.is_up:
                await asyncio.sleep(0.01)
        stale = lookout.as_of
        assert stale.reason == "the cluster does not answer"
        assert stale.fresh_at <= muted  # the time of its last answer, not of the detection
        cluster.is_mute = False
        async with asyncio.timeout(HANG_SECONDS):
            while not lookout.as_of.is_up:
                await asyncio.sleep(0.01)


@pytest.mark.tier("all")
async def test_failing_listener_does_not_affect_other_listeners(room: Room, lookout: ClusterView) -> None:
    def fail(before: Manifest | None, after: Manifest | None) -> None:
        raise ValueError("on purpose")

    stop = lookout.add_listener(fail)
    await room.change(a="heard")
    await until(lambda: _live(lookout) == "heard", lookout)
    stop()
    stop()


async def test_tree_is_reused_until_something_changes(room: Room, lookout: ClusterView) -> None:
    app = lookout.find_application(CONTROL, "models")
    assert app is not None
    first = await lookout.reader.recording_events_as("ann").build_tree(app)
    assert await lookout.reader.recording_events_as("ben").build_tree(app) is first
    await room.change(a="other")
    await until(lambda: _live(lookout) == "other", lookout)
    assert await lookout.reader.build_tree(app) is not first


async def test_returned_row_list_is_not_modified_by_later_changes(room: Room, lookout: ClusterView) -> None:
    for name in ("b", "a", "zz"):
        await room.deliver(name)
    await until(lambda: len(lookout.list_rows()) == 4, lookout)
    rows = lookout.list_rows()
    before = list(rows)
    await room.annotate("b", anything="new")
    await until(lambda: lookout.list_rows() is not rows, lookout)
    assert [row.name for row in lookout.list_rows()] == ["a", "b", "models", "zz"]
    assert list(rows) == before


def workload(kind: str, name: str, *owners: Manifest) -> Manifest:
    refers = [{"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
               "uid": owner["metadata"]["uid"]} for owner in owners]  # fmt: skip
    metadata = {"name": name, "namespace": "ml", "ownerReferences": refers}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {}}


@pytest.mark.tier("all")
async def test_cached_tree_equals_a_newly_built_tree(room: Room, lookout: ClusterView) -> None:
    """After changes of an object, its owners, its children and its siblings."""
    app = lookout.find_application(CONTROL, "models")
    assert app is not None
    root = await room.get("ConfigMap", "settings")
    assert root is not None

    async def check(names: list[str]) -> None:
        nodes = await lookout.reader.build_tree(app)
        assert sorted(node.key.name for node in nodes) == names
        assert nodes == await ApplicationReader.build_tree(lookout.reader, app)

    await check(["settings"])
    await room.cluster.create(workload("ConfigMap", "below", root))
    await room.cluster.create(workload("Secret", "beside"))
    await until(lambda: lookout.cache.get(ResourceKey("", "Secret", "ml", "beside")), lookout)
    await check(["below", "settings"])
    below = await room.get("ConfigMap", "below")
    assert below is not None
    await room.cluster.create(workload("Secret", "deep", below))
    await until(lambda: lookout.cache.get(ResourceKey("", "Secret", "ml", "deep")), lookout)
    await check(["below", "deep", "settings"])
    await room.change("below", a="other")
    await until(lambda: (lookout.cache.get(SETTINGS._replace(name="below")) or {}).get("data"), lookout)
    await check(["below", "deep", "settings"])
    beside = ResourceKey("", "Secret", "ml", "beside")
    await room.cluster.patch(beside, {"metadata": {"ownerReferences": below["metadata"]["ownerReferences"]}})
    await until(lambda: (lookout.cache.get(beside) or {"metadata": {}})["metadata"].get("ownerReferences"), lookout)
    await check(["below", "beside", "deep", "settings"])
    await room.cluster.delete(beside)
    await until(lambda: lookout.cache.get(beside) is None, lookout)
    await check(["below", "deep", "settings"])
