"""Detects the tool of a source. In: a tree, a source. Out: its folder and the tool. Never: opens a file."""

from __future__ import annotations

from typing import Final

from argosy.errors import RenderError
from argosy.gitops.application import Source
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.render.kustomize.kustomization_file import NAMES
from argosy.gitops.render.kustomize.tree_paths import joined, located
from argosy.gitops.render.settings import BuildSettings
from argosy.gitops.render.submodules import find_submodule, submodule_text
from argosy.languages.globs import glob_pattern

DIRECTORY: Final = "Directory"
HELM: Final = "Helm"
KUSTOMIZE: Final = "Kustomize"
PLUGIN: Final = "Plugin"
_SWITCH: Final = {HELM: "helm.enable", KUSTOMIZE: "kustomize.enable"}
CHART_FILE: Final = "Chart.yaml"


def source_folder(tree: Tree, path: str) -> str:
    """Return the folder that a source's path names, with links resolved."""
    where = path or "."
    if path.startswith("/"):
        message = "the source's path is absolute: make it relative to the root of the repository"
        raise RenderError(message, where=where)
    folder, kind = located(tree, joined("", path, where), where)
    if not kind and (submodule := find_submodule(tree, folder)):
        raise RenderError(submodule_text(submodule), where=where)
    if not kind:
        raise RenderError("there is no such folder in the repository: correct the source's path", where=where)
    if kind != "folder":
        raise RenderError("is a file, but a source's path must be a folder: use the folder of the file", where=where)
    return folder


def detect(tree: Tree, folder: str, source: Source, settings: BuildSettings) -> str:
    """Return the tool that the source configures, or else the tool that the files in its folder belong to."""
    given = {HELM: source.helm, KUSTOMIZE: source.kustomize, DIRECTORY: source.directory, PLUGIN: source.plugin}
    asked = [tool for tool, block in given.items() if block is not None]
    where = source.path or "."
    if len(asked) > 1:
        message = f"the source has settings for {' and '.join(asked)}: keep those of one tool"
        raise RenderError(message, where=where)
    tool = asked[0] if asked else _found(tree, folder, settings, where)
    if tool in settings.disabled_tools:
        # argo: reads the files as a directory instead, and so deploys only part of them.
        message = f"this needs {tool}, which {_SWITCH.get(tool, tool)} disables: enable it, or set"
        raise RenderError(f"{message} directory in the source to read the files as they are", where=where)
    return tool


def _found(tree: Tree, folder: str, settings: BuildSettings, where: str) -> str:
    lead = f"{folder}/" if folder else ""
    for plugin, command in settings.plugins.items():
        if command.files and _has(tree, folder, command.files, f"render.plugin.{plugin}"):
            return PLUGIN
    # argo: a folder with both files is a kustomization.
    if any(_is_file(tree, lead + name, where) for name in NAMES):
        return KUSTOMIZE
    return HELM if _is_file(tree, lead + CHART_FILE, where) else DIRECTORY


def _is_file(tree: Tree, path: str, where: str) -> bool:
    entry = tree.entry(path)
    return entry is not None and (entry.kind == "file" or located(tree, path, where)[1] == "file")


def _has(tree: Tree, folder: str, globs: tuple[str, ...], where: str) -> bool:
    patterns = [glob_pattern(each, where) for each in globs]
    return any(pattern.fullmatch(entry.name) for entry in tree.listing(folder) for pattern in patterns)
