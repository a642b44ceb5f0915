"""Rules of Argo CD's sync semantics that need a cluster, each tested with as few steps as possible."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from argosy.errors import ClusterError
from argosy.gitops.application import OperationPhase, SyncRequest
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
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
    summarize_results,
)

CONFIGS, JOBS = LISTED[0], LISTED[2]
ALL_RUN = (OperationPhase.SUCCEEDED, "successfully synced (all tasks run)")
NO_MORE = (OperationPhase.SUCCEEDED, "successfully synced (no more tasks)")
DEFINITION = ResourceKey("apiextensions.k8s.io", "CustomResourceDefinition", "", "widgets.example.com")
SPACE = ResourceKey("", "Namespace", "", NAMESPACE)


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster.open() as opened:
        await opened.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        yield opened


async def nothing_happens(_: Cluster) -> None:
    pass


def key(kind: GroupKind, name: str) -> ResourceKey:
    return ResourceKey(*kind, NAMESPACE, name)


async def get_existing(cluster: Cluster, where: ResourceKey) -> Manifest:
    live_object = await cluster.get(where)
    assert live_object is not None
    return live_object


# -- apply options ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["Replace=true", "Force=true,Replace=true"])
async def test_crds_and_namespaces_are_updated_instead_of_replaced(cluster: Cluster, options: str) -> None:
    space = manifest("Namespace", NAMESPACE, namespace="", options=options)
    await Stage(cluster, [definition(), space]).finish()
    before = [await get_existing(cluster, resource_key) for resource_key in (DEFINITION, SPACE)]
    await cluster.patch(SPACE, {"metadata": {"labels": {"theirs": "1"}}})
    updated_definition = definition()
    updated_definition["metadata"]["annotations"]["argocd.argoproj.io/sync-options"] = options
    state = await Stage(cluster, [updated_definition, space]).finish()
    assert summarize_results(state)["CustomResourceDefinition/widgets.example.com"][2] == (
        "CustomResourceDefinition/widgets.example.com updated"
    )
    assert summarize_results(state)[f"Namespace/{NAMESPACE}"][2] == f"Namespace/{NAMESPACE} updated"
    after = [await get_existing(cluster, resource_key) for resource_key in (DEFINITION, SPACE)]
    assert [live_object["metadata"]["uid"] for live_object in after] == [
        live_object["metadata"]["uid"] for live_object in before
    ]
    assert "theirs" not in (after[1]["metadata"].get("labels") or {})


async def test_replace_overrides_server_side_apply(cluster: Cluster) -> None:
    sync_options = ("ServerSideApply=true", "Replace=true")
    stage = Stage(cluster, [config("a")], options=sync_options)
    await stage.finish()
    assert summarize_results(await stage.again(config("a", "2")).finish())["ConfigMap/a"][2] == "configmap/a replaced"
    managers = {
        entry["operation"] for entry in (await get_existing(cluster, key(CONFIGS, "a")))["metadata"]["managedFields"]
    }
    assert managers == {"Update"}


@pytest.mark.parametrize(("named", "left"), [("", {"gone": "1"}), ("old-tool", {})])
async def test_migration_manager_annotation_takes_over_fields_of_that_manager(
    cluster: Cluster, named: str, left: dict[str, str]
) -> None:
    bare = manifest("ConfigMap", "a", data={"kept": "1", "gone": "1"})
    await cluster.create(bare, manager="old-tool")
    annotations = {"argocd.argoproj.io/client-side-apply-migration-manager": named} if named else {}
    desired = manifest("ConfigMap", "a", data={"kept": "1"})
    stage = Stage(cluster, [desired], options=("ServerSideApply=true",), annotations=annotations)
    await stage.finish()
    live_config = await get_existing(cluster, key(CONFIGS, "a"))
    assert live_config["data"] == {"kept": "1", **left}
    assert ("old-tool" in {entry["manager"] for entry in live_config["metadata"]["managedFields"]}) is (not named)


async def test_client_side_apply_owns_its_fields_and_other_managers_keep_theirs(
    cluster: Cluster,
) -> None:
    stage = Stage(cluster, [config("a")])
    await stage.finish()
    await cluster.patch(key(CONFIGS, "a"), {"data": {"theirs": "1"}}, manager="kubectl-edit")
    await stage.again(config("a", "2")).finish()
    entries = (await get_existing(cluster, key(CONFIGS, "a")))["metadata"]["managedFields"]
    fields_by_manager = {entry["manager"]: set(entry["fieldsV1"]["f:data"]) - {"."} for entry in entries}
    assert fields_by_manager == {"argocd-controller": {"f:value"}, "kubectl-edit": {"f:theirs"}}


@pytest.mark.parametrize("options", ["", "SkipDryRunOnMissingResource=true"])
async def test_skip_dry_run_on_missing_resource_allows_kind_created_by_hook(cluster: Cluster, options: str) -> None:
    """A PreSync hook creates the CRD; no manifest of the sync contains it."""
    widget = manifest("Widget", "w", api="example.com/v1", options=options)

    async def world(where: Cluster) -> None:
        if await where.get(DEFINITION) is None:
            await where.create(definition())
        await finish_jobs(where)

    state = await Stage(cluster, [job("install", hook="PreSync"), widget], world=world).finish()
    if not options:
        assert state.message.startswith("one or more synchronization tasks are not valid: ")
        assert await cluster.get(DEFINITION) is None
    else:
        assert ends(state) == ALL_RUN
        assert await cluster.get(key(WIDGET, "w")) is not None


async def test_generated_name_needs_an_object_that_is_created(cluster: Cluster) -> None:
    applied = manifest("ConfigMap", "b")
    applied["metadata"] = {"generateName": "b-", "namespace": applied["metadata"]["namespace"]}
    state = await Stage(cluster, [applied]).finish()
    assert state.message == "one or more objects failed to apply (dry run)"
    assert summarize_results(state)["ConfigMap/b-"][2] == "from b-: cannot use generate name with apply"
    assert ends(await Stage(cluster, [applied], options=("Replace=true",)).finish()) == ALL_RUN
    assert [name for name in await Stage(cluster).names() if name.startswith("b-")]


async def test_objects_with_the_same_generated_name_are_all_created_beside_a_named_one(cluster: Cluster) -> None:
    named = manifest("ConfigMap", "b")
    generated = [{**named, "metadata": {**named["metadata"], "generateName": "b"}} for _ in range(2)]
    for item in generated:
        del item["metadata"]["name"]
    state = await Stage(cluster, [named, *generated], options=("Replace=true",)).finish()
    assert ends(state) == ALL_RUN
    assert sorted(summarize_results(state)) == ["ConfigMap/b", "ConfigMap/b*", "ConfigMap/b*2"]
    assert len([name for name in await Stage(cluster).names() if name.startswith("b")]) == 3


# -- hooks -----------------------------------------------------------------------------------------------------------


async def test_failed_hookfailed_hooks_are_deleted_before_syncfail_hooks_start(cluster: Cluster) -> None:
    manifests = [job("check", hook="PreSync", policy="HookFailed"), job("sorry", hook="SyncFail"), config("a")]
    stage = Stage(cluster, manifests, world=nothing_happens)
    await stage.until("waiting for completion of hook batch/Job/check")
    await finish_jobs(cluster, well=False)
    await stage.until("waiting for completion of hook batch/Job/sorry")
    assert await stage.names(JOBS) == ["sorry"]
    await finish_jobs(cluster)
    state = await stage.finish()
    assert state.phase is OperationPhase.FAILED and summarize_results(state)["Job/sorry@SyncFail"][1] == "Succeeded"


async def test_syncfail_hooks_are_deleted_by_their_policy_when_sync_has_failed(cluster: Cluster) -> None:
    async def world(where: Cluster) -> None:
        await finish_jobs(where)

    manifests = [config("Bad_Name"), job("sorry", hook="SyncFail", policy="HookFailed"), job("stays", hook="SyncFail")]
    stage = Stage(cluster, manifests, world=world)
    assert (await stage.finish()).phase is OperationPhase.FAILED
    assert await stage.names(JOBS) == ["stays"]


async def test_failed_syncfail_hook_is_reported_in_addition_to_sync_failure(cluster: Cluster) -> None:
    bad = manifest("ConfigMap", "Worse_Name", hook="SyncFail")
    state = await Stage(cluster, [config("Bad_Name"), bad]).finish()
    first, second = state.message.split("\n")
    assert first.startswith("one or more synchronization tasks completed unsuccessfully, reason: ")
    assert second.startswith("one or more SyncFail hooks failed, reason: ") and "Worse_Name" in second


async def test_running_hooks_are_awaited_before_failed_wave_fails_sync(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("Bad_Name"), job("check", hook="Sync")], world=nothing_happens)
    answer = await stage.step()
    assert ends(answer.state) == (OperationPhase.RUNNING, "waiting for completion of hook batch/Job/check")
    await finish_jobs(cluster)
    state = await stage.finish()
    assert state.phase is OperationPhase.FAILED and summarize_results(state)["Job/check@Sync"][1] == "Succeeded"


async def test_hook_of_builtin_kind_without_health_succeeds_at_once(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("note", hook="PreSync"), config("a")])
    assert summarize_results(await stage.finish())["ConfigMap/note@PreSync"] == ("Synced", "Succeeded", "note created")


async def test_hook_of_custom_kind_without_health_check_reports_not_awaited(cluster: Cluster) -> None:
    await Stage(cluster, [definition()]).finish()
    stage = Stage(cluster, [definition(), manifest("Widget", "w", api="example.com/v1", hook="PreSync"), config("a")])
    message = "w created (not awaited: no health check for Widget.example.com)"
    assert summarize_results(await stage.finish())["Widget/w@PreSync"] == ("Synced", "Succeeded", message)


async def test_helm_hooks_map_to_argo_cd_phases_weights_and_delete_policies(cluster: Cluster) -> None:
    manifests = [
        job("before", annotations={"helm.sh/hook": "pre-install", "helm.sh/hook-weight": "5"}),
        job("first", annotations={"helm.sh/hook": "pre-upgrade", "helm.sh/hook-weight": "-5"}),
        job("after", annotations={"helm.sh/hook": "post-install", "helm.sh/hook-delete-policy": "hook-succeeded"}),
        job("tests", annotations={"helm.sh/hook": "test"}),
        config("a"),
    ]
    stage = Stage(cluster, manifests)
    state = await stage.finish()
    assert list(summarize_results(state)) == [
        "Job/first@PreSync",
        "Job/before@PreSync",
        "ConfigMap/a",
        "Job/after@PostSync",
    ]
    assert await stage.names(JOBS) == ["before", "first"]


async def test_hook_keeps_its_finalizer_until_its_result_is_written(cluster: Cluster) -> None:
    stage = Stage(cluster, [job("check", hook="PreSync"), config("a")], world=nothing_happens)
    await stage.step()
    finalizer = "argocd.argoproj.io/hook-finalizer"
    assert (await get_existing(cluster, key(JOBS, "check")))["metadata"]["finalizers"] == [finalizer]
    await finish_jobs(cluster)
    state = (await stage.step()).state
    assert summarize_results(state)["Job/check@PreSync"][1] == "Succeeded"
    assert (await get_existing(cluster, key(JOBS, "check")))["metadata"]["finalizers"] == [finalizer]
    await stage.finish()
    assert not (await get_existing(cluster, key(JOBS, "check")))["metadata"].get("finalizers")


async def test_postsync_hooks_wait_for_the_health_of_the_last_wave(cluster: Cluster) -> None:
    stage = Stage(cluster, [deployment("web"), job("after", hook="PostSync")], world=nothing_happens)
    await stage.until("waiting for healthy state of apps/Deployment/web")
    assert await stage.names(JOBS) == []


async def test_object_with_ignore_healthcheck_still_blocks_later_waves(cluster: Cluster) -> None:
    ignored = {"argocd.argoproj.io/ignore-healthcheck": "true"}
    stage = Stage(cluster, [deployment("web", annotations=ignored), config("b", wave=1)], world=nothing_happens)
    await stage.until("waiting for healthy state of apps/Deployment/web")
    assert "b" not in await stage.names()


async def test_failed_kind_does_not_stop_other_kinds_of_its_wave(cluster: Cluster) -> None:
    state = await Stage(cluster, [config("Bad_Name"), deployment("web"), config("later", wave=1)]).finish()
    assert summarize_results(state)["ConfigMap/Bad_Name"][:2] == ("SyncFailed", "Failed")
    assert summarize_results(state)["Deployment/web"][0] == "Synced" and "ConfigMap/later" not in summarize_results(
        state
    )


async def test_delete_hooks_run_in_sync_only_in_a_sync_phase_that_they_name(cluster: Cluster) -> None:
    manifests = [job("before", hook="PreDelete"), job("both", hook="PostDelete,PostSync"), config("a")]
    assert list(summarize_results(await Stage(cluster, manifests).finish())) == ["ConfigMap/a", "Job/both@PostSync"]


async def test_failed_prune_fails_sync_before_its_wave_applies_anything(cluster: Cluster) -> None:
    class Stubborn:
        def __getattr__(self, name: str) -> Any:
            return getattr(cluster, name)

        async def delete(self, key: ResourceKey, **_: Any) -> None:
            raise ClusterError("no", code=403, key=key)

    stage = Stage(cluster, [config("old")])
    await stage.finish()
    again = stage.again(config("a"), request=SyncRequest(prune=True), engine=cast(Cluster, Stubborn()))
    state = await again.finish()
    assert ends(state) == (OperationPhase.FAILED, "one or more objects failed to apply, reason: no")
    assert (
        summarize_results(state) == {"ConfigMap/old": ("SyncFailed", "Failed", "no")} and "a" not in await stage.names()
    )


# -- termination, pruning and gates ----------------------------------------------------------------------------------


async def test_termination_deletes_hook_with_unknown_health(cluster: Cluster) -> None:
    async def broken(manifests: Sequence[Manifest]) -> list[Assessment | None]:
        assessments = await judge(manifests)
        return [Assessment(HealthStatus.UNKNOWN, fault="no") if desired["kind"] == "Job" else assessment
                for desired, assessment in zip(manifests, assessments, strict=True)]  # fmt: skip

    stage = Stage(cluster, [job("check", hook="PreSync"), config("a")], world=nothing_happens)
    state = (await stage.step()).state
    stage.state = replace(state, phase=OperationPhase.TERMINATING)
    stage.judge = broken
    state = (await stage.step()).state
    assert ends(state) == (OperationPhase.FAILED, "Operation terminated")
    assert summarize_results(state)["Job/check@PreSync"][1] == "Error" and await stage.names(JOBS) == []


async def test_termination_keeps_applied_objects_and_finished_hooks(cluster: Cluster) -> None:
    manifests = [job("done", hook="PreSync"), config("a"), job("runs", hook="PostSync")]
    stage = Stage(cluster, manifests, world=nothing_happens)
    await stage.step()
    await finish_jobs(cluster)
    await stage.until("waiting for completion of hook batch/Job/runs")
    assert stage.state is not None
    stage.state = replace(stage.state, phase=OperationPhase.TERMINATING)
    assert ends((await stage.step()).state) == (OperationPhase.FAILED, "Operation terminated")
    assert await stage.names(JOBS) == ["done"] and "a" in await stage.names()


async def test_prune_wave_without_confirmation_runs_before_wave_that_needs_it(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a"), config("first", wave=2), config("asks", wave=1, options="Prune=confirm")])
    await stage.finish()
    again = stage.again(config("a"), request=SyncRequest(prune=True))
    await again.until("waiting for pruning confirmation of /ConfigMap/asks")
    assert {"asks"} == {"first", "asks"} & set(await stage.names())


async def test_object_with_prune_last_option_is_not_pruned_in_earlier_waves(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("late", options="PruneLast=true"), config("soon")])
    await stage.finish()
    again = stage.again(deployment("web", wave=1), request=SyncRequest(prune=True), world=nothing_happens)
    await again.until("waiting for healthy state of apps/Deployment/web")
    assert {"late"} == {"late", "soon"} & set(await stage.names())


@pytest.mark.parametrize("gate", ["block", ""])
async def test_gate_timeout_fails_awaited_wave_with_or_without_blocking_gate(cluster: Cluster, gate: str) -> None:
    gate_annotations = {"argosy.dev/gate-timeout": "30s", **({"argosy.dev/gate": gate} if gate else {})}
    stage = Stage(
        cluster, [deployment("web", annotations=gate_annotations), config("after", wave=1)], world=nothing_happens
    )
    assert (await stage.step()).wait == 30.0
    stage.time += timedelta(seconds=31)
    state = await stage.finish()
    assert state.phase is OperationPhase.FAILED and "after" not in await stage.names()
    assert summarize_results(state)["Deployment/web"][1] == "Failed"


async def test_gate_report_object_stays_running_without_blocking_postsync_hook(cluster: Cluster) -> None:
    slow = deployment("web", annotations={"argosy.dev/gate": "report"})
    stage = Stage(cluster, [slow, job("after", hook="PostSync")], world=nothing_happens)
    state = (await stage.step()).state
    assert state.message == "waiting for completion of hook batch/Job/after"
    assert summarize_results(state)["Deployment/web"][1] == "Running"
