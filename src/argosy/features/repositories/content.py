"""Content of a repository: Kustomize and Helm folders, and the parameters of a source.

In: a tree, a folder. Out: paths and tools; parameters that can be set. Never: runs a tool; reads outside the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from argosy.errors import LimitError, UserError
from argosy.gitops.application import read_source
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.kustomize.kustomization_file import NAMES
from argosy.gitops.render.settings import BuildSettings
from argosy.gitops.render.tool_detection import CHART_FILE, HELM, KUSTOMIZE, detect, source_folder
from argosy.kube.objects import load

MOST_FOLDERS: Final = 5_000
MOST_DEPTH: Final = 30
MOST_PARAMETERS: Final = 5_000


class FoundApp(NamedTuple):
    path: str
    tool: str


def apps_in(tree: Tree) -> list[FoundApp]:
    """Folders with a kustomization or a chart. argo: folders of plain manifests are not listed."""
    return sorted(_apps(tree))


def _apps(tree: Tree) -> Iterator[FoundApp]:
    todo, seen = [""], 0
    while todo:
        folder = todo.pop()
        seen += 1
        if seen > MOST_FOLDERS:
            raise LimitError(f"the repository has more than {MOST_FOLDERS} folders; enter the path of the application")
        entries = tree.listing(folder)
        names = {each.name for each in entries if each.kind == "file"}
        if names & set(NAMES):
            yield FoundApp(folder or ".", KUSTOMIZE)
        elif CHART_FILE in names:
            yield FoundApp(folder or ".", HELM)
        if folder.count("/") < MOST_DEPTH:
            inner = [each.name for each in entries if each.kind == "folder" and not each.name.startswith(".")]
            todo += [f"{folder}/{name}" if folder else name for name in inner]


def details(tree: Tree, given: dict[str, Any], settings: BuildSettings) -> dict[str, Any]:
    """argo: tool and parameters of a source's folder. Raises UserError."""
    source = read_source(given)
    folder = source_folder(tree, source.path)
    tool = detect(tree, folder, source, settings)
    if tool == KUSTOMIZE:
        return {"type": tool, "kustomize": {"images": _images(tree, folder)}}
    if tool == HELM:
        return {"type": tool, "helm": _chart(tree, folder)}
    return {"type": tool, "directory": {}} if tool == "Directory" else {"type": tool}


def _images(tree: Tree, folder: str) -> list[str]:
    """Images that the kustomization sets."""
    lead = f"{folder}/" if folder else ""
    names = {each.name for each in tree.listing(folder)}
    file = next((name for name in NAMES if name in names), "")
    given = load(tree.read(lead + file), where=lead + file) if file else {}
    images = given.get("images") if isinstance(given, dict) else None
    return [_image(each) for each in images or () if isinstance(each, dict) and each.get("name")]


def _image(given: dict[str, Any]) -> str:
    name = str(given.get("newName") or given["name"])
    if digest := given.get("digest"):
        return f"{name}@{digest}"
    return f"{name}:{given['newTag']}" if given.get("newTag") else name


def _chart(tree: Tree, folder: str) -> dict[str, Any]:
    lead = f"{folder}/" if folder else ""
    names = sorted(each.name for each in tree.listing(folder) if each.kind == "file")
    chart = load(tree.read(lead + CHART_FILE), where=lead + CHART_FILE)
    values = tree.read(f"{lead}values.yaml").decode(errors="replace") if "values.yaml" in names else ""
    found = load(values, where=f"{lead}values.yaml") if values else {}
    return {
        "name": str(chart.get("name") or "") if isinstance(chart, dict) else "",
        "valueFiles": [name for name in names if "values" in name and name.endswith((".yaml", ".yml"))],
        "values": values,
        "parameters": [{"name": name, "value": text} for name, text in _flat("", found)],
        "fileParameters": [],
    }


def _flat(path: str, value: Any) -> list[tuple[str, str]]:
    """argo: every leaf value by its path, in the syntax of `--set`."""
    found: list[tuple[str, str]] = []
    todo = [(path, value)]
    while todo:
        name, each = todo.pop()
        if len(found) + len(todo) > MOST_PARAMETERS:
            raise UserError(f"values.yaml has more than {MOST_PARAMETERS} values; read the file instead")
        if isinstance(each, dict):
            todo += [(f"{name}.{key}" if name else str(key), inner) for key, inner in each.items()]
        elif isinstance(each, list):
            todo += [(f"{name}[{place}]", inner) for place, inner in enumerate(each)]
        elif name and each is not None:
            found.append((name, str(each).lower() if isinstance(each, bool) else str(each)))
    return sorted(found)
