"""Validates the spec of a notebook job; each problem says what to do.

In: a live manifest. Out: problems; `fatal` ones keep the job from running. Never: raises; talks to a cluster.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from argosy.annotations import BLOCK_WAVE, ON_SUCCESS
from argosy.errors import UserError
from argosy.features.notebooks.go_durations import parse_duration
from argosy.features.notebooks.notebook_validation_job_parser import (
    DEFAULT_IMAGE,
    VOLUME_SOURCES,
    NotebookJob,
    read_job,
)
from argosy.features.notebooks.on_success_triggers.trigger_annotation_parser import read_entries
from argosy.features.notebooks.runner import parameters
from argosy.gitops.application.sync_annotations import read_wave
from argosy.kube.objects import Manifest
from argosy.kube.schema.quantity import parse

# Volume names that a run uses, and names that the original operator reserves
RESERVED_VOLUME_NAMES: Final = (
    "git-clone", "golden-git-clone", "notebook-data", "source", "workspace", "jovyan-home",
)  # fmt: skip
RESERVED_VOLUME_PREFIX: Final = "argosy-"
RESERVED_MOUNT_PATHS: Final = ("/workspace", "/home/jovyan", "/opt/argosy", "/proc", "/sys", "/dev", "/")
BUILD_STRATEGIES: Final = ("s2i", "tekton")
MAX_PATTERN_CHARACTERS: Final = 500
_YAML_BOOLEANS: Final = ("true", "false")
_IMAGE_OR_PATH: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@ -]{0,300}", re.ASCII)


@dataclass(frozen=True)
class SpecProblem:
    field: str
    text: str
    fatal: bool = True

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


def find_problems(manifest: Manifest) -> list[SpecProblem]:
    job = read_job(manifest)
    spec = manifest.get("spec") if isinstance(manifest.get("spec"), Mapping) else {}
    assert isinstance(spec, Mapping)
    return [
        *_check_notebooks(job),
        *_check_durations(spec),
        *_check_misplaced_volumes(spec),
        *_check_volumes(manifest),
        *_check_mounts(job),
        *_check_quantities(job),
        *_check_patterns(job),
        *_check_numbers(job),
        *_check_parameters(job),
        *_check_build(job),
        *_check_models(job),
        *_check_missing_image(job),
        *_check_triggers(job, manifest),
    ]


def list_warnings(manifest: Manifest) -> list[str]:
    """Admission warnings for the author of the manifest, which is stored anyway."""
    return [str(problem) for problem in find_problems(manifest)]


def _check_notebooks(job: NotebookJob) -> Iterator[SpecProblem]:
    for field, location in (("notebook", job.notebook), ("goldenNotebook", job.golden)):
        if location is None:
            continue
        for name, value in (("git.url", location.url), ("git.ref", location.ref), ("path", location.path)):
            if not value:
                yield SpecProblem(f"spec.{field}.{name}", "is required; set the notebook to run")
        if location.path.startswith("/") or ".." in location.path.split("/"):
            yield SpecProblem(
                f"spec.{field}.path", f"{location.path!r} is outside of the repository; use a path inside it"
            )


def _check_durations(spec: Mapping[str, Any]) -> Iterator[SpecProblem]:
    for path in (
        "timeout", "retryPolicy.backoff", "modelValidation.timeout", "podConfig.buildConfig.timeout"
    ):  # fmt: skip
        value: Any = spec
        for step in path.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        try:
            if value is not None and parse_duration(str(value)) <= 0:
                yield SpecProblem(f"spec.{path}", "must be greater than zero; use for example 15m")
        except UserError as error:
            yield SpecProblem(f"spec.{path}", error.message)


def _check_misplaced_volumes(spec: Mapping[str, Any]) -> Iterator[SpecProblem]:
    if spec.get("volumes"):
        names = ", ".join(str(volume.get("name")) for volume in spec["volumes"] if isinstance(volume, Mapping))
        text = f"volumes belong in podConfig; {names} is still used, move it to spec.podConfig.volumes"
        yield SpecProblem("spec.volumes", text, fatal=False)


def _check_volumes(manifest: Manifest) -> Iterator[SpecProblem]:
    spec = manifest.get("spec") or {}
    pod_volumes = (spec.get("podConfig") or {}).get("volumes") or ()
    volumes = [(f"spec.podConfig.volumes[{number}]", volume) for number, volume in enumerate(pod_volumes)]
    volumes += [(f"spec.volumes[{number}]", volume) for number, volume in enumerate(spec.get("volumes") or ())]
    seen_names: set[str] = set()
    for field, volume in volumes:
        name = str(volume.get("name") or "")
        if name in RESERVED_VOLUME_NAMES or name.startswith(RESERVED_VOLUME_PREFIX):
            yield SpecProblem(f"{field}.name", f"{name!r} is reserved for a volume of every run; use another name")
        if name in seen_names:
            yield SpecProblem(f"{field}.name", f"duplicate volume {name!r}; use unique names")
        seen_names.add(name)
        kinds = [kind for kind in VOLUME_SOURCES if volume.get(kind) is not None]
        if len(kinds) != 1:
            sources_text = f"has {' and '.join(kinds)}" if kinds else "has no source"
            yield SpecProblem(field, f"volume {name!r} {sources_text}; set exactly one of {', '.join(VOLUME_SOURCES)}")


def _check_mounts(job: NotebookJob) -> Iterator[SpecProblem]:
    volume_names = {entry.name for entry in job.volumes}
    path_counts = Counter(entry.path.rstrip("/") for entry in job.mounts)
    for number, mount in enumerate(job.mounts):
        field = f"spec.podConfig.volumeMounts[{number}]"
        if mount.volume not in volume_names:
            volumes_text = f"volumes: {', '.join(sorted(volume_names))}" if volume_names else "no volumes defined"
            text = f"volume {mount.volume!r} not found ({volumes_text}); define it in spec.podConfig.volumes"
            yield SpecProblem(f"{field}.name", text)
        if path_counts[mount.path.rstrip("/")] > 1:
            yield SpecProblem(f"{field}.mountPath", f"{mount.path} is mounted twice; use a unique path for each mount")
        if mount.path.rstrip("/") in {entry.rstrip("/") for entry in RESERVED_MOUNT_PATHS}:
            yield SpecProblem(f"{field}.mountPath", f"{mount.path} is reserved for the run; use another path")
        if ".." in mount.path.split("/") or ".." in mount.sub_path.split("/") or mount.sub_path.startswith("/"):
            yield SpecProblem(field, "points outside of its volume; use paths without ..")


def _check_quantities(job: NotebookJob) -> Iterator[SpecProblem]:
    for part in ("limits", "requests"):
        for name, value in (job.resources.get(part) or {}).items():
            try:
                parse(str(value))
            except (UserError, ValueError, ArithmeticError):
                text = f"{str(value)[:40]!r} is not a quantity; use for example 2Gi or 500m"
                yield SpecProblem(f"spec.podConfig.resources.{part}.{name}", text)


def _check_patterns(job: NotebookJob) -> Iterator[SpecProblem]:
    for number, text in enumerate(job.comparison["customTimestampPatterns"] or ()):
        field = f"spec.comparisonConfig.customTimestampPatterns[{number}]"
        if len(str(text)) > MAX_PATTERN_CHARACTERS:
            yield SpecProblem(field, f"is longer than {MAX_PATTERN_CHARACTERS} characters; split it")
            continue
        try:
            re.compile(str(text))
        except (re.error, RecursionError, OverflowError) as error:
            yield SpecProblem(field, f"{str(text)[:80]!r} is not a regular expression ({error}); correct it")


def _check_numbers(job: NotebookJob) -> Iterator[SpecProblem]:
    fields = [("spec.comparisonConfig.floatingPointTolerance", job.comparison["floatingPointTolerance"])]
    for number, expected in enumerate(job.validation["expectedOutputs"] or ()):
        field_path = f"spec.validationConfig.expectedOutputs[{number}]"
        fields += [(f"{field_path}.{name}", expected.get(name)) for name in ("minValue", "maxValue")]
    if job.models and job.models.prediction:
        fields.append(("spec.modelValidation.predictionValidation.tolerance", job.models.prediction.get("tolerance")))
    for field, value in fields:
        try:
            float(value if value is not None else 0)
        except (TypeError, ValueError):
            yield SpecProblem(field, f"invalid number {str(value)[:40]!r}: expected for example 0.001 or 1e-6")


def _check_parameters(job: NotebookJob) -> Iterator[SpecProblem]:
    for name in job.parameters:
        field = f"spec.parameters[{str(name)[:80]}]"
        if not parameters.is_identifier(name):
            yield SpecProblem(field, "is not a Python identifier; use letters, digits and _")
        elif name in _YAML_BOOLEANS:
            # k8s: kubectl and Argo CD read YAML 1.1
            yield SpecProblem(field, "is how YAML reads y, n, yes, no, on or off; quote the name")


def _check_build(job: NotebookJob) -> Iterator[SpecProblem]:
    if job.build is not None and job.build.strategy not in BUILD_STRATEGIES:
        text = f"unknown build strategy {job.build.strategy!r}; choose {' or '.join(BUILD_STRATEGIES)}"
        yield SpecProblem("spec.podConfig.buildConfig.strategy", text)
    if job.build is not None:
        build_values = {"baseImage": [job.build.base_image], "requirementsFile": [job.build.requirements]}
        for name, values in {**build_values, "requirementsSources": job.build.requirements_sources}.items():
            if invalid_value := next(
                (value for value in values if value and not _IMAGE_OR_PATH.fullmatch(value)), None
            ):
                text = f"{invalid_value[:80]!r} has characters that are not allowed in images and paths; remove them"
                yield SpecProblem(f"spec.podConfig.buildConfig.{name}", text)


def _check_models(job: NotebookJob) -> Iterator[SpecProblem]:
    for number, name in enumerate(job.models.models if job.models else ()):
        field, parts = f"spec.modelValidation.targetModels[{number}]", name.split("/")
        if len(parts) > 2 or not all(parts):
            yield SpecProblem(field, f"{name!r} is not a model name; use `model` or `namespace/model`")
        elif len(parts) == 2 and parts[0] != job.namespace:
            text = f"{name!r} is in another namespace, but a job can only check models in its own ({job.namespace})"
            yield SpecProblem(field, f"{text}; move the job there, or use a model of this namespace")


def _check_missing_image(job: NotebookJob) -> Iterator[SpecProblem]:
    if not job.has_own_image and job.build is None:
        text = f"is not set, so {DEFAULT_IMAGE} is used; set an image with the packages that the notebook imports"
        yield SpecProblem("spec.podConfig.containerImage", text, fatal=False)


def _check_triggers(job: NotebookJob, manifest: Manifest) -> Iterator[SpecProblem]:
    """Problems of triggers and wave blocks; the notebook runs anyway."""
    for fault in read_entries(job.annotations.get(ON_SUCCESS, ""))[1]:
        yield SpecProblem(
            f"metadata.annotations[{ON_SUCCESS}]", fault.message.removeprefix(f"{ON_SUCCESS}: "), fatal=False
        )
    blocked_wave = job.annotations.get(BLOCK_WAVE, "").strip()
    if not blocked_wave:
        return
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", blocked_wave, re.ASCII):
        message = f"{blocked_wave[:40]!r} is not a sync wave, so it blocks nothing; use an integer"
    elif int(blocked_wave) <= read_wave(manifest):
        reason = f"wave {blocked_wave} is not after the job's own wave {read_wave(manifest)}"
        message = f"{reason}, so it blocks nothing in its own Application; use a later wave"
    else:
        return
    yield SpecProblem(f"metadata.annotations[{BLOCK_WAVE}]", message, fatal=False)
