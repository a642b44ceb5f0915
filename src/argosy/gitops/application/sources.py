"""The sources of an Application.

In: a source in Argo CD's format. Out: frozen values, or a ManifestError that names the field. Never: fetches or renders
anything; unknown fields are ignored, as the API server does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from argosy.kube.objects.strict_typed_field_reader import FieldReader

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


def remove_empty_options(wire: Mapping[str, Any]) -> dict[str, Any]:
    """argo: options of a tool that all have their zero values are no options."""
    tools = ("helm", "kustomize", "directory")
    return {name: value for name, value in wire.items() if name not in tools or not _is_zero(value)}


def _is_zero(value: Any) -> bool:
    return all(map(_is_zero, value.values())) if isinstance(value, Mapping) else not value


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
