"""Facts about a served model.

In: an InferenceService. Out: a ServedModel. Never: I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from argosy.annotations import INSTANCE_LABEL, TRACKING_ID
from argosy.kube.objects import Manifest, get_annotation

RUNTIME_NOT_RECOGNIZED: Final = "RuntimeNotRecognized"
TEXT_FORMATS: Final = ("vllm", "huggingface", "tgis", "caikit", "pytorch-llm")


@dataclass(frozen=True)
class ServedModel:
    name: str
    namespace: str
    ready: str  # True, False or Unknown
    why: str  # reason if it is not ready
    url: str
    runtime: str
    app: str  # the Application that delivers it
    format: str
    source: str
    protocol: str  # v1, v2, or empty if not set
    has_revisions: bool

    @property
    def is_ready(self) -> bool:
        return self.ready == "True"

    @property
    def is_text(self) -> bool:
        return self.format.lower() in TEXT_FORMATS

    def to_wire(self) -> dict[str, Any]:
        return {
            "name": self.name, "namespace": self.namespace, "ready": self.ready, "why": self.why, "url": self.url,
            "runtime": self.runtime, "application": self.app, "format": self.format, "source": self.source,
        }  # fmt: skip


def read_served_model(service: Manifest) -> ServedModel:
    status, metadata = service.get("status") or {}, service["metadata"]
    predictor = (service.get("spec") or {}).get("predictor") or {}
    model = predictor.get("model") or {}
    ready: Manifest = next(
        (condition for condition in status.get("conditions") or () if condition.get("type") == "Ready"), {}
    )
    failure = (status.get("modelStatus") or {}).get("lastFailureInfo") or {}
    is_ready = ready.get("status") == "True"
    runtime = status.get("servingRuntimeName") or status.get("clusterServingRuntimeName") or model.get("runtime")
    mode = status.get("deploymentMode") or get_annotation(service, "serving.kserve.io/deploymentMode") or ""
    storage = model.get("storage") or {}
    message = (
        describe_invalid_spec(service) or ready.get("message") or failure.get("message") or ready.get("reason") or ""
    )
    return ServedModel(
        str(metadata["name"]),
        str(metadata.get("namespace") or ""),
        str(ready.get("status") or "Unknown"),
        "" if is_ready else str(message),
        str(status.get("url") or ""),
        str(runtime or ("" if model else "custom container")),
        _read_application_name(service),
        str((model.get("modelFormat") or {}).get("name") or ""),
        str(model.get("storageUri") or storage.get("path") or ""),
        str(model.get("protocolVersion") or ""),
        mode in ("Serverless", "Knative"),
    )


def describe_invalid_spec(service: Manifest) -> str:
    """Explain why its spec cannot be served; empty if it can, or if nothing is reported.

    kserve: a missing runtime is only reported as "waiting"; its name is in the spec.
    """
    status = (service.get("status") or {}).get("modelStatus") or {}
    failure = status.get("lastFailureInfo") or {}
    if status.get("transitionStatus") != "InvalidSpec" or not failure.get("reason"):
        return ""
    runtime_name = (((service.get("spec") or {}).get("predictor") or {}).get("model") or {}).get("runtime")
    message = str(failure.get("message") or "")
    if failure["reason"] == RUNTIME_NOT_RECOGNIZED and runtime_name:
        namespace = service["metadata"].get("namespace") or "default"
        message = (
            f"ServingRuntime {runtime_name} not found in namespace {namespace}, and no ClusterServingRuntime "
            "has that name"
        )
    return f"{failure['reason']}: {message}" if message else str(failure["reason"])


def _read_application_name(service: Manifest) -> str:
    tracked = get_annotation(service, TRACKING_ID) or ""
    return tracked.partition(":")[0] or str((service["metadata"].get("labels") or {}).get(INSTANCE_LABEL) or "")
