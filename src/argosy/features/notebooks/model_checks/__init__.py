"""Checks the models that a job depends on: readiness and predictions.

In: a job with a `modelValidation`. Out: the content of `status.modelValidationResult`. Never: reports an unchecked
model as healthy; calls a model in another namespace, or an address that is not a model server.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from argosy.errors import ArgosyError, ClusterError, UserError
from argosy.features.notebooks.model_checks import model_kinds_and_readiness, prediction_request_and_expected_output
from argosy.features.notebooks.notebook_validation_job_parser import ModelChecks, NotebookJob
from argosy.http_client.anonymous_request import PlainResponse, send_plain_request
from argosy.kube.client import Cluster
from argosy.kube.controller import ControllerContext
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import AUTHORIZATION_API_VERSION, DEPLOYMENT, SERVICE
from argosy.observability.redaction.text_redaction import redact

REQUEST_TIMEOUT_SECONDS: Final = 10.0

Fields = dict[str, Any]


class ClusterModelChecker:
    async def check(self, job: NotebookJob, context: ControllerContext) -> Mapping[str, Any]:
        checks = job.models
        assert checks is not None
        catalog = await context.cluster.kinds()
        kind = model_kinds_and_readiness.find_model_kind(checks, catalog)
        result: Fields = {"phase": checks.phase, "platform": checks.platform, "platformDetected": kind is not None}
        if kind is None:
            message = f"platform {checks.platform} not found in the cluster; install it, or set another platform"
            clean_check = {"platformAvailable": False, "success": False, "message": message}
            return {**result, "success": False, "message": message, "cleanEnvironmentCheck": clean_check}
        if checks.phase in ("clean", "both"):
            result["cleanEnvironmentCheck"] = await _check_platform_access(
                job, kind, catalog[kind].plural, context.cluster
            )
        if checks.phase in ("existing", "both"):
            result["existingEnvironmentCheck"] = await _check_existing_models(job, checks, kind, context.cluster)
        parts = [result[name] for name in ("cleanEnvironmentCheck", "existingEnvironmentCheck") if name in result]
        failed_check = next((check_result for check_result in parts if not check_result["success"]), None)
        return {**result, "success": failed_check is None, "message": (failed_check or parts[-1])["message"]}


async def _check_platform_access(job: NotebookJob, kind: GroupKind, plural: str, cluster: Cluster) -> Fields:
    is_permitted = await _can_read_models(job, kind, plural, cluster)
    message = (
        f"{kind} is served" if is_permitted else f"the operator may not get {plural}.{kind.group}; grant it by RBAC"
    )
    installed = [f"{plural}.{kind.group}"] if "." in kind.group else []
    return {
        "platformAvailable": True,
        "crdsInstalled": installed,
        "rbacPermissions": is_permitted,
        "success": is_permitted,
        "message": message,
    }


async def _can_read_models(job: NotebookJob, kind: GroupKind, plural: str, cluster: Cluster) -> bool:
    attributes = {"namespace": job.namespace, "verb": "get", "group": kind.group, "resource": plural}
    review = {"apiVersion": AUTHORIZATION_API_VERSION, "kind": "SelfSubjectAccessReview", "metadata": {}}
    try:
        response = await cluster.create({**review, "spec": {"resourceAttributes": attributes}})
    except ClusterError:
        return True  # if the review is not possible, reading will show it
    return bool((response.get("status") or {}).get("allowed"))


async def _check_existing_models(job: NotebookJob, checks: ModelChecks, kind: GroupKind, cluster: Cluster) -> Fields:
    models = [entry.rpartition("/")[2] for entry in checks.models]
    manifests = {name: await cluster.get(ResourceKey(*kind, job.namespace, name)) for name in models}
    model_results = [await _check_model(name, live, checks, cluster) for name, live in manifests.items()]
    unhealthy_names = [entry["modelName"] for entry in model_results if not entry["healthy"]]
    if unhealthy_names:
        reason = next(entry["message"] for entry in model_results if not entry["healthy"])
        message = (
            f"{len(unhealthy_names)} of {len(model_results)} model(s) are unhealthy: "
            f"[{', '.join(unhealthy_names)}]: {reason}"
        )
        return {"modelsChecked": model_results, "success": False, "message": message}
    message = f"All {len(model_results)} model(s) are healthy in namespace {job.namespace}"
    result: Fields = {"modelsChecked": model_results, "success": True, "message": message}
    prediction = checks.prediction
    if prediction and prediction.get("testData") and models:
        prediction_result = await _check_prediction(models[0], manifests[models[0]], checks, prediction, cluster)
        result |= {"predictionValidation": prediction_result, "success": prediction_result["success"]}
        if not prediction_result["success"]:
            result["message"] = f"model {models[0]}: {prediction_result['message']}"
    return result


async def _check_model(name: str, live: Manifest | None, checks: ModelChecks, cluster: Cluster) -> Fields:
    if live is None:
        return {"modelName": name, "available": False, "healthy": False, "message": f"model {name} not found"}
    reason = model_kinds_and_readiness.find_readiness_error(live)
    if not reason and checks.custom.get("healthCheckEndpoint"):
        reason = await _find_health_error(live, str(checks.custom["healthCheckEndpoint"]), cluster)
    fields = {"modelName": name, "available": True, "healthy": not reason, "message": redact(reason)[:300] or "ready"}
    model_version = model_kinds_and_readiness.read_version(live)
    return {**fields, **({"version": model_version} if model_version else {})}


async def _find_health_error(live: Manifest, path: str, cluster: Cluster) -> str:
    try:
        response = await _send_request(await _find_model_url(live, cluster), path)
    except ArgosyError as error:
        return str(error)
    return "" if response.code < 400 else f"{path} returns {response.code}"


async def _check_prediction(
    name: str, live: Manifest | None, checks: ModelChecks, prediction: Mapping[str, Any], cluster: Cluster
) -> Fields:
    assert live is not None
    expected_text = str(prediction.get("expectedOutput") or "")
    try:
        custom_path = str(checks.custom.get("predictionEndpoint") or "")
        path, document = prediction_request_and_expected_output.build_request(
            name, str(prediction["testData"]), custom_path
        )
        response = await _send_request(await _find_model_url(live, cluster), path, document)
        if response.code >= 400:
            raise UserError(f"{path} returns {response.code}: {response.body[:200].decode(errors='replace')}")
        expected = (
            prediction_request_and_expected_output.parse_json(expected_text, "expectedOutput")
            if expected_text
            else None
        )
    except ArgosyError as error:
        return {"success": False, "message": redact(str(error))[:300]}
    answer = response.read_json()
    fields = {
        "actualOutput": redact(prediction_request_and_expected_output.render_value(answer)),
        "expectedOutput": prediction_request_and_expected_output.render_value(expected_text),
    }
    if not expected_text:
        return {**fields, "success": True, "message": "the model responds"}
    difference, tolerance = (
        prediction_request_and_expected_output.compute_distance(expected, answer),
        float(prediction.get("tolerance") or 0.01),
    )
    is_within_tolerance = difference <= tolerance
    result_word = "matches the expected output" if is_within_tolerance else "differs from the expected output"
    message = f"the prediction {result_word} (tolerance {tolerance:g})"
    return {**fields, "success": is_within_tolerance, "difference": f"{difference:g}", "message": message}


async def _find_model_url(live: Manifest, cluster: Cluster) -> str:
    url = model_kinds_and_readiness.read_url(live)
    if not url and live["kind"] == DEPLOYMENT.kind:
        url = await _find_service_url(live, cluster)
    try:
        host = urlsplit(url).hostname or ""
    except ValueError as error:
        raise UserError(f"{url[:60]!r} is not a model address; check the status of the model") from error
    if not host:
        raise UserError(f"{live['kind']} {live['metadata']['name']} has no address; create a Service for it")
    if _is_metadata_address(host):
        raise UserError(f"{host} is not a model address; check the status of the model")
    return url


async def _find_service_url(live: Manifest, cluster: Cluster) -> str:
    """URL of the first Service in its namespace that selects its Pods."""
    template = ((live.get("spec") or {}).get("template") or {}).get("metadata") or {}
    labels, namespace = template.get("labels") or {}, live["metadata"]["namespace"]
    for service in (await cluster.list(SERVICE, namespace=namespace)).items:
        selector = (service.get("spec") or {}).get("selector") or {}
        if selector and selector.items() <= labels.items():
            port = next((int(port["port"]) for port in service["spec"].get("ports") or ()), 80)
            return f"http://{service['metadata']['name']}.{namespace}.svc:{port}"
    return ""


def _is_metadata_address(host: str) -> bool:
    """True for metadata addresses of clouds: a forged status must not make the operator fetch credentials there."""
    try:
        return ipaddress.ip_address(host).is_link_local
    except ValueError:
        return host in ("metadata.google.internal", "metadata")


async def _send_request(address: str, path: str, body: Any = None) -> PlainResponse:
    if not path.startswith("/"):
        raise UserError(f"{path[:80]!r} is not a URL path; start it with a slash")
    return await asyncio.to_thread(send_plain_request, address + path, body, timeout_seconds=REQUEST_TIMEOUT_SECONDS)
