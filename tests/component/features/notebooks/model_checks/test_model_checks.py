"""Checks of models that a notebook job depends on, with real HTTP servers, and their effect on the job."""

from __future__ import annotations

import contextlib
import http.server
import json
import math
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.notebooks.model_checks import (
    _is_metadata_address,
    model_kinds_and_readiness,
    prediction_request_and_expected_output,
)
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definitions
from argosy.kube.well_known_kinds import INFERENCE_SERVICE
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.notebook_controller import World, condition, job, leaping, world

pytestmark = pytest.mark.anyio
READY = {"conditions": [{"type": "Ready", "status": "True"}]}
ASKED = {"testData": "[[1.0, 2.0]]", "expectedOutput": "[0.5]", "tolerance": "0.01"}


@contextlib.contextmanager
def served(answers: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Run a local model server; yield its URL and the requests that it received."""
    requests: list[tuple[str, Any]] = []

    class Answering(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            requests.append((self.path, json.loads(body) if body else None))
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(answers.get(self.path, {"error": "no such model"})).encode())

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def serve(at: World, status: Mapping[str, Any], name: str = "fraud") -> None:
    """Create an InferenceService with this status."""
    for definition in load_definitions("inferenceservices.serving.kserve.io"):
        await at.cluster.apply(definition, manager="test", force=True)
    spec = {"predictor": {"model": {"modelFormat": {"name": "sklearn"}}}}
    metadata = {"name": name, "namespace": "default"}
    kind = {"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService"}
    await at.cluster.apply({**kind, "metadata": metadata, "spec": spec}, manager="test")
    await at.cluster.patch(
        ResourceKey(*INFERENCE_SERVICE, "default", name), {"status": dict(status)}, subresource="status"
    )


def asking(**checks: Any) -> Manifest:
    return job(modelValidation={"targetModels": ["fraud"], **checks})


async def test_ready_model_lets_the_notebook_run(cluster: EmbeddedCluster) -> None:
    async with world(cluster) as at:
        await serve(at, READY)
        await at.apply(asking())
        status = await at.ends()
    validation = status["modelValidationResult"]
    assert (status["phase"], validation["success"], validation["platformDetected"]) == ("Succeeded", True, True)
    assert validation["message"] == "All 1 model(s) are healthy in namespace default"
    assert validation["cleanEnvironmentCheck"]["crdsInstalled"] == ["inferenceservices.serving.kserve.io"]
    assert validation["cleanEnvironmentCheck"]["rbacPermissions"] is True


async def test_unready_model_delays_the_notebook_and_then_fails_the_job(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (at, clock):
        await serve(at, {"conditions": [{"type": "Ready", "status": "False", "message": "no such file"}]})
        await at.apply(asking(timeout="2m"))
        waiting = await at.becomes(lambda status: status["modelValidationResult"])
        assert waiting["message"].startswith("Waiting for models: 1 of 1 model(s) are unhealthy: [fraud]: no such file")
        assert at.runs.started == []
        clock.leap(121.0)
        status = await at.ends()
    assert (status["phase"], at.runs.started) == ("Failed", [])
    assert "model(s) are unhealthy: [fraud]" in status["message"]
    assert status["modelValidationResult"]["existingEnvironmentCheck"]["modelsChecked"][0]["healthy"] is False


async def test_model_that_becomes_ready_in_time_lets_the_notebook_run(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (at, clock):
        await serve(at, {})
        await at.apply(asking())
        await at.becomes(lambda status: status["modelValidationResult"])
        await serve(at, READY)
        clock.leap(10.0)
        assert (await at.ends())["phase"] == "Succeeded"


async def test_missing_platform_is_reported(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (at, clock):
        await at.apply(asking(platform="seldon"))
        await at.becomes(lambda status: status["modelValidationResult"])
        clock.leap(301.0)
        status = await at.ends()
    assert "platform seldon not found in the cluster" in status["message"]
    assert status["modelValidationResult"]["cleanEnvironmentCheck"]["platformAvailable"] is False


async def test_clean_phase_checks_only_the_platform(cluster: EmbeddedCluster) -> None:
    async with world(cluster) as at:
        for definition in load_definitions("inferenceservices.serving.kserve.io"):
            await cluster.apply(definition, manager="test")
        await at.apply(asking(phase="clean"))
        status = await at.ends()
    assert status["phase"] == "Succeeded"
    assert "existingEnvironmentCheck" not in status["modelValidationResult"]


async def test_kserve_alone_is_not_detected_as_openshift_ai(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (at, _):
        await serve(at, READY)
        await at.apply(asking(platform="openshift-ai"))
        status = await at.becomes(lambda status: status["modelValidationResult"])
        assert status["modelValidationResult"]["platformDetected"] is False


async def test_prediction_is_requested_and_compared(cluster: EmbeddedCluster) -> None:
    with served({"/v1/models/fraud:predict": {"predictions": [0.504]}}) as (url, requests):
        async with world(cluster) as at:
            await serve(at, {**READY, "url": url})
            await at.apply(asking(predictionValidation=ASKED))
            status = await at.ends()
            text = at.controller.metrics.render()
    assert requests == [("/v1/models/fraud:predict", {"instances": [[1.0, 2.0]]})]
    prediction = status["modelValidationResult"]["existingEnvironmentCheck"]["predictionValidation"]
    assert (prediction["success"], prediction["difference"]) == (True, "0.004")
    for line in (
        'notebookvalidationjob_prediction_validations_total{namespace="default",result="success"} 1',
        'notebookvalidationjob_model_health_checks_total{namespace="default",platform="kserve",result="healthy"} 1',
    ):
        assert line in text.splitlines()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"predictions": [0.6]}, "the prediction differs from the expected output (tolerance 0.01)"),
        ({"predictions": [0.5, 0.5]}, "the prediction differs from the expected output"),
        (None, "returns 404"),
    ],
)
async def test_wrong_prediction_fails_the_job(cluster: EmbeddedCluster, answer: Any, said: str) -> None:
    answers = {"/v1/models/fraud:predict": answer} if answer else {}
    with served(answers) as (url, _):
        async with leaping(cluster) as (at, clock):
            await serve(at, {**READY, "url": url})
            await at.apply(asking(predictionValidation=ASKED))
            await at.becomes(lambda status: status["modelValidationResult"])
            clock.leap(301.0)
            status = await at.ends()
    assert status["phase"] == "Failed"
    assert said in status["message"]


async def test_model_of_another_namespace_is_rejected(cluster: EmbeddedCluster) -> None:
    async with world(cluster) as at:
        await at.apply(job(modelValidation={"targetModels": ["other/fraud"]}))
        status = await at.ends()
    assert "'other/fraud' is in another namespace" in condition(status, "Failed")["message"]


async def test_model_without_an_address_is_reported(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (at, _):
        await serve(at, READY)
        await at.apply(asking(predictionValidation=ASKED))
        status = await at.becomes(lambda status: status["modelValidationResult"])
    assert "has no address" in status["modelValidationResult"]["message"]


async def test_custom_platform_uses_its_own_endpoints(cluster: EmbeddedCluster) -> None:
    custom = {
        "apiGroup": "serving.kserve.io", "resourceType": "inferenceservices",
        "healthCheckEndpoint": "/up", "predictionEndpoint": "/guess",
    }  # fmt: skip
    with served({"/up": {}, "/guess": [0.5]}) as (url, requests):
        async with world(cluster) as at:
            await serve(at, {**READY, "url": url})
            await at.apply(asking(platform="custom", customPlatform=custom, predictionValidation=ASKED))
            assert (await at.ends())["phase"] == "Succeeded"
    assert requests == [("/up", None), ("/guess", [[1.0, 2.0]])]


async def test_malformed_model_address_is_reported(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (at, _):
        await serve(at, {**READY, "url": "http://["})
        await at.apply(asking(predictionValidation=ASKED))
        status = await at.becomes(lambda status: status["modelValidationResult"])
    assert "'http://[' is not a model address" in status["modelValidationResult"]["message"]


async def test_cloud_metadata_address_in_a_status_is_rejected(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (at, _):
        await serve(at, {**READY, "url": "http://169.254.169.254/latest"})
        await at.apply(asking(predictionValidation=ASKED))
        status = await at.becomes(lambda status: status["modelValidationResult"])
    assert "169.254.169.254 is not a model address" in status["modelValidationResult"]["message"]
    assert [_is_metadata_address(host) for host in ("fe80::1", "metadata", "127.0.0.1", "a.svc")] == [
        True,
        True,
        False,
        False,
    ]


# -- readiness ---------------------------------------------------------------------------------------------------------

STANDINGS: list[tuple[str, dict[str, Any], dict[str, Any], bool]] = [
    ("InferenceService", READY, {}, True),
    ("InferenceService", {}, {}, False),
    ("InferenceService", {**READY, "observedGeneration": 1}, {"generation": 2}, False),
    ("InferenceService", {**READY, "modelStatus": {"transitionStatus": "BlockedByFailedLoad"}}, {}, False),
    ("InferenceService", {**READY, "modelStatus": {"transitionStatus": "UpToDate"}}, {}, True),
    ("Deployment", {"availableReplicas": 1}, {}, True),
    ("Deployment", {"availableReplicas": 0}, {}, False),
    ("RayService", {"serviceStatus": "Running"}, {}, True),
    ("RayService", {"serviceStatus": "WaitForServeDeploymentReady"}, {}, False),
    ("SeldonDeployment", {"state": "Available"}, {}, True),
    ("SeldonDeployment", {"state": "Creating"}, {}, False),
    ("BentoDeployment", READY, {}, True),
]


@pytest.mark.parametrize(("kind", "status", "metadata", "well"), STANDINGS)
def test_readiness_follows_the_status(kind: str, status: dict[str, Any], metadata: dict[str, Any], well: bool) -> None:
    live = {"kind": kind, "metadata": {"name": "m", **metadata}, "spec": {}, "status": status}
    assert bool(model_kinds_and_readiness.find_readiness_error(live)) is not well


# -- requests and expected answers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[[1]]", "/v1/models/m:predict"),
        ("1", "/v1/models/m:predict"),
        ('{"instances": [[1]]}', "/v1/models/m:predict"),
        ('{"inputs": []}', "/v2/models/m/infer"),
        ('{"messages": []}', "/v1/chat/completions"),
        ('{"prompt": "x"}', "/v1/completions"),
    ],
)
def test_request_path_depends_on_the_test_data(text: str, path: str) -> None:
    assert prediction_request_and_expected_output.build_request("m", text)[0] == path


@pytest.mark.parametrize("text", ["{", '{"other": 1}'])
def test_invalid_test_data_is_rejected(text: str) -> None:
    with pytest.raises(UserError):
        prediction_request_and_expected_output.build_request("m", text)


@pytest.mark.parametrize(
    ("expected", "answer", "apart"),
    [
        ([1, 2], [1.0, 2.0], 0.0),
        ([1.0], {"predictions": [1.5]}, 0.5),
        ([[1, 2], [3, 4]], [[1, 2], [3, 7]], 3.0),
        ({"a": 1}, {"a": 1, "b": 2}, 0.0),
        ({"a": 1}, {"b": 1}, math.inf),
        ("cat", "dog", math.inf),
        ([1], [1, 2], math.inf),
        ([True], [1], math.inf),
        ([float("nan")], [float("nan")], 0.0),
        ([float("nan")], [1.0], math.inf),
    ],
)
def test_distance_between_expected_and_actual_answer_is_computed(expected: Any, answer: Any, apart: float) -> None:
    assert prediction_request_and_expected_output.compute_distance(expected, answer) == apart
