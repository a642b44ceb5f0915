"""Where a path on this machine is.

In: a path as it was typed. Out: the folder that is its tree, and the path within. Never: reads a manifest.
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
    """The tree is the repository that encloses the folder, else the current folder if it does, else itself."""
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
        return UserError(f"is a file; name its folder: {os.path.dirname(typed) or '.'}", where=typed)
    if os.path.exists(real):
        message = f"is a file, and folders are rendered; name its folder, or if it holds an Application: -f {typed}"
        return UserError(message, where=typed)
    return UserError("there is no such folder; correct the path", where=typed)


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def enclosing(path: str) -> str | None:
    """The folder of the repository whose working tree this is in; None where it is in none."""
    while not os.path.exists(os.path.join(path, ".git")):
        above = os.path.dirname(path)
        if above == path:
            return None
        path = above
    return path


def own_folder(root: str) -> Path:
    """Where git keeps what is this working tree's alone, such as its HEAD."""
    kept = Path(root, ".git")
    # A file: this is a further working tree of a repository that is elsewhere.
    return (kept.parent / kept.read_text().removeprefix("gitdir:").strip()).resolve() if kept.is_file() else kept


def shared_folder(root: str) -> Path:
    """Where git keeps what all working trees of the repository share."""
    own = own_folder(root)
    shared = own / "commondir"
    return (own / shared.read_text().strip()).resolve() if shared.is_file() else own


def remotes(root: str) -> dict[str, str]:
    """The addresses that the repository knows, by name."""
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
