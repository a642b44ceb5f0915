"""Manifests of a model, its Pods and its training notebook. In: changes. Out: manifests. Never: uses a cluster."""

from __future__ import annotations

from typing import Any

from argosy.kube.controller import InformerCache

TIME = "2026-11-15T12:00:00Z"
DIGEST = "sha256:" + "a" * 64


def service(**status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {
            "name": "fraud",
            "namespace": "ml",
            "annotations": {"argocd.argoproj.io/tracking-id": "frauds:serving.kserve.io/InferenceService:ml/fraud"},
        },
        "spec": {"predictor": {"model": {"modelFormat": {"name": "sklearn"}, "storageUri": "pvc://models/fraud"}}},
        "status": {
            "url": "http://fraud.ml.example.com",
            "servingRuntimeName": "sklearn",
            "conditions": [
                {"type": "IngressReady", "status": "True"},
                {"type": "Ready", "status": "True", "lastTransitionTime": TIME},
            ],
            "modelStatus": {"states": {"activeModelState": "Loaded", "targetModelState": "Loaded"}},
            **status,
        },
    }


def pod(*, init: dict[str, Any] | None = None, main: dict[str, Any] | None = None) -> dict[str, Any]:
    is_ready = main is None
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "fraud-predictor-1",
            "namespace": "ml",
            "labels": {"serving.kserve.io/inferenceservice": "fraud"},
        },
        "status": {
            "phase": "Running",
            "startTime": "2026-11-15T12:30:00Z",
            "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}],
            "initContainerStatuses": [
                {"name": "storage-initializer", "state": init or {"terminated": {"exitCode": 0}}}
            ],
            "containerStatuses": [
                {"name": "kserve-container", "ready": is_ready, "state": main or {"running": {"startedAt": TIME}}}
            ],
        },
    }


def job(**status: Any) -> dict[str, Any]:
    files = [{"path": "/mnt/models/fraud/model.pkl", "digest": DIGEST}]
    attempt = {
        "number": 2, "generation": 1, "phase": "Succeeded", "gitCommit": "c" * 40, "startTime": "2026-11-15T11:59:58Z",
        "completionTime": TIME, "artefacts": files,
    }  # fmt: skip
    return {
        "apiVersion": "mlops.mlops.dev/v1alpha1",
        "kind": "NotebookValidationJob",
        "metadata": {"name": "train", "namespace": "ml", "generation": 1, "uid": "12345678-90"},
        "spec": {
            "notebook": {"path": "train.ipynb", "git": {"url": "https://example.com/n.git", "ref": "main"}},
            "parameters": {"alpha": 0.5},
            "podConfig": {
                "volumes": [{"name": "m", "persistentVolumeClaim": {"claimName": "models"}}],
                "volumeMounts": [{"name": "m", "mountPath": "/mnt/models"}],
            },
        },
        "status": {
            "phase": "Succeeded", "message": "Validation completed: 2/2 cells succeeded (100.0% success rate)",
            "startTime": "2026-11-15T11:59:58Z", "completionTime": TIME, "gitCommit": "c" * 40,
            "attempts": [{"number": 1, "generation": 1, "phase": "Failed", "message": "it broke"}, attempt],
            "results": [
                {"cellIndex": 0, "status": "Skipped"},
                {"cellIndex": 1, "status": "Success", "executionTime": "0.1s", "output": "<b>7</b>"},
                {"cellIndex": 2, "status": "Success", "executionTime": "0.2s"},
            ],
            "triggers": [
                {"generation": 1, "attempt": 2, "action": "restart", "kind": "InferenceService", "namespace": "ml",
                 "name": "fraud", "status": "Succeeded", "time": TIME},
                {"generation": 1, "attempt": 1, "action": "restart", "kind": "InferenceService", "name": "other"},
            ],
            **status,
        },
    }  # fmt: skip


def cache(*manifests: dict[str, Any]) -> InformerCache:
    filled = InformerCache()
    for manifest in manifests:
        filled.put(manifest)
    return filled
