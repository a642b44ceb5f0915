"""Content of a repository: Kustomize and Helm folders, and the parameters of a source.

In: a tree, a folder. Out: paths and tools; parameters that can be set. Never: runs a tool; reads outside the tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from argosy.errors import LimitError, UnnamedSubmodule, UserError
from argosy.gitops.application import read_source
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.kustomize.kustomization_file import KUSTOMIZATION_FILE_NAMES
from argosy.gitops.render.settings import BuildSettings
from argosy.gitops.render.tool_detection import CHART_FILE, HELM, KUSTOMIZE, detect_tool, resolve_source_folder
from argosy.kube.objects import read_yaml

MAX_FOLDERS: Final = 5_000
MAX_FOLDER_DEPTH: Final = 30
MAX_PARAMETERS: Final = 5_000


class AppFolder(NamedTuple):
    path: str
    tool: str


def list_app_folders(tree: FileTree) -> list[AppFolder]:
    """Folders with a kustomization or a chart. argo: folders of plain manifests are not listed."""
    return sorted(_walk_app_folders(tree))


def _walk_app_folders(tree: FileTree) -> Iterator[AppFolder]:
    pending, folder_count = [""], 0
    while pending:
        folder = pending.pop()
        folder_count += 1
        if folder_count > MAX_FOLDERS:
            raise LimitError(f"the repository has more than {MAX_FOLDERS} folders; enter the path of the application")
        try:
            entries = tree.list_folder(folder)
        except UnnamedSubmodule:
            continue  # an error for the Applications that read it, not for the list
        names = {entry.name for entry in entries if entry.kind == "file"}
        if names & set(KUSTOMIZATION_FILE_NAMES):
            yield AppFolder(folder or ".", KUSTOMIZE)
        elif CHART_FILE in names:
            yield AppFolder(folder or ".", HELM)
        if folder.count("/") < MAX_FOLDER_DEPTH:
            inner = [entry.name for entry in entries if entry.kind == "folder" and not entry.name.startswith(".")]
            pending += [f"{folder}/{name}" if folder else name for name in inner]


def describe_source(tree: FileTree, source_fields: dict[str, Any], settings: BuildSettings) -> dict[str, Any]:
    """argo: tool and parameters of a source's folder. Raises UserError."""
    source = read_source(source_fields)
    folder = "" if source.chart else resolve_source_folder(tree, source.path)
    tool = detect_tool(tree, folder, source, settings)
    if tool == KUSTOMIZE:
        return {"type": tool, "kustomize": {"images": _read_images(tree, folder)}}
    if tool == HELM:
        return {"type": tool, "helm": _describe_chart(tree, folder)}
    return {"type": tool, "directory": {}} if tool == "Directory" else {"type": tool}


def _read_images(tree: FileTree, folder: str) -> list[str]:
    """Images that the kustomization sets."""
    prefix = f"{folder}/" if folder else ""
    names = {item.name for item in tree.list_folder(folder)}
    file = next((name for name in KUSTOMIZATION_FILE_NAMES if name in names), "")
    kustomization = read_yaml(tree.read_file(prefix + file), where=prefix + file) if file else {}
    images = kustomization.get("images") if isinstance(kustomization, dict) else None
    return [_format_image(item) for item in images or () if isinstance(item, dict) and item.get("name")]


def _format_image(entry: dict[str, Any]) -> str:
    name = str(entry.get("newName") or entry["name"])
    if digest := entry.get("digest"):
        return f"{name}@{digest}"
    return f"{name}:{entry['newTag']}" if entry.get("newTag") else name


def _describe_chart(tree: FileTree, folder: str) -> dict[str, Any]:
    prefix = f"{folder}/" if folder else ""
    names = sorted(entry.name for entry in tree.list_folder(folder) if entry.kind == "file")
    chart = read_yaml(tree.read_file(prefix + CHART_FILE), where=prefix + CHART_FILE)
    values = tree.read_file(f"{prefix}values.yaml").decode(errors="replace") if "values.yaml" in names else ""
    parsed_values = read_yaml(values, where=f"{prefix}values.yaml") if values else {}
    return {
        "name": str(chart.get("name") or "") if isinstance(chart, dict) else "",
        "valueFiles": [name for name in names if "values" in name and name.endswith((".yaml", ".yml"))],
        "values": values,
        "parameters": [{"name": name, "value": text} for name, text in _flatten_values("", parsed_values)],
        "fileParameters": [],
    }


def _flatten_values(path: str, value: Any) -> list[tuple[str, str]]:
    """argo: every leaf value by its path, in the syntax of `--set`."""
    leaves: list[tuple[str, str]] = []
    pending = [(path, value)]
    while pending:
        name, node = pending.pop()
        if len(leaves) + len(pending) > MAX_PARAMETERS:
            raise UserError(f"values.yaml has more than {MAX_PARAMETERS} values; read the file instead")
        if isinstance(node, dict):
            pending += [(f"{name}.{key}" if name else str(key), inner) for key, inner in node.items()]
        elif isinstance(node, list):
            pending += [(f"{name}[{index}]", inner) for index, inner in enumerate(node)]
        elif name and node is not None:
            leaves.append((name, str(node).lower() if isinstance(node, bool) else str(node)))
    return sorted(leaves)
