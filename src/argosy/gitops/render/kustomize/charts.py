"""Inflates the charts of a kustomization (`helmCharts`).

In: its entries, and a function that renders a chart with Helm. Out: resources. Never: a chart outside the repository;
charts are not pulled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from argosy.errors import ManifestError, RenderError
from argosy.gitops.render.kustomize.kustomization_build_state import KustomizationLevel
from argosy.gitops.render.kustomize.kustomization_schema import CHART, CHART_GLOBALS, FieldSchema
from argosy.gitops.render.kustomize.resource import KustomizeResource
from argosy.gitops.render.kustomize.resource_file_parser import build_resources, read_chart_values
from argosy.gitops.render.kustomize.source_and_remote_trees import TreeLocation
from argosy.gitops.render.kustomize.strategic_merge import merge_patch, remove_blank_values
from argosy.kube.objects import read_yaml

if TYPE_CHECKING:
    from argosy.gitops.render.kustomize.kustomization_file import KustomizationFile

Fields = dict[str, Any]
PLUGIN_KIND: Final = "HelmChartInflationGenerator"
PLUGIN_SCHEMA: Final[FieldSchema] = {**CHART, **CHART_GLOBALS}
_DEFAULT_CHART_HOME: Final = "charts"
_VALUES_MERGE_MODES: Final = ("override", "merge", "replace")
_DEPRECATED_FIELD_NAMES: Final = {
    "chartName": "name", "chartVersion": "version", "chartRepoUrl": "repo", "values": "valuesFile",
    "valuesLocal": "valuesInline", "valuesMerge": "valuesMerge", "releaseName": "releaseName",
}  # fmt: skip


def list_charts(kustomization: KustomizationFile) -> list[Fields]:
    """Return the charts of a kustomization, each with its chartHome."""
    legacy = kustomization.get_list("helmChartInflationGenerator")
    homes = [chart["chartHome"] for chart in legacy if chart.get("chartHome")]
    # k8s: the last chartHome of the deprecated form applies to all charts, unless helmGlobals is set.
    globals_ = kustomization.get("helmGlobals")
    home = (globals_ or {}).get("chartHome") if globals_ is not None else homes[-1] if homes else ""
    charts = [*kustomization.get_list("helmCharts"), *map(_convert_deprecated_chart, legacy)]
    return [{**chart, "chartHome": home or _DEFAULT_CHART_HOME} for chart in charts]


def _convert_deprecated_chart(fields: Fields) -> Fields:
    return {new: fields[old] for old, new in _DEPRECATED_FIELD_NAMES.items() if old in fields}


def inflate_chart(level: KustomizationLevel, chart: Fields, where: str) -> list[KustomizeResource]:
    name, inflate, settings = chart.get("name"), level.build.inflate, level.build.settings
    if not settings.is_helm_enabled or inflate is None:
        message = "helmCharts need --enable-helm: add it to kustomize.buildOptions, or use a Helm source for the chart"
        raise RenderError(message, where=where)
    if not name:
        raise RenderError("an entry of helmCharts has no name: add it", where=where)
    folder = _locate_chart(level, chart, where)
    release, values = _read_release_name(chart, where), _list_values(level, chart, folder, where)
    try:
        manifests = inflate(
            folder.build_tree.tree,
            folder.path,
            release_name=release,
            namespace=chart.get("namespace") or "",
            values=values,
            include_crds=bool(chart.get("includeCRDs")),
            skip_hooks=bool(chart.get("skipHooks")),
            skip_tests=bool(chart.get("skipTests")),
            kube_version=chart.get("kubeVersion") or settings.kube_version,
            api_versions=chart.get("apiVersions") or settings.api_versions,
        )
    except RenderError as error:
        if not folder.build_tree.url:
            raise
        # Helm reports files of the chart's own tree.
        raise RenderError(error.message, where=folder.build_tree.format_path(error.where), line=error.line) from error
    return build_resources(manifests, folder.display_path)


def _read_release_name(chart: Fields, where: str) -> str:
    name, template = chart.get("releaseName") or "", chart.get("nameTemplate") or ""
    if name and template:
        raise RenderError(f"chart {chart['name']} has releaseName and nameTemplate: keep one of them", where=where)
    if "{{" in template:
        raise RenderError(f"nameTemplate {template!r} is not supported: set releaseName", where=where)
    return name or template


def _locate_chart(level: KustomizationLevel, chart: Fields, where: str) -> TreeLocation:
    """k8s: a chart with a repo and a version is in a folder of that version."""
    name, version, repository = chart["name"], chart.get("version"), chart.get("repo")
    home = chart["chartHome"].rstrip("/")
    if repository and version:
        location = level.locate(f"{home}/{name}-{version}/{name}")
        if location.kind == "folder":
            return location
    location = level.locate(f"{home}/{name}")
    if location.kind == "folder" and (not repository or not version or _read_chart_version(location) == version):
        return location
    pull_folder = f"{home}/{name}-{version}" if repository and version else home
    pull = f"helm pull {name} --untar --untardir {pull_folder}"
    pull += "".join(
        f" --{flag} {flag_value}" for flag, flag_value in (("repo", repository), ("version", version)) if flag_value
    )
    message = f"there is no chart {name} in {pull_folder}, and charts are not pulled: run `{pull}` and commit it"
    raise RenderError(message, where=where)


def _read_chart_version(folder: TreeLocation) -> str:
    location = folder.build_tree.locate(folder.path, "Chart.yaml", folder.display_path)
    try:
        fields = read_yaml(location.read(), where=location.display_path) if location.kind == "file" else None
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error
    return str(fields.get("version") or "") if isinstance(fields, dict) else ""


def _list_values(
    level: KustomizationLevel, chart: Fields, folder: TreeLocation, where: str
) -> list[str | Mapping[str, Any]]:
    inline, mode = chart.get("valuesInline") or {}, chart.get("valuesMerge") or _VALUES_MERGE_MODES[0]
    if mode not in _VALUES_MERGE_MODES:
        raise RenderError(f"valuesMerge is {mode!r}: it must be one of {', '.join(_VALUES_MERGE_MODES)}", where=where)
    if not isinstance(inline, dict):
        raise RenderError("valuesInline must be a mapping", where=where)
    additional_values = [
        _build_values_argument(level.locate_file(path), folder) for path in chart.get("additionalValuesFiles") or ()
    ]
    if inline and mode == "replace":
        return [inline, *additional_values]
    file = level.check_readable(_locate_values_file(level, chart, folder))
    return [
        _merge_inline_values(file, inline, mode) if inline else _build_values_argument(file, folder),
        *additional_values,
    ]


def _locate_values_file(level: KustomizationLevel, chart: Fields, folder: TreeLocation) -> TreeLocation:
    if chart.get("valuesFile"):
        return level.locate_file(chart["valuesFile"])
    location = folder.build_tree.locate(folder.path, "values.yaml", level.file)
    if location.kind != "file":
        raise RenderError(f"{folder.display_path} has no values.yaml: add it, or set valuesFile", where=level.file)
    return location


def _build_values_argument(file: TreeLocation, folder: TreeLocation) -> str | Mapping[str, Any]:
    return file.path if file.build_tree is folder.build_tree else read_chart_values(file.read(), file.display_path)[0]


def _merge_inline_values(file: TreeLocation, inline: Fields, mode: str) -> Fields:
    """k8s: merged as a strategic merge patch: a null removes a value of the file, a list replaces the list."""
    values, nulls = read_chart_values(file.read(), file.display_path)
    base_values, overriding_values = (values, inline) if mode == "override" else (_copy_value(inline), values)
    remove_blank_values(base_values, None, nulls if mode == "override" else None)
    try:
        return merge_patch(base_values, overriding_values, None)
    except RenderError as error:
        raise RenderError(f"valuesInline: {error.message}", where=file.display_path) from None


def _copy_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copy_value(item) for name, item in value.items()}
    return list(value) if isinstance(value, list) else value
