"""Presents a chart's tree with symlinks resolved, so that Helm gets plain files only.

In: a tree, and folders to mount at other paths. Out: a tree in which a link is replaced by its target.
Never: leaves the tree, or follows a cycle of links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from argosy.errors import RenderError
from argosy.gitops.application.file_tree import Tree, TreeEntry
from argosy.gitops.render.kustomize.tree_paths import is_within, located


class FollowedTree:
    def __init__(self, tree: Tree, mounts: Mapping[str, str] | None = None) -> None:
        """`mounts` maps a path to the folder that appears there, as if it were a link."""
        self._tree, self._mounts = tree, mounts or {}

    def entry(self, path: str) -> TreeEntry | None:
        real = self.real(path)
        entry = self._tree.entry(real)
        return self._followed(real, entry) if entry and entry.kind == "link" else entry

    def listing(self, path: str) -> Sequence[TreeEntry]:
        place = self._place(path)
        lead = f"{place}/" if place else ""
        found = [
            self._followed(lead + each.name, each) if each.kind == "link" else each
            for each in self._tree.listing(place)
        ]
        mounted = {at.rpartition("/")[2]: to for at, to in self._mounts.items() if at.rpartition("/")[0] == path}
        return [*found, *(TreeEntry(name, "folder", to) for name, to in mounted.items())]

    def read(self, path: str) -> bytes:
        return self._tree.read(self._place(path))

    def _place(self, path: str) -> str:
        real = self.real(path)
        return located(self._tree, real, real)[0]

    def real(self, path: str) -> str:
        """Return the path in the underlying tree."""
        for at, to in self._mounts.items():
            if is_within(path, at):
                return f"{to}{path[len(at) :]}"
        return path

    def _followed(self, path: str, link: TreeEntry) -> TreeEntry:
        place, kind = located(self._tree, path, path)
        if not kind:
            raise RenderError("is a link to a path that is not in the repository; correct or remove it", where=path)
        if kind == "folder" and is_within(located(self._tree, path.rpartition("/")[0], path)[0], place):
            raise RenderError("is a link to a folder that contains it; remove it", where=path)
        known: Literal["file", "folder"] = "folder" if kind == "folder" else "file"
        return TreeEntry(link.name, known, link.id)
