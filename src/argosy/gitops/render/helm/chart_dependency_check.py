"""Reads Chart.yaml, and checks that the chart's dependencies are present.

In: a chart's folder in a tree. Out: its name and the local charts it depends on, or a RenderError that names what is
missing. Never: fetches a chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from argosy.errors import ManifestError, RenderError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.kustomize.tree_paths import is_within, join_path
from argosy.gitops.render.lfs_check import reject_lfs_pointer
from argosy.kube.objects import read_yaml


class Chart(NamedTuple):
    name: str
    mounts: Mapping[str, str]  # path in charts/ → folder of a chart in the same repository
    folder_by_chart_name: Mapping[str, str]  # Helm's name of a subchart → its folder in charts/, if they differ


def read_chart(tree: FileTree, folder: str) -> Chart:
    """Raise RenderError if Chart.yaml or a declared dependency is missing."""
    file = _join_path(folder, "Chart.yaml")
    fields = _read_fields(tree, file)
    if fields is None:
        raise RenderError("there is no such file, so this is no chart; correct the source's path", where=file)
    if fields.get("type") == "library":
        raise RenderError("is a library chart, which renders nothing; use a chart that depends on it", where=file)
    dependencies = [(file, dependency) for dependency in _list_dependencies(fields)]
    if (requirements_fields := _read_fields(tree, requirements := _join_path(folder, "requirements.yaml"))) is not None:
        dependencies += [(requirements, dependency) for dependency in _list_dependencies(requirements_fields)]
    mounts = {}
    for where, dependency in dependencies:
        name = dependency["name"]
        if _is_vendored(tree, folder, name):
            continue
        if not (local_chart := _find_local_chart(tree, folder, dependency, where)):
            message = f"dependency {name} is declared but not in charts/; run `helm dependency build`"
            raise RenderError(f"{message} and commit the result", where=where)
        mounts[_join_path(folder, f"charts/{name}")] = local_chart
    return Chart(
        str(fields.get("name") or ""),
        mounts,
        _map_chart_folders(tree, folder, [dependency for _, dependency in dependencies]),
    )


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
