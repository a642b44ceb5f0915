"""Kinds, labels and annotations of KServe, and names derived from an InferenceService.

In, out: names. Never: I/O.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, annotation

INFERENCE_SERVICE: Final = GroupKind("serving.kserve.io", "InferenceService")
SERVING_RUNTIME: Final = GroupKind("serving.kserve.io", "ServingRuntime")
CLUSTER_SERVING_RUNTIME: Final = GroupKind("serving.kserve.io", "ClusterServingRuntime")
SERVICE: Final = GroupKind("", "Service")
SECRET: Final = GroupKind("", "Secret")
INGRESS: Final = GroupKind("networking.k8s.io", "Ingress")

DEPLOYMENT_MODE: Final = "serving.kserve.io/deploymentMode"
STOP: Final = "serving.kserve.io/stop"
KEEPS_RUNTIME: Final = "serving.kserve.io/disable-auto-update"
# label with the name of the InferenceService that a Pod belongs to
OF_SERVICE: Final = "serving.kserve.io/inferenceservice"
COMPONENT: Final = "component"
APP: Final = "app"
VISIBILITY: Final = "networking.kserve.io/visibility"
CONTAINER: Final = "kserve-container"

STANDARD: Final = "RawDeployment"  # newer KServe calls it Standard, and accepts both
REVISIONED: Final = ("Serverless", "Knative")
COMPONENTS: Final = ("predictor", "transformer", "explainer")


def mode_of(service: Manifest) -> str:
    return annotation(service, DEPLOYMENT_MODE) or STANDARD


def has_revisions(service: Manifest) -> bool:
    return mode_of(service) in REVISIONED


def is_stopped(service: Manifest) -> bool:
    return (annotation(service, STOP) or "").lower() == "true"


def keeps_runtime(service: Manifest) -> bool:
    """kserve: a ready service with disable-auto-update keeps its runtime until its own spec changes."""
    status = service.get("status") or {}
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
    is_seen = status.get("observedGeneration") == service["metadata"].get("generation")
    return is_ready and is_seen and (annotation(service, KEEPS_RUNTIME) or "").lower() == "true"


def components_of(service: Manifest) -> list[str]:
    return [each for each in COMPONENTS if (service.get("spec") or {}).get(each)]


def part_name(service: Manifest, component: str) -> str:
    """Return the name of a component's Deployment and Service."""
    return f"{service['metadata']['name']}-{component}"


def inner_host(service: Manifest, component: str) -> str:
    return f"{part_name(service, component)}.{service['metadata']['namespace']}.svc.cluster.local"
