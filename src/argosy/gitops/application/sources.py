"""The sources of an Application.

In: a source in Argo CD's format. Out: frozen values, or a ManifestError that names the field. Never: fetches or renders
anything; unknown fields are ignored, as the API server does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from argosy.kube.objects.field_reader import Fields

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


def read_source(wire: Mapping[str, Any], where: str = "") -> Source:
    return source_of(Fields(wire, where))


def source_of(given: Fields) -> Source:
    helm, kustomize = given.optional("helm"), given.optional("kustomize")
    directory, plugin = given.optional("directory"), given.optional("plugin")
    source = Source(
        repo_url=given.text("repoURL"),
        path=given.text("path"),
        ref=given.text("targetRevision"),
        tag_prefix=given.text("tagPrefix"),
        chart=given.text("chart"),
        alias=given.text("ref"),
        name=given.text("name"),
        wire=given.values,
    )
    if not (helm or kustomize or directory or plugin):
        return source
    from argosy.gitops.application import source_options  # late: most sources have no tool options

    return replace(
        source,
        helm=source_options.helm_of(helm) if helm else None,
        kustomize=source_options.kustomize_of(kustomize) if kustomize else None,
        directory=source_options.directory_of(directory) if directory else None,
        plugin=source_options.plugin_of(plugin) if plugin else None,
    )
