"""Rules about manifests that do not match their schema: unknown, wrong, missing and empty fields.

In: a repository. Out: violations at the line of the base or overlay that wrote the field. Never: checks a kind without
a schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from argosy.gitops.analysis.fix_edit_builders import move_value
from argosy.gitops.analysis.pod_specs import IMAGE_TRIGGERS_ANNOTATION, list_containers
from argosy.gitops.analysis.repository_view import ManifestWithLocations, PathStep, RenderedSource, RepositoryView
from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import Severity, Violation
from argosy.gitops.analysis.schema_validation import MISSING, MISTYPED, UNKNOWN, WRONG, SchemaValidator, SchemaViolation
from argosy.gitops.live.exclusions import read_exclusions
from argosy.kube.well_known_kinds import NOTEBOOK_JOB

_POD_CONFIG_FIELDS: Final = (
    "volumes",
    "volumeMounts",
    "env",
    "envFrom",
    "resources",
    "containerImage",
    "serviceAccountName",
)
_STRING_EXPECTED: Final = ", a string expected"
_TEKTON_RUNS: Final = (("tekton.dev", "PipelineRun"), ("tekton.dev", "TaskRun"))


def _list_schema_violations(
    repository: RepositoryView, *categories: str
) -> Iterator[tuple[ManifestWithLocations, SchemaViolation]]:
    schemas = SchemaValidator(repository.definitions)
    for rendering, item in _list_checked_manifests(repository):
        for schema_violation in schemas.validate(item.manifest):
            if schema_violation.category not in categories or schema_violation.has_placeholder:
                continue
            if schema_violation.category in (UNKNOWN, MISTYPED) or rendering is None or rendering.is_complete:
                yield item, schema_violation


def _list_checked_manifests(
    repository: RepositoryView,
) -> Iterator[tuple[RenderedSource | None, ManifestWithLocations]]:
    """Yield all rendered manifests, and the Applications themselves."""
    yield from repository.list_objects()
    for item in (*repository.unrendered_manifests, *(declaration.item for declaration in repository.applications)):
        if item.key.group == "argoproj.io":
            yield None, item


def _find_unknown_fields(repository: RepositoryView) -> Iterator[Violation]:
    for item, schema_violation in _list_schema_violations(repository, UNKNOWN):
        if _is_misplaced_pod_field(item, schema_violation):
            continue  # AGY307 reports it with the right path
        severity = None if schema_violation.is_certain else Severity.WARNING
        fix = "correct its name or its indentation, or remove it"
        yield Violation(
            item.find_location(*schema_violation.path),
            f"{item.name}: {schema_violation.message}: it is dropped",
            fix,
            item.name,
            _render_path(schema_violation),
            severity,
        )


def _find_invalid_values(repository: RepositoryView) -> Iterator[Violation]:
    for item, schema_violation in _list_schema_violations(repository, WRONG, MISTYPED):
        severity = None if schema_violation.is_certain else Severity.WARNING
        expects_string = schema_violation.category == MISTYPED and schema_violation.message.endswith(_STRING_EXPECTED)
        fix = "quote it" if expects_string else "correct the value as the message says"
        yield Violation(
            item.find_location(*schema_violation.path),
            f"{item.name}: {schema_violation.message}",
            fix,
            item.name,
            _render_path(schema_violation),
            severity,
        )


def _find_missing_fields(repository: RepositoryView) -> Iterator[Violation]:
    for item, schema_violation in _list_schema_violations(repository, MISSING):
        severity = None if schema_violation.is_certain else Severity.WARNING
        fix = f"add {schema_violation.path[-1]}" if schema_violation.path else "add it"
        yield Violation(
            item.find_location(*schema_violation.path),
            f"{item.name}: {schema_violation.message}",
            fix,
            item.name,
            _render_path(schema_violation),
            severity,
        )


def _render_path(schema_violation: SchemaViolation) -> str:
    return ".".join(map(str, schema_violation.path))


def _is_misplaced_pod_field(item: ManifestWithLocations, schema_violation: SchemaViolation) -> bool:
    return (
        item.group_kind == NOTEBOOK_JOB
        and schema_violation.path[:1] == ("spec",)
        and len(schema_violation.path) == 2
        and schema_violation.path[1] in _POD_CONFIG_FIELDS
    )


def _find_misplaced_pod_fields(repository: RepositoryView) -> Iterator[Violation]:
    for _, item in repository.list_objects():
        for field in _POD_CONFIG_FIELDS if item.group_kind == NOTEBOOK_JOB else ():
            if field in item.get_map("spec"):
                message = f"{item.name}: {field} is under spec, where the operator's CRD drops it"
                fix = f"move it to spec.podConfig.{field}"
                file_fix = item.build_fix(move_value(("spec", field), ("spec", "podConfig", field)), "spec", field)
                yield Violation(
                    item.find_location("spec", field), message, fix, item.name, f"spec.{field}", file_fix=file_fix
                )


def _find_empty_values(repository: RepositoryView) -> Iterator[Violation]:
    for rendering, item in repository.list_objects():
        if not rendering.is_complete:
            continue  # an overlay may set it
        # An image stream trigger sets the image later.
        is_triggered = IMAGE_TRIGGERS_ANNOTATION in item.get_map("metadata", "annotations")
        fields: list[tuple[tuple[PathStep, ...], Any]] = [
            ((*container.path, "image"), container.spec.get("image"))
            for container in list_containers(item)
            if not is_triggered
        ]
        if item.group_kind == ("build.openshift.io", "BuildConfig"):
            fields.append((("spec", "source", "git", "uri"), item.get_value("spec", "source", "git", "uri")))
        if item.group_kind == ("serving.kserve.io", "InferenceService"):
            model = ("spec", "predictor", "model", "storageUri")
            fields.append((model, item.get_value(*model)))
        for path, value in fields:
            if isinstance(value, str) and _is_empty_value(value):
                message = f"{item.name}: {path[-1]} is empty after rendering ({value!r})"
                fix = "set a value in this environment, or a default in the base or the chart"
                yield Violation(item.find_location(*path), message, fix, item.name, ".".join(map(str, path)))


def _is_empty_value(value: str) -> bool:
    return not value.strip() or value in ("null", "None", "<nil>") or value.startswith((":", "/")) or value[-1] in ":/"


def _find_excluded_kinds(repository: RepositoryView) -> Iterator[Violation]:
    settings = list(_list_exclusion_settings(repository))
    # With several installations, it is unknown which one applies.
    exclusions = read_exclusions(settings[0]) if len(settings) == 1 else None
    for rendering, item in repository.list_objects():
        if rendering.declaration is None:
            continue
        if exclusions and exclusions.excludes(item.key.group_kind):
            message = f"{item.name}: the installation in this repository excludes this kind, so it is never applied"
            fix = "remove it from Git, or from resource.exclusions"
            yield Violation(item.find_location("kind"), message, fix, item.name)
        elif item.group_kind in _TEKTON_RUNS:
            message = f"{item.name}: OpenShift GitOps excludes this kind, and elsewhere it runs only once"
            fix = "start runs with a trigger, or build with a BuildConfig; keep the Pipeline in Git"
            yield Violation(item.find_location("kind"), message, fix, item.name)


def _list_exclusion_settings(repository: RepositoryView) -> Iterator[dict[str, str]]:
    """Yield the exclusion settings of each installation in this repository, in the format of argocd-cm."""
    for item in (*repository.unrendered_manifests, *(item for _, item in repository.list_objects())):
        if item.group_kind == ("", "ConfigMap") and item.key.name == "argocd-cm":
            yield {name: item.get_string("data", name) for name in ("resource.exclusions", "resource.inclusions")}
        elif item.group_kind == ("argoproj.io", "ArgoCD"):
            fields_by_setting = {"exclusions": "resourceExclusions", "inclusions": "resourceInclusions"}
            yield {f"resource.{name}": item.get_string("spec", field) for name, field in fields_by_setting.items()}


_SCHEMA_CERTAINTY: Final = (
    "The kind is built into Kubernetes, or its CRD is in this repository, or it is one of the CRDs bundled with argosy."
    " The cluster may have a newer version of a bundled CRD, so that is a warning, unless a value has the wrong type,"
    " which no newer version accepts. KServe's CRDs allow unknown fields: of those, names that are close to a known"
    " field are reported. In a kustomization that no Application uses, only errors that no overlay could correct are"
    " reported."
)
RULES: Final = (
    AnalysisRule(
        "AGY141",
        Severity.WARNING,
        "A kind that Argo CD excludes is in Git",
        "Excluded kinds are neither compared nor applied, without a message. OpenShift GitOps excludes PipelineRuns and"
        " TaskRuns; elsewhere such a run starts with the first sync only, and is OutOfSync once it is cleaned up.",
        "The one installation in this repository excludes the kind; or it is a tekton.dev PipelineRun or TaskRun, which"
        " the operator's default exclusions name.",
        "Remove it. Keep Pipelines and Tasks in Git, and start runs with a trigger; or build with a BuildConfig.",
        _find_excluded_kinds,
    ),
    AnalysisRule(
        "AGY142",
        Severity.ERROR,
        "A required value is empty after rendering",
        "The object is applied and never works: an image that cannot be pulled, a build without a repository.",
        "It was rendered as in Argo CD, and the field, which nothing sets later, is empty.",
        "Set the value in this environment's files, or a default in the base or the chart.",
        _find_empty_values,
    ),
    AnalysisRule(
        "AGY151",
        Severity.ERROR,
        "An unknown field",
        "The API server drops the field without a message, or rejects the object if it validates strictly.",
        _SCHEMA_CERTAINTY,
        "Correct the name, or its indentation.",
        _find_unknown_fields,
    ),
    AnalysisRule(
        "AGY152",
        Severity.ERROR,
        "An invalid value",
        "The API server rejects the object, and the sync fails.",
        _SCHEMA_CERTAINTY,
        "Correct the value as the message says.",
        _find_invalid_values,
    ),
    AnalysisRule(
        "AGY153",
        Severity.ERROR,
        "A required field is missing",
        "The API server rejects the object, and the sync fails.",
        _SCHEMA_CERTAINTY,
        "Add the field.",
        _find_missing_fields,
    ),
    AnalysisRule(
        "AGY307",
        Severity.ERROR,
        "A notebook job has fields of its Pod in the wrong place",
        "Volumes directly under spec are dropped; then the mount names a volume that does not exist.",
        "The CRD of NotebookValidationJob has these fields under spec.podConfig only.",
        "Move the field to spec.podConfig.",
        _find_misplaced_pod_fields,
        "if the new path is free and no comment would be lost",
    ),
)
