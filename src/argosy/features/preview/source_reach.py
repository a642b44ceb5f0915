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
from argosy.gitops.application.file_tree import Tree

MOST_FILES: Final = 2_000
_PLAIN: Final = frozenset({"repoURL", "path", "targetRevision", "kustomize", "directory", "name"})
# A word with `..` as a path segment; `...` is prose.
_OUT: Final = re.compile(rb"[^\s\"'\[\]{},]*(?<![\w.])\.\.(?![\w.])[^\s\"'\[\]{},]*")
_PATH: Final = re.compile(r"[\w./@+~-]+")


# Files that reference other files; in scripts and prose `..` has other meanings.
_NAMING: Final = ("ustomization.yaml", "ustomization.yml", "ustomization", "Chart.yaml", ".jsonnet", ".libsonnet")


class _Scan(NamedTuple):
    """Paths outside a folder that its files may reference; None if that cannot be determined."""

    ways: frozenset[str] | None


class Reaches:
    """Reach of the sources in one tree; scans of folders are cached and shared."""

    def __init__(self, tree: Tree, other: Reaches | None = None, changed: frozenset[str] = frozenset()) -> None:
        """Paths that are not in `changed` are equal in the `other` tree, so its scans are reused."""
        self._tree, self._other, self._changed = tree, other, changed
        self._scans: dict[str, _Scan] = {}

    def of(self, folder: str, source: Source | None = None) -> frozenset[str] | None:
        wire: Any = source.wire if source is not None else {}
        if not _PLAIN.issuperset(wire) or (wire.get("directory") or {}).get("jsonnet"):
            return None
        waiting, reached = [folder], set()
        if (first := _ways(orjson.dumps(wire), folder)) is None:
            return None
        waiting += first
        while waiting:
            path = waiting.pop()
            if path in reached:
                continue
            reached.add(path)
            found = self._scanned(path).ways
            if found is None:
                return None
            waiting += found
        return frozenset(reached)

    def _scanned(self, path: str) -> _Scan:
        known = self._scans.get(path)
        if known is None and self._other is not None and path not in self._changed:
            known = self._scans[path] = self._other._scanned(path)
        if known is None:
            known = self._scans[path] = _Scan(self._scan(path))
        return known

    def _scan(self, path: str) -> frozenset[str] | None:
        entry = self._tree.entry(path)
        if entry is None or entry.kind == "file":
            return frozenset()
        if entry.kind == "link":
            return None
        waiting, count = [path], 0
        ways: set[str] = set()
        while waiting:
            folder = waiting.pop()
            for each in self._tree.listing(folder):
                inner = f"{folder}/{each.name}" if folder else each.name
                count += 1
                if each.kind == "link" or count > MOST_FILES:
                    return None
                if each.kind == "folder":
                    waiting.append(inner)
                    continue
                try:
                    found = _ways(self._tree.read(inner), folder)
                except SourceError:
                    return None
                if found is None and each.name.endswith(_NAMING):
                    return None
                ways |= found or set()
        return frozenset(ways)


def _ways(text: bytes, folder: str) -> set[str] | None:
    """Find paths outside the folder that a text may reference; None if a word is not a plain path."""
    found = set()
    for match in _OUT.finditer(text) if b".." in text else ():
        word = match[0].decode("utf-8", "replace").rpartition(":")[2].replace("\\/", "/")
        if not _PATH.fullmatch(word):
            return None
        path = posixpath.normpath(posixpath.join(folder, word))
        if not path.startswith(".."):
            found.add("" if path == "." else path.strip("/"))
    return found


def around(paths: Iterable[str]) -> frozenset[str]:
    """Return the paths and all their parent folders."""
    found = {""}
    for path in paths:
        while path and path not in found:
            found.add(path)
            path = path.rpartition("/")[0]
    return frozenset(found)


def is_touched(reached: frozenset[str] | None, changed: frozenset[str]) -> bool:
    """True if the reach includes a changed path or is unknown; `changed` includes parent folders."""
    return reached is None or not reached.isdisjoint(changed)
