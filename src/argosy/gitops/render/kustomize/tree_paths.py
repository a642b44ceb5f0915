"""Resolves relative paths and links in a tree. In: a folder and a relative path. Out: a path of the tree.

Never: leaves the tree, by `..` or by a link.
"""

from __future__ import annotations

from argosy.errors import RenderError
from argosy.gitops.application.file_tree_protocol import FileTree

_MAX_LINKS = 32


def join_path(folder: str, path: str, where: str) -> str:
    """Return the path from the root of the tree; `..` above the root is an error."""
    if path.startswith("/"):
        raise RenderError(f"{path!r} is an absolute path: write it relative to this file", where=where)
    steps = folder.split("/") if folder else []
    for step in path.split("/"):
        if step == "..":
            if not steps:
                raise RenderError(f"{path!r} leads out of the repository: keep what it names inside", where=where)
            steps.pop()
        elif step not in ("", "."):
            steps.append(step)
    return "/".join(steps)


def resolve_path(tree: FileTree, path: str, where: str) -> tuple[str, str]:
    """Return the path with links resolved, and `file`, `folder` or `` (no such path)."""
    entry = tree.find_entry(path)
    if entry is not None and entry.kind != "link":
        return path, entry.kind
    return _resolve_links(tree, path, where)


def _resolve_links(tree: FileTree, path: str, where: str) -> tuple[str, str]:
    resolved = ""
    steps = path.split("/") if path else []
    links = 0
    while steps:
        current = f"{resolved}/{steps[0]}" if resolved else steps[0]
        entry = tree.find_entry(current)
        if entry is None:
            return path, ""
        steps.pop(0)
        if entry.kind != "link":
            resolved = current
            continue
        links += 1
        if links > _MAX_LINKS:
            raise RenderError(f"{path!r} passes through too many links: use the path of the file itself", where=where)
        try:
            target = join_path(resolved, tree.read_file(current).decode("utf-8", "replace"), where)
        except RenderError as error:
            raise RenderError(f"the link {current}: {error.message}", where=where) from None
        steps = [*target.split("/"), *steps] if target else steps
        resolved = ""
    entry = tree.find_entry(resolved)
    return resolved, entry.kind if entry else "folder" if not resolved else ""


def is_within(path: str, folder: str) -> bool:
    return not folder or path == folder or path.startswith(f"{folder}/")


def parent_folder(path: str) -> str:
    return path.rpartition("/")[0]
