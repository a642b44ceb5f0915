"""Kinds, labels and annotations of KServe, and names derived from an InferenceService.

In, out: names. Never: I/O.
"""

from __future__ import annotations

from typing import Final

from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.resource_key import GroupKind

SERVING_RUNTIME: Final = GroupKind("serving.kserve.io", "ServingRuntime")
CLUSTER_SERVING_RUNTIME: Final = GroupKind("serving.kserve.io", "ClusterServingRuntime")

DEPLOYMENT_MODE_ANNOTATION: Final = "serving.kserve.io/deploymentMode"
STOP_ANNOTATION: Final = "serving.kserve.io/stop"
DISABLE_AUTO_UPDATE_ANNOTATION: Final = "serving.kserve.io/disable-auto-update"
# label with the name of the InferenceService that a Pod belongs to
INFERENCE_SERVICE_LABEL: Final = "serving.kserve.io/inferenceservice"
COMPONENT_LABEL: Final = "component"
APP_LABEL: Final = "app"
VISIBILITY_LABEL: Final = "networking.kserve.io/visibility"
KSERVE_CONTAINER: Final = "kserve-container"

STANDARD_MODE: Final = "RawDeployment"  # newer KServe calls it Standard, and accepts both
MODES_WITH_REVISIONS: Final = ("Serverless", "Knative")
COMPONENTS: Final = ("predictor", "transformer", "explainer")


def read_deployment_mode(service: Manifest) -> str:
    return get_annotation(service, DEPLOYMENT_MODE_ANNOTATION) or STANDARD_MODE


def has_revisions(service: Manifest) -> bool:
    return read_deployment_mode(service) in MODES_WITH_REVISIONS


def is_stopped(service: Manifest) -> bool:
    return (get_annotation(service, STOP_ANNOTATION) or "").lower() == "true"


def should_keep_runtime(service: Manifest) -> bool:
    """kserve: a ready service with disable-auto-update keeps its runtime until its own spec changes."""
    status = service.get("status") or {}
    is_ready = any(
        condition["type"] == "Ready" and condition["status"] == "True" for condition in status.get("conditions") or ()
    )
    is_observed = status.get("observedGeneration") == service["metadata"].get("generation")
    return (
        is_ready and is_observed and (get_annotation(service, DISABLE_AUTO_UPDATE_ANNOTATION) or "").lower() == "true"
    )


def list_components(service: Manifest) -> list[str]:
    return [component for component in COMPONENTS if (service.get("spec") or {}).get(component)]


def build_component_name(service: Manifest, component: str) -> str:
    """Return the name of a component's Deployment and Service."""
    return f"{service['metadata']['name']}-{component}"


def build_cluster_local_host(service: Manifest, component: str) -> str:
    return f"{build_component_name(service, component)}.{service['metadata']['namespace']}.svc.cluster.local"
