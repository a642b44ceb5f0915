"""Finds unknown and missing fields of an Application's spec.

In: a manifest as written. Out: paths of unknown fields, each with the likely intended one. Never: an error for them:
the API server drops them silently, and so does Argo CD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from argosy.gitops.application.sources import Source

DocumentPath = tuple[str | int, ...]


class UnknownField(NamedTuple):
    path: DocumentPath
    suggestion: str  # the closest known field; empty if none is close

    @property
    def text(self) -> str:
        return format_path(self.path)

    @property
    def message(self) -> str:
        return f"{self.text} is not a known field and is ignored" + (
            f"; did you mean {self.suggestion}?" if self.suggestion else ""
        )


_UNCHECKED: Final[Mapping[str, Any]] = {}  # fields that are not checked
_VARIABLE_FIELDS: Final = dict.fromkeys(("name", "value", "code"), _UNCHECKED)


def _build_known_fields(names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), _UNCHECKED)


HELM_FIELDS: Final = {
    **_build_known_fields(
        "apiVersions ignoreMissingValueFiles kubeVersion namespace passCredentials releaseName skipCrds"
        " skipSchemaValidation skipTests valueFiles values valuesObject version"
    ),
    "parameters": _build_known_fields("name value forceString"),
    "fileParameters": _build_known_fields("name path"),
}
KUSTOMIZE_FIELDS: Final = {
    **_build_known_fields(
        "apiVersions commonAnnotations commonAnnotationsEnvsubst commonLabels components forceCommonAnnotations"
        " forceCommonLabels ignoreMissingComponents images kubeVersion labelIncludeTemplates labelWithoutSelector"
        " namePrefix nameSuffix namespace version"
    ),
    "replicas": _build_known_fields("name count"),
    "patches": {
        **_build_known_fields("path patch options"),
        "target": _build_known_fields("annotationSelector group kind labelSelector name namespace version"),
    },
}
DIRECTORY_FIELDS: Final = {
    **_build_known_fields("disableExtensionFilter exclude include recurse"),
    "jsonnet": {**_build_known_fields("libs"), "extVars": _VARIABLE_FIELDS, "tlas": _VARIABLE_FIELDS},
}
PLUGIN_FIELDS: Final = {
    **_build_known_fields("name"),
    "env": _build_known_fields("name value"),
    "parameters": _build_known_fields("name string array map"),
}
TOOL_FIELDS: Final = {
    "helm": HELM_FIELDS,
    "kustomize": KUSTOMIZE_FIELDS,
    "directory": DIRECTORY_FIELDS,
    "plugin": PLUGIN_FIELDS,
}
SOURCE_FIELDS: Final = {**_build_known_fields("chart name path ref repoURL tagPrefix targetRevision"), **TOOL_FIELDS}
SPEC_FIELDS: Final = {
    **_build_known_fields("ignoreDifferences info project revisionHistoryLimit sourceHydrator syncPolicy"),
    "destination": _build_known_fields("name namespace server"),
    "source": SOURCE_FIELDS,
    "sources": SOURCE_FIELDS,
}


def list_unknown_fields(
    wire: Any, known_fields: Mapping[str, Any] = SOURCE_FIELDS, path: DocumentPath = ()
) -> Iterator[UnknownField]:
    """Yield the unknown fields of a source; with `known_fields`, of another map."""
    if isinstance(wire, list):
        for index, item in enumerate(wire):
            yield from list_unknown_fields(item, known_fields, (*path, index))
    elif isinstance(wire, Mapping) and known_fields:
        for name, value in wire.items():
            if name in known_fields:
                yield from list_unknown_fields(value, known_fields[name], (*path, name))
            else:
                yield UnknownField((*path, str(name)), _find_closest(str(name), known_fields))


def find_missing_field(source: Source) -> str:
    """Return which required field the source lacks, as the end of a sentence; empty if none."""
    # argo: InvalidSpecError
    if not source.repo_url:
        return "repoURL is empty; write the URL of a repository"
    if not (source.path or source.chart or source.alias):
        return "has none of path, chart and ref; add path (a dot is the root of the repository)"
    if source.chart and not source.ref:
        return "targetRevision is required if the manifest source is a helm chart"
    return ""


def format_path(path: DocumentPath) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _find_closest(name: str, known_fields: Mapping[str, Any]) -> str:
    import difflib  # late: needed only for mistakes

    lower = {field_name.lower(): field_name for field_name in known_fields}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return lower[near[0]] if near else ""
