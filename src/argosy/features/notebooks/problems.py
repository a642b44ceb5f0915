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
from argosy.features.notebooks.durations import seconds_of
from argosy.features.notebooks.job import DEFAULT_IMAGE, SOURCES, Job, read_job
from argosy.features.notebooks.runner import parameters
from argosy.features.notebooks.triggers.entries import read_entries
from argosy.gitops.application.hooks import wave
from argosy.kube.objects import Manifest
from argosy.kube.schema.quantity import parse

# Volume names that a run uses, and names that the original operator reserves
RESERVED: Final = (
    "git-clone", "golden-git-clone", "notebook-data", "source", "workspace", "jovyan-home",
)  # fmt: skip
OURS: Final = "argosy-"
TAKEN: Final = ("/workspace", "/home/jovyan", "/opt/argosy", "/proc", "/sys", "/dev", "/")
BUILDERS: Final = ("s2i", "tekton")
MOST_PATTERN: Final = 500
_YAML_WORDS: Final = ("true", "false")
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@ -]{0,300}", re.ASCII)


@dataclass(frozen=True)
class Problem:
    field: str
    text: str
    fatal: bool = True

    def __str__(self) -> str:
        return f"{self.field}: {self.text}"


def problems(manifest: Manifest) -> list[Problem]:
    job = read_job(manifest)
    spec = manifest.get("spec") if isinstance(manifest.get("spec"), Mapping) else {}
    assert isinstance(spec, Mapping)
    return [
        *_notebook(job),
        *_durations(spec),
        *_misplaced(spec),
        *_volumes(manifest),
        *_mounts(job),
        *_quantities(job),
        *_patterns(job),
        *_numbers(job),
        *_parameters(job),
        *_building(job),
        *_models(job),
        *_images(job),
        *_following(job, manifest),
    ]


def warnings(manifest: Manifest) -> list[str]:
    """Admission warnings for the author of the manifest, which is stored anyway."""
    return [str(each) for each in problems(manifest)]


def _notebook(job: Job) -> Iterator[Problem]:
    for field, where in (("notebook", job.notebook), ("goldenNotebook", job.golden)):
        if where is None:
            continue
        for name, value in (("git.url", where.url), ("git.ref", where.ref), ("path", where.path)):
            if not value:
                yield Problem(f"spec.{field}.{name}", "is required; set the notebook to run")
        if where.path.startswith("/") or ".." in where.path.split("/"):
            yield Problem(f"spec.{field}.path", f"{where.path!r} is outside of the repository; use a path inside it")


def _durations(spec: Mapping[str, Any]) -> Iterator[Problem]:
    for path in (
        "timeout", "retryPolicy.backoff", "modelValidation.timeout", "podConfig.buildConfig.timeout"
    ):  # fmt: skip
        value: Any = spec
        for step in path.split("."):
            value = value.get(step) if isinstance(value, Mapping) else None
        try:
            if value is not None and seconds_of(str(value)) <= 0:
                yield Problem(f"spec.{path}", "must be greater than zero; use for example 15m")
        except UserError as error:
            yield Problem(f"spec.{path}", error.message)


def _misplaced(spec: Mapping[str, Any]) -> Iterator[Problem]:
    if spec.get("volumes"):
        names = ", ".join(str(each.get("name")) for each in spec["volumes"] if isinstance(each, Mapping))
        text = f"volumes belong in podConfig; {names} is still used, move it to spec.podConfig.volumes"
        yield Problem("spec.volumes", text, fatal=False)


def _volumes(manifest: Manifest) -> Iterator[Problem]:
    spec = manifest.get("spec") or {}
    below = (spec.get("podConfig") or {}).get("volumes") or ()
    written = [(f"spec.podConfig.volumes[{number}]", each) for number, each in enumerate(below)]
    written += [(f"spec.volumes[{number}]", each) for number, each in enumerate(spec.get("volumes") or ())]
    seen: set[str] = set()
    for field, each in written:
        name = str(each.get("name") or "")
        if name in RESERVED or name.startswith(OURS):
            yield Problem(f"{field}.name", f"{name!r} is reserved for a volume of every run; use another name")
        if name in seen:
            yield Problem(f"{field}.name", f"duplicate volume {name!r}; use unique names")
        seen.add(name)
        kinds = [kind for kind in SOURCES if each.get(kind) is not None]
        if len(kinds) != 1:
            have = f"has {' and '.join(kinds)}" if kinds else "has no source"
            yield Problem(field, f"volume {name!r} {have}; set exactly one of {', '.join(SOURCES)}")


def _mounts(job: Job) -> Iterator[Problem]:
    known = {each.name for each in job.volumes}
    counted = Counter(each.path.rstrip("/") for each in job.mounts)
    for number, mount in enumerate(job.mounts):
        field = f"spec.podConfig.volumeMounts[{number}]"
        if mount.volume not in known:
            there = f"volumes: {', '.join(sorted(known))}" if known else "no volumes defined"
            text = f"volume {mount.volume!r} not found ({there}); define it in spec.podConfig.volumes"
            yield Problem(f"{field}.name", text)
        if counted[mount.path.rstrip("/")] > 1:
            yield Problem(f"{field}.mountPath", f"{mount.path} is mounted twice; use a unique path for each mount")
        if mount.path.rstrip("/") in {each.rstrip("/") for each in TAKEN}:
            yield Problem(f"{field}.mountPath", f"{mount.path} is reserved for the run; use another path")
        if ".." in mount.path.split("/") or ".." in mount.sub_path.split("/") or mount.sub_path.startswith("/"):
            yield Problem(field, "points outside of its volume; use paths without ..")


def _quantities(job: Job) -> Iterator[Problem]:
    for part in ("limits", "requests"):
        for name, value in (job.resources.get(part) or {}).items():
            try:
                parse(str(value))
            except (UserError, ValueError, ArithmeticError):
                text = f"{str(value)[:40]!r} is not a quantity; use for example 2Gi or 500m"
                yield Problem(f"spec.podConfig.resources.{part}.{name}", text)


def _patterns(job: Job) -> Iterator[Problem]:
    for number, text in enumerate(job.comparison["customTimestampPatterns"] or ()):
        field = f"spec.comparisonConfig.customTimestampPatterns[{number}]"
        if len(str(text)) > MOST_PATTERN:
            yield Problem(field, f"is longer than {MOST_PATTERN} characters; split it")
            continue
        try:
            re.compile(str(text))
        except (re.error, RecursionError, OverflowError) as error:
            yield Problem(field, f"{str(text)[:80]!r} is not a regular expression ({error}); correct it")


def _numbers(job: Job) -> Iterator[Problem]:
    fields = [("spec.comparisonConfig.floatingPointTolerance", job.comparison["floatingPointTolerance"])]
    for number, expected in enumerate(job.validation["expectedOutputs"] or ()):
        where = f"spec.validationConfig.expectedOutputs[{number}]"
        fields += [(f"{where}.{name}", expected.get(name)) for name in ("minValue", "maxValue")]
    if job.models and job.models.prediction:
        fields.append(("spec.modelValidation.predictionValidation.tolerance", job.models.prediction.get("tolerance")))
    for field, value in fields:
        try:
            float(value if value is not None else 0)
        except (TypeError, ValueError):
            yield Problem(field, f"invalid number {str(value)[:40]!r}: expected for example 0.001 or 1e-6")


def _parameters(job: Job) -> Iterator[Problem]:
    for name in job.parameters:
        field = f"spec.parameters[{str(name)[:80]}]"
        if not parameters.is_name(name):
            yield Problem(field, "is not a Python identifier; use letters, digits and _")
        elif name in _YAML_WORDS:
            # k8s: kubectl and Argo CD read YAML 1.1
            yield Problem(field, "is how YAML reads y, n, yes, no, on or off; quote the name")


def _building(job: Job) -> Iterator[Problem]:
    if job.build is not None and job.build.strategy not in BUILDERS:
        text = f"unknown build strategy {job.build.strategy!r}; choose {' or '.join(BUILDERS)}"
        yield Problem("spec.podConfig.buildConfig.strategy", text)
    if job.build is not None:
        words = {"baseImage": [job.build.base_image], "requirementsFile": [job.build.requirements]}
        for name, values in {**words, "requirementsSources": job.build.requirements_sources}.items():
            if bad := next((each for each in values if each and not _PLAIN.fullmatch(each)), None):
                text = f"{bad[:80]!r} has characters that are not allowed in images and paths; remove them"
                yield Problem(f"spec.podConfig.buildConfig.{name}", text)


def _models(job: Job) -> Iterator[Problem]:
    for number, name in enumerate(job.models.models if job.models else ()):
        field, parts = f"spec.modelValidation.targetModels[{number}]", name.split("/")
        if len(parts) > 2 or not all(parts):
            yield Problem(field, f"{name!r} is not a model name; use `model` or `namespace/model`")
        elif len(parts) == 2 and parts[0] != job.namespace:
            text = f"{name!r} is in another namespace, but a job can only check models in its own ({job.namespace})"
            yield Problem(field, f"{text}; move the job there, or use a model of this namespace")


def _images(job: Job) -> Iterator[Problem]:
    if not job.has_own_image and job.build is None:
        text = f"is not set, so {DEFAULT_IMAGE} is used; set an image with the packages that the notebook imports"
        yield Problem("spec.podConfig.containerImage", text, fatal=False)


def _following(job: Job, manifest: Manifest) -> Iterator[Problem]:
    """Problems of triggers and wave blocks; the notebook runs anyway."""
    for fault in read_entries(job.annotations.get(ON_SUCCESS, ""))[1]:
        yield Problem(f"metadata.annotations[{ON_SUCCESS}]", fault.message.removeprefix(f"{ON_SUCCESS}: "), fatal=False)
    blocked = job.annotations.get(BLOCK_WAVE, "").strip()
    if not blocked:
        return
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", blocked, re.ASCII):
        told = f"{blocked[:40]!r} is not a sync wave, so it blocks nothing; use an integer"
    elif int(blocked) <= wave(manifest):
        own = f"wave {blocked} is not after the job's own wave {wave(manifest)}"
        told = f"{own}, so it blocks nothing in its own Application; use a later wave"
    else:
        return
    yield Problem(f"metadata.annotations[{BLOCK_WAVE}]", told, fatal=False)
