"""What a source can read at most, found without rendering it.

In: a tree and a folder. Out: folders and files that hold all of it, or None where only a render can tell. Never: too
little: whatever looks like a way out of the folder is followed, and what cannot be followed is not known.
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
# A word with two dots as one of its parts, as a path has them; three dots are prose.
_OUT: Final = re.compile(rb"[^\s\"'\[\]{},]*(?<![\w.])\.\.(?![\w.])[^\s\"'\[\]{},]*")
_PATH: Final = re.compile(r"[\w./@+~-]+")


# Files that name others; in scripts and prose two dots mean much else.
_NAMING: Final = ("ustomization.yaml", "ustomization.yml", "ustomization", "Chart.yaml", ".jsonnet", ".libsonnet")


class _Scan(NamedTuple):
    """All below one folder: the ways out of it; None where somebody must look closer."""

    ways: frozenset[str] | None


class Reaches:
    """Of one tree; what is known of a folder serves all that build on it."""

    def __init__(self, tree: Tree, other: Reaches | None = None, changed: frozenset[str] = frozenset()) -> None:
        """What is not among `changed` is as the `other` tree has it."""
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
    """Paths out of a folder that a text may name; None where a word is no plain path."""
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
    """The paths, and every folder that holds one of them."""
    found = {""}
    for path in paths:
        while path and path not in found:
            found.add(path)
            path = path.rpartition("/")[0]
    return frozenset(found)


def is_touched(reached: frozenset[str] | None, changed: frozenset[str]) -> bool:
    """`changed` is what `around` gave. What is not known may be touched."""
    return reached is None or not reached.isdisjoint(changed)
