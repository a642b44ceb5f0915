"""Model serving platforms: the kind of a model on each platform, and its readiness.

In: the name of a platform; a live manifest. Out: kinds, a version, why a model is not ready. Never: talks to a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from argosy.features.notebooks.job import ModelChecks
from argosy.kube.client import Catalog
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

SERVICE: Final = GroupKind("serving.kserve.io", "InferenceService")
DEPLOYMENT: Final = GroupKind("apps", "Deployment")
KINDS: Final[Mapping[str, GroupKind]] = {
    "kserve": SERVICE,
    "openshift-ai": SERVICE,
    "vllm": DEPLOYMENT,
    "torchserve": DEPLOYMENT,
    "tensorflow-serving": DEPLOYMENT,
    "triton": DEPLOYMENT,
    "ray-serve": GroupKind("ray.io", "RayService"),
    "seldon": GroupKind("machinelearning.seldon.io", "SeldonDeployment"),
    "bentoml": GroupKind("serving.yatai.ai", "BentoDeployment"),
}


# Kinds that distinguish platforms with the same model kind
BESIDE: Final[Mapping[str, GroupKind]] = {
    "openshift-ai": GroupKind("datasciencecluster.opendatahub.io", "DataScienceCluster"),
}


def kind_for(asked: ModelChecks, catalog: Catalog) -> GroupKind | None:
    """None if the platform is not installed."""
    if asked.platform != "custom":
        kind = KINDS[asked.platform]
        return kind if kind in catalog and BESIDE.get(asked.platform, kind) in catalog else None
    group, plural = str(asked.custom.get("apiGroup") or ""), str(asked.custom.get("resourceType") or "").lower()
    group = group.partition("/")[0]
    for kind, info in catalog.items():
        if kind.group == group and plural in (info.plural, kind.kind.lower()):
            return kind
    return None


def trouble(live: Manifest) -> str:
    """Why the model is not ready; "" if it is."""
    status, metadata = live.get("status") or {}, live["metadata"]
    observed = status.get("observedGeneration")
    if observed is not None and int(observed) < int(metadata.get("generation") or 0):
        return "its controller has not observed the current spec yet"
    if live["kind"] == DEPLOYMENT.kind:
        return _deployment(live, status)
    if live["kind"] == "RayService":
        said = status.get("serviceStatus")
        return "" if said == "Running" else f"its service is {said or 'not started'}"
    if live["kind"] == "SeldonDeployment" and status.get("state"):
        return "" if status["state"] == "Available" else f"it is {status['state']}: {status.get('description', '')}"
    ready = _condition(status, "Ready")
    if ready.get("status") != "True":
        return str(ready.get("message") or ready.get("reason") or "condition Ready is not True")
    return _transition(status)


def _deployment(live: Manifest, status: Manifest) -> str:
    wanted, there = int((live.get("spec") or {}).get("replicas", 1)), int(status.get("availableReplicas") or 0)
    if there >= 1 and there >= min(wanted, 1):
        return ""
    return str(_condition(status, "Available").get("message") or f"{there} of {wanted} replicas are available")


def _transition(status: Manifest) -> str:
    """kserve: a service can be ready with the previous model while the new one does not load."""
    model = status.get("modelStatus") or {}
    if model.get("transitionStatus") in ("BlockedByFailedLoad", "InvalidSpec"):
        failure = model.get("lastFailureInfo") or {}
        return str(failure.get("message") or f"its model is {model['transitionStatus']}")
    return ""


def version(live: Manifest) -> str:
    status = live.get("status") or {}
    predictor = (status.get("components") or {}).get("predictor") or {}
    if revision := predictor.get("latestReadyRevision") or predictor.get("latestCreatedRevision"):
        return str(revision)
    template = ((live.get("spec") or {}).get("template") or {}).get("spec") or {}
    image = next((str(each.get("image") or "") for each in template.get("containers") or ()), "")
    return image.rpartition("/")[2] or str(live["metadata"].get("generation") or "")


def address(live: Manifest) -> str:
    """URL of the model from its status; "" if it has none."""
    status = live.get("status") or {}
    inner = (status.get("address") or {}).get("url")
    return str(status.get("url") or inner or "").rstrip("/")


def _condition(status: Manifest, name: str) -> Mapping[str, Any]:
    found = (each for each in status.get("conditions") or () if each.get("type") == name)
    return next(found, {})
