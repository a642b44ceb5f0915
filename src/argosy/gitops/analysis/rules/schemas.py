"""Rules about manifests that do not match their schema: unknown, wrong, missing and empty fields.

In: a repository. Out: violations at the line of the base or overlay that wrote the field. Never: checks a kind without
a schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from argosy.gitops.analysis.fixes import moved
from argosy.gitops.analysis.pod_specs import TRIGGERS, containers
from argosy.gitops.analysis.repository import Item, Rendering, Repository, Step
from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.schema_validation import MISSING, MISTYPED, UNKNOWN, WRONG, Amiss, Schemas
from argosy.gitops.analysis.violation import Severity, Sight
from argosy.gitops.live.exclusions import read_exclusions

_NOTEBOOK: Final = ("mlops.mlops.dev", "NotebookValidationJob")
_IN_POD: Final = ("volumes", "volumeMounts", "env", "envFrom", "resources", "containerImage", "serviceAccountName")
_TEXT: Final = ", a string expected"
_TEKTON_RUNS: Final = (("tekton.dev", "PipelineRun"), ("tekton.dev", "TaskRun"))


def _all(repository: Repository, *kinds: str) -> Iterator[tuple[Item, Amiss]]:
    schemas = Schemas(repository.definitions)
    for rendering, item in _judged(repository):
        for amiss in schemas.amiss(item.manifest):
            if amiss.what not in kinds or amiss.is_later:
                continue
            if amiss.what in (UNKNOWN, MISTYPED) or rendering is None or rendering.is_whole:
                yield item, amiss


def _judged(repository: Repository) -> Iterator[tuple[Rendering | None, Item]]:
    """Yield all rendered manifests, and the Applications themselves."""
    yield from repository.objects()
    for item in (*repository.loose, *(each.item for each in repository.applications)):
        if item.key.group == "argoproj.io":
            yield None, item


def _unknown(repository: Repository) -> Iterator[Sight]:
    for item, amiss in _all(repository, UNKNOWN):
        if _is_misplaced(item, amiss):
            continue  # AGY307 reports it with the right path
        severity = None if amiss.is_sure else Severity.WARNING
        fix = "correct its name or its indentation, or remove it"
        yield Sight(item.at(*amiss.path), f"{item.name}: {amiss.message}: it is dropped", fix, item.name,
                    _dotted(amiss), severity)  # fmt: skip


def _wrong(repository: Repository) -> Iterator[Sight]:
    for item, amiss in _all(repository, WRONG, MISTYPED):
        severity = None if amiss.is_sure else Severity.WARNING
        wants_text = amiss.what == MISTYPED and amiss.message.endswith(_TEXT)
        fix = "quote it" if wants_text else "correct the value as the message says"
        yield Sight(item.at(*amiss.path), f"{item.name}: {amiss.message}", fix, item.name, _dotted(amiss), severity)


def _missing(repository: Repository) -> Iterator[Sight]:
    for item, amiss in _all(repository, MISSING):
        severity = None if amiss.is_sure else Severity.WARNING
        fix = f"add {amiss.path[-1]}" if amiss.path else "add it"
        yield Sight(item.at(*amiss.path), f"{item.name}: {amiss.message}", fix, item.name, _dotted(amiss), severity)


def _dotted(amiss: Amiss) -> str:
    return ".".join(map(str, amiss.path))


def _is_misplaced(item: Item, amiss: Amiss) -> bool:
    return item.kind == _NOTEBOOK and amiss.path[:1] == ("spec",) and len(amiss.path) == 2 and amiss.path[1] in _IN_POD


def _outside_pod(repository: Repository) -> Iterator[Sight]:
    for _, item in repository.objects():
        for field in _IN_POD if item.kind == _NOTEBOOK else ():
            if field in item.fields("spec"):
                message = f"{item.name}: {field} is under spec, where the operator's CRD drops it"
                fix = f"move it to spec.podConfig.{field}"
                mend = item.mended(moved(("spec", field), ("spec", "podConfig", field)), "spec", field)
                yield Sight(item.at("spec", field), message, fix, item.name, f"spec.{field}", mend=mend)


def _empty(repository: Repository) -> Iterator[Sight]:
    for rendering, item in repository.objects():
        if not rendering.is_whole:
            continue  # an overlay may set it
        # An image stream trigger sets the image later.
        is_triggered = TRIGGERS in item.fields("metadata", "annotations")
        fields: list[tuple[tuple[Step, ...], Any]] = [
            ((*each.path, "image"), each.spec.get("image")) for each in containers(item) if not is_triggered
        ]
        if item.kind == ("build.openshift.io", "BuildConfig"):
            fields.append((("spec", "source", "git", "uri"), item.value("spec", "source", "git", "uri")))
        if item.kind == ("serving.kserve.io", "InferenceService"):
            model = ("spec", "predictor", "model", "storageUri")
            fields.append((model, item.value(*model)))
        for path, value in fields:
            if isinstance(value, str) and _is_empty(value):
                message = f"{item.name}: {path[-1]} is empty after rendering ({value!r})"
                fix = "set a value in this environment, or a default in the base or the chart"
                yield Sight(item.at(*path), message, fix, item.name, ".".join(map(str, path)))


def _is_empty(value: str) -> bool:
    return not value.strip() or value in ("null", "None", "<nil>") or value.startswith((":", "/")) or value[-1] in ":/"


def _excluded(repository: Repository) -> Iterator[Sight]:
    settings = list(_exclusions(repository))
    # With several installations, it is unknown which one applies.
    exclusions = read_exclusions(settings[0]) if len(settings) == 1 else None
    for rendering, item in repository.objects():
        if rendering.written is None:
            continue
        if exclusions and exclusions.excludes(item.key.group_kind):
            message = f"{item.name}: the installation in this repository excludes this kind, so it is never applied"
            fix = "remove it from Git, or from resource.exclusions"
            yield Sight(item.at("kind"), message, fix, item.name)
        elif item.kind in _TEKTON_RUNS:
            message = f"{item.name}: OpenShift GitOps excludes this kind, and elsewhere it runs only once"
            fix = "start runs with a trigger, or build with a BuildConfig; keep the Pipeline in Git"
            yield Sight(item.at("kind"), message, fix, item.name)


def _exclusions(repository: Repository) -> Iterator[dict[str, str]]:
    """Yield the exclusion settings of each installation in this repository, in the format of argocd-cm."""
    for item in (*repository.loose, *(item for _, item in repository.objects())):
        if item.kind == ("", "ConfigMap") and item.key.name == "argocd-cm":
            yield {name: item.text("data", name) for name in ("resource.exclusions", "resource.inclusions")}
        elif item.kind == ("argoproj.io", "ArgoCD"):
            given = {"exclusions": "resourceExclusions", "inclusions": "resourceInclusions"}
            yield {f"resource.{name}": item.text("spec", field) for name, field in given.items()}


_SCHEMA_SURE: Final = (
    "The kind is built into Kubernetes, or its CRD is in this repository, or it is one of the CRDs bundled with argosy."
    " The cluster may have a newer version of a bundled CRD, so that is a warning, unless a value has the wrong type,"
    " which no newer version accepts. KServe's CRDs allow unknown fields: of those, names that are close to a known"
    " field are reported. In a kustomization that no Application uses, only errors that no overlay could correct are"
    " reported."
)
RULES: Final = (
    Rule(
        "AGY141",
        Severity.WARNING,
        "A kind that Argo CD excludes is in Git",
        "Excluded kinds are neither compared nor applied, without a message. OpenShift GitOps excludes PipelineRuns and"
        " TaskRuns; elsewhere such a run starts with the first sync only, and is OutOfSync once it is cleaned up.",
        "The one installation in this repository excludes the kind; or it is a tekton.dev PipelineRun or TaskRun, which"
        " the operator's default exclusions name.",
        "Remove it. Keep Pipelines and Tasks in Git, and start runs with a trigger; or build with a BuildConfig.",
        _excluded,
    ),
    Rule(
        "AGY142",
        Severity.ERROR,
        "A required value is empty after rendering",
        "The object is applied and never works: an image that cannot be pulled, a build without a repository.",
        "It was rendered as in Argo CD, and the field, which nothing sets later, is empty.",
        "Set the value in this environment's files, or a default in the base or the chart.",
        _empty,
    ),
    Rule(
        "AGY151",
        Severity.ERROR,
        "An unknown field",
        "The API server drops the field without a message, or rejects the object if it validates strictly.",
        _SCHEMA_SURE,
        "Correct the name, or its indentation.",
        _unknown,
    ),
    Rule(
        "AGY152",
        Severity.ERROR,
        "An invalid value",
        "The API server rejects the object, and the sync fails.",
        _SCHEMA_SURE,
        "Correct the value as the message says.",
        _wrong,
    ),
    Rule(
        "AGY153",
        Severity.ERROR,
        "A required field is missing",
        "The API server rejects the object, and the sync fails.",
        _SCHEMA_SURE,
        "Add the field.",
        _missing,
    ),
    Rule(
        "AGY307",
        Severity.ERROR,
        "A notebook job has fields of its Pod in the wrong place",
        "Volumes directly under spec are dropped; then the mount names a volume that does not exist.",
        "The CRD of NotebookValidationJob has these fields under spec.podConfig only.",
        "Move the field to spec.podConfig.",
        _outside_pod,
        "if the new path is free and no comment would be lost",
    ),
)
