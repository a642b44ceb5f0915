"""Environment variables that every notebook gets, wherever it runs.

In: a job. Out: names and values. Never: a secret; the job's own `env`, which is added later.
"""

from __future__ import annotations

from typing import Final

from argosy.features.notebooks import go_durations
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob

WORKSPACE: Final = "/workspace"
_VALIDATION_FLAGS: Final = {
    "strictMode": "STRICT_MODE", "failOnStderr": "FAIL_ON_STDERR", "failOnWarnings": "FAIL_ON_WARNINGS",
    "detectSilentFailures": "DETECT_SILENT_FAILURES",
}  # fmt: skip
_CUSTOM_PLATFORM_FIELDS: Final = {
    "apiGroup": "API_GROUP", "resourceType": "RESOURCE_TYPE", "healthCheckEndpoint": "HEALTH_ENDPOINT",
    "predictionEndpoint": "PREDICTION_ENDPOINT",
}  # fmt: skip
_PREDICTION_FIELDS: Final = {"testData": "TEST_DATA", "expectedOutput": "EXPECTED_OUTPUT", "tolerance": "TOLERANCE"}


def build_variables(job: NotebookJob) -> dict[str, str]:
    return {
        "HOME": WORKSPACE,
        "PYTHONUSERBASE": f"{WORKSPACE}/.local",
        "PIP_USER": "1",
        "PIP_NO_CACHE_DIR": "1",
        **_build_validation_variables(job),
        **_build_model_variables(job),
    }


def _build_validation_variables(job: NotebookJob) -> dict[str, str]:
    flags = {f"VALIDATION_{name}": _format_flag(job.validation.get(field)) for field, name in _VALIDATION_FLAGS.items()}
    return {"VALIDATION_LEVEL": str(job.validation.get("level") or "development"), **flags}


def _build_model_variables(job: NotebookJob) -> dict[str, str]:
    models = job.models
    if models is None:
        return {}
    qualified_names = [
        model_name if "/" in model_name else f"{job.namespace}/{model_name}" for model_name in models.models
    ]
    prediction = models.prediction or {}
    variables_by_name = {
        "ENABLED": "true",
        "PLATFORM": models.platform,
        "NAMESPACE": job.namespace,
        "PHASE": models.phase,
        "TARGET_MODELS": ",".join(qualified_names),
        "TARGET_MODELS_ORIGINAL": ",".join(models.models),
        "TARGET_NAMESPACES": ",".join(dict.fromkeys(model_name.partition("/")[0] for model_name in qualified_names)),
        "PREDICTION_ENABLED": _format_flag(models.prediction is not None),
        "TIMEOUT": go_durations.format_duration(models.timeout),
    }
    variables_by_name |= {
        f"PREDICTION_{name}": str(prediction[key]) for key, name in _PREDICTION_FIELDS.items() if prediction.get(key)
    }
    variables_by_name |= {
        f"CUSTOM_{name}": str(models.custom[key])
        for key, name in _CUSTOM_PLATFORM_FIELDS.items()
        if models.custom.get(key)
    }
    return {f"MODEL_VALIDATION_{name}": value for name, value in variables_by_name.items()}


def _format_flag(value: object) -> str:
    return str(bool(value)).lower()
