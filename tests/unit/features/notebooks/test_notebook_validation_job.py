"""NotebookValidationJob: spec parsing, spec validation and durations."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.errors import UserError
from argosy.features.notebooks.go_durations import format_duration, parse_duration
from argosy.features.notebooks.notebook_validation_job_parser import (
    DEFAULT_IMAGE,
    JobMount,
    JobRetryPolicy,
    JobVolume,
    read_job,
)
from argosy.features.notebooks.spec_validation import find_problems, list_warnings
from argosy.kube.objects import Manifest, read_yaml

NOTEBOOK = {"git": {"url": "https://example.org/a.git", "ref": "main"}, "path": "train.ipynb"}
CLAIM = {"name": "models", "persistentVolumeClaim": {"claimName": "ml-model-storage"}}
MOUNT = {"name": "models", "mountPath": "/mnt/models"}


def job(pod: dict[str, Any] | None = None, annotations: dict[str, str] | None = None, **spec: Any) -> Manifest:
    metadata = {"name": "train", "namespace": "ml", "uid": "u1", "generation": 2, "annotations": annotations or {}}
    job_spec = {"notebook": NOTEBOOK, "podConfig": {"containerImage": "image:1", **(pod or {})}, **spec}
    return {
        "apiVersion": "mlops.mlops.dev/v1alpha1",
        "kind": "NotebookValidationJob",
        "metadata": metadata,
        "spec": job_spec,
    }


def list_problems(manifest: Manifest, *, fatal: bool = True) -> list[str]:
    return [str(problem) for problem in find_problems(manifest) if problem.fatal is fatal]


# -- parsing -----------------------------------------------------------------------------------------------------------


def test_minimal_job_has_the_documented_defaults() -> None:
    notebook_job = read_job({**job(), "spec": {"notebook": NOTEBOOK, "podConfig": {}}})
    assert (notebook_job.image, notebook_job.has_own_image, notebook_job.service_account) == (
        DEFAULT_IMAGE,
        False,
        "default",
    )
    assert (notebook_job.timeout, notebook_job.retry) == (1800.0, JobRetryPolicy("infrastructure", 3, 60.0))
    assert (notebook_job.build, notebook_job.models, notebook_job.golden) == (None, None, None)
    assert (notebook_job.comparison["strategy"], notebook_job.validation["level"]) == ("normalized", "development")


def test_volumes_outside_pod_config_are_used_with_a_warning() -> None:
    manifest = job({"volumeMounts": [MOUNT]}, volumes=[CLAIM])
    assert read_job(manifest).volumes == (
        JobVolume("models", "persistentVolumeClaim", {"claimName": "ml-model-storage"}),
    )
    assert read_job(manifest).mounts == (JobMount("models", "/mnt/models"),)
    assert read_job(manifest).map_claims() == {"models": "ml-model-storage"}
    assert list_problems(manifest) == []
    (problem,) = list_problems(manifest, fatal=False)
    assert "move it to spec.podConfig.volumes" in problem


def test_job_without_image_gets_a_warning_that_names_the_default_image() -> None:
    manifest = {**job(), "spec": {"notebook": NOTEBOOK, "podConfig": {}}}
    assert list_problems(manifest) == []
    assert DEFAULT_IMAGE in list_problems(manifest, fatal=False)[0]


def test_credentials_are_added_to_env_from_and_the_manifest_is_unchanged() -> None:
    manifest = job({"credentials": ["s3"], "envFrom": [{"configMapRef": {"name": "c"}}]})
    assert read_job(manifest).env_from == ({"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s3"}})
    assert manifest["spec"]["podConfig"]["credentials"] == ["s3"]


@pytest.mark.parametrize("key", ["on", "true"])
def test_retry_policy_is_read_from_on_and_from_true(key: str) -> None:
    assert read_job(job(retryPolicy={key: "any", "maxRetries": 0, "backoff": "1s"})).retry == JobRetryPolicy(
        "any", 0, 1.0
    )


def test_unquoted_on_in_yaml_is_read_as_the_retry_policy() -> None:
    assert read_job(job(retryPolicy=read_yaml("{on: any}", where="x"))).retry.on == "any"


def test_retry_delays_double() -> None:
    assert [JobRetryPolicy().compute_delay(retry) for retry in (1, 2, 3)] == [60.0, 120.0, 240.0]


def test_comparison_annotations_apply_only_without_comparison_config() -> None:
    annotations = {
        "mlops.dev/comparison-strategy": "exact", "mlops.dev/numeric-tolerance": "1e-6",
        "mlops.dev/ignore-timestamps": "false", "mlops.dev/timestamp-patterns": "a+\nb+\n",
    }  # fmt: skip
    comparison = read_job(job(annotations=annotations)).comparison
    assert (comparison["strategy"], comparison["floatingPointTolerance"], comparison["ignoreTimestamps"]) == (
        "exact",
        "1e-6",
        False,
    )
    assert comparison["customTimestampPatterns"] == ["a+", "b+"]
    assert read_job(job(annotations=annotations, comparisonConfig={})).comparison["strategy"] == "normalized"


def test_disabled_builds_and_model_checks_are_none() -> None:
    job_without_checks = read_job(job({"buildConfig": {"enabled": False}}, modelValidation={"enabled": False}))
    assert (job_without_checks.build, job_without_checks.models) == (None, None)
    job_without_prediction = read_job(
        job(modelValidation={"targetModels": ["m"], "predictionValidation": {"enabled": False}})
    )
    assert job_without_prediction.models is not None
    assert job_without_prediction.models.prediction is None


# -- validation --------------------------------------------------------------------------------------------------------

WRONG: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"volumes": [CLAIM, CLAIM]}, {}, "spec.podConfig.volumes[1].name: duplicate volume 'models'"),
    ({"volumes": [{"name": "a"}]}, {}, "spec.podConfig.volumes[0]: volume 'a' has no source"),
    ({"volumes": [{"name": "a", "emptyDir": {}, "secret": {"secretName": "s"}}]}, {}, "has secret and emptyDir"),
    ({"volumes": [{"name": "workspace", "emptyDir": {}}]}, {}, "'workspace' is reserved for a volume of every run"),
    ({"volumes": [{"name": "jovyan-home", "emptyDir": {}}]}, {}, "'jovyan-home' is reserved for a volume of every run"),
    ({"volumes": [{"name": "git-clone", "emptyDir": {}}]}, {}, "'git-clone' is reserved for a volume of every run"),
    ({"volumes": [CLAIM]}, {"volumes": [CLAIM]}, "spec.volumes[0].name: duplicate volume 'models'"),
    ({"volumeMounts": [MOUNT]}, {}, "spec.podConfig.volumeMounts[0].name: volume 'models' not found"),
    ({"volumes": [CLAIM], "volumeMounts": [MOUNT, MOUNT]}, {}, "/mnt/models is mounted twice"),
    ({"volumes": [CLAIM], "volumeMounts": [{**MOUNT, "mountPath": "/workspace"}]}, {}, "use another path"),
    ({"volumes": [CLAIM], "volumeMounts": [{**MOUNT, "subPath": "../x"}]}, {}, "points outside of its volume"),
    ({"resources": {"limits": {"memory": "4 gigs"}}}, {}, "spec.podConfig.resources.limits.memory: '4 gigs' is no"),
    ({"buildConfig": {"enabled": True, "timeout": "soon"}}, {}, "buildConfig.timeout: invalid duration 'soon'"),
    (
        {"buildConfig": {"enabled": True, "strategy": "kaniko"}},
        {},
        "unknown build strategy 'kaniko'; choose s2i or tekton",
    ),
    ({}, {"timeout": "0s"}, "spec.timeout: must be greater than zero"),
    ({}, {"comparisonConfig": {"customTimestampPatterns": ["("]}}, "customTimestampPatterns[0]: '(' is not a regular"),
    ({}, {"notebook": {**NOTEBOOK, "path": "../../etc/a.ipynb"}}, "is outside of the repository"),
    ({}, {"parameters": {"learning-rate": 1}}, "spec.parameters[learning-rate]: is not a Python identifier"),
    ({}, {"parameters": {"false": 7}}, "spec.parameters[false]: is how YAML reads y, n, yes, no, on or off"),
    ({}, {"modelValidation": {"targetModels": ["a/b/c"]}}, "'a/b/c' is not a model name"),
    ({}, {"modelValidation": {"targetModels": ["a/"]}}, "'a/' is not a model name"),
    ({}, {"modelValidation": {"targetModels": ["other/m"]}}, "'other/m' is in another namespace"),
]


@pytest.mark.parametrize(("pod", "spec", "said"), WRONG, ids=[message for _, _, message in WRONG])
def test_invalid_spec_is_reported_with_its_field_path(pod: dict[str, Any], spec: dict[str, Any], said: str) -> None:
    problems = list_problems(job(pod, **spec))
    assert len(problems) >= 1
    assert said in problems[0]


def test_job_without_a_spec_reports_the_missing_git_url() -> None:
    bare = {name: value for name, value in job().items() if name != "spec"}
    assert list_problems(bare)[0] == "spec.notebook.git.url: is required; set the notebook to run"


def test_valid_job_has_no_warnings() -> None:
    pod = {"volumes": [CLAIM], "volumeMounts": [MOUNT], "resources": {"limits": {"memory": "4Gi", "cpu": "500m"}}}
    assert list_warnings(job(pod, goldenNotebook=NOTEBOOK, modelValidation={"targetModels": ["m", "ml/n"]})) == []


@pytest.mark.parametrize("junk", [None, 1, "x", [], [1], {"git": 1}, {"volumes": "x"}])
def test_read_job_accepts_malformed_specs(junk: Any) -> None:
    for field in ("spec", "notebook", "podConfig", "retryPolicy", "modelValidation", "comparisonConfig", "parameters"):
        spec = junk if field == "spec" else {"notebook": NOTEBOOK, "podConfig": {}, field: junk}
        read_job({**job(), "spec": spec})


# -- durations ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("1h30m", 5400), ("250ms", 0.25), ("1.5h", 5400), ("9999h", 604800)]
)
def test_parse_duration_returns_seconds_capped_at_one_week(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "5", "m", "5 m", "-5m", "5d", "٣s", "5m!"])
def test_invalid_durations_are_rejected(text: str) -> None:
    with pytest.raises(UserError, match="invalid duration"):
        parse_duration(text)


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (1.2345, "1.234s"), (60, "1m"), (3661, "1h1m1s")])
def test_durations_are_formatted_like_go(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text
