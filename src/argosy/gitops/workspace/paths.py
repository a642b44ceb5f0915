"""Resolves paths on this machine to a tree and a path in it.

In: a typed path. Out: the tree's folder and the path within. Never: reads a manifest.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from argosy.errors import UserError


class Place(NamedTuple):
    """A folder in a tree."""

    root: str
    path: str


def locate(typed: str) -> Place:
    """Locate a folder. The tree is the enclosing repository, else the current folder if it contains it, else the
    folder.
    """
    real = os.path.realpath(typed)
    if not os.path.isdir(real):
        raise _no_folder(typed, real)
    root = enclosing(real)
    if root is None:
        here = os.path.realpath(os.curdir)
        root = here if _is_within(real, here) else real
    inner = os.path.relpath(real, root)
    return Place(root, "" if inner == os.curdir else inner)


def _no_folder(typed: str, real: str) -> UserError:
    if os.path.basename(real).lower().startswith("kustomization"):
        return UserError(f"is a file; pass its folder: {os.path.dirname(typed) or '.'}", where=typed)
    if os.path.exists(real):
        message = f"is a file, and folders are rendered; pass its folder, or if it contains an Application: -f {typed}"
        return UserError(message, where=typed)
    return UserError("no such folder; correct the path", where=typed)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def enclosing(path: str) -> str | None:
    """Return the folder of the enclosing working tree; None if there is none."""
    while not os.path.exists(os.path.join(path, ".git")):
        above = os.path.dirname(path)
        if above == path:
            return None
        path = above
    return path


def own_folder(root: str) -> Path:
    """Return the Git directory of this working tree, with its HEAD."""
    kept = Path(root, ".git")
    # A file: this is a linked working tree of another repository.
    return (kept.parent / kept.read_text().removeprefix("gitdir:").strip()).resolve() if kept.is_file() else kept


def shared_folder(root: str) -> Path:
    """Return the Git directory that all working trees of the repository share."""
    own = own_folder(root)
    shared = own / "commondir"
    return (own / shared.read_text().strip()).resolve() if shared.is_file() else own


def remotes(root: str) -> dict[str, str]:
    """Return the remote URLs of the repository, by name."""
    found: dict[str, str] = {}
    name = ""
    try:
        lines = (shared_folder(root) / "config").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    for line in map(str.strip, lines):
        if line.startswith("["):
            name = line[len('[remote "') : -len('"]')] if line.startswith('[remote "') else ""
        elif name and line.partition("=")[0].strip().lower() == "url":
            found.setdefault(name, line.partition("=")[2].strip().strip('"'))
    return found
