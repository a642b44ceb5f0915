"""Presents a chart's tree with symlinks resolved, so that Helm gets plain files only.

In: a tree, and folders or other trees to mount at paths. Out: a tree in which a link is replaced by its target.
Never: leaves the tree, or follows a cycle of links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from argosy.errors import RenderError
from argosy.gitops.application.file_tree_protocol import FileTree, TreeEntry
from argosy.gitops.render.kustomize.tree_paths import is_within, resolve_path


class LinkResolvingTree:
    def __init__(
        self, tree: FileTree, mounts: Mapping[str, str] | None = None, trees: Mapping[str, FileTree] | None = None
    ) -> None:
        """`mounts` maps a path to the folder that appears there, as if it were a link; `trees`, to another tree."""
        self._tree, self._mounts = tree, mounts or {}
        self._trees = {path: LinkResolvingTree(mounted_tree) for path, mounted_tree in (trees or {}).items()}

    def find_entry(self, path: str) -> TreeEntry | None:
        if mounted_tree := self._find_mounted_tree(path):
            tree, inner_path = mounted_tree
            return tree.find_entry(inner_path) if inner_path else TreeEntry(path.rpartition("/")[2], "folder", path)
        real_path = self.resolve_mount(path)
        entry = self._tree.find_entry(real_path)
        return self._resolve_link(real_path, entry) if entry and entry.kind == "link" else entry

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        if mounted_tree := self._find_mounted_tree(path):
            return mounted_tree[0].list_folder(mounted_tree[1])
        real_path = self._resolve(path)
        folder_prefix = f"{real_path}/" if real_path else ""
        entries = [
            self._resolve_link(folder_prefix + entry.name, entry) if entry.kind == "link" else entry
            for entry in self._tree.list_folder(real_path)
        ]
        mounted = {
            mount_path.rpartition("/")[2]: target
            for mount_path, target in (*self._mounts.items(), *zip(self._trees, self._trees))
            if mount_path.rpartition("/")[0] == path
        }
        return [*entries, *(TreeEntry(name, "folder", target) for name, target in mounted.items())]

    def read_file(self, path: str) -> bytes:
        if mounted_tree := self._find_mounted_tree(path):
            return mounted_tree[0].read_file(mounted_tree[1])
        return self._tree.read_file(self._resolve(path))

    def _find_mounted_tree(self, path: str) -> tuple[LinkResolvingTree, str] | None:
        """Return the tree that is mounted above the path, and the path in it."""
        for mount_path, tree in self._trees.items():
            if is_within(path, mount_path):
                return tree, path[len(mount_path) + 1 :]
        return None

    def _resolve(self, path: str) -> str:
        real_path = self.resolve_mount(path)
        return resolve_path(self._tree, real_path, real_path)[0]

    def resolve_mount(self, path: str) -> str:
        """Return the path in the underlying tree."""
        for mount_path, target in self._mounts.items():
            if is_within(path, mount_path):
                return f"{target}{path[len(mount_path) :]}"
        return path

    def _resolve_link(self, path: str, link: TreeEntry) -> TreeEntry:
        target, kind = resolve_path(self._tree, path, path)
        if not kind:
            raise RenderError("is a link to a path that is not in the repository; correct or remove it", where=path)
        if kind == "folder" and is_within(resolve_path(self._tree, path.rpartition("/")[0], path)[0], target):
            raise RenderError("is a link to a folder that contains it; remove it", where=path)
        entry_kind: Literal["file", "folder"] = "folder" if kind == "folder" else "file"
        return TreeEntry(link.name, entry_kind, link.id)
