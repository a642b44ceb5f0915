"""Renders charts with the real Helm, as Argo CD does. In: a tree and a chart's folder. Out: the chart's manifests.

Never: uses the network, a cluster, or a file outside the repository; Helm runs confined, on a copy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from argosy.errors import RenderError
from argosy.gitops.application import Application, HelmOptions, HelmParameter
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.application.step_results import FieldOrigins
from argosy.gitops.render.helm.engine_interface import HelmEngine, HelmRelease, SetFlag, ValuesFile
from argosy.gitops.render.helm.value_files import ValueFileReader
from argosy.gitops.render.settings import FetchCharts
from argosy.kube.objects import Manifest, YamlDialect

__all__ = ["HelmOutput", "inflate", "template"]
_BARE_COMMA = re.compile(r"(?<!\\),")


class HelmOutput(NamedTuple):
    manifests: list[Manifest]
    origins: FieldOrigins


def template(
    tree: FileTree,
    path: str,
    *,
    app: Application,
    options: HelmOptions | None = None,
    kube_version: str = "",
    api_versions: Sequence[str] = (),
    substitute: Callable[[str], str] = str,
    refs: Mapping[str, FileTree] | None = None,
    fetch_charts: FetchCharts | None = None,
    engine: HelmEngine | None = None,
) -> HelmOutput:
    """Render the chart in a folder of the tree, as `helm template` does.

    `substitute` replaces build variables; `refs` holds the other sources by alias, without the dollar sign.
    `fetch_charts` fetches dependencies that are not in the tree.
    """
    from argosy.gitops.render.helm.chart_renderer import run_helm
    from argosy.gitops.render.helm.template_origins import TemplateOrigins

    options = options or HelmOptions()
    if options.version not in ("", "v3"):  # argo: v3 is the only version left
        message = f"unsupported Helm version {options.version!r}; remove source.helm.version"
        raise RenderError(message, where=path or ".")
    files = ValueFileReader(tree, path, substitute, refs or {}, app.has_many_sources)
    release = HelmRelease(
        name=options.release_name or app.name,
        namespace=options.namespace or app.destination.namespace,
        kube_version=_strip_build_suffix(options.kube_version or kube_version),
        api_versions=options.api_versions or tuple(api_versions),
        values=[*files.read(options.value_files, options.ignore_missing_value_files), *_list_inline_values(options)],
        settings=[*build_set_flags(options.parameters, substitute), *_read_file_parameters(options, files)],
        include_crds=not options.skip_crds,
        skip_tests=options.skip_tests,
        skip_schema_validation=options.skip_schema_validation,
    )
    path_manifest_pairs = run_helm(tree, path, release, engine, fetch_charts)
    return HelmOutput([manifest for _, manifest in path_manifest_pairs], TemplateOrigins(tree, path_manifest_pairs))


def _list_inline_values(options: HelmOptions) -> list[ValuesFile]:
    if options.values_object is not None:  # argo: valuesObject wins, even if it is empty
        return [ValuesFile("source.helm.valuesObject", orjson.dumps(options.values_object))]
    return [ValuesFile("source.helm.values", options.values.encode())] if options.values else []


def _read_file_parameters(options: HelmOptions, files: ValueFileReader) -> list[SetFlag]:
    flags = {}
    for i, parameter in enumerate(options.file_parameters):
        file = files.read_one(f"fileParameters[{i}]", parameter.path)
        flags[parameter.name] = SetFlag("set-file", parameter.name, file.content.decode("utf-8", "surrogateescape"))
    return list(flags.values())


def _strip_build_suffix(version: str) -> str:
    """argo: a vendor's build suffix after a plus is dropped."""
    return version.partition("+")[0]


def inflate(
    tree: FileTree,
    chart: str,
    *,
    release_name: str = "",
    namespace: str = "",
    values: Sequence[str | Mapping[str, Any]] = (),
    include_crds: bool = False,
    skip_hooks: bool = False,
    skip_tests: bool = False,
    kube_version: str = "",
    api_versions: Sequence[str] = (),
    engine: HelmEngine | None = None,
) -> list[Manifest]:
    """Render a chart in a folder of the tree for a kustomization's helmCharts.

    `values` are paths in the tree, or mappings; later ones win. The chart's own values.yaml need not be listed.
    """
    from argosy.gitops.render.helm.chart_renderer import run_helm

    files = ValueFileReader(tree, "")
    release = HelmRelease(
        name=release_name or "release-name",  # Helm's default release name
        namespace=namespace,
        kube_version=kube_version,
        api_versions=tuple(api_versions),
        values=[
            files.read_one(f"values[{i}]", f"/{item}")
            if isinstance(item, str)
            else ValuesFile("valuesInline", orjson.dumps(item))
            for i, item in enumerate(values)
        ],
        include_crds=include_crds,
        skip_hooks=skip_hooks,
        skip_tests=skip_tests,
        profile=YamlDialect.KUSTOMIZE,
    )
    return [manifest for _, manifest in run_helm(tree, chart, release, engine)]


def build_set_flags(parameters: Sequence[HelmParameter], substitute: Callable[[str], str]) -> list[SetFlag]:
    """argo: of parameters with the same name the last wins; all forceString parameters come after the others."""
    values = {parameter.name: parameter.value for parameter in parameters if not parameter.is_text}
    string_values = {parameter.name: parameter.value for parameter in parameters if parameter.is_text}
    return [
        *(SetFlag("set", name, escape_commas(substitute(value))) for name, value in values.items()),
        *(SetFlag("set-string", name, escape_commas(substitute(value))) for name, value in string_values.items()),
    ]


def escape_commas(value: str) -> str:
    """argo: a comma belongs to the value, unless the value is a list in braces."""
    if value.startswith("{") and value.endswith("}"):
        return value
    return _BARE_COMMA.sub(r"\\,", value)
