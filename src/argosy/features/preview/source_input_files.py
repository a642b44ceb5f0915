"""Finds the files that a source can read at most, without rendering it.

In: a tree and a folder. Out: folders and files that contain all inputs, or None if only a render can tell. Never: too
few: everything that looks like a path out of the folder is followed, and if that is impossible, the result is None.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

from argosy.errors import SourceError
from argosy.gitops.application import Source
from argosy.gitops.application.file_tree_protocol import FileTree

MAX_SCANNED_FILES: Final = 2_000
_SIMPLE_SOURCE_FIELDS: Final = frozenset({"repoURL", "path", "targetRevision", "kustomize", "directory", "name"})
# A word with `..` as a path segment; `...` is prose.
_PARENT_PATH_PATTERN: Final = re.compile(rb"[^\s\"'\[\]{},]*(?<![\w.])\.\.(?![\w.])[^\s\"'\[\]{},]*")
_PLAIN_PATH_PATTERN: Final = re.compile(r"[\w./@+~-]+")


# Files that reference other files; in scripts and prose `..` has other meanings.
_REFERENCING_FILE_SUFFIXES: Final = (
    "ustomization.yaml",
    "ustomization.yml",
    "ustomization",
    "Chart.yaml",
    ".jsonnet",
    ".libsonnet",
)


class _FolderScan(NamedTuple):
    """Paths outside a folder that its files may reference; None if that cannot be determined."""

    outside_paths: frozenset[str] | None


class SourceReach:
    """Reach of the sources in one tree; scans of folders are cached and shared."""

    def __init__(self, tree: FileTree, other: SourceReach | None = None, changed: frozenset[str] = frozenset()) -> None:
        """Paths that are not in `changed` are equal in the `other` tree, so its scans are reused."""
        self._tree, self._other, self._changed = tree, other, changed
        self._scans: dict[str, _FolderScan] = {}

    def find_reach(self, folder: str, source: Source | None = None) -> frozenset[str] | None:
        wire: Any = source.wire if source is not None else {}
        if not _SIMPLE_SOURCE_FIELDS.issuperset(wire) or (wire.get("directory") or {}).get("jsonnet"):
            return None
        queue, reached = [folder], set()
        if (first := _find_outside_paths(orjson.dumps(wire), folder)) is None:
            return None
        queue += first
        while queue:
            path = queue.pop()
            if path in reached:
                continue
            reached.add(path)
            outside_paths = self._get_scan(path).outside_paths
            if outside_paths is None:
                return None
            queue += outside_paths
        return frozenset(reached)

    def _get_scan(self, path: str) -> _FolderScan:
        scan = self._scans.get(path)
        if scan is None and self._other is not None and path not in self._changed:
            scan = self._scans[path] = self._other._get_scan(path)
        if scan is None:
            scan = self._scans[path] = _FolderScan(self._scan_folder(path))
        return scan

    def _scan_folder(self, path: str) -> frozenset[str] | None:
        entry = self._tree.find_entry(path)
        if entry is None or entry.kind == "file":
            return frozenset()
        if entry.kind == "link":
            return None
        queue, count = [path], 0
        outside_paths: set[str] = set()
        while queue:
            folder = queue.pop()
            for child in self._tree.list_folder(folder):
                inner = f"{folder}/{child.name}" if folder else child.name
                count += 1
                if child.kind == "link" or count > MAX_SCANNED_FILES:
                    return None
                if child.kind == "folder":
                    queue.append(inner)
                    continue
                try:
                    named_paths = _find_outside_paths(self._tree.read_file(inner), folder)
                except SourceError:
                    return None
                if named_paths is None and child.name.endswith(_REFERENCING_FILE_SUFFIXES):
                    return None
                outside_paths |= named_paths or set()
        return frozenset(outside_paths)


def _find_outside_paths(text: bytes, folder: str) -> set[str] | None:
    """Find paths outside the folder that a text may reference; None if a word is not a plain path."""
    outside_paths = set()
    for match in _PARENT_PATH_PATTERN.finditer(text) if b".." in text else ():
        word = match[0].decode("utf-8", "replace").rpartition(":")[2].replace("\\/", "/")
        if not _PLAIN_PATH_PATTERN.fullmatch(word):
            return None
        path = posixpath.normpath(posixpath.join(folder, word))
        if not path.startswith(".."):
            outside_paths.add("" if path == "." else path.strip("/"))
    return outside_paths


def add_parent_folders(paths: Iterable[str]) -> frozenset[str]:
    """Return the paths and all their parent folders."""
    folders = {""}
    for path in paths:
        while path and path not in folders:
            folders.add(path)
            path = path.rpartition("/")[0]
    return frozenset(folders)


def may_be_affected(reached: frozenset[str] | None, changed: frozenset[str]) -> bool:
    """True if the reach includes a changed path or is unknown; `changed` includes parent folders."""
    return reached is None or not reached.isdisjoint(changed)
