"""Finds unknown and missing fields of an Application's spec.

In: a manifest as written. Out: paths of unknown fields, each with the likely intended one. Never: an error for them:
the API server drops them silently, and so does Argo CD.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from argosy.gitops.application.sources import Source

Path = tuple[str | int, ...]


class UnknownField(NamedTuple):
    path: Path
    meant: str  # the closest known field; empty if none is close

    @property
    def text(self) -> str:
        return dotted(self.path)

    @property
    def sentence(self) -> str:
        return f"{self.text} is not a known field and is ignored" + (
            f"; did you mean {self.meant}?" if self.meant else ""
        )


_ANY: Final[Mapping[str, Any]] = {}  # fields that are not checked
_VARIABLES: Final = dict.fromkeys(("name", "value", "code"), _ANY)


def _names(words: str) -> dict[str, Any]:
    return dict.fromkeys(words.split(), _ANY)


HELM: Final = {
    **_names(
        "apiVersions ignoreMissingValueFiles kubeVersion namespace passCredentials releaseName skipCrds"
        " skipSchemaValidation skipTests valueFiles values valuesObject version"
    ),
    "parameters": _names("name value forceString"),
    "fileParameters": _names("name path"),
}
KUSTOMIZE: Final = {
    **_names(
        "apiVersions commonAnnotations commonAnnotationsEnvsubst commonLabels components forceCommonAnnotations"
        " forceCommonLabels ignoreMissingComponents images kubeVersion labelIncludeTemplates labelWithoutSelector"
        " namePrefix nameSuffix namespace version"
    ),
    "replicas": _names("name count"),
    "patches": {
        **_names("path patch options"),
        "target": _names("annotationSelector group kind labelSelector name namespace version"),
    },
}
DIRECTORY: Final = {
    **_names("disableExtensionFilter exclude include recurse"),
    "jsonnet": {**_names("libs"), "extVars": _VARIABLES, "tlas": _VARIABLES},
}
PLUGIN: Final = {**_names("name"), "env": _names("name value"), "parameters": _names("name string array map")}
OVERRIDES: Final = {"helm": HELM, "kustomize": KUSTOMIZE, "directory": DIRECTORY, "plugin": PLUGIN}
SOURCE: Final = {**_names("chart name path ref repoURL tagPrefix targetRevision"), **OVERRIDES}
SPEC: Final = {
    **_names("ignoreDifferences info project revisionHistoryLimit sourceHydrator syncPolicy"),
    "destination": _names("name namespace server"),
    "source": SOURCE,
    "sources": SOURCE,
}


def unknown_fields(wire: Any, known: Mapping[str, Any] = SOURCE, path: Path = ()) -> Iterator[UnknownField]:
    """Yield the unknown fields of a source; with `known_fields`, of another map."""
    if isinstance(wire, list):
        for number, each in enumerate(wire):
            yield from unknown_fields(each, known, (*path, number))
    elif isinstance(wire, Mapping) and known:
        for name, value in wire.items():
            if name in known:
                yield from unknown_fields(value, known[name], (*path, name))
            else:
                yield UnknownField((*path, str(name)), _nearest(str(name), known))


def missing_field(source: Source) -> str:
    """Return which required field the source lacks, as the end of a sentence; empty if none."""
    # argo: InvalidSpecError
    if not source.repo_url:
        return "repoURL is empty; write the URL of a repository"
    if not (source.path or source.chart or source.alias):
        return "has none of path, chart and ref; add path (a dot is the root of the repository)"
    return ""


def dotted(path: Path) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    import difflib  # late: needed only for mistakes

    lower = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), lower, n=1, cutoff=0.6)
    return lower[near[0]] if near else ""
