"""Inflates the charts of a kustomization (`helmCharts`).

In: its entries, and a function that renders a chart with Helm. Out: resources. Never: a chart outside the repository;
charts are not pulled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from argosy.errors import ManifestError, RenderError
from argosy.gitops.render.kustomize.build_level import Level
from argosy.gitops.render.kustomize.build_trees import Spot
from argosy.gitops.render.kustomize.documents import read_values, resources_of_manifests
from argosy.gitops.render.kustomize.kustomization_fields import CHART, CHART_GLOBALS, Shape
from argosy.gitops.render.kustomize.resource import Resource
from argosy.gitops.render.kustomize.strategic_merge import merge, without_blanks
from argosy.kube.objects import load

if TYPE_CHECKING:
    from argosy.gitops.render.kustomize.kustomization_file import Kustomization

Fields = dict[str, Any]
PLUGIN: Final = "HelmChartInflationGenerator"
PLUGIN_SHAPE: Final[Shape] = {**CHART, **CHART_GLOBALS}
_HOME: Final = "charts"
_MERGES: Final = ("override", "merge", "replace")
_LEGACY: Final = {
    "chartName": "name", "chartVersion": "version", "chartRepoUrl": "repo", "values": "valuesFile",
    "valuesLocal": "valuesInline", "valuesMerge": "valuesMerge", "releaseName": "releaseName",
}  # fmt: skip


def wanted(kustomization: Kustomization) -> list[Fields]:
    """Return the charts of a kustomization, each with its chartHome."""
    legacy = kustomization.listed("helmChartInflationGenerator")
    homes = [each["chartHome"] for each in legacy if each.get("chartHome")]
    # k8s: the last chartHome of the deprecated form applies to all charts, unless helmGlobals is set.
    globals_ = kustomization.get("helmGlobals")
    home = (globals_ or {}).get("chartHome") if globals_ is not None else homes[-1] if homes else ""
    charts = [*kustomization.listed("helmCharts"), *map(_modern, legacy)]
    return [{**each, "chartHome": home or _HOME} for each in charts]


def _modern(given: Fields) -> Fields:
    return {new: given[old] for old, new in _LEGACY.items() if old in given}


def inflated(level: Level, chart: Fields, where: str) -> list[Resource]:
    name, inflate, settings = chart.get("name"), level.build.inflate, level.build.permits
    if not settings.enables_helm or inflate is None:
        message = "helmCharts need --enable-helm: add it to kustomize.buildOptions, or use a Helm source for the chart"
        raise RenderError(message, where=where)
    if not name:
        raise RenderError("an entry of helmCharts has no name: add it", where=where)
    folder = _folder(level, chart, where)
    release, values = _release(chart, where), _values(level, chart, folder, where)
    try:
        manifests = inflate(
            folder.ground.tree,
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
        if not folder.ground.url:
            raise
        # Helm reports files of the chart's own tree.
        raise RenderError(error.message, where=folder.ground.name(error.where), line=error.line) from error
    return resources_of_manifests(manifests, folder.name)


def _release(chart: Fields, where: str) -> str:
    name, template = chart.get("releaseName") or "", chart.get("nameTemplate") or ""
    if name and template:
        raise RenderError(f"chart {chart['name']} has releaseName and nameTemplate: keep one of them", where=where)
    if "{{" in template:
        raise RenderError(f"nameTemplate {template!r} is not supported: set releaseName", where=where)
    return name or template


def _folder(level: Level, chart: Fields, where: str) -> Spot:
    """k8s: a chart with a repo and a version is in a folder of that version."""
    name, version, repository = chart["name"], chart.get("version"), chart.get("repo")
    home = chart["chartHome"].rstrip("/")
    if repository and version:
        found = level.find(f"{home}/{name}-{version}/{name}")
        if found.kind == "folder":
            return found
    found = level.find(f"{home}/{name}")
    if found.kind == "folder" and (not repository or not version or _version(found) == version):
        return found
    place = f"{home}/{name}-{version}" if repository and version else home
    pull = f"helm pull {name} --untar --untardir {place}"
    pull += "".join(f" --{flag} {each}" for flag, each in (("repo", repository), ("version", version)) if each)
    message = f"there is no chart {name} in {place}, and charts are not pulled: run `{pull}` and commit it"
    raise RenderError(message, where=where)


def _version(folder: Spot) -> str:
    spot = folder.ground.find(folder.path, "Chart.yaml", folder.name)
    try:
        given = load(spot.read(), where=spot.name) if spot.kind == "file" else None
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error
    return str(given.get("version") or "") if isinstance(given, dict) else ""


def _values(level: Level, chart: Fields, folder: Spot, where: str) -> list[str | Mapping[str, Any]]:
    inline, mode = chart.get("valuesInline") or {}, chart.get("valuesMerge") or _MERGES[0]
    if mode not in _MERGES:
        raise RenderError(f"valuesMerge is {mode!r}: it must be one of {', '.join(_MERGES)}", where=where)
    if not isinstance(inline, dict):
        raise RenderError("valuesInline must be a mapping", where=where)
    more = [_given(level.file_at(each), folder) for each in chart.get("additionalValuesFiles") or ()]
    if inline and mode == "replace":
        return [inline, *more]
    file = level.permitted(_own_values(level, chart, folder))
    return [_merged(file, inline, mode) if inline else _given(file, folder), *more]


def _own_values(level: Level, chart: Fields, folder: Spot) -> Spot:
    if chart.get("valuesFile"):
        return level.file_at(chart["valuesFile"])
    spot = folder.ground.find(folder.path, "values.yaml", level.file)
    if spot.kind != "file":
        raise RenderError(f"{folder.name} has no values.yaml: add it, or set valuesFile", where=level.file)
    return spot


def _given(file: Spot, folder: Spot) -> str | Mapping[str, Any]:
    return file.path if file.ground is folder.ground else read_values(file.read(), file.name)[0]


def _merged(file: Spot, inline: Fields, mode: str) -> Fields:
    """k8s: merged as a strategic merge patch: a null removes a value of the file, a list replaces the list."""
    values, nulls = read_values(file.read(), file.name)
    under, over = (values, inline) if mode == "override" else (_copied(inline), values)
    without_blanks(under, None, nulls if mode == "override" else None)
    try:
        return merge(under, over, None)
    except RenderError as error:
        raise RenderError(f"valuesInline: {error.message}", where=file.name) from None


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(each) for name, each in value.items()}
    return list(value) if isinstance(value, list) else value
