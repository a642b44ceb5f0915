"""The sources of an Application.

In: a source in Argo CD's format. Out: frozen values, or a ManifestError that names the field. Never: fetches or renders
anything; unknown fields are ignored, as the API server does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from argosy.kube.objects.strict_typed_field_reader import FieldReader
from argosy.kube.patch.merge_patch import remove_nulls

if TYPE_CHECKING:
    from argosy.gitops.application.source_options import DirectoryOptions, HelmOptions, KustomizeOptions, PluginOptions


@dataclass(frozen=True, slots=True)
class Source:
    """A source of manifests. The blocks that are set, not None, choose the tool."""

    repo_url: str = ""
    path: str = ""
    ref: str = ""  # argo: targetRevision
    tag_prefix: str = ""
    chart: str = ""
    alias: str = ""  # argo: ref, the name by which value files of other sources refer to this one
    name: str = ""
    helm: HelmOptions | None = None
    kustomize: KustomizeOptions | None = None
    directory: DirectoryOptions | None = None
    plugin: PluginOptions | None = None
    wire: Mapping[str, Any] = field(default_factory=dict)  # as written; overrides are merged into it


# argo: the options that decide if those of a tool are empty; flags that only change the effect of others do not count
_HELM_OPTIONS: Final = (
    *("version", "releaseName", "valueFiles", "parameters", "fileParameters", "passCredentials", "namespace"),
    *("ignoreMissingValueFiles", "skipCrds", "skipTests", "skipSchemaValidation", "kubeVersion", "apiVersions"),
)
_KUSTOMIZE_OPTIONS: Final = (
    *("namePrefix", "nameSuffix", "version", "namespace", "images", "replicas", "commonLabels", "commonAnnotations"),
    *("patches", "components", "kubeVersion", "apiVersions", "ignoreMissingComponents"),
)
_JSONNET_OPTIONS: Final = ("extVars", "tlas", "libs")
_FILE_SELECTION: Final = ("exclude", "include", "disableExtensionFilter")  # these stay in an otherwise empty directory


def remove_empty_options(wire: Mapping[str, Any]) -> dict[str, Any]:
    """argo: Remove the options of a tool if none is set. A `valuesObject` counts as set, even an empty one."""
    kept = {name: value for name, value in wire.items() if name not in _IS_EMPTY_BY_TOOL or value is not None}
    for tool, is_empty in _IS_EMPTY_BY_TOOL.items():
        options = kept.get(tool)
        if not isinstance(options, Mapping) or not is_empty(options):
            continue
        selection = {name: options[name] for name in _FILE_SELECTION if tool == "directory" and options.get(name)}
        if selection:
            kept[tool] = selection
        else:
            del kept[tool]
    return kept


def are_sources_equal(left: Sequence[Mapping[str, Any]], right: Sequence[Mapping[str, Any]]) -> bool:
    """k8s: a merge patch drops the nulls that sources may contain, for example in valuesObject, so they are ignored."""
    return [remove_nulls(remove_empty_options(source)) for source in left] == [
        remove_nulls(remove_empty_options(source)) for source in right
    ]


def _is_helm_empty(options: Mapping[str, Any]) -> bool:
    has_values = options.get("valuesObject") is not None or bool(options.get("values"))
    return not has_values and not any(map(options.get, _HELM_OPTIONS))


def _is_kustomize_empty(options: Mapping[str, Any]) -> bool:
    return not any(map(options.get, _KUSTOMIZE_OPTIONS))


def _is_directory_empty(options: Mapping[str, Any]) -> bool:
    jsonnet = options.get("jsonnet")
    has_jsonnet = any(map(jsonnet.get, _JSONNET_OPTIONS)) if isinstance(jsonnet, Mapping) else bool(jsonnet)
    return not options.get("recurse") and not has_jsonnet


_IS_EMPTY_BY_TOOL: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "helm": _is_helm_empty,
    "kustomize": _is_kustomize_empty,
    "directory": _is_directory_empty,
}


def read_source(wire: Mapping[str, Any], where: str = "") -> Source:
    return read_source_fields(FieldReader(wire, where))


def read_source_fields(fields: FieldReader) -> Source:
    helm, kustomize = fields.find_map("helm"), fields.find_map("kustomize")
    directory, plugin = fields.find_map("directory"), fields.find_map("plugin")
    source = Source(
        repo_url=fields.read_text("repoURL"),
        path=fields.read_text("path"),
        ref=fields.read_text("targetRevision"),
        tag_prefix=fields.read_text("tagPrefix"),
        chart=fields.read_text("chart"),
        alias=fields.read_text("ref"),
        name=fields.read_text("name"),
        wire=fields.values,
    )
    if not (helm or kustomize or directory or plugin):
        return source
    from argosy.gitops.application import source_options  # late: most sources have no tool options

    return replace(
        source,
        helm=source_options.read_helm_options(helm) if helm else None,
        kustomize=source_options.read_kustomize_options(kustomize) if kustomize else None,
        directory=source_options.read_directory_options(directory) if directory else None,
        plugin=source_options.read_plugin_options(plugin) if plugin else None,
    )
