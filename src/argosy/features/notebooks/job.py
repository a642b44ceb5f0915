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
from argosy.features.notebooks.durations import seconds_of
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

KIND: Final = GroupKind("mlops.mlops.dev", "NotebookValidationJob")
API_VERSION: Final = "mlops.mlops.dev/v1alpha1"
DEFAULT_IMAGE: Final = "quay.io/jupyter/minimal-notebook:latest"
TIMEOUT, BUILD_TIMEOUT, MODEL_TIMEOUT = 1800.0, 900.0, 300.0
SOURCES: Final = ("persistentVolumeClaim", "configMap", "secret", "emptyDir")

Fields = Mapping[str, Any]

COMPARISON: Final[Fields] = {
    "strategy": "normalized", "floatingPointTolerance": "0.0001", "ignoreTimestamps": True,
    "ignoreExecutionCount": True, "customTimestampPatterns": [], "ignoreOutputTypes": [],
}  # fmt: skip
VALIDATION: Final[Fields] = {
    "level": "development", "strictMode": False, "failOnStderr": False, "failOnWarnings": False,
    "detectSilentFailures": True, "requireExplicitExitCodes": False, "checkOutputTypes": False,
    "verifyAssertions": False, "educationalMode": False, "expectedOutputs": [],
}  # fmt: skip


@dataclass(frozen=True)
class Notebook:
    """Location of a notebook in Git."""

    url: str
    ref: str
    path: str
    secret: str = ""  # name of the Secret with credentials, in the job's namespace


@dataclass(frozen=True)
class Volume:
    name: str
    kind: str  # one of SOURCES; "" if none or several are set
    source: Fields = field(default_factory=dict)


@dataclass(frozen=True)
class Mount:
    volume: str
    path: str
    sub_path: str = ""
    read_only: bool = False


@dataclass(frozen=True)
class RetryPolicy:
    on: str = "infrastructure"  # or `any`
    most: int = 3
    backoff: float = 60.0  # seconds before the first retry

    def wait(self, retry: int) -> float:
        """Seconds before a retry, counted from 1: 1, 2, 4 minutes, unless the job sets another backoff."""
        return self.backoff * 2.0 ** (retry - 1)


@dataclass(frozen=True)
class Build:
    strategy: str = "s2i"
    base_image: str = DEFAULT_IMAGE
    dockerfile: str = ""
    generates: bool = True
    requirements: str = ""
    requirements_sources: tuple[str, ...] = ()
    prefers_dockerfile: bool = False
    fallback: str = "warn"
    settings: Fields = field(default_factory=dict)
    timeout: float = BUILD_TIMEOUT


@dataclass(frozen=True)
class ModelChecks:
    platform: str = "kserve"
    phase: str = "both"
    models: tuple[str, ...] = ()
    prediction: Fields | None = None  # testData, expectedOutput, tolerance
    custom: Fields = field(default_factory=dict)
    timeout: float = MODEL_TIMEOUT


@dataclass(frozen=True)
class Job:
    key: ResourceKey
    uid: str
    generation: int
    notebook: Notebook
    golden: Notebook | None = None
    image: str = DEFAULT_IMAGE
    has_own_image: bool = False
    account: str = "default"
    timeout: float = TIMEOUT
    resources: Fields = field(default_factory=dict)
    env: tuple[Fields, ...] = ()
    env_from: tuple[Fields, ...] = ()  # includes `credentials`
    volumes: tuple[Volume, ...] = ()
    mounts: tuple[Mount, ...] = ()
    init_containers: tuple[Fields, ...] = ()
    placing: Fields = field(default_factory=dict)  # tolerations, nodeSelector and affinity, as in a Pod
    parameters: Fields = field(default_factory=dict)
    comparison: Fields = field(default_factory=lambda: COMPARISON)
    validation: Fields = field(default_factory=lambda: VALIDATION)
    retry: RetryPolicy = RetryPolicy()
    build: Build | None = None  # None: no image is built
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

    def claims(self) -> dict[str, str]:
        """Volume names mapped to claim names, for volumes that are claims."""
        return {
            each.name: str(each.source.get("claimName") or "")
            for each in self.volumes
            if each.kind == "persistentVolumeClaim"
        }


def read_job(manifest: Manifest) -> Job:
    metadata, spec = manifest["metadata"], _map(manifest.get("spec"))
    pod = _map(spec.get("podConfig"))
    image = str(pod.get("containerImage") or "")
    annotations = {str(name): str(value) for name, value in _map(metadata.get("annotations")).items()}
    return Job(
        key=ResourceKey(*KIND, str(metadata.get("namespace") or ""), str(metadata["name"])),
        uid=str(metadata.get("uid") or ""),
        generation=int(metadata.get("generation") or 1),
        notebook=_notebook(_map(spec.get("notebook"))),
        golden=_notebook(_map(spec["goldenNotebook"])) if spec.get("goldenNotebook") else None,
        image=image or DEFAULT_IMAGE,
        has_own_image=bool(image),
        account=str(pod.get("serviceAccountName") or "default"),
        timeout=_seconds(spec.get("timeout"), TIMEOUT),
        resources=_map(pod.get("resources")),
        env=_maps(pod.get("env")),
        env_from=(*_maps(pod.get("envFrom")), *_credentials(pod)),
        volumes=tuple(_volume(each) for each in (*_maps(pod.get("volumes")), *_maps(spec.get("volumes")))),
        mounts=tuple(mount_of(each) for each in _maps(pod.get("volumeMounts"))),
        init_containers=_maps(pod.get("initContainers")),
        placing={name: pod[name] for name in ("tolerations", "nodeSelector", "affinity") if pod.get(name)},
        parameters=_map(spec.get("parameters")),
        comparison=_comparison(spec, annotations),
        validation={**VALIDATION, **_map(spec.get("validationConfig"))},
        retry=_retry(_map(spec.get("retryPolicy"))),
        build=_build(_map(pod.get("buildConfig"))),
        models=_models(spec.get("modelValidation")),
        annotations=annotations,
        labels={str(name): str(value) for name, value in _map(metadata.get("labels")).items()},
    )


def _notebook(written: Fields) -> Notebook:
    git = _map(written.get("git"))
    texts = (git.get("url"), git.get("ref"), written.get("path"), git.get("credentialsSecret"))
    return Notebook(*(str(each or "") for each in texts))


def _credentials(pod: Fields) -> tuple[Fields, ...]:
    """Translate `credentials` to `envFrom` when reading, so that the stored spec stays as in Git."""
    return tuple({"secretRef": {"name": str(name)}} for name in pod.get("credentials") or ())


def _volume(written: Fields) -> Volume:
    kinds = [each for each in SOURCES if written.get(each) is not None]
    kind = kinds[0] if len(kinds) == 1 else ""
    return Volume(str(written.get("name") or ""), kind, _map(written.get(kind)))


def mount_of(written: Fields) -> Mount:
    volume, path, sub_path = (str(written.get(name) or "") for name in ("name", "mountPath", "subPath"))
    return Mount(volume, path, sub_path, bool(written.get("readOnly")))


def _retry(written: Fields) -> RetryPolicy:
    most = written.get("maxRetries")
    return RetryPolicy(
        # k8s: an unquoted `on` is the key `true` for kubectl and Argo CD, which read YAML 1.1
        on=str(written.get("on") or written.get("true") or "infrastructure"),
        most=most if isinstance(most, int) else 3,
        backoff=_seconds(written.get("backoff"), 60.0),
    )


def _build(written: Fields) -> Build | None:
    if not written.get("enabled"):
        return None
    return Build(
        strategy=str(written.get("strategy") or "s2i"),
        base_image=str(written.get("baseImage") or DEFAULT_IMAGE),
        dockerfile=str(written.get("dockerfile") or ""),
        generates=written.get("autoGenerateRequirements") is not False,
        requirements=str(written.get("requirementsFile") or ""),
        requirements_sources=tuple(map(str, written.get("requirementsSources") or ())),
        prefers_dockerfile=bool(written.get("preferDockerfile")),
        fallback=str(written.get("fallbackStrategy") or "warn"),
        settings=_map(written.get("strategyConfig")),
        timeout=_seconds(written.get("timeout"), BUILD_TIMEOUT),
    )


def _models(written: Any) -> ModelChecks | None:
    if not isinstance(written, Mapping) or written.get("enabled") is False:
        return None
    prediction = written.get("predictionValidation")
    asks = isinstance(prediction, Mapping) and prediction.get("enabled") is not False
    return ModelChecks(
        platform=str(written.get("platform") or "kserve"),
        phase=str(written.get("phase") or "both"),
        models=tuple(map(str, written.get("targetModels") or ())),
        prediction=_map(prediction) if asks else None,
        custom=_map(written.get("customPlatform")),
        timeout=_seconds(written.get("timeout"), MODEL_TIMEOUT),
    )


_ANNOTATED: Final = {
    "mlops.dev/comparison-strategy": "strategy",
    "mlops.dev/numeric-tolerance": "floatingPointTolerance",
    "mlops.dev/ignore-timestamps": "ignoreTimestamps",
    "mlops.dev/ignore-execution-count": "ignoreExecutionCount",
    "mlops.dev/ignore-execution-counts": "ignoreExecutionCount",
    "mlops.dev/timestamp-patterns": "customTimestampPatterns",
}


def _comparison(spec: Fields, annotations: Mapping[str, str]) -> Fields:
    """Annotations documented by the original operator apply if the spec has no comparisonConfig."""
    if isinstance(spec.get("comparisonConfig"), Mapping):
        return {**COMPARISON, **spec["comparisonConfig"]}
    found: dict[str, Any] = {}
    for name, setting in _ANNOTATED.items():
        if name in annotations:
            text = annotations[name].strip()
            found[setting] = (
                text.lower() == "true" if setting.startswith("ignore")
                else [line.strip() for line in text.splitlines() if line.strip()] if setting.startswith("custom")
                else text
            )  # fmt: skip
    return {**COMPARISON, **found}


def _seconds(text: Any, otherwise: float) -> float:
    """Invalid durations are reported by `spec_validation`."""
    try:
        return seconds_of(str(text)) if text else otherwise
    except UserError:
        return otherwise


def _map(value: Any) -> Fields:
    return value if isinstance(value, Mapping) else {}


def _maps(value: Any) -> tuple[Fields, ...]:
    return tuple(each for each in value if isinstance(each, Mapping)) if isinstance(value, Sequence) else ()
