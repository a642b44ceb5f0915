"""Reads Chart.yaml, and finds the chart's dependencies.

In: a chart's folder in a tree, a function that fetches charts. Out: its name and the charts it depends on, or a
RenderError that names what is missing. Never: fetches a chart that is in the tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from argosy.errors import ManifestError, RenderError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.helm.chart_lock import list_locked_versions
from argosy.gitops.render.kustomize.tree_paths import is_within, join_path
from argosy.gitops.render.lfs_check import reject_lfs_pointer
from argosy.gitops.render.settings import ChartRequest, FetchCharts
from argosy.kube.objects import read_yaml


class Chart(NamedTuple):
    name: str
    mounts: Mapping[str, str]  # path in charts/ → folder of a chart in the same repository
    folder_by_chart_name: Mapping[str, str]  # Helm's name of a subchart → its folder in charts/, if they differ
    fetched: Mapping[str, FileTree]  # path in charts/ → a chart of a Helm repository


class _DeclaredDependency(NamedTuple):
    file: str  # that declares it
    position: int  # in this file
    fields: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.fields["name"])


def read_chart(tree: FileTree, folder: str, fetch_charts: FetchCharts | None = None) -> Chart:
    """Raise RenderError if Chart.yaml is missing, or a declared dependency that cannot be fetched."""
    file = _join_path(folder, "Chart.yaml")
    fields = _read_fields(tree, file)
    if fields is None:
        raise RenderError("there is no such file, so this is no chart; correct the source's path", where=file)
    if fields.get("type") == "library":
        raise RenderError("is a library chart, which renders nothing; use a chart that depends on it", where=file)
    dependencies = _list_declared(fields, file)
    if (requirements_fields := _read_fields(tree, requirements := _join_path(folder, "requirements.yaml"))) is not None:
        dependencies += _list_declared(requirements_fields, requirements)
    mounts, missing = {}, []
    for dependency in dependencies:
        if _is_vendored(tree, folder, dependency.name):
            continue
        if local_chart := _find_local_chart(tree, folder, dependency.fields, dependency.file):
            mounts[_join_path(folder, f"charts/{dependency.name}")] = local_chart
        else:
            missing.append(dependency)
    return Chart(
        str(fields.get("name") or ""),
        mounts,
        _map_chart_folders(tree, folder, [dependency.fields for dependency in dependencies]),
        _fetch_missing(tree, folder, dependencies, missing, fetch_charts) if missing else {},
    )


def _list_declared(fields: Mapping[str, Any], file: str) -> list[_DeclaredDependency]:
    return [_DeclaredDependency(file, position, entry) for position, entry in enumerate(_list_dependencies(fields))]


def _fetch_missing(
    tree: FileTree,
    folder: str,
    dependencies: Sequence[_DeclaredDependency],
    missing: Sequence[_DeclaredDependency],
    fetch_charts: FetchCharts | None,
) -> dict[str, FileTree]:
    """Fetch what `helm dependency build` downloads: the locked versions, or without a lock those in Chart.yaml."""
    requests: dict[ChartRequest, str] = {}  # the folder in charts/ of each
    for dependency in missing:
        repository = str(dependency.fields.get("repository") or "")
        if fetch_charts is None or not repository or repository.startswith("file://"):
            message = f"dependency {dependency.name} is declared but not in charts/; run `helm dependency build`"
            raise RenderError(f"{message} and commit the result", where=dependency.file)
        request = ChartRequest(repository, dependency.name, _find_version(tree, folder, dependencies, dependency))
        is_taken = dependency.name in requests.values()  # two versions of one chart
        requests.setdefault(request, f"{dependency.name}-{len(requests)}" if is_taken else dependency.name)
    assert fetch_charts is not None
    charts = fetch_charts(list(requests))
    return {_join_path(folder, f"charts/{name}"): chart for name, chart in zip(requests.values(), charts, strict=True)}


def _find_version(
    tree: FileTree, folder: str, dependencies: Sequence[_DeclaredDependency], dependency: _DeclaredDependency
) -> str:
    lock_file = _join_path(folder, "Chart.lock" if dependency.file.endswith("Chart.yaml") else "requirements.lock")
    lock = _read_fields(tree, lock_file)
    version = str(dependency.fields.get("version") or "")
    if lock is not None:
        declared = [entry.fields for entry in dependencies if entry.file == dependency.file]
        version = list_locked_versions(lock, declared, lock_file, dependency.file)[dependency.position]
    if not version:
        raise RenderError(f"dependency {dependency.name} has no version; add it", where=dependency.file)
    return version


def _map_chart_folders(tree: FileTree, folder: str, dependencies: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    charts = _join_path(folder, "charts")
    folder_by_name = {
        _read_chart_name(tree, f"{charts}/{entry.name}"): entry.name
        for entry in tree.list_folder(charts)
        if entry.kind == "folder"
    }
    aliases = {str(dependency["alias"]): dependency["name"] for dependency in dependencies if dependency.get("alias")}
    return {**folder_by_name, **{alias: folder_by_name.get(name, name) for alias, name in aliases.items()}}


def _find_local_chart(tree: FileTree, folder: str, dependency: Mapping[str, Any], where: str) -> str:
    """argo: a dependency at `file://../x` in the same repository is used in place; empty if there is none."""
    repository = str(dependency.get("repository") or "")
    if not repository.startswith("file://") or repository.startswith("file:///"):
        return ""
    chart_folder = join_path(folder, repository.removeprefix("file://"), where)
    if is_within(folder, chart_folder):
        raise RenderError(f"dependency {dependency['name']} contains this chart; remove the cycle", where=where)
    return chart_folder if _read_chart_name(tree, chart_folder) == dependency["name"] else ""


def _read_fields(tree: FileTree, file: str) -> Mapping[str, Any] | None:
    entry = tree.find_entry(file)
    if entry is None or entry.kind != "file":
        return None
    try:
        value = read_yaml(reject_lfs_pointer(tree.read_file(file), file), where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error
    if not isinstance(value, Mapping):
        raise RenderError("must be a mapping with name, version and apiVersion", where=file)
    return value


def _list_dependencies(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    dependencies = fields.get("dependencies")
    if not isinstance(dependencies, list):
        return []
    return [
        dependency
        for dependency in dependencies
        if isinstance(dependency, Mapping) and isinstance(dependency.get("name"), str)
    ]


def _is_vendored(tree: FileTree, folder: str, name: str) -> bool:
    charts = _join_path(folder, "charts")
    for entry in tree.list_folder(charts):
        if entry.kind == "folder" and (entry.name == name or _read_chart_name(tree, f"{charts}/{entry.name}") == name):
            return True
        if entry.kind == "file" and entry.name.startswith(f"{name}-") and entry.name.endswith((".tgz", ".tar.gz")):
            return True
    return False


def _read_chart_name(tree: FileTree, chart: str) -> str:
    return str((_read_fields(tree, f"{chart}/Chart.yaml") or {}).get("name") or "")


def _join_path(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
