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
from argosy.features.notebooks.job import Job, ModelChecks
from argosy.features.notebooks.model_checks import platforms, predictions
from argosy.features.notebooks.redaction import redact
from argosy.http_client.plain_request import Answered, ask
from argosy.kube.client import Cluster
from argosy.kube.controller import Context
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

SECONDS: Final = 10.0
REVIEW: Final = "authorization.k8s.io/v1"

Fields = dict[str, Any]


class ModelsAsked:
    async def check(self, job: Job, context: Context) -> Mapping[str, Any]:
        asked = job.models
        assert asked is not None
        catalog = await context.cluster.kinds()
        kind = platforms.kind_for(asked, catalog)
        found: Fields = {"phase": asked.phase, "platform": asked.platform, "platformDetected": kind is not None}
        if kind is None:
            said = f"platform {asked.platform} not found in the cluster; install it, or set another platform"
            clean = {"platformAvailable": False, "success": False, "message": said}
            return {**found, "success": False, "message": said, "cleanEnvironmentCheck": clean}
        if asked.phase in ("clean", "both"):
            found["cleanEnvironmentCheck"] = await _clean(job, kind, catalog[kind].plural, context.cluster)
        if asked.phase in ("existing", "both"):
            found["existingEnvironmentCheck"] = await _existing(job, asked, kind, context.cluster)
        parts = [found[name] for name in ("cleanEnvironmentCheck", "existingEnvironmentCheck") if name in found]
        bad = next((each for each in parts if not each["success"]), None)
        return {**found, "success": bad is None, "message": (bad or parts[-1])["message"]}


async def _clean(job: Job, kind: GroupKind, plural: str, cluster: Cluster) -> Fields:
    may = await _may_read(job, kind, plural, cluster)
    said = f"{kind} is served" if may else f"the operator may not get {plural}.{kind.group}; grant it by RBAC"
    installed = [f"{plural}.{kind.group}"] if "." in kind.group else []
    return {
        "platformAvailable": True, "crdsInstalled": installed, "rbacPermissions": may, "success": may, "message": said,
    }  # fmt: skip


async def _may_read(job: Job, kind: GroupKind, plural: str, cluster: Cluster) -> bool:
    asked = {"namespace": job.namespace, "verb": "get", "group": kind.group, "resource": plural}
    review = {"apiVersion": REVIEW, "kind": "SelfSubjectAccessReview", "metadata": {}}
    try:
        answer = await cluster.create({**review, "spec": {"resourceAttributes": asked}})
    except ClusterError:
        return True  # if the review is not possible, reading will show it
    return bool((answer.get("status") or {}).get("allowed"))


async def _existing(job: Job, asked: ModelChecks, kind: GroupKind, cluster: Cluster) -> Fields:
    models = [each.rpartition("/")[2] for each in asked.models]
    lives = {name: await cluster.get(ResourceKey(*kind, job.namespace, name)) for name in models}
    checked = [await _model(name, live, asked, cluster) for name, live in lives.items()]
    ill = [each["modelName"] for each in checked if not each["healthy"]]
    if ill:
        why = next(each["message"] for each in checked if not each["healthy"])
        said = f"{len(ill)} of {len(checked)} model(s) are unhealthy: [{', '.join(ill)}]: {why}"
        return {"modelsChecked": checked, "success": False, "message": said}
    said = f"All {len(checked)} model(s) are healthy in namespace {job.namespace}"
    found: Fields = {"modelsChecked": checked, "success": True, "message": said}
    prediction = asked.prediction
    if prediction and prediction.get("testData") and models:
        told = await _prediction(models[0], lives[models[0]], asked, prediction, cluster)
        found |= {"predictionValidation": told, "success": told["success"]}
        if not told["success"]:
            found["message"] = f"model {models[0]}: {told['message']}"
    return found


async def _model(name: str, live: Manifest | None, asked: ModelChecks, cluster: Cluster) -> Fields:
    if live is None:
        return {"modelName": name, "available": False, "healthy": False, "message": f"model {name} not found"}
    why = platforms.trouble(live)
    if not why and asked.custom.get("healthCheckEndpoint"):
        why = await _unhealthy(live, str(asked.custom["healthCheckEndpoint"]), cluster)
    told = {"modelName": name, "available": True, "healthy": not why, "message": redact(why)[:300] or "ready"}
    found = platforms.version(live)
    return {**told, **({"version": found} if found else {})}


async def _unhealthy(live: Manifest, path: str, cluster: Cluster) -> str:
    try:
        answered = await _asked(await _address(live, cluster), path)
    except ArgosyError as error:
        return str(error)
    return "" if answered.code < 400 else f"{path} returns {answered.code}"


async def _prediction(
    name: str, live: Manifest | None, asked: ModelChecks, wanted: Mapping[str, Any], cluster: Cluster
) -> Fields:
    assert live is not None
    expected_text = str(wanted.get("expectedOutput") or "")
    try:
        own = str(asked.custom.get("predictionEndpoint") or "")
        path, document = predictions.question(name, str(wanted["testData"]), own)
        answered = await _asked(await _address(live, cluster), path, document)
        if answered.code >= 400:
            raise UserError(f"{path} returns {answered.code}: {answered.body[:200].decode(errors='replace')}")
        expected = predictions.read(expected_text, "expectedOutput") if expected_text else None
    except ArgosyError as error:
        return {"success": False, "message": redact(str(error))[:300]}
    answer = answered.document()
    told = {"actualOutput": redact(predictions.shown(answer)), "expectedOutput": predictions.shown(expected_text)}
    if not expected_text:
        return {**told, "success": True, "message": "the model responds"}
    apart, allowed = predictions.distance(expected, answer), float(wanted.get("tolerance") or 0.01)
    good = apart <= allowed
    word = "matches the expected output" if good else "differs from the expected output"
    said = f"the prediction {word} (tolerance {allowed:g})"
    return {**told, "success": good, "difference": f"{apart:g}", "message": said}


async def _address(live: Manifest, cluster: Cluster) -> str:
    found = platforms.address(live)
    if not found and live["kind"] == platforms.DEPLOYMENT.kind:
        found = await _service(live, cluster)
    try:
        host = urlsplit(found).hostname or ""
    except ValueError as error:
        raise UserError(f"{found[:60]!r} is not a model address; check the status of the model") from error
    if not host:
        raise UserError(f"{live['kind']} {live['metadata']['name']} has no address; create a Service for it")
    if _is_of_the_machine(host):
        raise UserError(f"{host} is not a model address; check the status of the model")
    return found


async def _service(live: Manifest, cluster: Cluster) -> str:
    """URL of the first Service in its namespace that selects its Pods."""
    template = ((live.get("spec") or {}).get("template") or {}).get("metadata") or {}
    labels, namespace = template.get("labels") or {}, live["metadata"]["namespace"]
    for each in (await cluster.list(GroupKind("", "Service"), namespace=namespace)).items:
        selector = (each.get("spec") or {}).get("selector") or {}
        if selector and selector.items() <= labels.items():
            port = next((int(port["port"]) for port in each["spec"].get("ports") or ()), 80)
            return f"http://{each['metadata']['name']}.{namespace}.svc:{port}"
    return ""


def _is_of_the_machine(host: str) -> bool:
    """True for metadata addresses of clouds: a forged status must not make the operator fetch credentials there."""
    try:
        return ipaddress.ip_address(host).is_link_local
    except ValueError:
        return host in ("metadata.google.internal", "metadata")


async def _asked(address: str, path: str, document: Any = None) -> Answered:
    if not path.startswith("/"):
        raise UserError(f"{path[:80]!r} is not a URL path; start it with a slash")
    return await asyncio.to_thread(ask, address + path, document, seconds=SECONDS)
