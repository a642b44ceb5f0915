"""Reads Chart.yaml, and checks that the chart's dependencies are present.

In: a chart's folder in a tree. Out: its name and the local charts it depends on, or a RenderError that names what is
missing. Never: fetches a chart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from argosy.errors import ManifestError, RenderError
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.kustomize.tree_paths import is_within, joined
from argosy.gitops.render.lfs_check import refuse_pointer
from argosy.kube.objects import load


class Chart(NamedTuple):
    name: str
    mounts: Mapping[str, str]  # path in charts/ → folder of a chart in the same repository
    folders: Mapping[str, str]  # Helm's name of a subchart → its folder in charts/, if they differ


def read_chart(tree: Tree, folder: str) -> Chart:
    """Raise RenderError if Chart.yaml or a declared dependency is missing."""
    file = _within(folder, "Chart.yaml")
    fields = _fields(tree, file)
    if fields is None:
        raise RenderError("there is no such file, so this is no chart; correct the source's path", where=file)
    if fields.get("type") == "library":
        raise RenderError("is a library chart, which renders nothing; use a chart that depends on it", where=file)
    declared = [(file, each) for each in _dependencies(fields)]
    if (old := _fields(tree, requirements := _within(folder, "requirements.yaml"))) is not None:
        declared += [(requirements, each) for each in _dependencies(old)]
    mounts = {}
    for where, each in declared:
        name = each["name"]
        if _is_vendored(tree, folder, name):
            continue
        if not (found := _beside(tree, folder, each, where)):
            message = f"dependency {name} is declared but not in charts/; run `helm dependency build`"
            raise RenderError(f"{message} and commit the result", where=where)
        mounts[_within(folder, f"charts/{name}")] = found
    return Chart(str(fields.get("name") or ""), mounts, _folders(tree, folder, [each for _, each in declared]))


def _folders(tree: Tree, folder: str, declared: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    charts = _within(folder, "charts")
    named = {
        _name_of(tree, f"{charts}/{entry.name}"): entry.name for entry in tree.listing(charts) if entry.kind == "folder"
    }
    aliases = {str(each["alias"]): each["name"] for each in declared if each.get("alias")}
    return {**named, **{alias: named.get(name, name) for alias, name in aliases.items()}}


def _beside(tree: Tree, folder: str, dependency: Mapping[str, Any], where: str) -> str:
    """argo: a dependency at `file://../x` in the same repository is used in place; empty if there is none."""
    repository = str(dependency.get("repository") or "")
    if not repository.startswith("file://") or repository.startswith("file:///"):
        return ""
    found = joined(folder, repository.removeprefix("file://"), where)
    if is_within(folder, found):
        raise RenderError(f"dependency {dependency['name']} contains this chart; remove the cycle", where=where)
    return found if _name_of(tree, found) == dependency["name"] else ""


def _fields(tree: Tree, file: str) -> Mapping[str, Any] | None:
    entry = tree.entry(file)
    if entry is None or entry.kind != "file":
        return None
    try:
        value = load(refuse_pointer(tree.read(file), file), where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error
    if not isinstance(value, Mapping):
        raise RenderError("must be a mapping with name, version and apiVersion", where=file)
    return value


def _dependencies(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = fields.get("dependencies")
    if not isinstance(found, list):
        return []
    return [each for each in found if isinstance(each, Mapping) and isinstance(each.get("name"), str)]


def _is_vendored(tree: Tree, folder: str, name: str) -> bool:
    charts = _within(folder, "charts")
    for entry in tree.listing(charts):
        if entry.kind == "folder" and (entry.name == name or _name_of(tree, f"{charts}/{entry.name}") == name):
            return True
        if entry.kind == "file" and entry.name.startswith(f"{name}-") and entry.name.endswith((".tgz", ".tar.gz")):
            return True
    return False


def _name_of(tree: Tree, chart: str) -> str:
    return str((_fields(tree, f"{chart}/Chart.yaml") or {}).get("name") or "")


def _within(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
