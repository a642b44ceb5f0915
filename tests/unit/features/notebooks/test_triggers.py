"""On-success triggers on the embedded cluster: they run once per successful run, with the job's own permissions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from argosy.features.notebooks.spec_validation import list_warnings
from argosy.kube.objects import dump_yaml
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import APPLICATION, NOTEBOOK_JOB
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.notebook_controller import FAILED, PASSED, RUNNING, ToldRuns, job
from support.trigger_jobs import (
    TRIGGERS,
    WEB,
    all_done,
    application,
    at_work,
    entry,
    get,
    restarted,
    states,
    summary_of,
    training,
    until,
    workload,
)

pytestmark = pytest.mark.anyio
_REPLICAS = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)
ROLLED_OUT = {"observedGeneration": 99, **_REPLICAS}


# -- when triggers run -------------------------------------------------------------------------------------------------


async def test_success_restarts_the_target_and_is_recorded_in_status_event_and_metric(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    async with at_work(cluster) as at:
        await at.apply(training(entry()))
        status = await all_done(at)
        events = await at.told("TriggerSuccess")
        summary = json.loads(await until(summary_of(cluster)))
        text = at.controller.metrics.render()
    (record,) = status["triggers"]
    assert (status["phase"], record["status"]) == ("Succeeded", "Succeeded")
    assert (record["generation"], record["attempt"]) == (1, 1)
    (event,) = [job_event for job_event in events if job_event["reason"] == "TriggerSuccess"]
    assert (event["type"], event["involvedObject"]["kind"]) == ("Normal", "NotebookValidationJob")
    assert event["message"] == "restart Deployment default/web: a rolling update replaces its Pods"
    assert (summary["status"], summary["triggers"][0]["name"]) == ("Succeeded", "web")
    assert 'argocd_triggers_total{action="restart",status="succeeded"} 1' in text
    assert restarted(await get(cluster, WEB))


async def test_failed_notebook_runs_no_triggers(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    async with at_work(cluster, ToldRuns(otherwise=FAILED)) as at:
        await at.apply(training(entry()))
        await at.ends()
        status = await at.status()
    assert states(status) == []
    assert restarted(await get(cluster, WEB)) is None


async def test_successful_retry_runs_triggers_once(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    async with at_work(cluster, ToldRuns({1: FAILED})) as at:
        await at.apply(training(entry(), retryPolicy={"on": "any", "backoff": "10ms"}))
        status = await all_done(at)
    assert [(trigger["attempt"], trigger["status"]) for trigger in status["triggers"]] == [(2, "Succeeded")]


async def test_annotation_added_after_the_result_runs_no_triggers(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    async with at_work(cluster) as at:
        await at.apply(job())
        await at.ends()
        await at.patch({"metadata": {"annotations": {TRIGGERS: dump_yaml([entry()])}}})
        await at.apply(training(entry(name="none"), name="other"))
        await all_done(at, "other")
        status = await at.status()
    assert states(status) == []
    assert restarted(await get(cluster, WEB)) is None


async def test_triggers_run_once_per_run_also_after_a_controller_restart(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    runs = ToldRuns()
    async with at_work(cluster, runs) as at:
        await at.apply(training(entry()))
        await all_done(at)
        marks = (await get(cluster, WEB))["metadata"]["annotations"]["mlops.dev/triggered-by"].split()
    version = (await get(cluster, WEB))["metadata"]["resourceVersion"]
    async with at_work(cluster, runs) as at:
        await at.apply(job("other"))
        await at.ends("other")
        assert (await get(cluster, WEB))["metadata"]["resourceVersion"] == version
        await at.patch({"metadata": {"annotations": {"mlops.dev/re-run": "once more"}}})
        status = await at.becomes(lambda status: len(status["triggers"]) == 2 and status["triggers"][1]["time"])
    later = (await get(cluster, WEB))["metadata"]["annotations"]["mlops.dev/triggered-by"].split()
    assert (len(marks), later[:1], len(later)) == (1, marks, 2)
    assert [trigger["attempt"] for trigger in status["triggers"]] == [1, 2]


async def test_executed_trigger_without_a_status_record_is_not_repeated(cluster: EmbeddedCluster) -> None:
    """Simulates a process that died between the restart and its status record."""
    await cluster.create(workload())
    runs = ToldRuns()
    async with at_work(cluster, runs) as at:
        await at.apply(training(entry()))
        status = await all_done(at)
    before = await get(cluster, WEB)
    forgotten = [{**trigger, "status": "Pending", "message": ""} for trigger in status["triggers"]]
    train = ResourceKey(*NOTEBOOK_JOB, "default", "train")
    await cluster.patch(train, {"status": {"triggers": forgotten}}, subresource="status")
    async with at_work(cluster, runs) as at:
        await all_done(at)
        events = [event for event in await at.told("TriggerSuccess") if event["reason"] == "TriggerSuccess"]
    assert await get(cluster, WEB) == before
    assert len(events) == 1


async def test_waiting_trigger_is_not_repeated_after_its_mark_was_replaced(
    cluster: EmbeddedCluster,
) -> None:
    """Only the latest marks are kept."""
    await cluster.create(workload())
    marks = {"mlops.dev/triggered-by": "those of ten others"}
    async with at_work(cluster) as at:
        await at.apply(training(entry(waitFor="Ready")))
        await at.becomes(lambda status: "waiting" in status["triggers"][0]["message"])
        await cluster.patch(WEB, {"metadata": {"annotations": marks}})
        await cluster.patch(WEB, {"status": ROLLED_OUT}, subresource="status")
        ((state, _),) = states(await all_done(at))
    live = await get(cluster, WEB)
    assert (state, live["metadata"]["annotations"].items() >= marks.items()) == ("Succeeded", True)


# -- entries that fail -------------------------------------------------------------------------------------------------


async def test_invalid_entries_and_missing_targets_do_not_stop_other_triggers(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    async with at_work(cluster) as at:
        await at.apply(training(entry(action="stop"), entry(name="gone"), entry(kind="Sprocket"), entry()))
        status = await all_done(at)
        events = [event for event in await at.told("TriggerFailed", "TriggerSuccess") if "Trigger" in event["reason"]]
    status_by_message = {trigger["message"]: trigger["status"] for trigger in status["triggers"]}
    assert status["phase"] == "Succeeded"
    assert sorted(status_by_message.values()) == ["Failed", "Failed", "Failed", "Succeeded"]
    assert "trigger[0]: invalid action 'stop' (must be restart, sync, or refresh)" in status_by_message
    assert any(message.startswith("Deployment gone not found in namespace default") for message in status_by_message)
    assert any(message.startswith("Sprocket.apps is not served by this cluster") for message in status_by_message)
    assert sorted(event["type"] for event in events) == ["Normal", "Warning", "Warning", "Warning"]


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({TRIGGERS: "- {kind: Deployment}"}, "[mlops.dev/on-success-trigger]: trigger[0]: apiVersion is required"),
        ({"mlops.dev/block-wave": "4a"}, "[mlops.dev/block-wave]: '4a' is not a sync wave, so it blocks nothing"),
        ({"mlops.dev/block-wave": "0"}, "[mlops.dev/block-wave]: wave 0 is not after the job's own wave 0"),
    ],
)
def test_invalid_trigger_annotations_are_reported_as_warnings(annotations: dict[str, str], said: str) -> None:
    (warning,) = list_warnings(job(annotations=annotations))
    assert warning.startswith(f"metadata.annotations{said}")


async def test_triggers_have_only_the_permissions_of_the_job_service_account() -> None:
    async with EmbeddedCluster.open(rbac=True) as cluster:
        await cluster.create(workload())
        account = {"kind": "ServiceAccount", "name": "trainer", "namespace": "default"}
        rights = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["patch"], "resourceNames": ["web"]}]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "restart"}
        api = "rbac.authorization.k8s.io/v1"
        metadata = {"name": "restart", "namespace": "default"}
        await cluster.create({"apiVersion": api, "kind": "Role", "metadata": metadata, "rules": rights})
        binding = {"apiVersion": api, "kind": "RoleBinding", "metadata": metadata}
        await cluster.create({**binding, "subjects": [account], "roleRef": reference})
        async with at_work(cluster) as at:
            await at.apply(training(entry(), name="without"))
            refused = await all_done(at, "without")
            assert restarted(await get(cluster, WEB)) is None
            await at.apply(training(entry(), name="with", pod={"serviceAccountName": "trainer"}))
            allowed = await all_done(at, "with")
    ((state, message),) = states(refused)
    assert (state, refused["phase"]) == ("Failed", "Succeeded")
    who = "system:serviceaccount:default:default cannot patch deployments.apps in namespace default"
    assert message.startswith(who)
    assert [state for state, _ in states(allowed)] == ["Succeeded"]


async def test_other_namespaces_must_be_allowed_by_triggers_namespaces(cluster: EmbeddedCluster) -> None:
    for name in ("argocd", "serving-a", "billing"):
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name in ("serving-a", "billing"):
        await cluster.create({**workload(), "metadata": {"name": "web", "namespace": name}})
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argosy-cm", "namespace": "argocd"}}
    await cluster.create({**settings, "data": {"triggers.namespaces": "serving-*, models"}})
    async with at_work(cluster) as at:
        await at.apply(training(entry(namespace="serving-a"), entry(namespace="billing")))
        results = states(await all_done(at))
    assert [state for state, _ in results] == ["Succeeded", "Failed"]
    assert results[1][1].startswith("namespace billing is not among triggers.namespaces of argosy-cm")


# -- Applications ------------------------------------------------------------------------------------------------------


async def furnish(cluster: EmbeddedCluster, *namespaces: str) -> None:
    await cluster.apply(load_definition("applications.argoproj.io"), manager="test")
    for name in namespaces:
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


@pytest.mark.parametrize("namespace", ["argocd", "openshift-gitops", "default"])
async def test_sync_trigger_sets_the_operation_of_the_application(cluster: EmbeddedCluster, namespace: str) -> None:
    await furnish(cluster, *({namespace} - {"default"}))
    policy = {"automated": {"prune": True}, "syncOptions": ["CreateNamespace=true"], "retry": {"limit": 2}}
    await cluster.create(application(namespace, syncPolicy=policy))
    async with at_work(cluster) as at:
        await at.apply(training(entry("Application", "sync", "serving")))
        status = await all_done(at)
    live = await get(cluster, ResourceKey(*APPLICATION, namespace, "serving"))
    operation = live["operation"]
    assert operation["sync"] == {"syncStrategy": {"hook": {}}, "prune": True, "syncOptions": ["CreateNamespace=true"]}
    assert operation["initiatedBy"] == {"username": "system:serviceaccount:default:default"}
    assert operation["retry"] == {"limit": 2}
    assert {"name": "Reason", "value": "notebook default/train succeeded"} in operation["info"]
    assert "argocd.argoproj.io/sync-wave" not in live["metadata"]["annotations"]
    assert (status["triggers"][0]["namespace"], status["triggers"][0]["status"]) == (namespace, "Succeeded")


async def test_sync_trigger_waits_for_a_running_operation_and_reports_failure(cluster: EmbeddedCluster) -> None:
    await furnish(cluster, "argocd")
    app = ResourceKey(*APPLICATION, "argocd", "serving")
    await cluster.create({**application(), "operation": {"sync": {"revision": "abc"}}})
    async with at_work(cluster) as at:
        await at.apply(training(entry("Application", "sync", "serving", waitFor="Ready")))
        await at.becomes(lambda status: "current operation" in status["triggers"][0]["message"])
        assert (await get(cluster, app))["operation"] == {"sync": {"revision": "abc"}}
        await cluster.patch(app, {"operation": None})

        async def is_asked() -> Any:
            return (await get(cluster, app)).get("operation")

        operation = await until(is_asked)
        ended = {"phase": "Failed", "message": "it broke", "operation": operation, "startedAt": "2026-01-01T00:00:00Z"}
        await cluster.patch(app, {"operation": None, "status": {"operationState": ended}})
        ((state, message),) = states(await all_done(at))
    assert (state, message) == ("Failed", "the sync of Application argocd/serving ended as Failed: it broke")


@pytest.mark.parametrize("waits", ["", "hard"])
async def test_refresh_trigger_keeps_a_pending_hard_refresh(cluster: EmbeddedCluster, waits: str) -> None:
    """A normal refresh does not downgrade a pending hard refresh."""
    await furnish(cluster, "argocd")
    app = application()
    app["metadata"]["annotations"] = {"argocd.argoproj.io/refresh": waits} if waits else {}
    await cluster.create(app)
    await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}})
    async with at_work(cluster) as at:
        await at.apply(training(entry("Application", "refresh", "serving"), entry("ConfigMap", "refresh")))
        results = states(await all_done(at))
    app = await get(cluster, ResourceKey(*APPLICATION, "argocd", "serving"))
    other = await get(cluster, ResourceKey("", "ConfigMap", "default", "web"))
    assert [state for state, _ in results] == ["Succeeded", "Succeeded"]
    assert app["metadata"]["annotations"]["argocd.argoproj.io/refresh"] == (waits or "normal")
    assert other["metadata"]["annotations"]["mlops.dev/restart-timestamp"].endswith("Z")


# -- order -------------------------------------------------------------------------------------------------------------


async def test_entries_after_a_waiting_entry_wait_too(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}})
    async with at_work(cluster) as at:
        await at.apply(training(entry(waitFor="Ready"), entry("ConfigMap", "refresh")))
        status = await at.becomes(lambda status: "waiting" in status["triggers"][0]["message"])
        assert [trigger["status"] for trigger in status["triggers"]] == ["Running", "Pending"]
        await cluster.patch(WEB, {"status": ROLLED_OUT}, subresource="status")
        results = states(await all_done(at))
    assert [state for state, _ in results] == ["Succeeded", "Succeeded"]


async def test_new_run_skips_unfinished_triggers_of_the_previous_run(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    async with at_work(cluster) as at:
        await at.apply(training(entry(waitFor="Ready")))
        await at.becomes(lambda status: status["triggers"][0]["status"] == "Running")
        at.runs.otherwise = RUNNING
        await at.patch({"spec": {"timeout": "20m"}})
        await at.becomes(lambda status: status["observedGeneration"] == 2 and status["results"])
        at.runs.otherwise = PASSED
        status = await at.becomes(lambda status: len(status["triggers"]) == 2)
    assert status["triggers"][0]["status"] == "Skipped"
