"""Finds Git submodules in a source's path.

In: a tree, a path. Out: the submodule that contains the path, if any. Never: fetches a submodule.
"""

from __future__ import annotations

from argosy.errors import SourceError
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.application.gitmodules import GITMODULES_FILE, list_submodule_paths


def find_submodule(tree: FileTree, path: str) -> str | None:
    """Return the submodule that is or contains this path, if its files are not in the tree."""
    entry = tree.find_entry(GITMODULES_FILE)
    if entry is None or entry.kind != "file":
        return None
    text = tree.read_file(GITMODULES_FILE).decode("utf-8", "surrogateescape")
    try:
        submodule_paths = [submodule_path.strip("/") for submodule_path in list_submodule_paths(text)]
    except SourceError:
        return None  # git would not read it either; the engine reports it if it fetches submodules
    submodule = next(
        (
            submodule_path
            for submodule_path in submodule_paths
            if path == submodule_path or path.startswith(f"{submodule_path}/")
        ),
        None,
    )
    return submodule if submodule is not None and not tree.list_folder(submodule) else None


def format_submodule_error(submodule: str) -> str:
    return (
        f"{submodule} is a Git submodule whose files are not fetched: check it out, set reposerver.enable.git.submodule"
        " to true, or use the submodule's own repository as the source"
    )
