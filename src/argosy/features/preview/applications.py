"""Finds the Applications of each side of a comparison.

In: both sides. Out: each Application with its file, per side. Never: takes a template or a patch for an Application;
parses a file twice that is equal on both sides.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from argosy.errors import ArgosyError, SourceError
from argosy.features.preview.rendering import Drawer, Drawn
from argosy.features.preview.revisions import Repository, Side, Sides
from argosy.features.preview.source_reach import Reaches, around, is_touched
from argosy.gitops.analysis.repository import Item, Written
from argosy.gitops.analysis.violation import Place
from argosy.gitops.application import Application, read_application, read_source
from argosy.gitops.workspace.manifest_files import KUSTOMIZATIONS, File, shown
from argosy.kube.names import ResourceKey

GROUP: Final = "argoproj.io"
APPLICATION: Final = (GROUP, "Application")
SET: Final = (GROUP, "ApplicationSet")
_LIKE: Final = (r"argoproj\.io/", r"kind[\"']?[[:space:]]*:[[:space:]]*[\"']?Application")
_LIKE_TOO: Final = re.compile(rb"kind[\"']?\s*:\s*[\"']?Application")
_PATTERNS: Final = ("*.yaml", "*.yml", "*.json")
_ENDINGS: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class Found:
    """An Application of one side, and the path of its file in the repository."""

    written: Written
    file: str

    @property
    def app(self) -> Application:
        return self.written.app

    @property
    def key(self) -> ResourceKey:
        return self.written.item.key

    @property
    def place(self) -> Place:
        return self.written.at("spec", "source")


class Index:
    """Indexes files that may define Applications, and kustomizations, on both sides."""

    def __init__(self, sides: Sides, repository: Repository) -> None:
        self.sides = sides
        history, base = repository.history, sides.base.revision
        held = set(repository.run(history.holding(base, _LIKE, _PATTERNS)))
        self._all = repository.run(history.files(base))
        files = [path for path in self._all if posixpath.basename(path) in KUSTOMIZATIONS]
        self.candidates = {
            "base": held,
            "head": {path for path in held if path not in sides.changed} | set(self._new_candidates()),
        }
        after = {path for path, each in sides.changed.items() if each.is_after}
        gone = {path for path, each in sides.changed.items() if not each.is_after}
        new = {path for path in after if posixpath.basename(path) in KUSTOMIZATIONS}
        self.kustomizations = {"base": set(files), "head": (set(files) - gone) | new}
        self._files: dict[tuple[str, str], File] = {}

    def _new_candidates(self) -> Iterable[str]:
        for path, each in self.sides.changed.items():
            if each.is_after and path.endswith(_ENDINGS):
                text = read(self.sides.head, path)
                if b"argoproj.io/" in text and _LIKE_TOO.search(text):
                    yield path

    def folders(self, which: str) -> frozenset[str]:
        """List all folders that contain files."""
        changed = self.sides.changed
        kept = [path for path in self._all if which == "base" or path not in changed]
        new = [path for path, each in changed.items() if each.is_after] if which == "head" else []
        return around(filter(None, (posixpath.dirname(path) for path in (*kept, *new)))) - {""}

    def side(self, which: str) -> Side:
        return self.sides.base if which == "base" else self.sides.head

    def file(self, which: str, path: str) -> File:
        owner = which if path in self.sides.changed else "both"
        known = self._files.get((owner, path))
        if known is None:
            text = read(self.side(which), path)
            known = self._files[owner, path] = File(os.path.join(self.sides.root, path), text)
        return known


def read(side: Side, path: str) -> bytes:
    try:
        return side.tree.read(path)
    except SourceError:
        return b""  # too large, or deleted meanwhile


class Finder:
    """Finds all Applications of one side."""

    def __init__(self, index: Index, which: str, drawer: Drawer, known: Reaches | None = None) -> None:
        """`other_reach` is the reach of the other side; unchanged folders are not scanned again."""
        self.which, self._index, self._drawer = which, index, drawer
        self.side = index.side(which)
        self.reaches = Reaches(self.side.tree, known, around(index.sides.changed))
        self.notes: list[str] = []
        self.sets: list[Item] = []

    @cached_property
    def folders(self) -> dict[str, frozenset[str] | None]:
        """Folders with a kustomization, and the reach of each."""
        return {folder: self.reaches.of(folder) for folder in sorted({*map(_folder, self._kustomizations)})}

    @property
    def _kustomizations(self) -> set[str]:
        return self._index.kustomizations[self.which]

    def roots(self, folders: Iterable[str]) -> list[str]:
        """Return the folders that no other kustomization uses as a base."""
        return [folder for folder in folders if not self._is_used(folder)]

    def _is_used(self, folder: str) -> bool:
        name = posixpath.basename(folder).encode()
        for path in self._kustomizations:
            file, above = self._index.file(self.which, path), _folder(path)
            # Only a file with the folder's name or `..` can reference it, so few files need to be parsed.
            if above != folder and (name in file.text or b".." in file.text) and folder in _uses(file, above):
                return True
        return False

    def all(self) -> list[Found]:
        candidates = self._index.candidates[self.which]
        if not candidates:
            return []
        near, found, read_by = around(candidates), [], set()
        leading = [folder for folder, reached in self.folders.items() if is_touched(reached, near)]
        for folder in self.roots(leading):
            drawn = self.folder(folder)
            if not any(item.kind == APPLICATION for item in drawn.items):
                continue
            read_by |= {each.path for _, _, rendered in drawn.renders for each in rendered.inputs if not each.place}
            found += [each for item in drawn.items if (each := self.written(item)) is not None]
        for path in sorted(candidates - read_by):
            file = self._index.file(self.which, path)
            for item in file.items():
                if item.kind == SET:
                    self.sets.append(item)
                elif (each := self.written(item, path)) is not None:
                    found.append(each)
        return list({(each.key, each.file): each for each in found}.values())

    def written(self, item: Item, path: str = "") -> Found | None:
        if item.kind != APPLICATION:
            return None
        root = self._index.sides.root
        path = path or os.path.relpath(os.path.realpath(item.at().file), root)
        try:
            written = Written(read_application(item.manifest, shown(os.path.join(root, path))), item)
        except ArgosyError as error:
            self.notes.append(f"{item.at()}: {item.name} not compared: {error}")
            return None
        return Found(written, path)

    def folder(self, folder: str) -> Drawn:
        """Render a kustomization that no Application uses."""
        app = Application(name=posixpath.basename(folder), sources=(read_source({"path": folder or "."}),))
        return self._drawer.draw(self.side, app, "", Place(shown(os.path.join(self._index.sides.root, folder))))


def _folder(path: str) -> str:
    return posixpath.dirname(path)


def _uses(file: File, folder: str) -> set[str]:
    item = file.kustomization()
    named = (str(each) for name in ("resources", "bases", "components") for each in item.all(name)) if item else ()
    paths = (posixpath.normpath(posixpath.join(folder, each)) for each in named)
    return {"" if path == "." else path for path in paths}


def matched(before: list[Found], after: list[Found]) -> list[tuple[Found | None, Found | None]]:
    """Pair Applications of both sides by name and file; after a file move, by name alone if that is unambiguous."""
    left = {(each.key, each.file): each for each in before}
    pairs: list[tuple[Found | None, Found | None]] = []
    unmatched = []
    for each in after:
        if other := left.pop((each.key, each.file), None):
            pairs.append((other, each))
        else:
            unmatched.append(each)
    for each in unmatched:
        same = [key for key in left if key[0] == each.key]
        alone = len(same) == 1 and sum(other.key == each.key for other in unmatched) == 1
        pairs.append((left.pop(same[0]) if alone else None, each))
    return [*pairs, *((each, None) for each in left.values())]
