"""Sentences of Argo CD's semantics that need a cluster, each by the fewest steps that could show it false."""

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


# -- ways to apply ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", ["Replace=true", "Force=true,Replace=true"])
async def test_definitions_and_namespaces_are_updated_where_others_are_replaced(cluster: Cluster, options: str) -> None:
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


async def test_replace_beats_server_side_apply(cluster: Cluster) -> None:
    sync_options = ("ServerSideApply=true", "Replace=true")
    stage = Stage(cluster, [config("a")], options=sync_options)
    await stage.finish()
    assert summarize_results(await stage.again(config("a", "2")).finish())["ConfigMap/a"][2] == "configmap/a replaced"
    managers = {
        entry["operation"] for entry in (await get_existing(cluster, key(CONFIGS, "a")))["metadata"]["managedFields"]
    }
    assert managers == {"Update"}


@pytest.mark.parametrize(("named", "left"), [("", {"gone": "1"}), ("old-tool", {})])
async def test_fields_of_the_manager_that_the_application_names_are_taken_over(
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


async def test_what_is_applied_on_the_clients_side_belongs_to_the_controller_and_others_keep_theirs(
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
async def test_a_kind_that_comes_by_other_ways_is_tried_only_where_that_is_asked_for(
    cluster: Cluster, options: str
) -> None:
    """Here a hook brings it: no manifest of the sync defines it."""
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


async def test_a_manifest_may_itself_ask_not_to_be_validated(cluster: Cluster) -> None:
    odd = manifest("ConfigMap", "b", dta={}, options="Validate=false")
    assert ends(await Stage(cluster, [odd]).finish()) == ALL_RUN


# -- hooks -----------------------------------------------------------------------------------------------------------


async def test_failed_hooks_that_are_to_go_are_gone_before_hooks_of_failure_begin(cluster: Cluster) -> None:
    manifests = [job("check", hook="PreSync", policy="HookFailed"), job("sorry", hook="SyncFail"), config("a")]
    stage = Stage(cluster, manifests, world=nothing_happens)
    await stage.until("waiting for completion of hook batch/Job/check")
    await finish_jobs(cluster, well=False)
    await stage.until("waiting for completion of hook batch/Job/sorry")
    assert await stage.names(JOBS) == ["sorry"]
    await finish_jobs(cluster)
    state = await stage.finish()
    assert state.phase is OperationPhase.FAILED and summarize_results(state)["Job/sorry@SyncFail"][1] == "Succeeded"


async def test_hooks_of_failure_are_deleted_as_their_policy_says_when_all_is_over(cluster: Cluster) -> None:
    async def world(where: Cluster) -> None:
        await finish_jobs(where)

    manifests = [config("Bad_Name"), job("sorry", hook="SyncFail", policy="HookFailed"), job("stays", hook="SyncFail")]
    stage = Stage(cluster, manifests, world=world)
    assert (await stage.finish()).phase is OperationPhase.FAILED
    assert await stage.names(JOBS) == ["stays"]


async def test_a_hook_of_failure_that_fails_is_told_beside_the_failure(cluster: Cluster) -> None:
    bad = manifest("ConfigMap", "Worse_Name", hook="SyncFail")
    state = await Stage(cluster, [config("Bad_Name"), bad]).finish()
    first, second = state.message.split("\n")
    assert first.startswith("one or more synchronization tasks completed unsuccessfully, reason: ")
    assert second.startswith("one or more SyncFail hooks failed, reason: ") and "Worse_Name" in second


async def test_running_hooks_are_awaited_before_a_failed_wave_fails_the_sync(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("Bad_Name"), job("check", hook="Sync")], world=nothing_happens)
    answer = await stage.step()
    assert ends(answer.state) == (OperationPhase.RUNNING, "waiting for completion of hook batch/Job/check")
    await finish_jobs(cluster)
    state = await stage.finish()
    assert state.phase is OperationPhase.FAILED and summarize_results(state)["Job/check@Sync"][1] == "Succeeded"


async def test_a_hook_whose_kind_has_no_health_is_over_at_once_and_says_so(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("note", hook="PreSync"), config("a")])
    assert summarize_results(await stage.finish())["ConfigMap/note@PreSync"] == ("Synced", "Succeeded", "note created")


async def test_a_hook_of_a_custom_kind_without_health_says_that_nobody_waited(cluster: Cluster) -> None:
    await Stage(cluster, [definition()]).finish()
    stage = Stage(cluster, [definition(), manifest("Widget", "w", api="example.com/v1", hook="PreSync"), config("a")])
    message = "w created (not awaited: no health check for Widget.example.com)"
    assert summarize_results(await stage.finish())["Widget/w@PreSync"] == ("Synced", "Succeeded", message)


async def test_hooks_of_helm_run_where_argo_cd_puts_them(cluster: Cluster) -> None:
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


async def test_a_hook_carries_its_finalizer_until_its_end_is_told(cluster: Cluster) -> None:
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


async def test_an_object_that_does_not_count_for_the_application_still_holds_up_its_wave(cluster: Cluster) -> None:
    ignored = {"argocd.argoproj.io/ignore-healthcheck": "true"}
    stage = Stage(cluster, [deployment("web", annotations=ignored), config("b", wave=1)], world=nothing_happens)
    await stage.until("waiting for healthy state of apps/Deployment/web")
    assert "b" not in await stage.names()


async def test_a_kind_that_failed_does_not_stop_the_kinds_after_it(cluster: Cluster) -> None:
    state = await Stage(cluster, [config("Bad_Name"), deployment("web"), config("later", wave=1)]).finish()
    assert summarize_results(state)["ConfigMap/Bad_Name"][:2] == ("SyncFailed", "Failed")
    assert summarize_results(state)["Deployment/web"][0] == "Synced" and "ConfigMap/later" not in summarize_results(
        state
    )


async def test_hooks_of_deletion_stay_out_of_a_sync_unless_they_name_one_of_its_phases(cluster: Cluster) -> None:
    manifests = [job("before", hook="PreDelete"), job("both", hook="PostDelete,PostSync"), config("a")]
    assert list(summarize_results(await Stage(cluster, manifests).finish())) == ["ConfigMap/a", "Job/both@PostSync"]


async def test_a_prune_that_fails_fails_the_sync_before_its_wave_applies_anything(cluster: Cluster) -> None:
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


# -- ends ------------------------------------------------------------------------------------------------------------


async def test_a_terminated_sync_deletes_a_hook_of_which_nobody_knows_how_it_is(cluster: Cluster) -> None:
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


async def test_a_terminated_sync_keeps_what_was_applied_and_hooks_that_were_over(cluster: Cluster) -> None:
    manifests = [job("done", hook="PreSync"), config("a"), job("runs", hook="PostSync")]
    stage = Stage(cluster, manifests, world=nothing_happens)
    await stage.step()
    await finish_jobs(cluster)
    await stage.until("waiting for completion of hook batch/Job/runs")
    assert stage.state is not None
    stage.state = replace(stage.state, phase=OperationPhase.TERMINATING)
    assert ends((await stage.step()).state) == (OperationPhase.FAILED, "Operation terminated")
    assert await stage.names(JOBS) == ["done"] and "a" in await stage.names()


async def test_a_wave_of_prunes_that_needs_no_confirmation_goes_before_one_that_does(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("a"), config("first", wave=2), config("asks", wave=1, options="Prune=confirm")])
    await stage.finish()
    again = stage.again(config("a"), request=SyncRequest(prune=True))
    await again.until("waiting for pruning confirmation of /ConfigMap/asks")
    assert {"asks"} == {"first", "asks"} & set(await stage.names())


async def test_an_object_that_asks_to_be_pruned_last_outlives_the_waves(cluster: Cluster) -> None:
    stage = Stage(cluster, [config("late", options="PruneLast=true"), config("soon")])
    await stage.finish()
    again = stage.again(deployment("web", wave=1), request=SyncRequest(prune=True), world=nothing_happens)
    await again.until("waiting for healthy state of apps/Deployment/web")
    assert {"late"} == {"late", "soon"} & set(await stage.names())


@pytest.mark.parametrize("gate", ["block", ""])
async def test_a_gate_of_time_holds_in_any_wave_that_is_awaited(cluster: Cluster, gate: str) -> None:
    gate_annotations = {"argosy.dev/gate-timeout": "30s", **({"argosy.dev/gate": gate} if gate else {})}
    stage = Stage(
        cluster, [deployment("web", annotations=gate_annotations), config("after", wave=1)], world=nothing_happens
    )
    assert (await stage.step()).wait == 30.0
    stage.time += timedelta(seconds=31)
    state = await stage.finish()
    assert state.phase is OperationPhase.FAILED and "after" not in await stage.names()
    assert summarize_results(state)["Deployment/web"][1] == "Failed"


async def test_a_reported_object_tells_its_health_later_though_nobody_waits(cluster: Cluster) -> None:
    slow = deployment("web", annotations={"argosy.dev/gate": "report"})
    stage = Stage(cluster, [slow, job("after", hook="PostSync")], world=nothing_happens)
    state = (await stage.step()).state
    assert state.message == "waiting for completion of hook batch/Job/after"
    assert summarize_results(state)["Deployment/web"][1] == "Running"
