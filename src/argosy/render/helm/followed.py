"""A chart's files with its links followed, so that Helm is given plain files only.

In: a tree. Out: a tree in which a link is what it leads to. Never: what is outside of the tree, or a ring of links.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from argosy.model.errors import RenderError
from argosy.model.tree import Tree, TreeEntry
from argosy.render.kustomize.places import is_within, joined, located


class FollowedTree:
    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def entry(self, path: str) -> TreeEntry | None:
        entry = self._tree.entry(path)
        return self._followed(path, entry) if entry and entry.kind == "link" else entry

    def listing(self, path: str) -> Sequence[TreeEntry]:
        lead = f"{path}/" if path else ""
        found = self._tree.listing(self._place(path))
        return [self._followed(lead + each.name, each) if each.kind == "link" else each for each in found]

    def read(self, path: str) -> bytes:
        return self._tree.read(self._place(path))

    def _place(self, path: str) -> str:
        return located(self._tree, path, path)[0]

    def _followed(self, path: str, link: TreeEntry) -> TreeEntry:
        place, kind = located(self._tree, path, path)
        if not kind:
            raise RenderError("is a link to something that is not in the repository; correct or remove it", where=path)
        folder = self._place(path.rpartition("/")[0])
        if kind == "folder" and is_within(joined(folder, ".", path), place):
            raise RenderError("is a link to a folder that it is in, which never ends; remove it", where=path)
        known: Literal["file", "folder"] = "folder" if kind == "folder" else "file"
        return TreeEntry(link.name, known, link.id)
