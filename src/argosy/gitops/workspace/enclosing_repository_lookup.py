"""Resolves paths on this machine to a tree and a path in it.

In: a typed path. Out: the tree's folder and the path within. Never: reads a manifest.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from argosy.errors import UserError


class TreePath(NamedTuple):
    """A folder in a tree."""

    root: str
    path: str


def locate_folder(typed: str) -> TreePath:
    """Locate a folder. The tree is the enclosing repository, else the current folder if it contains it, else the
    folder.
    """
    real = os.path.realpath(typed)
    if not os.path.isdir(real):
        raise _build_no_folder_error(typed, real)
    root = find_enclosing_repository(real)
    if root is None:
        current_folder = os.path.realpath(os.curdir)
        root = current_folder if _is_within(real, current_folder) else real
    inner_path = os.path.relpath(real, root)
    return TreePath(root, "" if inner_path == os.curdir else inner_path)


def _build_no_folder_error(typed: str, real: str) -> UserError:
    if os.path.basename(real).lower().startswith("kustomization"):
        return UserError(f"is a file; pass its folder: {os.path.dirname(typed) or '.'}", where=typed)
    if os.path.exists(real):
        message = f"is a file, and folders are rendered; pass its folder, or if it contains an Application: -f {typed}"
        return UserError(message, where=typed)
    return UserError("no such folder; correct the path", where=typed)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def find_enclosing_repository(path: str) -> str | None:
    """Return the folder of the enclosing working tree; None if there is none."""
    while not os.path.exists(os.path.join(path, ".git")):
        parent = os.path.dirname(path)
        if parent == path:
            return None
        path = parent
    return path


def find_git_folder(root: str) -> Path:
    """Return the Git directory of this working tree, with its HEAD."""
    dot_git = Path(root, ".git")
    # A file: this is a linked working tree of another repository.
    return (
        (dot_git.parent / dot_git.read_text().removeprefix("gitdir:").strip()).resolve()
        if dot_git.is_file()
        else dot_git
    )


def find_shared_git_folder(root: str) -> Path:
    """Return the Git directory that all working trees of the repository share."""
    git_folder = find_git_folder(root)
    commondir_file = git_folder / "commondir"
    return (git_folder / commondir_file.read_text().strip()).resolve() if commondir_file.is_file() else git_folder


def load_remotes(root: str) -> dict[str, str]:
    """Return the remote URLs of the repository, by name."""
    urls: dict[str, str] = {}
    name = ""
    try:
        lines = (find_shared_git_folder(root) / "config").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    for line in map(str.strip, lines):
        if line.startswith("["):
            name = line[len('[remote "') : -len('"]')] if line.startswith('[remote "') else ""
        elif name and line.partition("=")[0].strip().lower() == "url":
            urls.setdefault(name, line.partition("=")[2].strip().strip('"'))
    return urls
