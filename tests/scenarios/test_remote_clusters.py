"""Applications on remote clusters: delivery, and failures of one cluster that do not affect the others."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from argosy.cli.application_service_connection import open_cluster
from argosy.features.clusters.connection_state import fetch_state
from argosy.features.clusters.service import find_cluster
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.engine.liveness import ControllerHealth
from argosy.gitops.reconciler.remote_cluster_connection import RETRY_SECONDS
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.controller.log_context import get_log_fields
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.tls import ensure_certificates
from support import prometheus_text
from support.deadlines import HANG_SECONDS, wait_until_async
from support.engine import CONTROL, Room, conditions, config_map, engine_room
from support.loop_clock import turns
from support.remote_clusters import Far, encoded, far_cluster

THERE = {"name": "far", "namespace": "ml"}
EXEC = "client.authentication.k8s.io/v1"
AUTOMATED = {"automated": {"prune": True, "selfHeal": True}}
ONE = {"app/settings.yaml": config_map(a="1"), "app/more.yaml": config_map("more", b="1")}


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with engine_room(tmp_path) as opened_room:
        yield opened_room


@pytest.fixture
async def far(tmp_path: Path) -> AsyncIterator[Far]:
    async with far_cluster(tmp_path, "far", "--rbac") as remote_cluster:
        yield remote_cluster


def is_unknown(status: dict[str, Any]) -> bool:
    return status["sync"]["status"] == "Unknown" and status["health"]["status"] == "Unknown"


async def until_healed(far: Far) -> None:
    async def is_healed() -> bool:
        return ((await far.get("ConfigMap", "settings")) or {})["data"]["a"] == "1"

    await wait_until_async(is_healed, "what was changed by hand is as Git has it")


async def both(room: Room, far: Far) -> None:
    """Deliver one Application to the local and one to the remote cluster."""
    room.repository.push(ONE)
    await far.declare(room)
    await room.deliver("near", syncPolicy=AUTOMATED)
    await room.deliver("distant", destination=THERE, syncPolicy=AUTOMATED)
    await room.until_synced(name="near")
    await room.until_synced(name="distant")


async def test_application_is_synced_healed_pruned_and_deleted_in_a_remote_cluster(room: Room, far: Far) -> None:
    room.repository.push(ONE)
    await far.declare(room)
    finalizer = {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}
    await room.deliver(destination={"server": far.server, "namespace": "ml"}, syncPolicy=AUTOMATED, metadata=finalizer)
    app = await room.until_synced()
    assert {resource["name"] for resource in app["status"]["resources"]} == {"settings", "more"}
    assert await far.get("ConfigMap", "settings") and await room.get("ConfigMap", "settings") is None
    key = ResourceKey("", "ConfigMap", "ml", "settings")
    await far.cluster.patch(key, {"data": {"a": "by hand"}})
    await until_healed(far)
    room.repository.push({"app/more.yaml": None})
    await far.until("ConfigMap", "more", gone=True)
    await room.cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "models"))
    await far.until("ConfigMap", "settings", gone=True)
    await room.until_gone("argoproj.io/Application", "models", CONTROL)


@pytest.mark.tier("all")
async def test_hooks_run_in_the_destination_cluster(room: Room, far: Far) -> None:
    hook = config_map("before")
    hook["metadata"]["annotations"] = {"argocd.argoproj.io/hook": "PreSync"}
    room.repository.push({**ONE, "app/hook.yaml": hook})
    await far.declare(room)
    await room.deliver(destination=THERE)
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    await room.sync()
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == "Succeeded"
    assert await far.get("ConfigMap", "before") and await room.get("ConfigMap", "before") is None


@pytest.mark.tier("all")
async def test_frozen_cluster_makes_only_its_own_applications_unknown(room: Room, far: Far) -> None:
    await both(room, far)
    far.freeze()
    message = await room.until_condition("ComparisonError", "distant")
    assert "cluster far" in message and "did not answer in time" in message
    await room.until(is_unknown, "distant")
    await room.until_synced(room.repository.push({"app/settings.yaml": config_map(a="2")}), name="near")
    assert (await room.app("near"))["status"]["health"]["status"] == "Healthy"
    vitals = ControllerHealth(room.engine.options.workers, clock=room.clock)
    vitals.engine = room.engine
    assert vitals.list_problems() == []  # an unreachable cluster is not a problem of the controller
    up = "argocd_cluster_connection_status"
    assert prometheus_text.one(prometheus_text.read(vitals.render_metrics()), up, server=far.server) == 0
    far.thaw()
    app = await room.until_synced(name="distant")
    assert not conditions(app["status"], "ComparisonError")
    assert ((await far.get("ConfigMap", "settings")) or {})["data"] == {"a": "2"}
    metrics = prometheus_text.read(vitals.render_metrics())
    assert prometheus_text.one(metrics, up, server=far.server) == 1
    assert prometheus_text.one(metrics, "argocd_app_info", name="distant", dest_server=far.server) == 1
    assert prometheus_text.some(metrics, "argocd_app_k8s_request_total", server=far.server, verb="watch")


@pytest.mark.tier("all")
async def test_killed_cluster_is_unreachable_and_other_applications_sync(room: Room, far: Far) -> None:
    await both(room, far)
    far.sandbox.kill()
    assert "cannot be reached" in await room.until_condition("ComparisonError", "distant")
    await room.until(is_unknown, "distant")
    await room.until_synced(room.repository.push({"app/settings.yaml": config_map(a="2")}), name="near")


@pytest.mark.tier("all")
async def test_revoked_token_is_reported_until_the_secret_has_a_new_one(room: Room, far: Far) -> None:
    room.repository.push(ONE)
    token = await far.account()
    await far.declare(room, far.config(bearerToken=token))
    await room.deliver(destination=THERE, syncPolicy=AUTOMATED)
    await room.until_synced()
    await far.cluster.delete(ResourceKey("", "ServiceAccount", "kube-system", "argocd-manager"))
    assert "cluster far" in await room.until_condition("ComparisonError")
    await room.until(is_unknown)
    await far.declare(room, far.config(bearerToken=await far.account("another")))
    await room.until_synced()


async def test_untrusted_cluster_certificate_is_a_comparison_error(room: Room, far: Far, tmp_path: Path) -> None:
    room.repository.push(ONE)
    (tmp_path / "stranger").mkdir()
    stranger = base64.b64encode(Path(ensure_certificates(tmp_path / "stranger").authority).read_bytes()).decode()
    await far.declare(room, far.config(tls={"caData": stranger}))
    await room.deliver(destination=THERE, syncPolicy=AUTOMATED)
    assert "certificate is not trusted" in await room.until_condition("ComparisonError")
    await far.declare(room, far.config(tls={"caData": "", "insecure": True}))
    await room.until_synced()


class Noted(logging.Handler):
    """Records the context fields of each log line."""

    def __init__(self) -> None:
        super().__init__()
        self.about: list[dict[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.about.append(dict(get_log_fields()))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"server": "https://[bad"}, "server is not a valid address; write it as https://host:6443"),
        ({"config": json.dumps({"execProviderConfig": {"command": "aws", "args": 5}})}, "args must be a list"),
    ],
)
async def test_invalid_cluster_secret_is_reported_with_its_field(
    room: Room, values: dict[str, str], words: str
) -> None:
    room.repository.push(ONE)
    data = encoded({"name": "far", "server": "https://far.example", **values})
    metadata = {"name": "cluster-far", "namespace": CONTROL, "labels": {"argocd.argoproj.io/secret-type": "cluster"}}
    await room.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})
    noted = Noted()
    logging.getLogger("argosy.gitops.reconciler.remote_cluster_connection").addHandler(noted)
    await room.deliver(destination=THERE)
    message = await room.until_condition("ComparisonError")
    logging.getLogger("argosy.gitops.reconciler.remote_cluster_connection").removeHandler(noted)
    assert noted.about == [{}]  # log lines of a cluster do not name the Application that needed it first
    assert "cluster far" in message and words in message and "(Secret cluster-far)" in message
    await room.until(is_unknown)


@pytest.mark.tier("all")
async def test_unexpected_connect_error_is_reported_and_retried(
    room: Room, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise TypeError("nobody thought of this")

    with monkeypatch.context() as broken:
        broken.setattr("argosy.gitops.reconciler.remote_cluster_connection.connect", fails)
        room.repository.push(ONE)
        await far.declare(room)
        await room.deliver(destination=THERE, syncPolicy=AUTOMATED)
        assert "unexpected error" in await room.until_condition("ComparisonError")
    room.clock.leap(RETRY_SECONDS)
    await room.until_synced()


@pytest.mark.tier("all")
async def test_destination_without_a_cluster_secret_is_invalid(room: Room, far: Far) -> None:
    room.repository.push(ONE)
    await room.deliver(destination=THERE, syncPolicy=AUTOMATED)
    assert await room.until_condition("InvalidSpecError") == "there are no clusters with this name: far"
    await far.declare(room)
    await room.until_synced()
    await room.cluster.delete(ResourceKey("", "Secret", CONTROL, "cluster-far"))
    assert "no clusters with this name: far" in await room.until_condition("InvalidSpecError")
    await wait_until_async(lambda: len(list(room.engine.clusters.list_connected())) == 1)


@pytest.mark.tier("all")
async def test_only_namespaces_of_the_cluster_secret_are_watched_and_synced(room: Room, far: Far) -> None:
    await far.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    room.repository.push(ONE)
    await far.declare(room, namespaces="ml")
    await room.deliver(destination=THERE, syncPolicy=AUTOMATED)
    await room.until_synced()
    (outpost,) = room.engine.clusters._remotes.values()
    kinds = [kind for kind in outpost.cache.kinds() if outpost.cache.list(kind)]
    assert {manifest["metadata"].get("namespace") for kind in kinds for manifest in outpost.cache.list(kind)} == {"ml"}
    await far.cluster.patch(ResourceKey("", "ConfigMap", "ml", "settings"), {"data": {"a": "by hand"}})
    await room.until(lambda status: len(status["history"]) >= 1)
    await until_healed(far)
    await room.deliver("second", destination={"name": "far", "namespace": "other"}, syncPolicy=AUTOMATED)
    message = await room.until_condition("ComparisonError", "second")
    assert 'namespace "other" for ConfigMap' in message and "is not managed" in message


@pytest.mark.tier("all")
async def test_cluster_is_connected_on_demand_and_closed_when_unused(room: Room, far: Far) -> None:
    room.repository.push(ONE)
    await far.declare(room)
    await room.deliver("near")
    await room.until(lambda status: status["sync"]["status"], "near")
    assert len(list(room.engine.clusters.list_connected())) == 1
    await room.deliver(destination=THERE)
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    assert len(list(room.engine.clusters.list_connected())) == 2
    await room.cluster.delete(ResourceKey("argoproj.io", "Application", CONTROL, "models"))
    await room.until_gone("argoproj.io/Application", "models", CONTROL)
    await wait_until_async(lambda: room.engine.clusters.sweep_soon() or room.engine.clusters._unused_since)
    room.clock.leap(700)
    room.engine.clusters.sweep_soon()
    await wait_until_async(lambda: len(list(room.engine.clusters.list_connected())) == 1)


@pytest.mark.tier("all")
async def test_same_object_names_in_two_clusters_are_independent(room: Room, far: Far, tmp_path: Path) -> None:
    async with far_cluster(tmp_path, "third") as third:
        room.repository.push(ONE)
        for remote in (far, third):
            await remote.declare(room)
        await room.deliver("one", destination=THERE, syncPolicy=AUTOMATED)
        await room.deliver("two", destination={"name": "third", "namespace": "ml"}, syncPolicy=AUTOMATED)
        for name in ("one", "two"):
            assert not conditions((await room.until_synced(name=name))["status"], "SharedResourceWarning")
        third.sandbox.kill()
        await room.until(is_unknown, "two")
        assert (await room.app("one"))["status"]["sync"]["status"] == "Synced"
        await room.until_synced(room.repository.push({"app/settings.yaml": config_map(a="3")}), name="one")


@pytest.mark.tier("all")
async def test_frozen_cluster_of_many_applications_leaves_workers_to_others(room: Room, far: Far) -> None:
    await both(room, far)
    names = [f"distant-{number}" for number in range(16)]
    for name in names:
        await room.deliver(name, destination=THERE)
    for name in names:
        await room.until(lambda status: status["sync"]["status"], name)
    far.freeze()
    revision = room.repository.push({"app/settings.yaml": config_map(a="2")})
    for name in names:
        await room.annotate(name, refresh="hard")
    await room.until_synced(revision, name="near")
    assert not is_unknown((await room.app(names[0]))["status"])  # the frozen cluster is not reported as away yet
    for name in names:
        await room.until(is_unknown, name)


async def test_application_with_skip_reconcile_ends_its_turn(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    passed: list[ResourceKey] = []
    monkeypatch.setattr(room.engine.clusters, "on_passes_finished", passed.append)
    paused = {"annotations": {"argocd.argoproj.io/skip-reconcile": "true"}}
    await room.deliver(destination=THERE, metadata=paused)
    await wait_until_async(lambda: ResourceKey("argoproj.io", "Application", CONTROL, "models") in passed)


@pytest.mark.tier("all")
@pytest.mark.parametrize(
    "patch",
    [{"status": {"operationState": {"phase": "Terminating"}}}, {"operation": None}],
    ids=["terminated", "removed"],
)
async def test_operation_that_waits_for_a_cluster_says_so_and_can_be_terminated(
    room: Room, far: Far, patch: dict[str, Any]
) -> None:
    room.repository.push(ONE)
    await far.declare(room, far.config(bearerToken="nobody"))
    await room.deliver(destination=THERE)
    await room.until_condition("ComparisonError")
    await room.sync()
    app = await room.until(lambda status: "waiting for cluster far" in status["operationState"]["message"])
    assert app["status"]["operationState"]["phase"] == "Running" and "operation" in app
    await room.patch_app(patch)
    app = await room.until_over()
    state = app["status"]["operationState"]
    assert state["phase"] == "Failed" and "operation terminated" in state["message"]
    await room.sync()
    await room.until(lambda status: status["operationState"]["phase"] == "Running")
    await far.declare(room)
    app = await room.until_over()
    assert app["status"]["operationState"]["phase"] == "Succeeded" and await far.get("ConfigMap", "settings")


@pytest.mark.tier("all")
async def test_exec_program_supplies_the_token_only_if_settings_allow_it(
    room: Room, far: Far, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"apiVersion": EXEC, "kind": "ExecCredential", "status": {"token": far.sandbox.endpoint.token}}
    program = tmp_path / "bin" / "our-login"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat <<'EOF'\n{json.dumps(answer)}\nEOF\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    config = {"execProviderConfig": {"command": "our-login", "apiVersion": EXEC}}
    room.repository.push(ONE)
    await far.declare(room, json.dumps({**config, "tlsClientConfig": {"caData": far.authority}}))
    await room.deliver(destination=THERE, syncPolicy=AUTOMATED)
    desk = ApplicationService(room.cluster, "a test", CONTROL, CONTROL, opener=open_cluster)
    declared = await find_cluster(desk, "far", is_name=True)
    assert declared is not None
    refusal = "'our-login' is not allowed; allowed are"
    assert refusal in await room.until_condition("ComparisonError")
    assert refusal in (await fetch_state(desk, declared))[0].message
    await room.configure({"cluster.execPrograms": "our-login"}, "argosy-cm")
    await room.until_synced()
    assert (await fetch_state(desk, declared))[0].status == "Successful"  # with the setting of the engine


class Slowly:
    """A cluster in which each write of an object takes a while."""

    def __init__(self, cluster: Any, begun: asyncio.Event) -> None:
        self._cluster, self._begun = cluster, begun

    def __getattr__(self, name: str) -> Any:
        return partial(self._change, name) if name in ("apply", "create", "patch") else getattr(self._cluster, name)

    async def _change(self, verb: str, *args: Any, **terms: Any) -> Any:
        self._begun.set()
        await turns()
        return await getattr(self._cluster, verb)(*args, **terms)


@pytest.mark.tier("all")
async def test_started_step_in_a_remote_cluster_completes_when_the_engine_stops(
    tmp_path: Path, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    step_started = asyncio.Event()

    async def slowly(connection: Connection) -> Any:
        return Slowly(await connect(connection), step_started)

    monkeypatch.setattr("argosy.gitops.reconciler.remote_cluster_connection.connect", slowly)
    async with engine_room(tmp_path) as room:
        room.repository.push({"app/settings.yaml": config_map(a="1")})
        await far.declare(room)
        await room.deliver(destination=THERE, syncPolicy=AUTOMATED)
        await asyncio.wait_for(step_started.wait(), HANG_SECONDS)
    assert await far.get("ConfigMap", "settings") is not None
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "cluster far"]
