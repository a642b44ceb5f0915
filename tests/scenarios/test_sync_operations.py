"""Sync operations on an embedded cluster: apply options, waves, health gates, hooks and pruning."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from argosy.annotations import HOOK_FINALIZER
from argosy.gitops.application import OperationPhase, ResultCode, RetryStrategy, SyncRequest
from argosy.gitops.sync import retry
from argosy.gitops.sync.effective_apply_and_prune_options import SyncSettings
from argosy.kube.client import Cluster, Propagation
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.https_server import serve_https
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.apiserver.tls import ensure_certificates
from support.crashing_client import CrashingCluster
from support.deadlines import HANG_SECONDS
from support.sync_operations import (
    LISTED,
    NAMESPACE,
    WIDGET,
    Stage,
    config,
    definition,
    deployment,
    ends,
    finish_jobs,
    job,
    judge,
    manifest,
    roll_out,
    summarize_results,
)

CONFIGS, DEPLOYMENTS, JOBS = LISTED[:3]
DEFINITION = ResourceKey("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com")
ALL_RUN = (OperationPhase.SUCCEEDED, "successfully synced (all tasks run)")
NO_MORE = (OperationPhase.SUCCEEDED, "successfully synced (no more tasks)")


async def nothing_happens(_: Cluster) -> None:
    pass


@pytest.fixture(params=["embedded", pytest.param("wire", marks=pytest.mark.tier("all"))])
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    """An embedded cluster, called in process or over HTTPS."""
    async with ControlPlane.open(rbac=True, admin_token="of-a-test") as plane, contextlib.AsyncExitStack() as stack:
        opened: Cluster = EmbeddedCluster(plane)
        if request.param == "wire":
            certificates = ensure_certificates(tmp_path)
            url = await stack.enter_async_context(serve_https(plane, certificates))
            there = Connection(server=url, ca_file=str(certificates.authority), token="of-a-test")
            opened = await stack.enter_async_context(await connect(there))
        await opened.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        yield opened


def key(kind: GroupKind, name: str) -> ResourceKey:
    return ResourceKey(*kind, NAMESPACE, name)


# -- applying --------------------------------------------------------------------------------------------------------


async def test_sync_without_waves_succeeds_as_soon_as_all_is_applied(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a"), deployment("web")], world=nothing_happens)
    answer = await stage.step()
    assert ends(answer.state) == ALL_RUN and answer.wait is None
    assert summarize_results(answer.state) == {
        "ConfigMap/a": ("Synced", "Running", "configmap/a created"),
        "Deployment/web": ("Synced", "Running", "deployment.apps/web created"),
    }
    assert answer.state.results[1].images == ("web:1",) and answer.state.results[1].version == "v1"
    assert answer.state.finished


async def test_a_second_sync_writes_nothing(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a", wave=1), deployment("web", wave=2)])
    await stage.finish()
    watched = CrashingCluster(cluster)
    state = await stage.again(cluster=watched).finish()
    assert ends(state) == ALL_RUN and watched.writes == []
    assert summarize_results(state)["ConfigMap/a"][2] == "configmap/a unchanged"


async def test_sync_removes_fields_dropped_from_manifest_and_keeps_foreign_fields(cluster: Cluster) -> None:
    stage = Stage(cluster, [manifest("ConfigMap", "a", data={"ours": "1", "gone": "1"})])
    await stage.finish()
    await cluster.patch(key(CONFIGS, "a"), {"data": {"theirs": "1"}})
    state = await stage.again(manifest("ConfigMap", "a", data={"ours": "2"})).finish()
    config_map = await cluster.get(key(CONFIGS, "a"))
    assert config_map and config_map["data"] == {"ours": "2", "theirs": "1"}
    assert summarize_results(state)["ConfigMap/a"][2] == "configmap/a configured"


@pytest.mark.parametrize("options", [(), ("Validate=false",)])
async def test_unknown_field_is_dropped_by_the_server(cluster: Cluster, options: tuple[str, ...]) -> None:
    """argo: its dry run is the client's, and it asks the server for no strict validation."""
    state = await Stage(cluster, [manifest("ConfigMap", "b", dta={})], options=options).finish()
    assert ends(state) == ALL_RUN
    live = await cluster.get(key(CONFIGS, "b"))
    assert live is not None and "dta" not in live


async def test_object_that_the_server_rejects_fails_after_the_others_are_applied(cluster: Cluster) -> None:
    state = await Stage(cluster, [config("a"), manifest("ConfigMap", "b", data=[1])]).finish()
    assert state.phase is OperationPhase.FAILED
    assert state.message.startswith("one or more synchronization tasks completed unsuccessfully, reason: ")
    assert "a" in await Stage(cluster).names()


async def test_unserved_kind_makes_sync_invalid(cluster: Cluster) -> None:
    state = await Stage(cluster, [config("a"), manifest("Widget", "w", api="example.com/v1")]).finish()
    assert state.phase is OperationPhase.FAILED
    assert state.message.endswith(
        "failed to discover server resources for group version example.com/v1: "
        "the server could not find the requested resource"
    )
    assert summarize_results(state)["Widget/w"][0] == "SyncFailed" and "a" not in await Stage(cluster).names()


async def test_resource_not_permitted_by_project_makes_sync_invalid(cluster: Cluster) -> None:
    state = await Stage(cluster, [config("a")], permitted=lambda *_: "resource :ConfigMap is not permitted").finish()
    assert ends(state) == (
        OperationPhase.FAILED, "one or more synchronization tasks are not valid: resource :ConfigMap is not permitted",
    )  # fmt: skip


async def test_crd_and_its_custom_resource_are_applied_in_one_sync(cluster: Cluster) -> None:
    stage = Stage(cluster, [manifest("Widget", "w", api="example.com/v1", spec={"size": 1}), definition()])
    assert ends(await stage.finish()) == ALL_RUN
    assert await stage.names(WIDGET) == ["w"]


async def test_create_namespace_precedes_hooks_and_sets_managed_metadata() -> None:
    manifests = [job("first", hook="PreSync"), config("a")]
    labels = {"managedNamespaceMetadata": {"labels": {"team": "ml"}}}
    async with EmbeddedCluster.open() as empty:
        stage = Stage(empty, manifests, options=("CreateNamespace=true",), policy=labels)
        assert ends(await stage.finish()) == ALL_RUN
        namespace = await empty.get(ResourceKey("", "Namespace", "", NAMESPACE))
        assert namespace and namespace["metadata"]["labels"]["team"] == "ml"


async def test_apply_out_of_sync_only_skips_objects_that_do_not_differ(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a"), config("b")])
    await stage.finish()
    manifests = [config("a"), config("b", "2"), job("check", hook="PostSync")]
    state = await stage.again(*manifests, options=("ApplyOutOfSyncOnly=true",), started="2099-01-01T00:00:00Z").finish()
    assert set(summarize_results(state)) == {"ConfigMap/b", "Job/check@PostSync"}


async def test_selective_sync_applies_only_chosen_resource_without_hooks(cluster: Cluster) -> None:
    chosen = SyncRequest(resources=(ResourceKey("", "ConfigMap", "", "b"),))
    state = await Stage(cluster, [config("a"), config("b"), job("check", hook="PreSync")], chosen).finish()
    assert set(summarize_results(state)) == {"ConfigMap/b"}


async def test_dry_run_reports_results_and_changes_nothing(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a"), config("old")])
    await stage.finish()
    sync_request = SyncRequest(dry_run=True, prune=True)
    state = await stage.again(config("a", "2"), config("b"), job("x", hook="PreSync"), request=sync_request).finish()
    assert ends(state) == NO_MORE
    assert summarize_results(state) == {
        "Job/x@PreSync": ("Synced", "Succeeded", "job.batch/x created (dry run)"),
        "ConfigMap/a": ("Synced", "Succeeded", "configmap/a configured (dry run)"),
        "ConfigMap/b": ("Synced", "Succeeded", "configmap/b created (dry run)"),
        "ConfigMap/old": ("Pruned", "Succeeded", "pruned (dry run)"),
    }
    assert {"a", "old"} <= set(await stage.names()) and "b" not in await stage.names()


async def test_immutable_field_change_fails_unless_force_recreates_object(cluster: Cluster) -> None:
    stage = Stage(cluster, [deployment("web")])
    await stage.finish()
    changed = deployment("web", label="other")
    for options, verb in (("", "patching"), ("Replace=true", "replacing")):
        state = await stage.again(deployment("web", label="other", options=options)).finish()
        assert state.phase is OperationPhase.FAILED
        message = f'one or more objects failed to apply, reason: error when {verb} "STDIN": Deployment.apps "web" is'
        assert state.message.startswith(message)
    before = await cluster.get(key(DEPLOYMENTS, "web"))
    state = await stage.again(changed, request=SyncRequest(force=True)).finish()
    after = await cluster.get(key(DEPLOYMENTS, "web"))
    assert ends(state) == ALL_RUN and before and after
    assert before["metadata"]["uid"] != after["metadata"]["uid"]


async def test_replace_drops_foreign_fields_and_force_recreates_object(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a", options="Replace=true")])
    assert summarize_results(await stage.finish())["ConfigMap/a"][2] == "configmap/a created"
    await cluster.patch(key(CONFIGS, "a"), {"data": {"theirs": "1"}})
    before = await cluster.get(key(CONFIGS, "a"))
    state = await stage.again().finish()
    after = await cluster.get(key(CONFIGS, "a"))
    assert before and after and after["data"] == {"value": "1"}
    assert summarize_results(state)["ConfigMap/a"][2] == "configmap/a replaced"
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    await stage.again(config("a", "2", options="Force=true,Replace=true")).finish()
    anew = await cluster.get(key(CONFIGS, "a"))
    assert anew and anew["metadata"]["uid"] != before["metadata"]["uid"] and anew["data"] == {"value": "2"}


async def test_server_side_apply_migrates_fields_of_client_side_apply(cluster: Cluster) -> None:
    stage = Stage(cluster, [manifest("ConfigMap", "a", data={"kept": "1", "gone": "1"})])
    await stage.finish()
    stage_options = {"options": ("ServerSideApply=true",)}
    state = await stage.again(manifest("ConfigMap", "a", data={"kept": "1"}), **stage_options).finish()
    config_map = await cluster.get(key(CONFIGS, "a"))
    assert summarize_results(state)["ConfigMap/a"][2] == "configmap/a serverside-applied"
    assert config_map and config_map["data"] == {"kept": "1"}
    managers = {(entry["manager"], entry["operation"]) for entry in config_map["metadata"]["managedFields"]}
    assert managers == {("argocd-controller", "Apply")}


async def test_without_client_side_apply_migration_only_writers_of_last_applied_lose_fields(cluster: Cluster) -> None:
    """As `kubectl apply --server-side`, which Argo CD runs. The option is about the fields of other managers."""
    stage = Stage(cluster, [manifest("ConfigMap", "a", data={"kept": "1", "gone": "1"})])
    await stage.finish()
    await cluster.patch(key(CONFIGS, "a"), {"data": {"edited": "1"}}, manager="kubectl-client-side-apply")
    stage_options = {"options": ("ServerSideApply=true", "ClientSideApplyMigration=false")}
    await stage.again(manifest("ConfigMap", "a", data={"kept": "1"}), **stage_options).finish()
    config_map = await cluster.get(key(CONFIGS, "a"))
    assert config_map and config_map["data"] == {"kept": "1", "edited": "1"}


@pytest.mark.parametrize("options", ["ServerSideApply=true", "Replace=true", "Force=true"])
async def test_second_sync_changes_nothing_with_any_apply_option(cluster: Cluster, options: str) -> None:
    stage = Stage(cluster, [config("a"), deployment("web")], options=(options,))
    await stage.finish()
    before = {
        resource_key: there["metadata"]["resourceVersion"] for resource_key, there in (await stage.live()).items()
    }
    assert ends(await stage.again().finish()) == ALL_RUN
    assert {
        resource_key: there["metadata"]["resourceVersion"] for resource_key, there in (await stage.live()).items()
    } == before


async def test_manifest_of_older_api_version_is_applied_in_that_version(cluster: Cluster) -> None:
    def scaler(most: int) -> dict[str, Any]:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        spec = {"scaleTargetRef": target, "maxReplicas": most, "targetCPUUtilizationPercentage": 50}
        return manifest("HorizontalPodAutoscaler", "web", api="autoscaling/v1", spec=spec)

    stage = Stage(cluster, [scaler(3)])
    await stage.finish()
    assert ends(await stage.again(scaler(4)).finish()) == ALL_RUN
    autoscaler = await cluster.get(ResourceKey("autoscaling", "HorizontalPodAutoscaler", NAMESPACE, "web"))
    assert autoscaler and autoscaler["spec"]["maxReplicas"] == 4
    assert autoscaler["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50


async def test_sync_stops_waiting_for_crd_that_is_never_established(cluster: Cluster) -> None:
    clash = definition()
    clash["metadata"] = {**clash["metadata"], "name": "gadgets.example.com"}
    clash["spec"] = {**clash["spec"], "names": {**clash["spec"]["names"], "kind": "Gadget", "plural": "gadgets",
                                                "listKind": "WidgetList"}}  # fmt: skip
    await Stage(cluster, [definition()]).finish()
    stage = Stage(cluster, [clash, manifest("Gadget", "g", api="example.com/v1")])
    stage.time = datetime.now(UTC)
    answer = await stage.step()
    name = "apiextensions.k8s.io/CustomResourceDefinition/gadgets.example.com"
    assert ends(answer.state) == (OperationPhase.RUNNING, f"waiting for healthy state of {name}")
    stage.time += timedelta(seconds=5)
    state = await stage.finish()
    assert state.phase is OperationPhase.FAILED and summarize_results(state)["Gadget/g"][0] == "SyncFailed"


# -- waves -----------------------------------------------------------------------------------------------------------


async def test_wave_waits_until_previous_wave_is_healthy(cluster: Cluster) -> None:
    stage = Stage(cluster, [deployment("web", wave=0), config("after", wave=1)], world=nothing_happens)
    answer = await stage.step()
    assert ends(answer.state) == (OperationPhase.RUNNING, "waiting for healthy state of apps/Deployment/web")
    assert "after" not in await stage.names()
    await roll_out(cluster)
    assert ends((await stage.step()).state) == ALL_RUN
    assert "after" in await stage.names()


async def test_waves_of_kinds_without_health_run_in_one_call(cluster: Cluster) -> None:
    stage = Stage(cluster, [config(f"c{wave}", wave=wave) for wave in range(5)], world=nothing_happens)
    answer = await stage.step()
    assert ends(answer.state) == ALL_RUN
    assert [progress for _, progress, _ in summarize_results(answer.state).values()] == ["Succeeded"] * 4 + ["Running"]


async def test_degraded_object_fails_sync_and_stops_later_waves(cluster: Cluster) -> None:
    await Stage(cluster, [definition()]).finish()
    sick = manifest("Widget", "w", api="example.com/v1", health="Degraded", message="out of memory")
    state = await Stage(cluster, [definition(), sick, config("after", wave=1)]).finish()
    assert ends(state) == (OperationPhase.FAILED, "one or more synchronization tasks completed unsuccessfully")
    assert summarize_results(state)["Widget/w"] == ("Synced", "Failed", "out of memory")
    assert "after" not in await Stage(cluster).names()


@pytest.mark.parametrize("health", ["Progressing", "Suspended", "Unknown", "Missing"])
async def test_wave_waits_for_object_that_is_neither_healthy_nor_degraded(cluster: Cluster, health: str) -> None:
    await Stage(cluster, [definition()]).finish()
    widget = manifest("Widget", "w", api="example.com/v1", health=health)
    stage = Stage(cluster, [definition(), widget, config("after", wave=1)])
    await stage.until("waiting for healthy state of example.com/Widget/w")
    assert ends((await stage.step()).state) == (
        OperationPhase.RUNNING, "waiting for healthy state of example.com/Widget/w",
    )  # fmt: skip


async def test_kind_without_health_check_is_not_awaited_and_result_says_so(cluster: Cluster) -> None:
    await Stage(cluster, [definition()]).finish()
    manifests = [definition(), manifest("Widget", "w", api="example.com/v1"), config("after", wave=1)]
    state = await Stage(cluster, manifests).finish()
    assert ends(state) == ALL_RUN
    message = "widget.example.com/w created (not awaited: no health check for Widget.example.com)"
    assert summarize_results(state)["Widget/w"] == ("Synced", "Succeeded", message)


async def test_object_deleted_while_wave_waits_for_it_fails_sync(cluster: Cluster) -> None:
    stage = Stage(cluster, [deployment("web", wave=0), config("after", wave=1)], world=nothing_happens)
    await stage.step()
    await cluster.delete(key(DEPLOYMENTS, "web"), propagation=Propagation.BACKGROUND)
    state = await stage.finish()
    text = "Resource apps/Deployment/web is missing, it might have been deleted"
    assert summarize_results(state)["Deployment/web"] == ("SyncFailed", "Error", text)
    assert state.message == f"one or more synchronization tasks completed unsuccessfully, reason: {text}"


async def test_wave_delay_continues_from_operation_state_at_next_call(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a", wave=0), config("b", wave=1)], settings=SyncSettings(wave_delay_seconds=2.0))
    answer = await stage.step()
    assert answer.wait == 2.0 and "(next wave not before 2026-01-01T00:00:03.000Z)" in answer.state.message
    stage.time += timedelta(seconds=0.5)
    answer = await stage.step()
    assert answer.wait == 1.5 and "b" not in await stage.names()
    stage.time += timedelta(seconds=1.5)
    assert ends((await stage.step()).state) == ALL_RUN


async def test_failed_apply_does_not_stop_its_wave_but_stops_later_waves(cluster: Cluster) -> None:
    bad = config("Bad_Name")
    state = await Stage(cluster, [bad, config("a"), config("later", wave=1)]).finish()
    assert state.phase is OperationPhase.FAILED
    assert state.message.startswith("one or more synchronization tasks completed unsuccessfully, reason: ")
    names = await Stage(cluster).names()
    assert "a" in names and "later" not in names


class SlowToDefine:
    """A cluster client that returns CRDs without a status, as if they were not established yet."""

    def __init__(self, inner: Cluster) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def create(self, new_manifest: Manifest, **more: Any) -> Manifest:
        return self._seen(await self._inner.create(new_manifest, **more)) or {}

    async def get(self, key: ResourceKey, **more: Any) -> Manifest | None:
        return self._seen(await self._inner.get(key, **more))

    @staticmethod
    def _seen(live: Manifest | None) -> Manifest | None:
        is_definition = live is not None and live["kind"] == "CustomResourceDefinition"
        return {**live, "status": {}} if live is not None and is_definition else live


def slow(cluster: Cluster) -> Cluster:
    return cast("Cluster", SlowToDefine(cluster))


async def test_whole_wave_is_applied_before_workload_health_is_awaited(cluster: Cluster) -> None:
    """A workload may need objects that come from a custom resource whose CRD is not established yet."""
    manifests = [definition(), deployment("web"), manifest("Widget", "w", api="example.com/v1"), config("b", wave=1)]
    stage = Stage(cluster, manifests, engine=slow(cluster), world=nothing_happens)
    name = "apiextensions.k8s.io/CustomResourceDefinition/widgets.example.com"
    assert (await stage.step()).state.message == f"waiting for healthy state of {name}"
    assert await stage.names(DEPLOYMENTS) == ["web"] and await stage.names(WIDGET) == []
    stage.engine = None  # from now on the CRD is established
    assert (await stage.step()).state.message == "waiting for healthy state of apps/Deployment/web"
    assert await stage.names(WIDGET) == ["w"] and "b" not in await stage.names()
    await roll_out(cluster)
    assert ends(await stage.finish()) == ALL_RUN


async def test_hook_is_awaited_if_rest_of_its_wave_is_applied_later(cluster: Cluster) -> None:
    manifests = [definition(), job("mid", hook="Sync"), manifest("Widget", "w", api="example.com/v1")]
    stage = Stage(cluster, manifests, engine=slow(cluster), world=nothing_happens)
    await stage.step()
    stage.engine = None
    assert (await stage.step()).state.message == "waiting for completion of hook batch/Job/mid"
    assert await stage.names(WIDGET) == ["w"]
    await finish_jobs(cluster)
    assert ends(await stage.finish()) == NO_MORE


def build_held_config(value: str) -> Manifest:
    held_config = config("held", value, options="Force=true,Replace=true")
    held_config["metadata"]["finalizers"] = ["example.com/held"]
    return held_config


async def test_recreated_object_does_not_wait_for_health_of_other_objects(cluster: Cluster) -> None:
    stage = Stage(cluster, [build_held_config("1"), config("after", wave=1)])
    await stage.finish()
    again = stage.again(build_held_config("2"), deployment("web"), config("after", wave=1), world=nothing_happens)
    for _ in range(2):
        assert (await again.step()).state.message == "waiting for deletion of /ConfigMap/held"
    await cluster.patch(key(CONFIGS, "held"), {"metadata": {"finalizers": None}})
    assert (await again.step()).state.message == "waiting for healthy state of apps/Deployment/web"
    config_map = await cluster.get(key(CONFIGS, "held"))
    assert config_map and config_map["data"] == {"value": "2"}


async def test_partly_applied_wave_that_fails_does_not_wait_for_health(cluster: Cluster) -> None:
    stage = Stage(cluster, [definition(), build_held_config("1"), config("after", wave=1)])
    await stage.finish()
    sick = manifest("Widget", "w", api="example.com/v1", health="Degraded")
    manifests = [definition(), build_held_config("2"), deployment("web"), sick, config("after", wave=1)]
    again = stage.again(*manifests, world=nothing_happens)
    assert (await again.step()).state.message == "waiting for deletion of /ConfigMap/held"
    assert (await again.step()).state.phase is OperationPhase.FAILED


async def test_result_of_created_namespace_stays_running() -> None:
    """argo: the namespace exists when the tasks are planned again, so no task updates its result."""
    async with EmbeddedCluster.open() as empty:
        state = await Stage(empty, [config("a")], options=("CreateNamespace=true",)).finish()
        assert ends(state) == ALL_RUN
        [result] = [result for result in state.results if result.key.kind == "Namespace"]
        assert (result.result_code, result.hook_phase) == (ResultCode.SYNCED, OperationPhase.RUNNING)


# -- gates -----------------------------------------------------------------------------------------------------------


async def test_blocking_gate_waits_for_health_even_in_last_wave(cluster: Cluster) -> None:
    stage = Stage(cluster, [deployment("web", annotations={"argosy.dev/gate": "block"})], world=nothing_happens)
    answer = await stage.step()
    assert ends(answer.state) == (OperationPhase.RUNNING, "waiting for healthy state of apps/Deployment/web")
    await roll_out(cluster)
    assert ends((await stage.step()).state) == NO_MORE


@pytest.mark.parametrize(("word", "progress"), [("report", "Failed"), ("ignore", "Succeeded")])
async def test_gate_report_or_ignore_does_not_block_sync(cluster: Cluster, word: str, progress: str) -> None:
    await Stage(cluster, [definition()]).finish()
    sick = manifest("Widget", "w", api="example.com/v1", health="Degraded", annotations={"argosy.dev/gate": word})
    state = await Stage(cluster, [definition(), sick, config("after", wave=1)]).finish()
    assert ends(state) == ALL_RUN and summarize_results(state)["Widget/w"][1] == progress


async def test_gate_timeout_fails_sync(cluster: Cluster) -> None:
    gate_annotations = {"argosy.dev/gate": "block", "argosy.dev/gate-timeout": "1m"}
    stage = Stage(cluster, [deployment("web", annotations=gate_annotations)], world=nothing_happens)
    answer = await stage.step()
    assert answer.wait == 60.0
    stage.time += timedelta(seconds=61)
    state = await stage.finish()
    assert state.phase is OperationPhase.FAILED and summarize_results(state)["Deployment/web"][2].startswith(
        "not healthy within 60s"
    )


# -- hooks -----------------------------------------------------------------------------------------------------------


async def test_hooks_run_in_phase_order_and_block_later_phases(cluster: Cluster) -> None:
    manifests = [job("pre", hook="PreSync", wave=9), deployment("web", wave=-5), job("post", hook="PostSync")]
    stage = Stage(cluster, manifests, world=nothing_happens)
    assert (await stage.step()).state.message == "waiting for completion of hook batch/Job/pre"
    assert await stage.names(DEPLOYMENTS) == []
    await finish_jobs(cluster)
    await stage.step()
    assert (await stage.step()).state.message == "waiting for healthy state of apps/Deployment/web"
    assert await stage.names(JOBS) == ["pre"]
    await roll_out(cluster)
    assert (await stage.step()).state.message == "waiting for completion of hook batch/Job/post"
    await finish_jobs(cluster)
    state = await stage.finish()
    assert ends(state) == NO_MORE
    assert summarize_results(state)["Job/pre@PreSync"] == ("Synced", "Succeeded", "Complete it is")


@pytest.mark.parametrize(
    ("policy", "well", "left"),
    [
        ("", True, True),
        ("", False, True),
        ("HookSucceeded", True, False),
        ("HookSucceeded", False, True),
        ("HookFailed", True, True),
        ("HookFailed", False, False),
        ("HookSucceeded,HookFailed", False, False),
        ("BeforeHookCreation", True, True),
    ],
)
async def test_hook_is_deleted_by_its_delete_policy(cluster: Cluster, policy: str, well: bool, left: bool) -> None:
    async def world(there: Cluster) -> None:
        await finish_jobs(there, well=well)

    stage = Stage(cluster, [job("check", hook="PreSync", policy=policy), config("a")], world=world)
    state = await stage.finish()
    assert state.phase is (OperationPhase.SUCCEEDED if well else OperationPhase.FAILED)
    for hook_job in (await cluster.list(JOBS)).items:
        assert "finalizers" not in hook_job["metadata"] or hook_job["metadata"].get("deletionTimestamp")
    assert bool(await standing(cluster)) is left


async def standing(cluster: Cluster) -> list[str]:
    items = (await cluster.list(JOBS)).items
    return [item["metadata"]["name"] for item in items if not item["metadata"].get("deletionTimestamp")]


async def test_hook_of_previous_operation_is_recreated(cluster: Cluster) -> None:
    stage = Stage(cluster, [job("check", hook="PreSync"), config("a")])
    await stage.finish()
    (first,) = (await cluster.list(JOBS)).items
    assert ends(await stage.again().finish()) == ALL_RUN
    (second,) = (await cluster.list(JOBS)).items
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


async def test_hook_with_two_phases_runs_in_both(cluster: Cluster) -> None:
    stage = Stage(cluster, [job("check", hook="PreSync,PostSync"), config("a")])
    state = await stage.finish()
    assert ends(state) == NO_MORE
    assert {"Job/check@PreSync", "Job/check@PostSync"} <= set(summarize_results(state))


async def test_hook_with_generate_name_gets_name_from_revision_phase_and_start(cluster: Cluster) -> None:
    hook = job("", hook="PreSync")
    hook["metadata"] = {**hook["metadata"], "generateName": "check-"}
    del hook["metadata"]["name"]
    stage = Stage(cluster, [hook, config("a")])
    await stage.finish()
    assert await stage.names(JOBS) == ["check-0123456-presync-1767225600"]


async def test_deleted_running_hook_fails_sync(cluster: Cluster) -> None:
    stage = Stage(cluster, [job("check", hook="PreSync"), config("a")], world=nothing_happens)
    await stage.step()
    await cluster.patch(key(JOBS, "check"), {"metadata": {"finalizers": None}})
    await cluster.delete(key(JOBS, "check"))
    state = await stage.finish()
    assert summarize_results(state)["Job/check@PreSync"][1:] == (
        "Error", "Resource batch/Job/check is missing, it might have been deleted",
    )  # fmt: skip


async def test_hook_deleted_after_completion_still_reports_its_result(cluster: Cluster) -> None:
    stage = Stage(cluster, [job("check", hook="PreSync"), config("a")], world=nothing_happens)
    await stage.step()
    await finish_jobs(cluster)
    await cluster.delete(key(JOBS, "check"))
    state = await stage.finish()
    assert ends(state) == ALL_RUN and summarize_results(state)["Job/check@PreSync"][1] == "Succeeded"


@pytest.mark.parametrize(("policy", "left"), [("HookSucceeded", ["a"]), ("", ["a", "note"])])
async def test_hook_not_yet_seen_by_watch_loses_its_finalizer_and_is_deleted(
    cluster: Cluster, policy: str, left: list[str]
) -> None:
    """A hook that is not a Job completes at once, possibly before the watch delivers its creation."""
    stage = Stage(cluster, [config("note", hook="PreSync", policy=policy), config("a")], lags=True)
    assert ends(await stage.finish()) == ALL_RUN
    assert await stage.names() == left
    for config_map in (await cluster.list(CONFIGS)).items:
        assert HOOK_FINALIZER not in config_map["metadata"].get("finalizers", ())


async def test_object_that_reuses_name_of_finished_hook_is_not_deleted(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("note", hook="PreSync", policy="HookSucceeded"), config("a")], lags=True)
    await stage.step()
    await cluster.patch(key(CONFIGS, "note"), {"metadata": {"finalizers": None}})
    await cluster.delete(key(CONFIGS, "note"))
    metadata = {"name": "note", "namespace": NAMESPACE}
    await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    assert ends(await stage.finish()) == ALL_RUN
    assert await stage.names() == ["a", "note"]


async def test_syncfail_hooks_run_only_after_a_failure(cluster: Cluster) -> None:
    manifests = [job("sorry", hook="SyncFail"), config("a")]
    stage = Stage(cluster, manifests)
    await stage.finish()
    assert await stage.names(JOBS) == []
    bad = config("Bad_Name")
    state = await stage.again(*manifests, bad).finish()
    assert state.phase is OperationPhase.FAILED and await stage.names(JOBS) == ["sorry"]
    assert state.message.startswith("one or more synchronization tasks completed unsuccessfully, reason: ")
    assert summarize_results(state)["Job/sorry@SyncFail"][1] == "Succeeded"


async def test_termination_deletes_running_hooks(cluster: Cluster) -> None:
    stage = Stage(cluster, [job("check", hook="PreSync"), config("a")], world=nothing_happens)
    state = (await stage.step()).state
    stage.state = replace(state, phase=OperationPhase.TERMINATING, message="operation is terminating")
    state = (await stage.step()).state
    assert ends(state) == (OperationPhase.FAILED, "Operation terminated")
    assert (
        summarize_results(state)["Job/check@PreSync"][1:] == ("Failed", "Terminated") and await standing(cluster) == []
    )


async def test_sync_timeout_terminates_operation(cluster: Cluster) -> None:
    settings = SyncSettings(wave_delay_seconds=0, timeout_seconds=60)
    stage = Stage(cluster, [job("check", hook="PreSync")], settings=settings, world=nothing_happens)
    await stage.step()
    stage.time += timedelta(seconds=61)
    assert ends((await stage.step()).state) == (OperationPhase.TERMINATING, "operation is terminating due to timeout")
    message = "Operation terminated, triggered by controller sync timeout"
    assert ends((await stage.step()).state) == (OperationPhase.FAILED, message)


async def test_retry_recreates_hooks(cluster: Cluster) -> None:
    async def fails(there: Cluster) -> None:
        await finish_jobs(there, well=False)

    stage = Stage(cluster, [job("check", hook="PreSync"), config("a")], retry=RetryStrategy(limit=1), world=fails)
    before = stage.begin()
    failed = await stage.finish()
    (first,) = (await cluster.list(JOBS)).items
    resting = retry.schedule_retry_or_finish(before, failed, stage.time)
    assert resting.message.endswith("completed unsuccessfully. Retrying attempt #1 at 12:00AM.")
    assert retry.is_waiting_for_retry(resting) and retry.seconds_until_retry(resting, stage.time) == pytest.approx(
        5, abs=1
    )
    stage.state = retry.start_next_attempt(resting)
    stage.world = finish_jobs
    assert ends(await stage.finish()) == ALL_RUN
    (second,) = (await cluster.list(JOBS)).items
    assert first["metadata"]["uid"] != second["metadata"]["uid"]


# -- pruning ---------------------------------------------------------------------------------------------------------


async def test_extra_objects_stay_until_prune_is_requested(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a"), config("old"), config("kept", options="Prune=false")])
    await stage.finish()
    state = await stage.again(config("a")).finish()
    assert summarize_results(state)["ConfigMap/old"] == ("PruneSkipped", "Succeeded", "ignored (requires pruning)")
    state = await stage.again(config("a"), request=SyncRequest(prune=True)).finish()
    assert summarize_results(state)["ConfigMap/old"] == ("Pruned", "Succeeded", "pruned")
    assert summarize_results(state)["ConfigMap/kept"] == ("PruneSkipped", "Succeeded", "ignored (no prune)")
    names = await stage.names()
    assert "old" not in names and "kept" in names


async def test_prune_skips_objects_that_may_not_be_deleted(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a"), config("foreign")], may_delete=lambda _: "it belongs to nobody")
    await stage.finish()
    state = await stage.again(config("a"), request=SyncRequest(prune=True)).finish()
    assert summarize_results(state)["ConfigMap/foreign"] == ("PruneSkipped", "Succeeded", "it belongs to nobody")
    assert "foreign" in await stage.names()


async def test_prune_starts_with_last_wave_and_waits_for_its_deletion(cluster: Cluster) -> None:
    held = config("late", wave=2)
    held["metadata"]["finalizers"] = ["example.com/held"]
    stage = Stage(cluster, [config("early", wave=1), held, config("a", wave=3)])
    await stage.finish()
    again = stage.again(config("a", wave=3), request=SyncRequest(prune=True), world=nothing_happens)
    answer = await again.step()
    assert ends(answer.state) == (OperationPhase.RUNNING, "waiting for deletion of /ConfigMap/late")
    assert "early" in await stage.names()
    await cluster.patch(key(CONFIGS, "late"), {"metadata": {"finalizers": None}})
    assert ends(await again.finish()) == ALL_RUN
    assert "early" not in await stage.names()


async def test_prune_treats_objects_of_removed_crd_as_deleted(cluster: Cluster) -> None:
    late = manifest("Widget", "w", api="example.com/v1", wave=2)
    late["metadata"]["finalizers"] = ["example.com/held"]
    stage = Stage(cluster, [definition(), config("early", wave=1), late, config("a", wave=3)])
    await stage.finish()
    again = stage.again(config("a", wave=3), request=SyncRequest(prune=True), lags=True, world=nothing_happens)
    for _ in range(2):
        answer = await again.step()
        assert answer.state.message == "waiting for deletion of example.com/Widget/w"
    await cluster.patch(key(WIDGET, "w"), {"metadata": {"finalizers": None}})
    await cluster.delete(DEFINITION)
    async with asyncio.timeout(HANG_SECONDS):
        while WIDGET in await cluster.kinds():
            await asyncio.sleep(0.001)
    assert ends(await again.finish()) == ALL_RUN


async def test_prune_last_waits_until_everything_else_is_healthy(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("old", wave=-1)])
    await stage.finish()
    prune_options = {"request": SyncRequest(prune=True), "options": ("PruneLast=true",)}
    again = stage.again(deployment("web"), world=nothing_happens, **prune_options)
    assert (await again.step()).state.message == "waiting for healthy state of apps/Deployment/web"
    assert "old" in await stage.names()
    await roll_out(cluster)
    await again.finish()
    assert "old" not in await stage.names()


@pytest.mark.parametrize("is_mass", [False, True])
async def test_prune_waits_for_confirmation_by_annotation(cluster: Cluster, is_mass: bool) -> None:
    stage = Stage(cluster, [config("a"), config("old", options="" if is_mass else "Prune=confirm")])
    await stage.finish()
    prune_options: dict[str, Any] = {"request": SyncRequest(prune=True), "more": {"is_mass_prune": is_mass}}
    again = stage.again(config("a"), **prune_options)
    answer = await again.step()
    assert ends(answer.state) == (OperationPhase.RUNNING, "waiting for pruning confirmation of /ConfigMap/old")
    again.annotations = {"argocd.argoproj.io/deletion-approved": "2025-12-31T00:00:00Z"}
    assert (await again.step()).state.phase is OperationPhase.RUNNING
    again.annotations = {"argocd.argoproj.io/deletion-approved": "2026-01-01T01:00:00Z"}
    assert ends(await again.finish()) == ALL_RUN
    assert "old" not in await stage.names()


async def test_fail_on_shared_resource_fails_sync(cluster: Cluster) -> None:
    more = {"shared_resource": "ConfigMap/a is part of applications demo and other"}
    state = await Stage(cluster, [config("a")], options=("FailOnSharedResource=true",), more=more).finish()
    assert ends(state) == (OperationPhase.FAILED, f"Shared resource found: {more['shared_resource']}")
    assert ends(await Stage(cluster, [config("a")], more=more).finish()) == ALL_RUN


async def test_judge_helper_returns_no_health_for_configmap() -> None:
    assert await judge([config("a")]) == [None]
