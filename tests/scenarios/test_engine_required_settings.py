"""The engine syncs and deletes nothing while it cannot read the objects that its settings depend on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import ArgosyError, ClusterError, Forbidden
from argosy.gitops.engine.liveness import ControllerHealth
from argosy.kube.client import Cluster
from argosy.kube.controller import informer
from argosy.kube.controller.clock import Backoff
from argosy.kube.resource_key import GroupKind, ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, conditions, config_map, engine_room

pytestmark = pytest.mark.anyio
PROJECT, SECRET = GroupKind("argoproj.io", "AppProject"), GroupKind("", "Secret")
APP = ResourceKey("argoproj.io", "Application", CONTROL, "models")
ROLES = "rbac.authorization.k8s.io/v1"
FINALIZER = "resources-finalizer.argocd.argoproj.io"
BROKEN = ClusterError("etcdserver: leader changed", code=500)


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(informer, "RECONNECT_BACKOFF", Backoff(0.001, 0.01))
    monkeypatch.setattr(informer, "NOT_SERVED_BACKOFF", Backoff(0.01, 0.01))


class Blinking:
    """A cluster of which one kind cannot be listed for a while."""

    def __init__(self, cluster: Cluster, kind: GroupKind, error: ArgosyError | None) -> None:
        self._cluster, self._kind, self.error = cluster, kind, error
        self.refusals = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def list(self, kind: GroupKind, **selectors: Any) -> Any:
        self._blink(kind)
        return await self._cluster.list(kind, **selectors)

    async def watch(self, kind: GroupKind, **selectors: Any) -> Any:
        self._blink(kind)
        async for event in self._cluster.watch(kind, **selectors):
            yield event
            self._blink(kind)

    def _blink(self, kind: GroupKind) -> None:
        if kind == self._kind and self.error is not None:
            self.refusals += 1
            raise self.error


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not holds():
            await asyncio.sleep(0.01)


async def going(room: Room) -> None:
    """Create an Application of project team and its delivered object, then delete the Application."""
    await room.project()
    room.repository.push({"app/settings.yaml": config_map(a="1")})
    await room.deliver(project="team", metadata={"finalizers": [FINALIZER]})
    tracking = {"argocd.argoproj.io/tracking-id": "models:/ConfigMap:ml/settings"}
    delivered = config_map(a="1")
    delivered["metadata"] = {"name": "settings", "namespace": "ml", "annotations": tracking}
    await room.cluster.create(delivered)
    await room.cluster.delete(APP)


@pytest.mark.parametrize(
    ("kind", "error"), [(PROJECT, BROKEN), (PROJECT, ClusterError("not found", code=404)), (SECRET, Forbidden("no"))]
)
async def test_deletion_waits_until_required_settings_can_be_listed(
    tmp_path: Path, kind: GroupKind, error: ClusterError, caplog: pytest.LogCaptureFixture
) -> None:
    clusters: list[Blinking] = []

    def blinking(cluster: Cluster) -> Any:
        clusters.append(Blinking(cluster, kind, error))
        return clusters[0]

    async with engine_room(tmp_path, wrap_cluster=blinking) as room:
        vitals = ControllerHealth(8, clock=room.clock)
        vitals.engine = room.engine
        await going(room)
        await until(lambda: clusters[0].refusals > 10)
        assert (await room.app())["metadata"]["finalizers"] == [FINALIZER]
        (problem,) = vitals.list_readiness_problems()
        assert problem.startswith(f"{kind} is required, but cannot be listed: ") and problem in caplog.text
        clusters[0].error = None
        await until(lambda: not vitals.list_readiness_problems())
        await room.until_gone("argoproj.io/Application", "models", CONTROL)
        assert await room.get("ConfigMap", "settings") is None


async def test_unreadable_projects_are_not_treated_as_deleted(tmp_path: Path) -> None:
    clusters: list[Blinking] = []

    def blinking(cluster: Cluster) -> Any:
        clusters.append(Blinking(cluster, PROJECT, None))
        return clusters[0]

    async with engine_room(tmp_path, wrap_cluster=blinking) as room:
        await room.project()
        room.repository.push({"app/settings.yaml": config_map(a="1")})
        await room.deliver(project="team", metadata={"finalizers": [FINALIZER]}, syncPolicy={"automated": {}})
        await room.until_synced()
        clusters[0].error = ClusterError("the server could not find the requested resource", code=404)
        await room.project("another")  # the watch ends, and the list that follows fails with 404
        await until(lambda: not room.engine.settings.current_settings().projects.get("team"))
        app = await room.app()
        assert not conditions(app["status"], "InvalidSpecError")
        await room.cluster.delete(APP)
        await until(lambda: clusters[0].refusals > 10)
        assert (await room.app())["metadata"]["finalizers"] == [FINALIZER]
        clusters[0].error = None
        await room.until_gone("argoproj.io/Application", "models", CONTROL)
        assert await room.get("ConfigMap", "settings") is None


async def test_excluded_kinds_are_still_watched_for_settings(tmp_path: Path) -> None:
    """Applications do not see objects of these kinds."""
    only = "- apiGroups: ['']\n  kinds: [ServiceAccount]\n"
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    async with engine_room(tmp_path, {"resource.inclusions": only}) as room:
        await room.project()
        room.repository.push({"app/account.yaml": account, "app/settings.yaml": config_map(a="1")})
        await room.deliver(project="team", syncPolicy={"automated": {}})
        app = await room.until_synced()
        assert [resource["kind"] for resource in app["status"]["resources"]] == ["ServiceAccount"]
        room.engine.informers.rediscover()
        await until(lambda: GroupKind("", "Service") not in room.engine.informers.watched_kinds)
        assert {APP.group_kind, PROJECT, SECRET, GroupKind("", "ConfigMap")} <= room.engine.informers.watched_kinds
        await room.configure({"resource.inclusions": ""})
        await room.until(lambda status: len(status["resources"]) == 2)


async def test_deletion_removes_objects_of_a_kind_that_cannot_be_listed(tmp_path: Path) -> None:
    """The objects in the Application's status are read one by one."""
    tracking = {"argocd.argoproj.io/tracking-id": "models:rbac.authorization.k8s.io/Role:ml/reader"}
    identity = {"name": "reader", "namespace": "ml"}
    role = {"apiVersion": ROLES, "kind": "Role", "metadata": {**identity, "annotations": tracking}, "rules": []}
    strangers = {**role, "metadata": {**identity, "name": "strangers"}}
    resources = [{"group": "rbac.authorization.k8s.io", "version": "v1", "kind": "Role", **identity, "name": name}
            for name in ("reader", "strangers")]  # fmt: skip

    def blinking(cluster: Cluster) -> Any:
        return Blinking(cluster, GroupKind("rbac.authorization.k8s.io", "Role"), BROKEN)

    async with engine_room(tmp_path, wrap_cluster=blinking) as room:
        for manifest in (role, strangers):
            await room.cluster.create(manifest)
        await room.deliver(path="nowhere", metadata={"finalizers": [FINALIZER]})
        await room.until(lambda status: conditions(status, "ComparisonError"))
        await room.patch_app({"status": {"resources": resources}})
        await room.cluster.delete(APP)
        await room.until_gone("argoproj.io/Application", "models", CONTROL)
        assert await room.get("rbac.authorization.k8s.io/Role", "reader") is None
        assert await room.get("rbac.authorization.k8s.io/Role", "strangers") is not None
