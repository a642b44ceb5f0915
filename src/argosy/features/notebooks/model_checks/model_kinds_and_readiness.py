"""Model serving platforms: the kind of a model on each platform, and its readiness.

In: the name of a platform; a live manifest. Out: kinds, a version, why a model is not ready. Never: talks to a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.features.notebooks.notebook_validation_job_parser import ModelChecks
from argosy.kube.client import Catalog
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import DATA_SCIENCE_CLUSTER, DEPLOYMENT, INFERENCE_SERVICE

MODEL_KINDS: Final[Mapping[str, GroupKind]] = {
    "kserve": INFERENCE_SERVICE,
    "openshift-ai": INFERENCE_SERVICE,
    "vllm": DEPLOYMENT,
    "torchserve": DEPLOYMENT,
    "tensorflow-serving": DEPLOYMENT,
    "triton": DEPLOYMENT,
    "ray-serve": GroupKind("ray.io", "RayService"),
    "seldon": GroupKind("machinelearning.seldon.io", "SeldonDeployment"),
    "bentoml": GroupKind("serving.yatai.ai", "BentoDeployment"),
}


# Kinds that distinguish platforms with the same model kind
PLATFORM_MARKER_KINDS: Final[Mapping[str, GroupKind]] = {
    "openshift-ai": DATA_SCIENCE_CLUSTER,
}


def find_model_kind(checks: ModelChecks, catalog: Catalog) -> GroupKind | None:
    """None if the platform is not installed."""
    if checks.platform != "custom":
        kind = MODEL_KINDS[checks.platform]
        return kind if kind in catalog and PLATFORM_MARKER_KINDS.get(checks.platform, kind) in catalog else None
    group, plural = str(checks.custom.get("apiGroup") or ""), str(checks.custom.get("resourceType") or "").lower()
    group = group.partition("/")[0]
    for kind, info in catalog.items():
        if kind.group == group and plural in (info.plural, kind.kind.lower()):
            return kind
    return None


def find_readiness_error(live: Manifest) -> str:
    """Why the model is not ready; "" if it is."""
    status, metadata = live.get("status") or {}, live["metadata"]
    observed = status.get("observedGeneration")
    if observed is not None and int(observed) < int(metadata.get("generation") or 0):
        return "its controller has not observed the current spec yet"
    if live["kind"] == DEPLOYMENT.kind:
        return _find_deployment_error(live, status)
    if live["kind"] == "RayService":
        service_status = status.get("serviceStatus")
        return "" if service_status == "Running" else f"its service is {service_status or 'not started'}"
    if live["kind"] == "SeldonDeployment" and status.get("state"):
        return "" if status["state"] == "Available" else f"it is {status['state']}: {status.get('description', '')}"
    ready = _find_condition(status, "Ready")
    if ready.get("status") != "True":
        return str(ready.get("message") or ready.get("reason") or "condition Ready is not True")
    return _find_load_error(status)


def _find_deployment_error(live: Manifest, status: Manifest) -> str:
    desired, available = int((live.get("spec") or {}).get("replicas", 1)), int(status.get("availableReplicas") or 0)
    if available >= 1 and available >= min(desired, 1):
        return ""
    return str(
        _find_condition(status, "Available").get("message") or f"{available} of {desired} replicas are available"
    )


def _find_load_error(status: Manifest) -> str:
    """kserve: a service can be ready with the previous model while the new one does not load."""
    model = status.get("modelStatus") or {}
    if model.get("transitionStatus") in ("BlockedByFailedLoad", "InvalidSpec"):
        failure = model.get("lastFailureInfo") or {}
        return str(failure.get("message") or f"its model is {model['transitionStatus']}")
    return ""


def read_version(live: Manifest) -> str:
    status = live.get("status") or {}
    predictor = (status.get("components") or {}).get("predictor") or {}
    if revision := predictor.get("latestReadyRevision") or predictor.get("latestCreatedRevision"):
        return str(revision)
    template = ((live.get("spec") or {}).get("template") or {}).get("spec") or {}
    image = next((str(container.get("image") or "") for container in template.get("containers") or ()), "")
    return image.rpartition("/")[2] or str(live["metadata"].get("generation") or "")


def read_url(live: Manifest) -> str:
    """URL of the model from its status; "" if it has none."""
    status = live.get("status") or {}
    internal_url = (status.get("address") or {}).get("url")
    return str(status.get("url") or internal_url or "").rstrip("/")


def _find_condition(status: Manifest, name: str) -> Mapping[str, Any]:
    conditions = (condition for condition in status.get("conditions") or () if condition.get("type") == name)
    return next(conditions, {})
