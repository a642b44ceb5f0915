"""Rules about the shape of manifests: fields that are unknown, wrong or missing, and values that are empty.

In: a repository. Out: sights, each at the line of the base or overlay that wrote the field. Never: a kind without a
definition.
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
    """All that is deployed, and the Applications themselves."""
    yield from repository.objects()
    for item in (*repository.loose, *(each.item for each in repository.applications)):
        if item.key.group == "argoproj.io":
            yield None, item


def _unknown(repository: Repository) -> Iterator[Sight]:
    for item, amiss in _all(repository, UNKNOWN):
        if _is_misplaced(item, amiss):
            continue  # a rule of its own says where it belongs
        severity = None if amiss.is_sure else Severity.WARNING
        fix = "correct its name or its indentation, or take it out"
        yield Sight(item.at(*amiss.path), f"{item.name}: {amiss.message}: it is dropped", fix, item.name,
                    _dotted(amiss), severity)  # fmt: skip


def _wrong(repository: Repository) -> Iterator[Sight]:
    for item, amiss in _all(repository, WRONG, MISTYPED):
        severity = None if amiss.is_sure else Severity.WARNING
        wants_text = amiss.what == MISTYPED and amiss.message.endswith(_TEXT)
        fix = "put it in quotes" if wants_text else "write what the message asks for"
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
                message = f"{item.name}: {field} stands under spec, where the operator's definition drops it"
                fix = f"move it to spec.podConfig.{field}"
                mend = item.mended(moved(("spec", field), ("spec", "podConfig", field)), "spec", field)
                yield Sight(item.at("spec", field), message, fix, item.name, f"spec.{field}", mend=mend)


def _empty(repository: Repository) -> Iterator[Sight]:
    for rendering, item in repository.objects():
        if not rendering.is_whole:
            continue  # an overlay may give it
        # An image stream fills in the image later.
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
                fix = "give it a value in this environment, or a default in the base or the chart"
                yield Sight(item.at(*path), message, fix, item.name, ".".join(map(str, path)))


def _is_empty(value: str) -> bool:
    return not value.strip() or value in ("null", "None", "<nil>") or value.startswith((":", "/")) or value[-1] in ":/"


def _excluded(repository: Repository) -> Iterator[Sight]:
    settings = list(_exclusions(repository))
    # Several installations: nobody knows which one reads what.
    exclusions = read_exclusions(settings[0]) if len(settings) == 1 else None
    for rendering, item in repository.objects():
        if rendering.written is None:
            continue
        if exclusions and exclusions.excludes(item.key.group_kind):
            message = f"{item.name}: the installation in this repository excludes the kind, so nothing happens to it"
            fix = "take it out of Git, or out of resource.exclusions"
            yield Sight(item.at("kind"), message, fix, item.name)
        elif item.kind in _TEKTON_RUNS:
            message = f"{item.name}: OpenShift GitOps excludes this kind, and elsewhere it runs once and never again"
            fix = "start runs by a trigger, or build with a BuildConfig; keep the Pipeline in Git"
            yield Sight(item.at("kind"), message, fix, item.name)


def _exclusions(repository: Repository) -> Iterator[dict[str, str]]:
    """Of each installation that is kept here, as argocd-cm says it."""
    for item in (*repository.loose, *(item for _, item in repository.objects())):
        if item.kind == ("", "ConfigMap") and item.key.name == "argocd-cm":
            yield {name: item.text("data", name) for name in ("resource.exclusions", "resource.inclusions")}
        elif item.kind == ("argoproj.io", "ArgoCD"):
            given = {"exclusions": "resourceExclusions", "inclusions": "resourceInclusions"}
            yield {f"resource.{name}": item.text("spec", field) for name, field in given.items()}


_SCHEMA_SURE: Final = (
    "The kind is built into Kubernetes, or its definition is in this repository, or it is one of the definitions"
    " that argosy brings; the cluster may have a newer one of the last, so then it is a warning, unless a value is of"
    " another type, which no newer one takes. KServe's own leave room for more fields: of those, names that are almost"
    " one that the kind has are told. Of a kustomization"
    " that no Application names, only what no overlay could mend is told."
)
RULES: Final = (
    Rule(
        "AGY141",
        Severity.WARNING,
        "A kind that Argo CD leaves alone is in Git",
        "What is excluded is neither compared nor applied, without a word. OpenShift GitOps excludes PipelineRuns and"
        " TaskRuns; elsewhere such a run starts with the first sync only, and shows OutOfSync once it is cleaned up.",
        "The one installation that this repository holds excludes the kind; or it is a tekton.dev PipelineRun or"
        " TaskRun, which the operator's default exclusions name.",
        "Take it out. Keep Pipelines and Tasks in Git, and start runs by a trigger; or build with a BuildConfig.",
        _excluded,
    ),
    Rule(
        "AGY142",
        Severity.ERROR,
        "A value that is needed is empty after rendering",
        "The object is applied and never works: an image that cannot be pulled, a build without a repository.",
        "It was rendered as Argo CD does it, and the field, which nothing fills in later, has no value.",
        "Give the value in this environment's files, or a default in the base or the chart.",
        _empty,
    ),
    Rule(
        "AGY151",
        Severity.ERROR,
        "A field that its kind does not have",
        "The server drops the field without a word, or refuses the object if it validates strictly.",
        _SCHEMA_SURE,
        "Correct the name, or its indentation.",
        _unknown,
    ),
    Rule(
        "AGY152",
        Severity.ERROR,
        "A value that its field does not take",
        "The server refuses the object, and the sync fails.",
        _SCHEMA_SURE,
        "Write what the message asks for.",
        _wrong,
    ),
    Rule(
        "AGY153",
        Severity.ERROR,
        "A field that is needed is missing",
        "The server refuses the object, and the sync fails.",
        _SCHEMA_SURE,
        "Add the field.",
        _missing,
    ),
    Rule(
        "AGY307",
        Severity.ERROR,
        "A notebook job has fields of its Pod in the wrong place",
        "Volumes directly under spec are dropped; then the mount names a volume that does not exist.",
        "The definition of NotebookValidationJob has these fields under spec.podConfig only.",
        "Move the field to spec.podConfig.",
        _outside_pod,
        "where the new place is free, and no comment would be lost",
    ),
)
