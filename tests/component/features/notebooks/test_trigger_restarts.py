"""Restarts after a successful notebook: which Pods are replaced, in what order, and the trial Pod."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.kube.well_known_kinds import INFERENCE_SERVICE
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.notebook_controller import RUNNING
from support.serving_manifests import MODEL_KINDS, model, modelled, runtime
from support.simulators import DAEMON_SET, DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET, build_manifest
from support.trigger_jobs import RESTARTED, all_done, at_work, entry, get, states, too_late, training, until, workload

pytestmark = pytest.mark.anyio


# -- restarts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    ["Deployment", *(pytest.param(kind, marks=pytest.mark.tier("all")) for kind in ("StatefulSet", "DaemonSet"))],
)
async def test_workloads_are_restarted_by_a_rolling_update(cluster: EmbeddedCluster, kind: str) -> None:
    kinds = (DEPLOYMENT, REPLICA_SET, STATEFUL_SET, DAEMON_SET, POD, GroupKind("", "Node"))
    async with modelled(cluster, *kinds) as sims:
        await cluster.create(workload(kind))
        before = await sims.pods_become(lambda pods: len(pods) >= 1 and all(map(is_ready, pods)), app="web")
        async with at_work(cluster) as at:
            await at.apply(training(entry(kind, waitFor="Ready")))
            status = await all_done(at)
        after = await sims.pods(app="web")
    assert states(status) == [("Succeeded", "all Pods were replaced and are ready")]
    assert not uids(before) & uids([pod for pod in after if is_ready(pod)])


def is_ready(pod: Manifest) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def uids(pods: list[Manifest]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


async def test_pods_of_an_on_delete_statefulset_are_evicted_one_by_one(cluster: EmbeddedCluster) -> None:
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


async def test_restart_of_a_replicaset_evicts_only_the_pods_it_owns(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, REPLICA_SET, POD, GroupKind("", "Node")) as sims:
        await cluster.create(workload("ReplicaSet"))
        bystander = build_manifest("v1", "Pod", {"containers": [{"name": "web", "image": "web:1"}]}, "bystander")
        await cluster.create(bystander)
        before = await sims.pods_become(lambda pods: len(pods) == 3 and all(map(is_ready, pods)))
        async with at_work(cluster) as at:
            await at.apply(training(entry("ReplicaSet", waitFor="Ready")))
            status = await all_done(at)
        after = await sims.pods_become(lambda pods: len(pods) == 3)
    assert states(status) == [("Succeeded", "2 Pods were replaced, one by one")]
    (remaining_pod,) = [pod for pod in after if pod["metadata"]["uid"] in uids(before)]
    assert remaining_pod["metadata"]["name"] == "bystander"


async def test_restart_of_a_paused_deployment_fails(cluster: EmbeddedCluster) -> None:
    await cluster.create(workload(paused=True))
    async with at_work(cluster) as at:
        await at.apply(training(entry()))
        ((state, message),) = states(await all_done(at))
    assert (state, message) == ("Failed", "Deployment default/web is paused; resume it: kubectl rollout resume")


async def test_model_pods_are_evicted_one_by_one(cluster: EmbeddedCluster) -> None:
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


@pytest.mark.tier("all")
async def test_serverless_model_gets_a_new_revision(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as sims:
        await cluster.create(runtime())
        mode = {"serving.kserve.io/deploymentMode": "Serverless"}
        await cluster.create(model(mode))
        label = {"serving.kserve.io/inferenceservice": "web"}
        before = await sims.pods_become(lambda pods: pods and all(map(is_ready, pods)), **label)
        async with at_work(cluster) as at:
            await at.apply(training(entry("InferenceService", waitFor="Ready")))
            status = await all_done(at)
        live = await get(cluster, ResourceKey(*INFERENCE_SERVICE, "default", "web"))
        after = await sims.pods(**label)
    assert states(status) == [("Succeeded", "all Pods were replaced and it is Ready")]
    assert live["spec"]["predictor"]["annotations"][RESTARTED]
    assert any(is_ready(pod) and pod["metadata"]["uid"] not in uids(before) for pod in after)


@pytest.mark.tier("all")
async def test_disruption_budget_blocks_the_eviction_until_the_timeout(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS, GroupKind("policy", "PodDisruptionBudget")) as sims:
        await cluster.create(runtime())
        await cluster.create(model())
        label = {"serving.kserve.io/inferenceservice": "web"}
        before = await sims.pods_become(lambda pods: pods and all(map(is_ready, pods)), **label)
        budget = build_manifest(
            "policy/v1", "PodDisruptionBudget", {"maxUnavailable": 0, "selector": {"matchLabels": label}}
        )
        await cluster.create(budget)
        kind = GroupKind("policy", "PodDisruptionBudget")
        await sims.becomes(kind, lambda live: live["status"]["observedGeneration"])
        async with too_late(cluster, "disruption budget") as at:
            await at.apply(training(entry("InferenceService", timeout="1h")))
        ((state, message),) = states(await all_done(at))
        after = await sims.pods(**label)
    assert (state, "disruption budget" in message) == ("Failed", True)
    assert uids(before) == uids(after)


# -- trial Pod before a restart ----------------------------------------------------------------------------------------


@contextlib.contextmanager
def served(answers: dict[str, str]) -> Iterator[int]:
    """Run a local model server that stands for a Pod; yield its port."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = answers.get(self.path)
            self.send_response(200 if text is not None else 503)
            self.end_headers()
            self.wfile.write((text or "").encode())

        def log_message(self, *_: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def serving_pod(port: int) -> Manifest:
    container = {"name": "kserve-container", "image": "server:1", "ports": [{"containerPort": port}]}
    pod = build_manifest("v1", "Pod", {"containers": [container]}, "old")
    pod["metadata"]["labels"] = {"serving.kserve.io/inferenceservice": "web"}
    return pod


async def becomes_ready(cluster: EmbeddedCluster, name: str) -> None:
    ready = {"phase": "Running", "podIP": "127.0.0.1", "conditions": [{"type": "Ready", "status": "True"}]}
    await cluster.patch(ResourceKey(*POD, "default", name), {"status": ready}, subresource="status")


async def trial_pod(cluster: EmbeddedCluster) -> Manifest | None:
    pods = (await cluster.list(POD, namespace="default", labels="mlops.dev/run")).items
    return pods[0] if pods else None


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param({"/v1/models/web": '{"ready": true}'}, id="good"),
        pytest.param({}, id="broken", marks=pytest.mark.tier("all")),
    ],
)
async def test_old_pod_is_evicted_only_after_the_trial_pod_passes_the_probe(
    cluster: EmbeddedCluster, answers: dict[str, str]
) -> None:
    await cluster.apply(load_definition("inferenceservices.serving.kserve.io"), manager="test")
    await cluster.create(model())
    old = ResourceKey(*POD, "default", "old")
    probe = {"path": "/v1/models/web", "contains": "true"}
    with served(answers) as port:
        await cluster.create(serving_pod(port))
        await becomes_ready(cluster, "old")
        async with at_work(cluster) if answers else too_late(cluster, "returns 503") as at:
            await at.apply(training(entry("InferenceService", probe=probe, timeout="1h")))
            made_for_it = await until(lambda: trial_pod(cluster))
            assert (await get(cluster, old))["metadata"].get("deletionTimestamp") is None
            assert "serving.kserve.io/inferenceservice" not in made_for_it["metadata"]["labels"]
            assert made_for_it["metadata"]["ownerReferences"][0]["name"] == "train"
            await becomes_ready(cluster, made_for_it["metadata"]["name"])
            if answers:
                await all_done(at)
        ((state, message),) = states(await all_done(at))
        assert await trial_pod(cluster) is None
        left = await cluster.get(old)
    is_gone = left is None or bool(left["metadata"].get("deletionTimestamp"))
    if answers:
        assert (state, message, is_gone) == ("Succeeded", "1 Pod was replaced", True)
    else:
        assert (state, message, is_gone) == ("Failed", "the new model returns 503 for /v1/models/web", False)


async def test_new_run_deletes_the_trial_pod_of_the_previous_run(cluster: EmbeddedCluster) -> None:
    await cluster.apply(load_definition("inferenceservices.serving.kserve.io"), manager="test")
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


async def test_simulated_model_is_probed_and_then_replaced(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as sims:
        await cluster.create(runtime())
        await cluster.create(model())
        label = {"serving.kserve.io/inferenceservice": "web"}
        before = await sims.pods_become(lambda pods: pods and all(map(is_ready, pods)), **label)
        async with at_work(cluster) as at:
            await at.apply(training(entry("InferenceService", probe="/v1/models/web", waitFor="Ready")))
            status = await all_done(at)
        after = await sims.pods_become(lambda pods: len(pods) == 1, **label)
    assert states(status) == [("Succeeded", "1 Pod was replaced")]
    assert not uids(before) & uids(after)
