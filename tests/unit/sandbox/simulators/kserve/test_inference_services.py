"""Simulated KServe InferenceServices on the embedded cluster, with health assessed by argosy's own rules."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from argosy.errors import Forbidden
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import INFERENCE_SERVICE, ROUTE
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.kserve import ModelState, ProbeResult
from support.deadlines import HANG_SECONDS
from support.serving_manifests import MODEL_KINDS, assess_health, model, modelled, runtime
from support.simulators import CLAIM, DEPLOYMENT, POD, World, build_manifest, condition, fail, key, simulated

pytestmark = pytest.mark.anyio
URL = "https://web-default.apps.argosy.invalid"
INSIDE = "http://web-predictor.default.svc.cluster.local"
PRODUCT = "serving.kserve.io/deploymentMode"
RUNTIME = GroupKind("serving.kserve.io", "ServingRuntime")


def is_ready(live: Manifest) -> bool:
    return bool(condition(live, "Ready")["status"] == "True")


def is_failed(live: Manifest) -> bool:
    return bool(condition(live, "Ready")["status"] == "False")


def target(live: Manifest) -> str:
    return str(live["status"]["modelStatus"]["states"]["targetModelState"])


async def ready(world: World, *manifests: Manifest) -> Manifest:
    for manifest in manifests:
        await world.cluster.create(manifest)
    return await world.becomes(INFERENCE_SERVICE, is_ready)


async def test_inference_service_becomes_ready_with_its_owned_objects(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        live = await ready(world, runtime(), model())
        deployment = await world.get(DEPLOYMENT, "web-predictor")
        service = await cluster.get(key(GroupKind("", "Service"), "web-predictor"))
        route = await world.get(ROUTE)
        before = await world.settled()
        assert await world.settled() == before
    status = live["status"]
    assert [entry["type"] for entry in status["conditions"]] == ["IngressReady", "PredictorReady", "Ready", "Stopped"]
    assert [entry["status"] for entry in status["conditions"]] == ["True", "True", "True", "False"]
    assert (status["url"], status["address"]["url"]) == (URL, INSIDE)
    assert status["components"]["predictor"]["url"] == INSIDE
    assert status["modelStatus"]["states"] == {"activeModelState": "Loaded", "targetModelState": "Loaded"}
    assert status["modelStatus"]["transitionStatus"] == "UpToDate"
    assert status["modelStatus"]["copies"]["totalCopies"] == 1
    assert status["observedGeneration"] == live["metadata"]["generation"] and status["servingRuntimeName"] == "vllm"
    assert status["annotations"] == {"sandbox.argosy.dev/simulated": "simulated by argosy"}
    assert service is not None and service["spec"]["ports"][0]["targetPort"] == 8080
    assert route["spec"]["host"] == URL.removeprefix("https://") and route["spec"]["to"]["name"] == "web-predictor"
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert container["name"] == "kserve-container" and container["args"] == ["--served-model-name=web"]


async def test_ready_inference_service_is_healthy_by_strict_and_argo_cd_rules(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        live = await ready(world, runtime(), model())
    assert assess_health(live, "strict") == ("Healthy", "InferenceService is ready")
    assert assess_health(live) == ("Healthy", "InferenceService is healthy.")


async def test_starting_inference_service_is_progressing(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await cluster.create(runtime())
        await cluster.create(model(fail("NotReady")))
        live = await world.becomes(
            INFERENCE_SERVICE, lambda service: condition(service, "PredictorReady")["reason"] == "ReplicaSetUpdated"
        )
        assert assess_health(live, "strict")[0] == assess_health(live)[0] == "Progressing"
        assert assess_health(live, "strict")[1].endswith("(simulated by argosy)")
        assert live["status"]["modelStatus"]["transitionStatus"] == "InProgress" and "url" not in live["status"]
        await world.patch(INFERENCE_SERVICE, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(INFERENCE_SERVICE, is_ready)


@pytest.mark.parametrize(
    ("fault", "reason", "by_argo_cd"),
    [("CrashLoop", "ModelLoadFailed", "Degraded"), ("ImagePull", "ImagePullBackOff", "Progressing")],
)
async def test_inference_service_with_failing_pods_reports_the_reason(
    cluster: EmbeddedCluster, fault: str, reason: str, by_argo_cd: str
) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await cluster.create(runtime())
        await cluster.create(model(fail(fault)))
        live = await world.becomes(INFERENCE_SERVICE, lambda service: condition(service, "Ready")["reason"] == reason)
    assert condition(live, "Ready")["status"] == "False"
    health, message = assess_health(live, "strict")
    assert health == "Degraded" and "(simulated by argosy)" in message
    assert assess_health(live)[0] == by_argo_cd


async def test_missing_pvc_fails_the_model_until_the_pvc_exists(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await cluster.create(runtime())
        await cluster.create(model(storageUri="pvc://models/fraud"))
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
        failure = live["status"]["modelStatus"]["lastFailureInfo"]
        assert (failure["reason"], failure["exitCode"]) == ("ModelLoadFailed", 1)
        assert failure["message"] == 'persistentvolumeclaim "models" not found (simulated by argosy)'
        assert assess_health(live, "strict") == ("Degraded", failure["message"])
        assert assess_health(live)[0] == "Degraded" and "BlockedByFailedLoad" in assess_health(live)[1]
        storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await cluster.create(build_manifest("v1", "PersistentVolumeClaim", storage, "models"))
        healed = await world.becomes(INFERENCE_SERVICE, is_ready)
        assert "lastFailureInfo" not in healed["status"]["modelStatus"]
        (pod,) = await world.pods()
        assert pod["spec"]["containers"][0]["volumeMounts"][0]["subPath"] == "fraud"
        assert (await world.get(CLAIM, "models"))["status"]["phase"] == "Bound"


async def test_missing_storage_key_fails_the_model_until_the_key_exists(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await cluster.create(runtime())
        await cluster.create(model(storageUri=None, storage={"key": "minio", "path": "fraud/model"}))
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
        assert "can't read storage secret storage-config" in condition(live, "Ready")["message"]
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "storage-config", "namespace": "default"}}
        await cluster.create({**secret, "stringData": {"other": "{}"}})
        message = "specified storage key minio not found in storage secret storage-config (simulated by argosy)"
        await world.becomes(INFERENCE_SERVICE, lambda service: condition(service, "Ready")["message"] == message)
        await cluster.patch(key(GroupKind("", "Secret"), "storage-config"), {"stringData": {"minio": "{}"}})
        await world.becomes(INFERENCE_SERVICE, is_ready)


async def test_storage_fault_fails_the_model_until_it_is_removed(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await cluster.create(runtime())
        await cluster.create(model(fail("Storage")))
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
        assert live["status"]["modelStatus"]["lastFailureInfo"]["reason"] == "ModelLoadFailed"
        assert assess_health(live, "strict")[0] == assess_health(live)[0] == "Degraded"
        await world.patch(INFERENCE_SERVICE, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(INFERENCE_SERVICE, is_ready)


async def test_fault_annotation_on_the_predictor_fails_the_model(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await cluster.create(runtime())
        await cluster.create(model(predictor={"annotations": fail("Storage")}))
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
        assert live["status"]["modelStatus"]["lastFailureInfo"]["reason"] == "ModelLoadFailed"


async def test_previous_model_keeps_serving_while_the_new_one_fails_to_load(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await ready(world, runtime(), model())
        await world.patch(
            INFERENCE_SERVICE, {"spec": {"predictor": {"model": {"storageUri": "s3://models/does-not-exist"}}}}
        )
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
        pods = await world.pods_become(lambda live_pods: len(live_pods) == 2)
        assert any(condition(pod, "Ready")["status"] == "True" for pod in pods)
        states = live["status"]["modelStatus"]["states"]
        assert states == {"activeModelState": "Loaded", "targetModelState": "FailedToLoad"}
        assert "No model found in s3://models/does-not-exist" in assess_health(live, "strict")[1]
        await world.patch(INFERENCE_SERVICE, {"spec": {"predictor": {"model": {"storageUri": "s3://models/web"}}}})
        await world.becomes(INFERENCE_SERVICE, is_ready)


async def test_model_without_a_runtime_is_an_invalid_spec_until_one_exists(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await cluster.create(model())
        live = await world.becomes(
            INFERENCE_SERVICE, lambda service: service["status"]["modelStatus"]["transitionStatus"] == "InvalidSpec"
        )
        failure = live["status"]["modelStatus"]["lastFailureInfo"]
        assert failure["reason"] == "NoSupportingRuntime"
        assert failure["message"] == "No runtime found to support specified framework/version (simulated by argosy)"
        assert condition(live, "Ready")["status"] == "Unknown"
        assert assess_health(live)[0] == "Degraded" and assess_health(live, "strict")[0] == "Progressing"
        assert await world.all(DEPLOYMENT) == []
        await cluster.create(runtime())
        await world.becomes(INFERENCE_SERVICE, is_ready)


async def test_model_becomes_ready_when_its_missing_named_runtime_is_created(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await cluster.create(model(runtime="later"))
        reason = "RuntimeNotRecognized"
        await world.becomes(
            INFERENCE_SERVICE, lambda service: service["status"]["modelStatus"]["lastFailureInfo"]["reason"] == reason
        )
        await cluster.create(runtime("later"))
        live = await world.becomes(INFERENCE_SERVICE, is_ready)
        assert live["status"]["servingRuntimeName"] == "later"


async def test_stopped_inference_service_is_suspended_and_its_objects_deleted(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await ready(world, runtime(), model())
        await world.patch(INFERENCE_SERVICE, {"metadata": {"annotations": {"serving.kserve.io/stop": "true"}}})
        live = await world.becomes(INFERENCE_SERVICE, lambda service: condition(service, "Stopped")["status"] == "True")
        assert assess_health(live) == assess_health(live, "strict") == ("Suspended", "InferenceService is Stopped")
        assert "url" not in live["status"] and "modelStatus" not in live["status"]
        await world.becomes(DEPLOYMENT, lambda deployment: not deployment["metadata"], "web-predictor")
        await world.becomes(ROUTE, lambda route: not route["metadata"])
        await world.patch(INFERENCE_SERVICE, {"metadata": {"annotations": {"serving.kserve.io/stop": None}}})
        await world.becomes(INFERENCE_SERVICE, is_ready)


async def test_events_report_that_a_model_became_ready_and_failed(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await ready(world, runtime(), model())
        await world.patch(INFERENCE_SERVICE, {"metadata": {"annotations": fail("Storage")}})
        await world.becomes(INFERENCE_SERVICE, is_failed)
        await world.settled()
        events = await world.all(GroupKind("", "Event"))
    reasons = [event["reason"] for event in events if event["involvedObject"]["kind"] == "InferenceService"]
    assert reasons == ["InferenceServiceReady", "InferenceServiceNotReady", "InternalError"]


async def test_unexposed_inference_service_gets_the_cluster_internal_url(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        live = await ready(world, runtime(), model(exposed=False))
        assert live["status"]["url"] == INSIDE
        assert await world.all(ROUTE) == []


async def test_inference_service_gets_an_ingress_without_openshift(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster, "plain") as world:
        live = await ready(world, runtime(), model())
        (ingress,) = await world.all(GroupKind("networking.k8s.io", "Ingress"))
    assert live["status"]["url"] == "http://web-default.apps.argosy.invalid"
    assert ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"] == "web-predictor"


async def test_webhook_sets_and_owns_two_predictor_fields(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS):
        sent = model({PRODUCT: "RawDeployment"}, resources={"limits": {"cpu": "1"}})
        live = await cluster.apply(sent, manager="argocd-controller")
    assert live["spec"]["predictor"]["automountServiceAccountToken"] is False
    assert live["spec"]["predictor"]["model"]["name"] == ""
    (webhook,) = [entry for entry in live["metadata"]["managedFields"] if entry["manager"] == "kserve-webhook"]
    fields = {"f:automountServiceAccountToken": {}, "f:model": {"f:name": {}}}
    assert webhook["fieldsV1"] == {"f:spec": {"f:predictor": fields}}
    assert live["metadata"]["generation"] == 1


async def test_legacy_framework_field_is_converted_to_a_model(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS):
        old = model()
        old["spec"]["predictor"] = {"sklearn": {"storageUri": "s3://models/web"}}
        live = await cluster.create(old)
    predictor = live["spec"]["predictor"]
    assert "sklearn" not in predictor and predictor["model"]["modelFormat"] == {"name": "sklearn"}
    assert live["metadata"]["annotations"][PRODUCT] == "RawDeployment"


async def test_legacy_framework_field_can_be_patched_in_again(cluster: EmbeddedCluster) -> None:
    """The merge with the stored object has both fields; the webhook converts them to one, as on create."""
    old = model()
    old["spec"]["predictor"] = {"sklearn": {"storageUri": "s3://models/web"}}
    async with modelled(cluster, *MODEL_KINDS):
        first = await cluster.create(old)
        predictor = {"sklearn": {"storageUri": "s3://models/other"}}
        second = await cluster.patch(key_of(first), {"spec": {"predictor": predictor}}, manager="argocd-controller")
    assert "sklearn" not in second["spec"]["predictor"]
    assert second["spec"]["predictor"]["model"]["storageUri"] == "s3://models/other"


async def test_inference_service_with_min_replicas_above_max_is_rejected(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS):
        with pytest.raises(Forbidden, match="'MinReplicas' cannot be greater than MaxReplicas"):
            await cluster.create(model(predictor={"minReplicas": 3, "maxReplicas": 2}))


async def test_each_change_creates_a_revision_in_serverless_mode(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        live = await ready(world, runtime(), model({PRODUCT: "Serverless"}))
        await world.becomes(
            DEPLOYMENT, lambda deployment: deployment["metadata"]["name"], "web-predictor-00001-deployment"
        )
        assert {"LatestDeploymentReady", "RoutesReady", "PredictorRouteReady"} <= {
            entry["type"] for entry in live["status"]["conditions"]
        }
        assert assess_health(live, "strict")[0] == assess_health(live)[0] == "Healthy"
        await world.patch(INFERENCE_SERVICE, {"spec": {"predictor": {"model": {"args": ["--max-model-len=8000"]}}}})

        def has_second(service: Manifest) -> bool:
            return bool(
                service["status"]["components"]["predictor"].get("latestReadyRevision") == "web-predictor-00002"
            )

        live = await world.becomes(INFERENCE_SERVICE, lambda service: has_second(service) and is_ready(service))
        predictor = live["status"]["components"]["predictor"]
        assert predictor["previousRolledoutRevision"] == "web-predictor-00001"
        assert predictor["traffic"] == [{"latestRevision": True, "percent": 100, "revisionName": "web-predictor-00002"}]
        await world.becomes(DEPLOYMENT, lambda deployment: not deployment["metadata"], "web-predictor-00001-deployment")


async def test_model_spec_change_rolls_out_the_deployment(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await ready(world, runtime(), model())
        await world.patch(
            INFERENCE_SERVICE, {"spec": {"predictor": {"model": {"resources": {"limits": {"cpu": "4"}}}}}}
        )

        def is_new(pods: list[Manifest]) -> bool:
            limits = [pod["spec"]["containers"][0]["resources"].get("limits") for pod in pods]
            return limits == [{"cpu": "4"}]

        await world.pods_become(is_new)
        live = await world.becomes(
            INFERENCE_SERVICE, lambda service: is_ready(service) and service["status"]["observedGeneration"] == 2
        )
        assert live["status"]["url"] == URL


async def test_runtime_change_rolls_out_models_without_disable_auto_update(cluster: EmbeddedCluster) -> None:
    keeps = {"serving.kserve.io/disable-auto-update": "true"}
    changed = {"spec": {"containers": [{"name": "kserve-container", "image": "vllm:next"}]}}

    def is_new(deployment: Manifest) -> bool:
        return bool(deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "vllm:next")

    async with modelled(cluster, *MODEL_KINDS) as world:
        await ready(world, runtime(), model())
        other = {**model(keeps), "metadata": {**model(keeps)["metadata"], "name": "old"}}
        await cluster.create(other)
        await world.becomes(INFERENCE_SERVICE, is_ready, "old")
        await world.patch(RUNTIME, changed, "vllm")
        await world.becomes(DEPLOYMENT, is_new, "web-predictor")
        await world.patch(INFERENCE_SERVICE, {"metadata": {"labels": {"looked": "again"}}}, "old")
        await world.becomes(INFERENCE_SERVICE, is_ready, "old")
        assert not is_new(await world.get(DEPLOYMENT, "old-predictor"))
        await world.patch(INFERENCE_SERVICE, {"spec": {"predictor": {"minReplicas": 2}}}, "old")
        await world.becomes(DEPLOYMENT, is_new, "old-predictor")


async def test_manual_deployment_change_is_reverted(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await ready(world, runtime(), model())
        await world.patch(DEPLOYMENT, {"spec": {"replicas": 3}}, "web-predictor")
        await world.becomes(DEPLOYMENT, lambda deployment: deployment["spec"]["replicas"] == 1, "web-predictor")


async def test_deleted_service_is_recreated(cluster: EmbeddedCluster) -> None:
    service = GroupKind("", "Service")
    async with modelled(cluster, *MODEL_KINDS) as world:
        await ready(world, runtime(), model())
        uid = (await world.get(service, "web-predictor"))["metadata"]["uid"]
        await cluster.delete(key(service, "web-predictor"))
        await world.becomes(service, lambda manifest: manifest["metadata"]["uid"] != uid, "web-predictor")


async def test_rejected_owned_object_is_reported_as_reconcile_failed(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await cluster.create(runtime())
        await cluster.create(model(env=[{"name": "", "value": "x"}]))
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
        assert condition(live, "Ready")["reason"] == "ReconcileFailed"
        assert assess_health(live, "strict")[0] == "Degraded" and "env" in assess_health(live, "strict")[1]
        await world.patch(INFERENCE_SERVICE, {"spec": {"predictor": {"model": {"env": None}}}})
        await world.becomes(INFERENCE_SERVICE, is_ready)


async def test_url_uses_the_configured_domain(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS, domain="apps.example.com") as world:
        live = await ready(world, runtime(), model())
    assert live["status"]["url"] == "https://web-default.apps.example.com"


async def test_deleting_an_inference_service_deletes_its_objects(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *MODEL_KINDS) as world:
        await ready(world, runtime(), model())
        await cluster.delete(key(INFERENCE_SERVICE, "web"))
        for kind in (DEPLOYMENT, ROUTE, POD):
            async with asyncio.timeout(HANG_SECONDS):
                while await world.all(kind):
                    await asyncio.sleep(0.01)


class Answering:
    """A model probe that calls one function."""

    def __init__(self, ask: Callable[[Manifest], Awaitable[ProbeResult]]) -> None:
        self._ask = ask

    async def probe(self, service: Manifest, pods: Sequence[Manifest]) -> ProbeResult:
        assert pods
        return await self._ask(service)

    def find_url(self, key: ResourceKey) -> str:
        return ""

    async def release(self, key: ResourceKey) -> None:
        pass


async def test_model_is_ready_only_after_a_successful_probe(cluster: EmbeddedCluster) -> None:
    answers: list[ProbeResult] = [ProbeResult(ModelState.LOADING)]
    probed_names: list[str] = []

    async def ask(service: Manifest) -> ProbeResult:
        probed_names.append(service["metadata"]["name"])
        return answers[-1]

    async with modelled(cluster, *MODEL_KINDS, probe=Answering(ask)) as world:
        await cluster.create(runtime())
        await cluster.create(model())
        live = await world.becomes(INFERENCE_SERVICE, lambda service: target(service) == "Loading")
        assert condition(live, "Ready")["status"] == "Unknown"
        answers.append(ProbeResult(ModelState.LOADED, url="http://127.0.0.1:8080"))
        live = await world.becomes(INFERENCE_SERVICE, is_ready)
        assert live["status"]["url"] == "http://127.0.0.1:8080" and set(probed_names) == {"web"}
        await world.patch(
            INFERENCE_SERVICE, {"spec": {"predictor": {"model": {"storageUri": "s3://models/does-not-exist"}}}}
        )
        live = await world.becomes(INFERENCE_SERVICE, is_failed)
    assert live["status"]["url"] == "http://127.0.0.1:8080", "an address that leads nowhere says less"


async def test_failed_probe_makes_the_model_degraded(cluster: EmbeddedCluster) -> None:
    async def ask(service: Manifest) -> ProbeResult:
        return ProbeResult(ModelState.FAILED, "model.pkl cannot be read")

    async with modelled(cluster, *MODEL_KINDS, probe=Answering(ask)) as world:
        await cluster.create(runtime())
        await cluster.create(model())
        live: Any = await world.becomes(INFERENCE_SERVICE, is_failed)
    assert assess_health(live, "strict") == ("Degraded", "model.pkl cannot be read")
