"""The documented health rules as a table: an object, its health, and the exact message."""

from __future__ import annotations

from typing import Any, NamedTuple

Manifest = dict[str, Any]


class Row(NamedTuple):
    says: str  # description of the row
    manifest: Manifest
    health: str
    message: str


class Condition(NamedTuple):
    type: str
    status: str
    message: str | None = None


def with_status(api_version: str, kind: str, status: Any, spec: Any = None, generation: int = 0) -> Manifest:
    manifest: Manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "it", "namespace": "models"}}
    if generation:
        manifest["metadata"]["generation"] = generation
    if spec is not None:
        manifest["spec"] = spec
    if status is not None:
        manifest["status"] = status
    return manifest


def with_conditions(api_version: str, kind: str, *conditions: Condition) -> Manifest:
    rows = [{name: text for name, text in condition._asdict().items() if text is not None} for condition in conditions]
    return with_status(api_version, kind, {"conditions": rows})


def service(*conditions: Condition) -> Manifest:
    return with_conditions("serving.kserve.io/v1beta1", "InferenceService", *conditions)


def service_with(status: Any) -> Manifest:
    return with_status("serving.kserve.io/v1beta1", "InferenceService", status)


def runtime(kind: str, status: Any = None) -> Manifest:
    return with_status("serving.kserve.io/v1alpha1", kind, status)


def model(*conditions: Condition) -> Manifest:
    return with_conditions("serving.kserve.io/v1alpha1", "TrainedModel", *conditions)


def notebook(status: Any, *, spec: Any = None, generation: int = 0) -> Manifest:
    return with_status("mlops.mlops.dev/v1alpha1", "NotebookValidationJob", status, spec, generation)


def claim(status: Any, storage_class: str | None = None) -> Manifest:
    spec = {} if storage_class is None else {"storageClassName": storage_class}
    return with_status("v1", "PersistentVolumeClaim", status, spec)


def secret(*conditions: Condition) -> Manifest:
    return with_conditions("external-secrets.io/v1", "ExternalSecret", *conditions)


def cell(index: int, status: str, **more: str) -> dict[str, Any]:
    return {"cellIndex": index, "status": status, **more}


READY, NOT_READY = Condition("Ready", "True"), Condition("Ready", "False")
RUNNING = Condition("Stopped", "False")
STOPPED = service(Condition("Ready", "False", "gone"), Condition("Stopped", "True"))
WAITING = "Waiting for InferenceService"

SERVICE_STRICT = [
    Row("no status", service_with(None), "Progressing", WAITING),
    Row("no conditions", service_with({"url": "http://it"}), "Progressing", WAITING),
    Row("no condition Ready", service(Condition("PredictorReady", "True")), "Progressing", WAITING),
    Row("ready", service(READY), "Healthy", "InferenceService is ready"),
    Row("not ready, with a message", service(Condition("Ready", "False", "no GPU")), "Degraded", "no GPU"),
    Row("not ready, no message", service(NOT_READY), "Degraded", "InferenceService is not ready"),
    Row("unknown, with a message", service(Condition("Ready", "Unknown", "pulling")), "Progressing", "pulling"),
    Row("any other word, with a message", service(Condition("Ready", "Maybe", "hm")), "Progressing", "hm"),
    Row(
        "unknown, no message", service(Condition("Ready", "Unknown")), "Progressing", "InferenceService is progressing"
    ),
    Row("ready, then not stopped", service(READY, RUNNING), "Healthy", "InferenceService is ready"),
    Row("not stopped, then ready", service(RUNNING, READY), "Healthy", "InferenceService is ready"),
    Row("first of two: ready", service(READY, NOT_READY), "Healthy", "InferenceService is ready"),
    Row("first of two: not ready", service(NOT_READY, READY), "Degraded", "InferenceService is not ready"),
]

SERVICE_IGNORED = [
    Row(says, manifest, "Healthy", "InferenceService status ignored for sync")
    for says, manifest in (("no status", service_with(None)), ("ready", service(READY)), ("failed", service(NOT_READY)))
]

PENDING_MODEL = "InferenceService waiting for model: "
SERVICE_LENIENT = [
    Row("no status", service_with(None), "Healthy", "InferenceService created (model pending)"),
    Row("ready", service(READY), "Healthy", "InferenceService is ready"),
    Row("not ready", service(Condition("Ready", "False", "no such key")), "Healthy", PENDING_MODEL + "no such key"),
    Row("not ready, no message", service(NOT_READY), "Healthy", PENDING_MODEL + "pending"),
    Row("no condition Ready", service(RUNNING), "Healthy", "InferenceService status progressing"),
    Row("unknown", service(Condition("Ready", "Unknown")), "Healthy", "InferenceService status progressing"),
    Row("no conditions", service_with({}), "Healthy", "InferenceService status unknown (model pending)"),
]

SERVING_RUNTIME = [
    Row("no status", runtime("ServingRuntime"), "Healthy", "ServingRuntime is configured"),
    Row("any status", runtime("ServingRuntime", {"phase": "Odd"}), "Healthy", "ServingRuntime is configured"),
]
CLUSTER_SERVING_RUNTIME = [
    Row("no status", runtime("ClusterServingRuntime"), "Healthy", "ClusterServingRuntime is configured"),
    Row(
        "any status", runtime("ClusterServingRuntime", {"phase": "x"}), "Healthy", "ClusterServingRuntime is configured"
    ),
]

TRAINED_MODEL = [
    Row("ready", model(READY), "Healthy", "TrainedModel is ready"),
    Row("no status", runtime("TrainedModel"), "Progressing", "Waiting for TrainedModel"),
    Row("no conditions", runtime("TrainedModel", {}), "Progressing", "Waiting for TrainedModel"),
    Row("not ready", model(Condition("Ready", "False", "x")), "Progressing", "Waiting for TrainedModel"),
    Row("unknown", model(Condition("Ready", "Unknown")), "Progressing", "Waiting for TrainedModel"),
]

PENDING_CLAIM = "PVC is pending (likely WaitForFirstConsumer)"
CLAIM = [
    Row("pending", claim({"phase": "Pending"}), "Healthy", PENDING_CLAIM),
    Row("bound", claim({"phase": "Bound"}), "Healthy", "PVC is bound"),
    Row("any other phase", claim({"phase": "Resizing"}), "Progressing", "PVC status: Resizing"),
]
CLAIM_LATER = [
    Row("no status", claim(None), "Progressing", "PVC status unknown"),
    Row("no phase", claim({}), "Progressing", "PVC status unknown"),
    Row("lost", claim({"phase": "Lost"}), "Degraded", "PVC is lost"),
]

MISSING_KEY = 'secrets "source" not found'
EXTERNAL_SECRET = [
    Row(
        "no status",
        with_status("external-secrets.io/v1", "ExternalSecret", None),
        "Progressing",
        "ExternalSecret status unknown",
    ),
    Row("ready", secret(READY), "Healthy", "Secret synced successfully"),
    Row(
        "source not found",
        secret(Condition("Ready", "False", MISSING_KEY)),
        "Progressing",
        f"Waiting for source secret: {MISSING_KEY}",
    ),
    Row("failed", secret(Condition("Ready", "False", "forbidden")), "Degraded", "Sync failed: forbidden"),
    Row("no condition Ready", secret(Condition("Deleted", "False")), "Progressing", "ExternalSecret syncing"),
    Row(
        "no conditions",
        with_status("external-secrets.io/v1", "ExternalSecret", {"refreshTime": None}),
        "Progressing",
        "ExternalSecret initializing",
    ),
]

BEGUN = "Initializing notebook validation"
WHEN = "2026-01-24T22:30:00Z"
MISSING_MODULE = "Cell execution failed: ModuleNotFoundError"
POD = "model-training-job-validation-abc123"
NOTEBOOK = [
    Row("no status", notebook(None), "Progressing", BEGUN),
    Row("no phase", notebook({"retryCount": 0}), "Progressing", BEGUN),
    Row("succeeded", notebook({"phase": "Succeeded"}), "Healthy", "Notebook validation succeeded"),
    Row(
        "succeeded at a time",
        notebook({"phase": "Succeeded", "completionTime": WHEN}),
        "Healthy",
        f"Notebook validation succeeded at {WHEN}",
    ),
    Row("failed, with a message", notebook({"phase": "Failed", "message": "boom"}), "Degraded", "boom"),
    Row("failed, no message", notebook({"phase": "Failed"}), "Degraded", "Notebook validation failed"),
    Row(
        "failed after retries",
        notebook({"phase": "Failed", "message": MISSING_MODULE, "retryCount": 3}),
        "Degraded",
        f"{MISSING_MODULE} (retry 3/3)",
    ),
    Row(
        "failed before any retry",
        notebook({"phase": "Failed", "retryCount": 0}),
        "Degraded",
        "Notebook validation failed (retry 0/3)",
    ),
    Row("running", notebook({"phase": "ValidationRunning"}), "Progressing", "Validating notebook"),
    Row(
        "running, pod without a name",
        notebook({"phase": "ValidationRunning", "validationPodName": ""}),
        "Progressing",
        "Validating notebook",
    ),
    Row(
        "running in a pod",
        notebook({"phase": "ValidationRunning", "validationPodName": POD}),
        "Progressing",
        f"Validating notebook (pod: {POD})",
    ),
    Row("building", notebook({"phase": "Building"}), "Progressing", "Building validation environment"),
    Row("built", notebook({"phase": "BuildComplete"}), "Progressing", "Build complete, preparing validation"),
    *(
        Row(phase.lower(), notebook({"phase": phase}), "Progressing", BEGUN)
        for phase in ("Initializing", "Pending", "Running")
    ),
    Row("any other phase", notebook({"phase": "Queued"}), "Progressing", "Phase: Queued"),
]

CELLS = [
    Row("no status", notebook(None), "Progressing", "Initializing"),
    Row("no phase", notebook({"message": "x"}), "Progressing", "Initializing"),
    Row(
        "succeeded with results",
        notebook({"phase": "Succeeded", "results": [cell(0, "success"), cell(1, "success")]}),
        "Healthy",
        "Succeeded - Executed 2 cells",
    ),
    Row("succeeded without results", notebook({"phase": "Succeeded"}), "Healthy", "Notebook validation succeeded"),
    Row(
        "failed at the first failing cell",
        notebook(
            {
                "phase": "Failed",
                "results": [
                    cell(0, "success"),
                    cell(4, "error", errorType="ValueError"),
                    cell(5, "error", errorType="Late"),
                ],
            }
        ),
        "Degraded",
        "Failed at cell 4: ValueError",
    ),
    Row(
        "failed, no type given",
        notebook({"phase": "Failed", "results": [cell(7, "error")]}),
        "Degraded",
        "Failed at cell 7: Error",
    ),
    Row(
        "failed, no failing cell",
        notebook({"phase": "Failed", "message": "golden differs", "results": [cell(0, "success")]}),
        "Degraded",
        "golden differs",
    ),
    Row("failed, nothing known", notebook({"phase": "Failed"}), "Degraded", "Validation failed"),
    Row(
        "running with results",
        notebook({"phase": "ValidationRunning", "results": [cell(0, "success"), cell(1, "skipped")]}),
        "Progressing",
        "Executing notebook (1 cells completed)",
    ),
    Row("running without results", notebook({"phase": "ValidationRunning"}), "Progressing", "Validating notebook"),
    Row("any other phase", notebook({"phase": "Building"}), "Progressing", "Phase: Building"),
]
