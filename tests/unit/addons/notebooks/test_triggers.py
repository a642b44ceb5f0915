"""Triggers on the embedded cluster: what a success sets off, once, with the job's own rights."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from modelled_world import MODEL_KINDS, SERVICE, model, modelled, runtime
from notebook_world import FAILED, PASSED, RUNNING, ToldRuns, World, job, world
from simulated_world import DAEMON_SET, DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET, made

from argosy.addons.notebooks.job import KIND
from argosy.addons.notebooks.making import CLAIMS, after_result, at_start
from argosy.addons.notebooks.metrics import Metrics
from argosy.addons.notebooks.problems import warnings
from argosy.apiserver.embedded import EmbeddedCluster
from argosy.model.manifest import Manifest, dump
from argosy.model.names import GroupKind, ResourceKey
from argosy.schema.definitions import definition

pytestmark = pytest.mark.anyio
APPLICATION = GroupKind("argoproj.io", "Application")
TRIGGERS = "mlops.dev/on-success-trigger"
RESTARTED = "kubectl.kubernetes.io/restartedAt"
WEB = ResourceKey(*DEPLOYMENT, "default", "web")


def entry(kind: str = "Deployment", action: str = "restart", name: str = "web", **more: Any) -> dict[str, Any]:
    versions = {"InferenceService": "serving.kserve.io/v1beta1", "Application": "argoproj.io/v1alpha1"}
    version = versions.get(kind, "v1" if kind == "ConfigMap" else "apps/v1")
    return {"apiVersion": version, "kind": kind, "name": name, "action": action, **more}


def training(*entries: Any, name: str = "train", **spec: Any) -> Manifest:
    return job(name, annotations={TRIGGERS: dump(list(entries))}, **spec)


def workload(kind: str = "Deployment", replicas: int = 2, **spec: Any) -> Manifest:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "web:1"}]}}
    whole = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return made("apps/v1", kind, whole if kind == "DaemonSet" else {"replicas": replicas, **whole})


def application(namespace: str = "argocd", **more: Any) -> Manifest:
    source = {"repoURL": "https://git.example.com/a.git", "path": "a", "targetRevision": "main"}
    spec = {"project": "default", "source": source, "destination": {"namespace": "default", "name": "in-cluster"}}
    found = made("argoproj.io/v1alpha1", "Application", {**spec, **more}, "serving")
    return {**found, "metadata": {"name": "serving", "namespace": namespace}}


@contextlib.asynccontextmanager
async def at_work(cluster: EmbeddedCluster, runs: ToldRuns | None = None) -> AsyncIterator[World]:
    metrics = Metrics()
    following = {"at_start": at_start(metrics), "after_result": after_result(metrics), "claims": CLAIMS}
    async with world(cluster, runs, metrics=metrics, **following) as at:
        yield at


def states(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(each["status"], each.get("message", "")) for each in status.get("triggers") or ()]


async def all_done(at: World, name: str = "train") -> Mapping[str, Any]:
    done = ("Succeeded", "Failed", "Skipped")
    return await at.becomes(lambda status: all(each["status"] in done for each in status["triggers"]), name)


async def until(is_so: Callable[[], Any]) -> Any:
    async with asyncio.timeout(30):
        while not (found := await is_so()):
            await asyncio.sleep(0.02)
    return found


async def get(cluster: EmbeddedCluster, key: ResourceKey) -> Manifest:
    found = await cluster.get(key)
    assert found is not None
    return found


def summary_of(cluster: EmbeddedCluster) -> Callable[[], Any]:
    async def find() -> str | None:
        live = await get(cluster, ResourceKey(*KIND, "default", "train"))
        found: str | None = live["metadata"]["annotations"].get("mlops.dev/trigger-status")
        return found

    return find


def restarted(live: Manifest) -> str | None:
    found: str | None = (live["spec"]["template"]["metadata"].get("annotations") or {}).get(RESTARTED)
    return found


# -- when --------------------------------------------------------------------------------------------------------------


async def test_a_success_restarts_what_it_names_and_says_so_everywhere(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    async with at_work(cluster) as at:
        await at.apply(training(entry()))
        status = await all_done(at)
        events = await at.told("TriggerSuccess")
        told = json.loads(await until(summary_of(cluster)))
        text = at.controller.metrics.text()
    (record,) = status["triggers"]
    assert (status["phase"], record["status"]) == ("Succeeded", "Succeeded")
    assert (record["generation"], record["attempt"]) == (1, 1)
    (event,) = [each for each in events if each["reason"] == "TriggerSuccess"]
    assert (event["type"], event["involvedObject"]["kind"]) == ("Normal", "NotebookValidationJob")
    assert event["message"] == "restart Deployment default/web: its Pods are being replaced by a rolling update"
    assert (told["status"], told["triggers"][0]["name"]) == ("Succeeded", "web")
    assert 'argocd_triggers_total{action="restart",status="succeeded"} 1' in text
    assert restarted(await get(cluster, WEB))


async def test_a_failed_notebook_sets_nothing_off(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    async with at_work(cluster, ToldRuns(otherwise=FAILED)) as at:
        await at.apply(training(entry()))
        await at.ends()
        status = await at.status()
    assert states(status) == []
    assert restarted(await get(cluster, WEB)) is None


async def test_a_retry_that_succeeds_sets_it_off_once(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    async with at_work(cluster, ToldRuns({1: FAILED})) as at:
        await at.apply(training(entry(), retryPolicy={"on": "any", "backoff": "10ms"}))
        status = await all_done(at)
    assert [(each["attempt"], each["status"]) for each in status["triggers"]] == [(2, "Succeeded")]


async def test_an_annotation_that_comes_after_the_result_sets_nothing_off(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    async with at_work(cluster) as at:
        await at.apply(job())
        await at.ends()
        await at.patch({"metadata": {"annotations": {TRIGGERS: dump([entry()])}}})
        await at.apply(training(entry(name="none"), name="other"))
        await all_done(at, "other")
        status = await at.status()
    assert states(status) == []
    assert restarted(await get(cluster, WEB)) is None


async def test_each_run_sets_it_off_once_and_another_process_does_not_again(cluster: EmbeddedCluster) -> None:
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
    assert [each["attempt"] for each in status["triggers"]] == [1, 2]


async def test_what_was_done_and_could_not_be_written_is_not_done_again(cluster: EmbeddedCluster) -> None:
    """As if the process had died between the restart and its record."""
    await cluster.create(workload())
    runs = ToldRuns()
    async with at_work(cluster, runs) as at:
        await at.apply(training(entry()))
        status = await all_done(at)
    before = await get(cluster, WEB)
    forgotten = [{**each, "status": "Pending", "message": ""} for each in status["triggers"]]
    train = ResourceKey(*KIND, "default", "train")
    await cluster.patch(train, {"status": {"triggers": forgotten}}, subresource="status")
    async with at_work(cluster, runs) as at:
        await all_done(at)
        events = [each for each in await at.told("TriggerSuccess") if each["reason"] == "TriggerSuccess"]
    assert await get(cluster, WEB) == before
    assert len(events) == 1


# -- entries that cannot be carried out --------------------------------------------------------------------------------


async def test_a_bad_entry_and_a_missing_target_are_warnings_and_the_rest_is_done(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    async with at_work(cluster) as at:
        await at.apply(training(entry(action="stop"), entry(name="gone"), entry(kind="Sprocket"), entry()))
        status = await all_done(at)
        events = [each for each in await at.told("TriggerFailed", "TriggerSuccess") if "Trigger" in each["reason"]]
    found = {each["message"]: each["status"] for each in status["triggers"]}
    assert status["phase"] == "Succeeded"
    assert sorted(found.values()) == ["Failed", "Failed", "Failed", "Succeeded"]
    assert "trigger[0]: invalid action 'stop' (must be restart, sync, or refresh)" in found
    assert any(said.startswith("there is no Deployment gone in namespace default") for said in found)
    assert any(said.startswith("Sprocket.apps is no kind of this cluster") for said in found)
    assert sorted(each["type"] for each in events) == ["Normal", "Warning", "Warning", "Warning"]


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({TRIGGERS: "- {kind: Deployment}"}, "[mlops.dev/on-success-trigger]: trigger[0]: apiVersion is required"),
        ({"mlops.dev/block-wave": "4a"}, "[mlops.dev/block-wave]: '4a' is no wave, so it blocks none"),
        ({"mlops.dev/block-wave": "0"}, "[mlops.dev/block-wave]: wave 0 does not come after its own wave 0"),
    ],
)
def test_who_writes_what_cannot_follow_is_warned_at_once(annotations: dict[str, str], said: str) -> None:
    (warning,) = warnings(job(annotations=annotations))
    assert warning.startswith(f"metadata.annotations{said}")


async def test_a_job_may_set_off_only_what_its_own_account_may() -> None:
    async with EmbeddedCluster.open(rbac=True) as cluster:
        await cluster.create(workload())
        account = {"kind": "ServiceAccount", "name": "trainer", "namespace": "default"}
        rights = [{"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["patch"], "resourceNames": ["web"]}]
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "restart"}
        api = "rbac.authorization.k8s.io/v1"
        place = {"name": "restart", "namespace": "default"}
        await cluster.create({"apiVersion": api, "kind": "Role", "metadata": place, "rules": rights})
        binding = {"apiVersion": api, "kind": "RoleBinding", "metadata": place}
        await cluster.create({**binding, "subjects": [account], "roleRef": reference})
        async with at_work(cluster) as at:
            await at.apply(training(entry(), name="without"))
            refused = await all_done(at, "without")
            assert restarted(await get(cluster, WEB)) is None
            await at.apply(training(entry(), name="with", pod={"serviceAccountName": "trainer"}))
            allowed = await all_done(at, "with")
    ((state, said),) = states(refused)
    assert (state, refused["phase"]) == ("Failed", "Succeeded")
    who = "system:serviceaccount:default:default may not patch deployments.apps in namespace default"
    assert said.startswith(who)
    assert [state for state, _ in states(allowed)] == ["Succeeded"]


async def test_other_namespaces_are_only_those_that_the_installation_allows(cluster: EmbeddedCluster) -> None:
    for name in ("argocd", "serving-a", "billing"):
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for name in ("serving-a", "billing"):
        await cluster.create({**workload(), "metadata": {"name": "web", "namespace": name}})
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "argosy-cm", "namespace": "argocd"}}
    await cluster.create({**settings, "data": {"triggers.namespaces": "serving-*, models"}})
    async with at_work(cluster) as at:
        await at.apply(training(entry(namespace="serving-a"), entry(namespace="billing")))
        found = states(await all_done(at))
    assert [state for state, _ in found] == ["Succeeded", "Failed"]
    assert found[1][1].startswith("namespace billing is not among triggers.namespaces of argosy-cm")


# -- restarts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "DaemonSet"])
async def test_workloads_are_replaced_by_their_own_rolling_update(cluster: EmbeddedCluster, kind: str) -> None:
    kinds = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, POD, GroupKind("", "Node"))
    async with modelled(cluster, *kinds) as sims:
        await cluster.create(workload(kind))
        before = await sims.pods_become(lambda pods: len(pods) >= 1 and all(map(is_ready, pods)), app="web")
        async with at_work(cluster) as at:
            await at.apply(training(entry(kind, waitFor="Ready")))
            status = await all_done(at)
        after = await sims.pods(app="web")
    assert states(status) == [("Succeeded", "its Pods were replaced, and are ready")]
    assert not uids(before) & uids([pod for pod in after if is_ready(pod)])


def is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def uids(pods: list[Manifest]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


async def test_pods_that_are_only_replaced_when_they_go_are_evicted_one_by_one(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, STATEFUL_SET, POD, GroupKind("", "Node")) as sims:
        chosen = {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}
        await cluster.create(workload("StatefulSet", updateStrategy={"type": "OnDelete"}, selector=chosen))
        before = await sims.pods_become(lambda pods: len(pods) == 2 and all(map(is_ready, pods)), app="web")
        async with at_work(cluster) as at:
            await at.apply(training(entry("StatefulSet", waitFor="Ready")))
            status = await all_done(at)
        after = await sims.pods_become(lambda pods: len(pods) == 2, app="web")
    assert states(status) == [("Succeeded", "2 Pods were replaced, one by one")]
    assert not uids(before) & uids(after)


async def test_of_any_other_kind_the_pods_that_it_owns_are_evicted_and_no_others(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, REPLICA_SET, POD, GroupKind("", "Node")) as sims:
        await cluster.create(workload("ReplicaSet"))
        bystander = made("v1", "Pod", {"containers": [{"name": "web", "image": "web:1"}]}, "bystander")
        await cluster.create(bystander)
        before = await sims.pods_become(lambda pods: len(pods) == 3 and all(map(is_ready, pods)))
        async with at_work(cluster) as at:
            await at.apply(training(entry("ReplicaSet", waitFor="Ready")))
            status = await all_done(at)
        after = await sims.pods_become(lambda pods: len(pods) == 3)
    assert states(status) == [("Succeeded", "2 Pods were replaced, one by one")]
    (kept,) = [pod for pod in after if pod["metadata"]["uid"] in uids(before)]
    assert kept["metadata"]["name"] == "bystander"


async def test_a_deployment_that_is_paused_is_left_alone(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload(paused=True))
    async with at_work(cluster) as at:
        await at.apply(training(entry()))
        ((state, said),) = states(await all_done(at))
    assert (state, said) == ("Failed", "Deployment default/web is paused; resume it: kubectl rollout resume")


async def test_the_pods_of_a_model_go_one_by_one_and_never_all_at_once(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as sims:
        await cluster.create(runtime())
        await cluster.create(model(predictor={"minReplicas": 3}))
        label = {"serving.kserve.io/inferenceservice": "web"}
        before = await sims.pods_become(lambda pods: len(pods) == 3 and all(map(is_ready, pods)), **label)
        fewest = 3

        async def look() -> None:
            nonlocal fewest
            while True:
                ready = [pod for pod in await sims.pods(**label) if is_ready(pod)]
                fewest = min(fewest, len([pod for pod in ready if not pod["metadata"].get("deletionTimestamp")]))
                await asyncio.sleep(0.005)

        looking = asyncio.create_task(look())
        async with at_work(cluster) as at:
            await at.apply(training(entry("InferenceService", waitFor="Ready")))
            status = await all_done(at)
        looking.cancel()
        after = await sims.pods_become(lambda pods: len(pods) == 3, **label)
    assert states(status) == [("Succeeded", "3 Pods were replaced, one by one")]
    assert not uids(before) & uids(after)
    assert fewest == 2


async def test_a_model_with_revisions_gets_a_new_one(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as sims:
        await cluster.create(runtime())
        mode = {"serving.kserve.io/deploymentMode": "Serverless"}
        await cluster.create(model(mode))
        label = {"serving.kserve.io/inferenceservice": "web"}
        before = await sims.pods_become(lambda pods: pods and all(map(is_ready, pods)), **label)
        async with at_work(cluster) as at:
            await at.apply(training(entry("InferenceService", waitFor="Ready")))
            status = await all_done(at)
        live = await get(cluster, ResourceKey(*SERVICE, "default", "web"))
        after = await sims.pods(**label)
    assert states(status) == [("Succeeded", "its Pods were replaced, and it is Ready")]
    assert live["spec"]["predictor"]["annotations"][RESTARTED]
    assert any(is_ready(pod) and pod["metadata"]["uid"] not in uids(before) for pod in after)


async def test_a_budget_is_kept_and_what_cannot_go_in_time_stays(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS, GroupKind("policy", "PodDisruptionBudget")) as sims:
        await cluster.create(runtime())
        await cluster.create(model())
        label = {"serving.kserve.io/inferenceservice": "web"}
        before = await sims.pods_become(lambda pods: pods and all(map(is_ready, pods)), **label)
        budget = made("policy/v1", "PodDisruptionBudget", {"maxUnavailable": 0, "selector": {"matchLabels": label}})
        await cluster.create(budget)
        kind = GroupKind("policy", "PodDisruptionBudget")
        await sims.becomes(kind, lambda live: live["status"]["observedGeneration"])
        async with at_work(cluster) as at:
            await at.apply(training(entry("InferenceService", timeout="2s")))
            ((state, said),) = states(await all_done(at))
        after = await sims.pods(**label)
    assert (state, "disruption budget" in said) == ("Failed", True)
    assert uids(before) == uids(after)


# -- a trial before it -------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def served(answers: dict[str, str]) -> Iterator[int]:
    """A model server on this machine: the port of a Pod that a test plays."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = answers.get(self.path)
            self.send_response(200 if text is not None else 503)
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def serving_pod(port: int) -> Manifest:
    container = {"name": "kserve-container", "image": "server:1", "ports": [{"containerPort": port}]}
    found = made("v1", "Pod", {"containers": [container]}, "old")
    found["metadata"]["labels"] = {"serving.kserve.io/inferenceservice": "web"}
    return found


async def becomes_ready(cluster: EmbeddedCluster, name: str) -> None:
    ready = {"phase": "Running", "podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    await cluster.patch(ResourceKey(*POD, "default", name), {"status": ready}, subresource="status")


async def trial_pod(cluster: EmbeddedCluster) -> Manifest | None:
    pods = (await cluster.list(POD, namespace="default", labels="mlops.dev/run")).items
    return pods[0] if pods else None


@pytest.mark.parametrize("answers", [{"/v1/models/web": '{"ready": true}'}, {}], ids=["good", "broken"])
async def test_the_old_pod_goes_only_after_a_new_one_has_answered_the_probe(
    cluster: EmbeddedCluster, answers: dict[str, str]
) -> None:
    await cluster.apply(definition("inferenceservices.serving.kserve.io"), manager="test")
    await cluster.create(model())
    old = ResourceKey(*POD, "default", "old")
    probe = {"path": "/v1/models/web", "contains": "true"}
    with served(answers) as port:
        await cluster.create(serving_pod(port))
        await becomes_ready(cluster, "old")
        async with at_work(cluster) as at:
            await at.apply(training(entry("InferenceService", probe=probe, timeout="3s")))
            made_for_it = await until(lambda: trial_pod(cluster))
            assert (await get(cluster, old))["metadata"].get("deletionTimestamp") is None
            assert "serving.kserve.io/inferenceservice" not in made_for_it["metadata"]["labels"]
            assert made_for_it["metadata"]["ownerReferences"][0]["name"] == "train"
            await becomes_ready(cluster, made_for_it["metadata"]["name"])
            ((state, said),) = states(await all_done(at))
        assert await trial_pod(cluster) is None
        left = await cluster.get(old)
    is_gone = left is None or bool(left["metadata"].get("deletionTimestamp"))
    if answers:
        assert (state, said, is_gone) == ("Succeeded", "its Pod was replaced", True)
    else:
        assert (state, said, is_gone) == ("Failed", "the new model answers 503 to /v1/models/web", False)


async def test_a_new_run_takes_the_trial_of_the_last_one_away(cluster: EmbeddedCluster) -> None:
    await cluster.apply(definition("inferenceservices.serving.kserve.io"), manager="test")
    await cluster.create(model())
    await cluster.create(serving_pod(8080))
    await becomes_ready(cluster, "old")
    async with at_work(cluster) as at:
        await at.apply(training(entry("InferenceService", probe="/ready")))
        tried = await until(lambda: trial_pod(cluster))
        at.runs.otherwise = RUNNING
        await at.patch({"spec": {"timeout": "20m"}})
        await at.becomes(lambda status: status["observedGeneration"] == 2 and status["results"])
        assert await trial_pod(cluster) is None
    assert tried["spec"]["activeDeadlineSeconds"] == 660


async def test_a_simulated_model_is_tried_and_then_replaced(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as sims:
        await cluster.create(runtime())
        await cluster.create(model())
        label = {"serving.kserve.io/inferenceservice": "web"}
        before = await sims.pods_become(lambda pods: pods and all(map(is_ready, pods)), **label)
        async with at_work(cluster) as at:
            await at.apply(training(entry("InferenceService", probe="/v1/models/web", waitFor="Ready")))
            status = await all_done(at)
        after = await sims.pods_become(lambda pods: len(pods) == 1, **label)
    assert states(status) == [("Succeeded", "its Pod was replaced")]
    assert not uids(before) & uids(after)


# -- Applications ------------------------------------------------------------------------------------------------------


async def furnish(cluster: EmbeddedCluster, *namespaces: str) -> None:
    await cluster.apply(definition("applications.argoproj.io"), manager="test")
    for name in namespaces:
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


@pytest.mark.parametrize("namespace", ["argocd", "openshift-gitops", "default"])
async def test_a_sync_is_a_real_operation_on_the_application_wherever_it_is(
    cluster: EmbeddedCluster, namespace: str
) -> None:
    await furnish(cluster, *({namespace} - {"default"}))
    policy = {"automated": {"prune": True}, "syncOptions": ["CreateNamespace=true"], "retry": {"limit": 2}}
    await cluster.create(application(namespace, syncPolicy=policy))
    async with at_work(cluster) as at:
        await at.apply(training(entry("Application", "sync", "serving")))
        status = await all_done(at)
    live = await get(cluster, ResourceKey(*APPLICATION, namespace, "serving"))
    asked = live["operation"]
    assert asked["sync"] == {"syncStrategy": {"hook": {}}, "prune": True, "syncOptions": ["CreateNamespace=true"]}
    assert asked["initiatedBy"] == {"username": "system:serviceaccount:default:default"}
    assert asked["retry"] == {"limit": 2}
    assert {"name": "Reason", "value": "notebook default/train succeeded"} in asked["info"]
    assert "argocd.argoproj.io/sync-wave" not in live["metadata"]["annotations"]
    assert (status["triggers"][0]["namespace"], status["triggers"][0]["status"]) == (namespace, "Succeeded")


async def test_a_running_operation_is_awaited_and_a_failed_sync_is_told(cluster: EmbeddedCluster) -> None:
    await furnish(cluster, "argocd")
    app = ResourceKey(*APPLICATION, "argocd", "serving")
    await cluster.create({**application(), "operation": {"sync": {"revision": "abc"}}})
    async with at_work(cluster) as at:
        await at.apply(training(entry("Application", "sync", "serving", waitFor="Ready")))
        await at.becomes(lambda status: "present operation" in status["triggers"][0]["message"])
        assert (await get(cluster, app))["operation"] == {"sync": {"revision": "abc"}}
        await cluster.patch(app, {"operation": None})

        async def is_asked() -> Any:
            return (await get(cluster, app)).get("operation")

        asked = await until(is_asked)
        ended = {"phase": "Failed", "message": "it broke", "operation": asked, "startedAt": "2026-01-01T00:00:00Z"}
        await cluster.patch(app, {"operation": None, "status": {"operationState": ended}})
        ((state, said),) = states(await all_done(at))
    assert (state, said) == ("Failed", "the sync of Application argocd/serving ended as Failed: it broke")


async def test_a_refresh_annotates_and_touches_nothing_else(cluster: EmbeddedCluster) -> None:
    await furnish(cluster, "argocd")
    await cluster.create(application())
    await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}})
    async with at_work(cluster) as at:
        await at.apply(training(entry("Application", "refresh", "serving"), entry("ConfigMap", "refresh")))
        found = states(await all_done(at))
    app = await get(cluster, ResourceKey(*APPLICATION, "argocd", "serving"))
    other = await get(cluster, ResourceKey("", "ConfigMap", "default", "web"))
    assert [state for state, _ in found] == ["Succeeded", "Succeeded"]
    assert app["metadata"]["annotations"]["argocd.argoproj.io/refresh"] == "normal"
    assert other["metadata"]["annotations"]["mlops.dev/restart-timestamp"].endswith("Z")


# -- in order ----------------------------------------------------------------------------------------------------------


async def test_what_follows_an_entry_that_waits_waits_with_it(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload())
    await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}})
    async with at_work(cluster) as at:
        await at.apply(training(entry(waitFor="Ready"), entry("ConfigMap", "refresh")))
        status = await at.becomes(lambda status: "waiting" in status["triggers"][0]["message"])
        assert [each["status"] for each in status["triggers"]] == ["Running", "Pending"]
        rolled = {"observedGeneration": 99, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}
        await cluster.patch(WEB, {"status": {**rolled, "readyReplicas": 2}}, subresource="status")
        found = states(await all_done(at))
    assert [state for state, _ in found] == ["Succeeded", "Succeeded"]


async def test_another_run_passes_over_what_the_last_one_had_not_done_yet(cluster: EmbeddedCluster) -> None:
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
