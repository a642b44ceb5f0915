"""Environment variables that every notebook gets, wherever it runs.

In: a job. Out: names and values. Never: a secret; the job's own `env`, which is added later.
"""

from __future__ import annotations

from typing import Final

from argosy.features.notebooks import durations
from argosy.features.notebooks.job import Job

WORKSPACE: Final = "/workspace"
_FLAGS: Final = {
    "strictMode": "STRICT_MODE", "failOnStderr": "FAIL_ON_STDERR", "failOnWarnings": "FAIL_ON_WARNINGS",
    "detectSilentFailures": "DETECT_SILENT_FAILURES",
}  # fmt: skip
_CUSTOM: Final = {
    "apiGroup": "API_GROUP", "resourceType": "RESOURCE_TYPE", "healthCheckEndpoint": "HEALTH_ENDPOINT",
    "predictionEndpoint": "PREDICTION_ENDPOINT",
}  # fmt: skip
_PREDICTION: Final = {"testData": "TEST_DATA", "expectedOutput": "EXPECTED_OUTPUT", "tolerance": "TOLERANCE"}


def variables(job: Job) -> dict[str, str]:
    return {
        "HOME": WORKSPACE,
        "PYTHONUSERBASE": f"{WORKSPACE}/.local",
        "PIP_USER": "1",
        "PIP_NO_CACHE_DIR": "1",
        **_of_validation(job),
        **_of_models(job),
    }


def _of_validation(job: Job) -> dict[str, str]:
    flags = {f"VALIDATION_{name}": _flag(job.validation.get(field)) for field, name in _FLAGS.items()}
    return {"VALIDATION_LEVEL": str(job.validation.get("level") or "development"), **flags}


def _of_models(job: Job) -> dict[str, str]:
    models = job.models
    if models is None:
        return {}
    full = [each if "/" in each else f"{job.namespace}/{each}" for each in models.models]
    prediction = models.prediction or {}
    found = {
        "ENABLED": "true",
        "PLATFORM": models.platform,
        "NAMESPACE": job.namespace,
        "PHASE": models.phase,
        "TARGET_MODELS": ",".join(full),
        "TARGET_MODELS_ORIGINAL": ",".join(models.models),
        "TARGET_NAMESPACES": ",".join(dict.fromkeys(each.partition("/")[0] for each in full)),
        "PREDICTION_ENABLED": _flag(models.prediction is not None),
        "TIMEOUT": durations.written(models.timeout),
    }
    found |= {f"PREDICTION_{name}": str(prediction[key]) for key, name in _PREDICTION.items() if prediction.get(key)}
    found |= {f"CUSTOM_{name}": str(models.custom[key]) for key, name in _CUSTOM.items() if models.custom.get(key)}
    return {f"MODEL_VALIDATION_{name}": value for name, value in found.items()}


def _flag(value: object) -> str:
    return str(bool(value)).lower()
