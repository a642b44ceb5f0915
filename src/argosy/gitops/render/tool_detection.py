"""Detects the tool of a source. In: a tree, a source. Out: its folder and the tool. Never: opens a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from argosy.errors import RenderError
from argosy.gitops.application import Source
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.render.kustomize.kustomization_file import KUSTOMIZATION_FILE_NAMES
from argosy.gitops.render.kustomize.tree_paths import join_path, resolve_path
from argosy.gitops.render.settings import BuildSettings
from argosy.gitops.render.submodule_detection import find_submodule, format_submodule_error
from argosy.languages.globs import compile_glob

DIRECTORY: Final = "Directory"
HELM: Final = "Helm"
KUSTOMIZE: Final = "Kustomize"
PLUGIN: Final = "Plugin"
_ENABLE_KEY_BY_TOOL: Final = {HELM: "helm.enable", KUSTOMIZE: "kustomize.enable"}
CHART_FILE: Final = "Chart.yaml"


def resolve_source_folder(tree: FileTree, path: str) -> str:
    """Return the folder that a source's path names, with links resolved."""
    where = path or "."
    if path.startswith("/"):
        message = "the source's path is absolute: make it relative to the root of the repository"
        raise RenderError(message, where=where)
    folder, kind = resolve_path(tree, join_path("", path, where), where)
    if not kind and (submodule := find_submodule(tree, folder)):
        raise RenderError(format_submodule_error(submodule), where=where)
    if not kind:  # argo: its words
        raise RenderError("app path does not exist: correct the source's path", where=where)
    if kind != "folder":
        raise RenderError("is a file, but a source's path must be a folder: use the folder of the file", where=where)
    return folder


def detect_tool(
    tree: FileTree,
    folder: str,
    source: Source,
    settings: BuildSettings,
    notes: list[str] | None = None,
    has_sidecar: Callable[[], bool] | None = None,
) -> str:
    """Return the tool that the source configures, or else the tool that the files in its folder belong to.

    `has_sidecar` says whether a plug-in of the installation's sidecars supports the source.
    argo: a disabled tool counts as not installed: its files are read as they are. A note says so.
    """
    options_by_tool = {
        HELM: source.helm,
        KUSTOMIZE: source.kustomize,
        DIRECTORY: source.directory,
        PLUGIN: source.plugin,
    }
    configured_tools = [tool for tool, options in options_by_tool.items() if options is not None]
    where = source.path or "."
    if len(configured_tools) > 1:
        message = f"the source has settings for {' and '.join(configured_tools)}: keep those of one tool"
        raise RenderError(message, where=where)
    tools = configured_tools or _list_tools_of_files(tree, folder, settings, where, has_sidecar)
    disabled = [tool for tool in tools if tool in settings.disabled_tools]
    tool = next((tool for tool in tools if tool not in disabled), DIRECTORY)
    if disabled and notes is not None:
        keys = " and ".join(_ENABLE_KEY_BY_TOOL.get(name, name) for name in disabled)
        notes.append(
            f"{where}: this needs {' or '.join(disabled)}, but {keys} in argocd-cm disables it: the files are read "
            f"{'as they are' if tool == DIRECTORY else f'by {tool}'}; enable it, or set directory in the source"
        )
    return tool


def _list_tools_of_files(
    tree: FileTree, folder: str, settings: BuildSettings, where: str, has_sidecar: Callable[[], bool] | None
) -> list[str]:
    folder_prefix = f"{folder}/" if folder else ""
    for plugin, command in settings.plugins.items():
        if command.file_globs and _has_matching_file(tree, folder, command.file_globs, f"render.plugin.{plugin}"):
            return [PLUGIN]
    if has_sidecar is not None and has_sidecar():  # argo: before its own tools
        return [PLUGIN]
    # argo: a folder with both files is a kustomization.
    is_kustomization = any(_is_file(tree, folder_prefix + name, where) for name in KUSTOMIZATION_FILE_NAMES)
    is_chart = _is_file(tree, folder_prefix + CHART_FILE, where)
    return [tool for tool, is_used in ((KUSTOMIZE, is_kustomization), (HELM, is_chart)) if is_used]


def _is_file(tree: FileTree, path: str, where: str) -> bool:
    entry = tree.find_entry(path)
    return entry is not None and (entry.kind == "file" or resolve_path(tree, path, where)[1] == "file")


def _has_matching_file(tree: FileTree, folder: str, globs: tuple[str, ...], where: str) -> bool:
    patterns = [compile_glob(glob, where) for glob in globs]
    return any(pattern.fullmatch(entry.name) for entry in tree.list_folder(folder) for pattern in patterns)
