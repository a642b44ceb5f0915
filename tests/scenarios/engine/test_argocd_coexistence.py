"""Coexistence with an Argo CD in the same cluster: Applications are only observed, unless annotated for argosy."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import Conflict
from argosy.gitops.coexistence.argocd_detection import REMOVAL_GRACE_SECONDS
from argosy.gitops.policy.application_delivery_engine_detection import Deliverer
from argosy.kube.client import Cluster, Propagation
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support.crashing_client import CrashingCluster
from support.deadlines import HANG_SECONDS, wait_until_async
from support.engine import CONTROL, Room, config_map, engine_room
from support.simulated_argocd import MANAGER, at_work, controller, pod, scale

ONE = {"app/settings.yaml": config_map(a="1")}
AUTOMATED = {"automated": {"selfHeal": True}}
ADOPTED = {"argosy.dev/engine": "argosy", "argocd.argoproj.io/skip-reconcile": "true"}


def annotated(**annotations: str) -> dict[str, Any]:
    return {"annotations": annotations}


async def until_engines(room: Room, *, runs: bool) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while bool(room.engine.argocd_detection.engines.controller_names) is not runs:
            await asyncio.sleep(0.01)


async def until_leaving(room: Room) -> None:
    """Wait until Argo CD is no longer detected but still counts, during the removal grace period."""
    async with asyncio.timeout(HANG_SECONDS):
        while not room.engine.argocd_detection.is_removal_pending:
            await asyncio.sleep(0.01)
    assert room.engine.argocd_detection.engines.controller_names


async def delivered_after(room: Room, name: str = "witness") -> None:
    """Deliver a later Application with argosy: once it is synced, earlier events have been handled."""
    room.repository.push({f"{name}/{name}.yaml": config_map(name)})
    await room.deliver(name, name, metadata={"annotations": ADOPTED}, syncPolicy=AUTOMATED)
    await room.until_synced(name=name)


async def start_operation(room: Room) -> dict[str, Any]:
    """Start an operation as Argo CD."""
    running = {"phase": "Running", "startedAt": "2026-01-01T00:00:00Z", "operation": {"sync": {}}}
    key = ResourceKey("argoproj.io", "Application", CONTROL, "models")
    patch = {"operation": {"sync": {}}, "status": {"operationState": running}}
    await room.cluster.patch(key, patch, manager=MANAGER)
    return running


async def test_application_delivered_by_argo_cd_is_never_written(room: Room) -> None:
    room.repository.push(ONE)
    async with at_work(room.cluster) as argocd:
        await until_engines(room, runs=True)
        await room.deliver(syncPolicy=AUTOMATED)
        before = await room.until(lambda status: status["sync"]["status"] == "Synced")
        room.repository.push({"app/settings.yaml": config_map(a="2")})
        await delivered_after(room)
        assert await room.app() == before  # resourceVersion and all
        assert await room.get("ConfigMap", "settings") is None
        assert argocd.looks == {"models": 1}


async def test_observing_engine_sends_no_writes(tmp_path: Path) -> None:
    watched: list[CrashingCluster] = []

    def seen(cluster: Cluster) -> Any:
        watched.append(CrashingCluster(cluster))
        return watched[0]

    async with engine_room(tmp_path, wrap_cluster=seen) as room, at_work(room.cluster) as argocd:
        await until_engines(room, runs=True)
        room.repository.push(ONE)
        for number in range(5):
            await room.deliver(f"app-{number}", syncPolicy=AUTOMATED)
        for number in range(5):
            name = f"app-{number}"
            await room.until(lambda status: status["sync"]["status"] == "Synced", name)
            await room.settled(name)  # Argo CD answers the refresh
            await room.sync(name)
        room.repository.push({"app/settings.yaml": config_map(a="2")})
        await room.cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "app-0"))
        await delivered_after(room)
        assert argocd.looks == {f"app-{number}": 2 for number in range(5)}
        assert watched[0].calls and not [write for write in watched[0].writes if "witness" not in write]


@pytest.mark.tier("all")
async def test_observed_application_with_invalid_spec_is_not_written(room: Room) -> None:
    async with at_work(room.cluster):
        await until_engines(room, runs=True)
        application = await room.deliver(syncPolicy={"retry": {"backoff": {"duration": "soon"}}})
        await room.until(lambda status: status["sync"]["status"] == "Synced")
        before = await room.app()
        await delivered_after(room)
        assert await room.app() == before
        assert application["metadata"]["uid"] == before["metadata"]["uid"]


async def test_adopted_application_is_delivered_by_argosy_and_skipped_by_argo_cd(room: Room) -> None:
    room.repository.push(ONE)
    async with at_work(room.cluster) as argocd:
        await until_engines(room, runs=True)
        await room.deliver(metadata={"annotations": ADOPTED}, syncPolicy=AUTOMATED)
        app = await room.until_synced()
        assert await room.get("ConfigMap", "settings") is not None
        assert app["status"]["operationState"]["phase"] == "Succeeded"
        assert not argocd.looks


async def test_without_argo_cd_all_but_paused_applications_are_delivered(room: Room) -> None:
    room.repository.push({**ONE, "b/b.yaml": config_map("b"), "c/c.yaml": config_map("c")})
    await room.deliver("paused", "b", metadata=annotated(**{"argocd.argoproj.io/skip-reconcile": "true"}))
    await room.deliver("theirs", "c", metadata=annotated(**{"argosy.dev/engine": "argocd"}), syncPolicy=AUTOMATED)
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    await delivered_after(room)
    assert "status" not in await room.app("paused")
    assert "status" not in await room.app("theirs")
    assert await room.get("ConfigMap", "c") is None


async def test_starting_or_stopping_argo_cd_switches_delivery_and_is_logged(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="argosy")
    room.repository.push(ONE)
    await room.cluster.create(controller(replicas=0))
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    await scale(room.cluster, 1)
    await until_engines(room, runs=True)
    await room.change(a="by hand")
    await delivered_after(room)
    settings = await room.get("ConfigMap", "settings")
    assert settings is not None and settings["data"] == {"a": "by hand"}
    await scale(room.cluster, 0)
    await until_leaving(room)
    room.clock.leap(REMOVAL_GRACE_SECONDS)
    async with asyncio.timeout(HANG_SECONDS):
        while (await room.get("ConfigMap", "settings") or {})["data"] != {"a": "1"}:
            await asyncio.sleep(0.02)
    messages = [record.getMessage() for record in caplog.records if record.name == "argosy.gitops.engine.engine"]
    assert any(
        message.startswith("Argo CD runs in this cluster (StatefulSet argocd/argocd-application-")
        for message in messages
    )
    assert messages[-1].startswith("no Argo CD runs in this cluster: all Applications are delivered")


@pytest.mark.tier("all")
async def test_scaled_down_argo_cd_counts_until_its_last_pod_is_gone(room: Room) -> None:
    stateful_set = await room.cluster.create(controller())
    key = ResourceKey("apps", "StatefulSet", CONTROL, stateful_set["metadata"]["name"])
    await room.cluster.patch(key, {"status": {"replicas": 1}}, subresource="status")
    await until_engines(room, runs=True)
    await scale(room.cluster, 0)
    await delivered_after(room)
    assert room.engine.argocd_detection.engines.controller_names
    await room.cluster.patch(key, {"status": {"replicas": 0}}, subresource="status")
    await until_leaving(room)
    room.clock.leap(REMOVAL_GRACE_SECONDS)
    await until_engines(room, runs=False)


@pytest.mark.tier("all")
async def test_orphaned_argo_cd_pod_counts_as_running_argo_cd(room: Room) -> None:
    stateful_set = await room.cluster.create(controller())
    with contextlib.suppress(Conflict):  # the controller of a real server may be faster
        await room.cluster.create(pod())
    await until_engines(room, runs=True)
    key = ResourceKey("apps", "StatefulSet", CONTROL, stateful_set["metadata"]["name"])
    await room.cluster.delete(key, propagation=Propagation.ORPHAN)
    async with asyncio.timeout(HANG_SECONDS):
        while room.engine.argocd_detection.engines.controller_names != (f"Pod {CONTROL}/{MANAGER}-0",):
            await asyncio.sleep(0.01)
    room.clock.leap(REMOVAL_GRACE_SECONDS)
    await delivered_after(room)
    assert room.engine.argocd_detection.engines.find_deliverer({}, CONTROL) is Deliverer.ARGOCD
    await room.cluster.delete(ResourceKey("", "Pod", CONTROL, f"{MANAGER}-0"), grace=0)
    await until_leaving(room)
    room.clock.leap(REMOVAL_GRACE_SECONDS)
    await until_engines(room, runs=False)


@pytest.mark.tier("all")
async def test_argo_cd_recreated_within_the_grace_period_still_counts(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="argosy.gitops.engine.engine")
    stateful_set = await room.cluster.create(controller())
    await until_engines(room, runs=True)
    await room.cluster.delete(ResourceKey("apps", "StatefulSet", CONTROL, stateful_set["metadata"]["name"]))
    await until_leaving(room)
    room.clock.leap(REMOVAL_GRACE_SECONDS - 10)
    await room.cluster.create(controller())
    await delivered_after(room)
    room.clock.leap(REMOVAL_GRACE_SECONDS)
    await delivered_after(room, "another")
    assert room.engine.argocd_detection.engines.controller_names
    assert not any("no Argo CD runs in this cluster" in record.getMessage() for record in caplog.records[1:])


async def test_simulated_argo_cd_does_not_stop_delivery(room: Room) -> None:
    room.repository.push(ONE)
    mark = {"sandbox.argosy.dev/simulated": "simulated by argosy"}
    await room.cluster.create(controller(annotations=mark))
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    assert room.engine.argocd_detection.engines.find_deliverer({}, CONTROL) is Deliverer.ARGOSY


@pytest.mark.tier("all")
async def test_argo_cd_deployment_of_an_operator_is_detected_in_its_own_namespace(room: Room) -> None:
    await room.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "openshift-gitops"}})
    manifest: dict[str, Any] = dict(controller("openshift-gitops"))
    labels = {**manifest["metadata"]["labels"], "app.kubernetes.io/name": "openshift-gitops-application-controller"}
    spec = {name: value for name, value in manifest["spec"].items() if name != "serviceName"}
    await room.cluster.create(
        {**manifest, "kind": "Deployment", "metadata": {**manifest["metadata"], "labels": labels}, "spec": spec}
    )
    await until_engines(room, runs=True)
    expected = ("Deployment openshift-gitops/argocd-application-controller",)
    assert room.engine.argocd_detection.engines.list_watching_controllers("openshift-gitops") == expected
    assert not room.engine.argocd_detection.engines.list_watching_controllers(CONTROL)


async def test_argo_cd_watching_other_namespaces_does_not_stop_delivery(
    room: Room, caplog: pytest.LogCaptureFixture
) -> None:
    """For example an Argo CD elsewhere, or a tenant's Pod with its labels and with flags that exceed its rights."""
    room.repository.push(ONE)
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    await room.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant"}})
    await room.cluster.create(pod("tenant"))
    await until_engines(room, runs=True)
    await room.change(a="by hand")
    async with asyncio.timeout(HANG_SECONDS):
        while (await room.get("ConfigMap", "settings") or {})["data"] != {"a": "1"}:
            await asyncio.sleep(0.02)
    assert room.engine.argocd_detection.engines.find_deliverer({}, CONTROL) is Deliverer.ARGOSY
    assert room.engine.argocd_detection.engines.find_deliverer({}, "tenant") is Deliverer.ARGOCD
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


def lets_all(namespace: str) -> Manifest:
    """Make all accounts of a namespace cluster-admin: with RBAC, argosy believes the flags of its Argo CD only then."""
    api = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{api}/v1", "kind": "ClusterRoleBinding", "metadata": {"name": f"all-of-{namespace}"},
        "roleRef": {"apiGroup": api, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": api, "kind": "Group", "name": f"system:serviceaccounts:{namespace}"}],
    }  # fmt: skip


async def test_argo_cd_widening_its_scope_causes_a_warning(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.repository.push(ONE)
    await room.deliver(syncPolicy=AUTOMATED)
    await room.until_synced()
    await room.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    settings = {"name": "argocd-cmd-params-cm", "namespace": "other"}
    data = {"application.namespaces": f"team-*,/^{CONTROL}$/"}
    await room.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": settings, "data": data})
    await room.cluster.create(lets_all("other"))
    await room.cluster.create(controller("other"))
    await until_engines(room, runs=True)
    assert room.engine.argocd_detection.engines.find_deliverer({}, CONTROL) is Deliverer.ARGOCD
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert warning.startswith(f"{CONTROL}/models is no longer delivered by argosy, but by Argo CD (StatefulSet other/")
    # Its scope shrinks; this takes effect only after the grace period, as a removal does.
    key = ResourceKey("", "ConfigMap", "other", "argocd-cmd-params-cm")
    await room.cluster.patch(key, {"data": None})
    await scale(room.cluster, 2, "other")
    await until_leaving(room)
    assert room.engine.argocd_detection.engines.list_watching_controllers(CONTROL)
    room.clock.leap(REMOVAL_GRACE_SECONDS)
    async with asyncio.timeout(HANG_SECONDS):
        while room.engine.argocd_detection.engines.list_watching_controllers(CONTROL):
            await asyncio.sleep(0.01)
    assert room.engine.argocd_detection.engines.list_watching_controllers("other")


async def until_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    text = "models: waiting for a running operation of Argo CD"
    await wait_until_async(lambda: text in caplog.text, text)


async def test_running_argo_cd_operation_is_not_taken_over(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.repository.push(ONE)
    async with at_work(room.cluster):
        await until_engines(room, runs=True)
        await room.deliver()
        await room.until(lambda status: status["sync"]["status"] == "Synced")
        running = await start_operation(room)
        before: Manifest = await room.patch_app({"metadata": {"annotations": ADOPTED}})
        await until_waited_for(caplog)
        await delivered_after(room)
        assert await room.app() == before
        assert await room.get("ConfigMap", "settings") is None
        over = {**running, "phase": "Succeeded", "finishedAt": "2026-01-01T00:00:09Z"}
        await room.patch_app({"operation": None, "status": {"operationState": over}})
        await room.until(lambda status: status["sync"]["status"] == "OutOfSync")


@pytest.mark.tier("all")
async def test_abandoned_argo_cd_operation_can_be_terminated(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.repository.push(ONE)
    async with at_work(room.cluster):
        await until_engines(room, runs=True)
        await room.deliver()
        await room.until(lambda status: status["sync"]["status"] == "Synced")
        await start_operation(room)
        await room.patch_app({"metadata": {"annotations": ADOPTED}})
        await until_waited_for(caplog)
        await room.patch_app({"status": {"operationState": {"phase": "Terminating"}}})
        await room.until_over()
