"""What a chart says of itself, and whether the charts that it needs are there.

In: a chart's folder in a tree. Out: its name, or a RenderError that names what is missing. Never: fetches a chart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from argosy.model.errors import ManifestError, RenderError
from argosy.model.manifest import load
from argosy.model.tree import Tree


def check_chart(tree: Tree, folder: str) -> str:
    """The chart's name. Raises RenderError where Chart.yaml or a declared dependency is missing."""
    file = _within(folder, "Chart.yaml")
    fields = _fields(tree, file)
    if fields is None:
        raise RenderError("there is no such file, so this is no chart; correct the source's path", where=file)
    if fields.get("type") == "library":
        raise RenderError("is a library chart, which gives nothing by itself; name a chart that uses it", where=file)
    declared = [(file, each) for each in _dependencies(fields)]
    if (old := _fields(tree, requirements := _within(folder, "requirements.yaml"))) is not None:
        declared += [(requirements, each) for each in _dependencies(old)]
    for where, each in declared:
        if not _is_vendored(tree, folder, each["name"]):
            message = f"the chart {each['name']} is declared, but it is not in charts/; run `helm dependency build`"
            raise RenderError(f"{message} and commit what it makes", where=where)
    return str(fields.get("name") or "")


def _fields(tree: Tree, file: str) -> Mapping[str, Any] | None:
    entry = tree.entry(file)
    if entry is None or entry.kind != "file":
        return None
    try:
        value = load(tree.read(file), where=file)
    except ManifestError as error:
        raise RenderError(error.message, where=error.where, line=error.line) from error
    if not isinstance(value, Mapping):
        raise RenderError("is not a map of fields; write name, version and apiVersion", where=file)
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
