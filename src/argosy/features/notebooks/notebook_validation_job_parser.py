"""A NotebookValidationJob as a value.

In: a live manifest. Out: a Job with the documented defaults. Never: raises, whatever the manifest contains
(`spec_validation` reports errors); changes user fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from argosy.annotations import RE_RUN
from argosy.errors import UserError
from argosy.features.notebooks.go_durations import parse_duration
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NOTEBOOK_JOB

API_VERSION: Final = "mlops.mlops.dev/v1alpha1"
DEFAULT_IMAGE: Final = "quay.io/jupyter/minimal-notebook:latest"
DEFAULT_TIMEOUT_SECONDS, DEFAULT_BUILD_TIMEOUT_SECONDS, DEFAULT_MODEL_TIMEOUT_SECONDS = 1800.0, 900.0, 300.0
VOLUME_SOURCES: Final = ("persistentVolumeClaim", "configMap", "secret", "emptyDir")

Fields = Mapping[str, Any]

DEFAULT_COMPARISON: Final[Fields] = {
    "strategy": "normalized", "floatingPointTolerance": "0.0001", "ignoreTimestamps": True,
    "ignoreExecutionCount": True, "customTimestampPatterns": [], "ignoreOutputTypes": [],
}  # fmt: skip
DEFAULT_VALIDATION: Final[Fields] = {
    "level": "development", "strictMode": False, "failOnStderr": False, "failOnWarnings": False,
    "detectSilentFailures": True, "requireExplicitExitCodes": False, "checkOutputTypes": False,
    "verifyAssertions": False, "educationalMode": False, "expectedOutputs": [],
}  # fmt: skip


@dataclass(frozen=True)
class NotebookLocation:
    """Location of a notebook in Git."""

    url: str
    ref: str
    path: str
    secret: str = ""  # name of the Secret with credentials, in the job's namespace


@dataclass(frozen=True)
class JobVolume:
    name: str
    kind: str  # one of SOURCES; "" if none or several are set
    source: Fields = field(default_factory=dict)


@dataclass(frozen=True)
class JobMount:
    volume: str
    path: str
    sub_path: str = ""
    read_only: bool = False


@dataclass(frozen=True)
class JobRetryPolicy:
    on: str = "infrastructure"  # or `any`
    max_retries: int = 3
    backoff: float = 60.0  # seconds before the first retry

    def compute_delay(self, retry: int) -> float:
        """Seconds before a retry, counted from 1: 1, 2, 4 minutes, unless the job sets another backoff."""
        return self.backoff * 2.0 ** (retry - 1)


@dataclass(frozen=True)
class BuildConfig:
    strategy: str = "s2i"
    base_image: str = DEFAULT_IMAGE
    dockerfile: str = ""
    generates_requirements: bool = True
    requirements: str = ""
    requirements_sources: tuple[str, ...] = ()
    prefers_dockerfile: bool = False
    fallback: str = "warn"
    settings: Fields = field(default_factory=dict)
    timeout: float = DEFAULT_BUILD_TIMEOUT_SECONDS


@dataclass(frozen=True)
class ModelChecks:
    platform: str = "kserve"
    phase: str = "both"
    models: tuple[str, ...] = ()
    prediction: Fields | None = None  # testData, expectedOutput, tolerance
    custom: Fields = field(default_factory=dict)
    timeout: float = DEFAULT_MODEL_TIMEOUT_SECONDS


@dataclass(frozen=True)
class NotebookJob:
    key: ResourceKey
    uid: str
    generation: int
    notebook: NotebookLocation
    golden: NotebookLocation | None = None
    image: str = DEFAULT_IMAGE
    has_own_image: bool = False
    service_account: str = "default"
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    resources: Fields = field(default_factory=dict)
    env: tuple[Fields, ...] = ()
    env_from: tuple[Fields, ...] = ()  # includes `credentials`
    volumes: tuple[JobVolume, ...] = ()
    mounts: tuple[JobMount, ...] = ()
    init_containers: tuple[Fields, ...] = ()
    scheduling: Fields = field(default_factory=dict)  # tolerations, nodeSelector and affinity, as in a Pod
    parameters: Fields = field(default_factory=dict)
    comparison: Fields = field(default_factory=lambda: DEFAULT_COMPARISON)
    validation: Fields = field(default_factory=lambda: DEFAULT_VALIDATION)
    retry: JobRetryPolicy = JobRetryPolicy()
    build: BuildConfig | None = None  # None: no image is built
    models: ModelChecks | None = None  # None: no model is checked
    annotations: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def namespace(self) -> str:
        return self.key.namespace

    @property
    def re_run(self) -> str:
        """Any new value of this annotation requests another run."""
        return self.annotations.get(RE_RUN, "")

    def map_claims(self) -> dict[str, str]:
        """Volume names mapped to claim names, for volumes that are claims."""
        return {
            volume.name: str(volume.source.get("claimName") or "")
            for volume in self.volumes
            if volume.kind == "persistentVolumeClaim"
        }


def read_job(manifest: Manifest) -> NotebookJob:
    metadata, spec = manifest["metadata"], _as_map(manifest.get("spec"))
    pod = _as_map(spec.get("podConfig"))
    image = str(pod.get("containerImage") or "")
    annotations = {str(name): str(value) for name, value in _as_map(metadata.get("annotations")).items()}
    return NotebookJob(
        key=ResourceKey(*NOTEBOOK_JOB, str(metadata.get("namespace") or ""), str(metadata["name"])),
        uid=str(metadata.get("uid") or ""),
        generation=int(metadata.get("generation") or 1),
        notebook=_read_notebook_location(_as_map(spec.get("notebook"))),
        golden=_read_notebook_location(_as_map(spec["goldenNotebook"])) if spec.get("goldenNotebook") else None,
        image=image or DEFAULT_IMAGE,
        has_own_image=bool(image),
        service_account=str(pod.get("serviceAccountName") or "default"),
        timeout=_parse_seconds(spec.get("timeout"), DEFAULT_TIMEOUT_SECONDS),
        resources=_as_map(pod.get("resources")),
        env=_as_maps(pod.get("env")),
        env_from=(*_as_maps(pod.get("envFrom")), *_credentials_to_env_from(pod)),
        volumes=tuple(
            _read_volume(fields) for fields in (*_as_maps(pod.get("volumes")), *_as_maps(spec.get("volumes")))
        ),
        mounts=tuple(read_mount(fields) for fields in _as_maps(pod.get("volumeMounts"))),
        init_containers=_as_maps(pod.get("initContainers")),
        scheduling={name: pod[name] for name in ("tolerations", "nodeSelector", "affinity") if pod.get(name)},
        parameters=_as_map(spec.get("parameters")),
        comparison=_read_comparison(spec, annotations),
        validation={**DEFAULT_VALIDATION, **_as_map(spec.get("validationConfig"))},
        retry=_read_retry_policy(_as_map(spec.get("retryPolicy"))),
        build=_read_build_config(_as_map(pod.get("buildConfig"))),
        models=_read_model_checks(spec.get("modelValidation")),
        annotations=annotations,
        labels={str(name): str(value) for name, value in _as_map(metadata.get("labels")).items()},
    )


def _read_notebook_location(fields: Fields) -> NotebookLocation:
    git = _as_map(fields.get("git"))
    texts = (git.get("url"), git.get("ref"), fields.get("path"), git.get("credentialsSecret"))
    return NotebookLocation(*(str(value or "") for value in texts))


def _credentials_to_env_from(pod: Fields) -> tuple[Fields, ...]:
    """Translate `credentials` to `envFrom` when reading, so that the stored spec stays as in Git."""
    return tuple({"secretRef": {"name": str(name)}} for name in pod.get("credentials") or ())


def _read_volume(fields: Fields) -> JobVolume:
    kinds = [source for source in VOLUME_SOURCES if fields.get(source) is not None]
    kind = kinds[0] if len(kinds) == 1 else ""
    return JobVolume(str(fields.get("name") or ""), kind, _as_map(fields.get(kind)))


def read_mount(fields: Fields) -> JobMount:
    volume, path, sub_path = (str(fields.get(name) or "") for name in ("name", "mountPath", "subPath"))
    return JobMount(volume, path, sub_path, bool(fields.get("readOnly")))


def _read_retry_policy(fields: Fields) -> JobRetryPolicy:
    max_retries = fields.get("maxRetries")
    return JobRetryPolicy(
        # k8s: an unquoted `on` is the key `true` for kubectl and Argo CD, which read YAML 1.1
        on=str(fields.get("on") or fields.get("true") or "infrastructure"),
        max_retries=max_retries if isinstance(max_retries, int) else 3,
        backoff=_parse_seconds(fields.get("backoff"), 60.0),
    )


def _read_build_config(fields: Fields) -> BuildConfig | None:
    if not fields.get("enabled"):
        return None
    return BuildConfig(
        strategy=str(fields.get("strategy") or "s2i"),
        base_image=str(fields.get("baseImage") or DEFAULT_IMAGE),
        dockerfile=str(fields.get("dockerfile") or ""),
        generates_requirements=fields.get("autoGenerateRequirements") is not False,
        requirements=str(fields.get("requirementsFile") or ""),
        requirements_sources=tuple(map(str, fields.get("requirementsSources") or ())),
        prefers_dockerfile=bool(fields.get("preferDockerfile")),
        fallback=str(fields.get("fallbackStrategy") or "warn"),
        settings=_as_map(fields.get("strategyConfig")),
        timeout=_parse_seconds(fields.get("timeout"), DEFAULT_BUILD_TIMEOUT_SECONDS),
    )


def _read_model_checks(fields: Any) -> ModelChecks | None:
    if not isinstance(fields, Mapping) or fields.get("enabled") is False:
        return None
    prediction = fields.get("predictionValidation")
    has_prediction = isinstance(prediction, Mapping) and prediction.get("enabled") is not False
    return ModelChecks(
        platform=str(fields.get("platform") or "kserve"),
        phase=str(fields.get("phase") or "both"),
        models=tuple(map(str, fields.get("targetModels") or ())),
        prediction=_as_map(prediction) if has_prediction else None,
        custom=_as_map(fields.get("customPlatform")),
        timeout=_parse_seconds(fields.get("timeout"), DEFAULT_MODEL_TIMEOUT_SECONDS),
    )


_COMPARISON_ANNOTATIONS: Final = {
    "mlops.dev/comparison-strategy": "strategy",
    "mlops.dev/numeric-tolerance": "floatingPointTolerance",
    "mlops.dev/ignore-timestamps": "ignoreTimestamps",
    "mlops.dev/ignore-execution-count": "ignoreExecutionCount",
    "mlops.dev/ignore-execution-counts": "ignoreExecutionCount",
    "mlops.dev/timestamp-patterns": "customTimestampPatterns",
}


def _read_comparison(spec: Fields, annotations: Mapping[str, str]) -> Fields:
    """Annotations documented by the original operator apply if the spec has no comparisonConfig."""
    if isinstance(spec.get("comparisonConfig"), Mapping):
        return {**DEFAULT_COMPARISON, **spec["comparisonConfig"]}
    settings: dict[str, Any] = {}
    for name, setting in _COMPARISON_ANNOTATIONS.items():
        if name in annotations:
            text = annotations[name].strip()
            settings[setting] = (
                text.lower() == "true" if setting.startswith("ignore")
                else [line.strip() for line in text.splitlines() if line.strip()] if setting.startswith("custom")
                else text
            )  # fmt: skip
    return {**DEFAULT_COMPARISON, **settings}


def _parse_seconds(text: Any, default: float) -> float:
    """Invalid durations are reported by `spec_validation`."""
    try:
        return parse_duration(str(text)) if text else default
    except UserError:
        return default


def _as_map(value: Any) -> Fields:
    return value if isinstance(value, Mapping) else {}


def _as_maps(value: Any) -> tuple[Fields, ...]:
    return tuple(item for item in value if isinstance(item, Mapping)) if isinstance(value, Sequence) else ()
