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
from argosy.features.preview.comparison_side_renderer import SideRender, SideRenderer
from argosy.features.preview.revision_range_trees import ComparisonSide, ComparisonSides, PreviewRepository
from argosy.features.preview.source_input_files import SourceReach, add_parent_folders, may_be_affected
from argosy.gitops.analysis.repository_view import ApplicationDeclaration, ManifestWithLocations
from argosy.gitops.analysis.rule_violation import FileLocation
from argosy.gitops.application import Application, read_application, read_source
from argosy.gitops.workspace.manifest_files import KUSTOMIZATION_NAMES, YamlFile, relative_path
from argosy.kube.resource_key import ResourceKey

GROUP: Final = "argoproj.io"
APPLICATION: Final = (GROUP, "Application")
APPLICATION_SET: Final = (GROUP, "ApplicationSet")
_APPLICATION_GREP_PATTERNS: Final = (r"argoproj\.io/", r"kind[\"']?[[:space:]]*:[[:space:]]*[\"']?Application")
_APPLICATION_PATTERN: Final = re.compile(rb"kind[\"']?\s*:\s*[\"']?Application")
_FILE_GLOBS: Final = ("*.yaml", "*.yml", "*.json")
_FILE_SUFFIXES: Final = (".yaml", ".yml", ".json")


@dataclass(frozen=True)
class SideApplication:
    """An Application of one side, and the path of its file in the repository."""

    declaration: ApplicationDeclaration
    file: str

    @property
    def app(self) -> Application:
        return self.declaration.app

    @property
    def key(self) -> ResourceKey:
        return self.declaration.item.key

    @property
    def place(self) -> FileLocation:
        return self.declaration.find_location("spec", "source")


class SideFileIndex:
    """Indexes files that may define Applications, and kustomizations, on both sides."""

    def __init__(self, sides: ComparisonSides, repository: PreviewRepository) -> None:
        self.sides = sides
        history, base = repository.history, sides.base.revision
        matching_files = set(repository.run(history.list_matching_files(base, _APPLICATION_GREP_PATTERNS, _FILE_GLOBS)))
        self._base_files = repository.run(history.list_files(base))
        files = [path for path in self._base_files if posixpath.basename(path) in KUSTOMIZATION_NAMES]
        self.candidates = {
            "base": matching_files,
            "head": {path for path in matching_files if path not in sides.changed} | set(self._list_new_candidates()),
        }
        after = {path for path, changed_file in sides.changed.items() if changed_file.exists_after}
        removed = {path for path, changed_file in sides.changed.items() if not changed_file.exists_after}
        new = {path for path in after if posixpath.basename(path) in KUSTOMIZATION_NAMES}
        self.kustomizations = {"base": set(files), "head": (set(files) - removed) | new}
        self._files: dict[tuple[str, str], YamlFile] = {}

    def _list_new_candidates(self) -> Iterable[str]:
        for path, changed_file in self.sides.changed.items():
            if changed_file.exists_after and path.endswith(_FILE_SUFFIXES):
                text = read_bytes_or_empty(self.sides.head, path)
                if b"argoproj.io/" in text and _APPLICATION_PATTERN.search(text):
                    yield path

    def list_all_folders(self, side_name: str) -> frozenset[str]:
        """List all folders that contain files."""
        changed = self.sides.changed
        unchanged = [path for path in self._base_files if side_name == "base" or path not in changed]
        new = (
            [path for path, changed_file in changed.items() if changed_file.exists_after] if side_name == "head" else []
        )
        return add_parent_folders(filter(None, (posixpath.dirname(path) for path in (*unchanged, *new)))) - {""}

    def get_side(self, side_name: str) -> ComparisonSide:
        return self.sides.base if side_name == "base" else self.sides.head

    def get_file(self, side_name: str, path: str) -> YamlFile:
        owner = side_name if path in self.sides.changed else "both"
        file = self._files.get((owner, path))
        if file is None:
            text = read_bytes_or_empty(self.get_side(side_name), path)
            file = self._files[owner, path] = YamlFile(os.path.join(self.sides.root, path), text)
        return file


def read_bytes_or_empty(side: ComparisonSide, path: str) -> bytes:
    try:
        return side.tree.read_file(path)
    except SourceError:
        return b""  # too large, or deleted meanwhile


class ApplicationFinder:
    """Finds all Applications of one side."""

    def __init__(
        self, index: SideFileIndex, side_name: str, renderer: SideRenderer, other_reach: SourceReach | None = None
    ) -> None:
        """`other_reach` is the reach of the other side; unchanged folders are not scanned again."""
        self.side_name, self._index, self._renderer = side_name, index, renderer
        self.side = index.get_side(side_name)
        self.source_reach = SourceReach(self.side.tree, other_reach, add_parent_folders(index.sides.changed))
        self.notes: list[str] = []
        self.application_sets: list[ManifestWithLocations] = []

    @cached_property
    def reach_by_folder(self) -> dict[str, frozenset[str] | None]:
        """Folders with a kustomization, and the reach of each."""
        return {
            folder: self.source_reach.find_reach(folder)
            for folder in sorted({*map(_parent_folder, self._kustomizations)})
        }

    @property
    def _kustomizations(self) -> set[str]:
        return self._index.kustomizations[self.side_name]

    def filter_root_folders(self, folders: Iterable[str]) -> list[str]:
        """Return the folders that no other kustomization uses as a base."""
        return [folder for folder in folders if not self._is_base_of_another(folder)]

    def _is_base_of_another(self, folder: str) -> bool:
        name = posixpath.basename(folder).encode()
        for path in self._kustomizations:
            file, above = self._index.get_file(self.side_name, path), _parent_folder(path)
            # Only a file with the folder's name or `..` can reference it, so few files need to be parsed.
            if (
                above != folder
                and (name in file.text or b".." in file.text)
                and folder in _list_referenced_folders(file, above)
            ):
                return True
        return False

    def list_applications(self) -> list[SideApplication]:
        candidates = self._index.candidates[self.side_name]
        if not candidates:
            return []
        candidate_paths, applications, read_by = add_parent_folders(candidates), [], set()
        relevant_folders = [
            folder for folder, reached in self.reach_by_folder.items() if may_be_affected(reached, candidate_paths)
        ]
        for folder in self.filter_root_folders(relevant_folders):
            render_result = self.render_folder(folder)
            if not any(item.group_kind == APPLICATION for item in render_result.items):
                continue
            read_by |= {
                entry.path for _, _, rendered in render_result.renders for entry in rendered.inputs if not entry.scope
            }
            applications += [
                entry for item in render_result.items if (entry := self.read_declaration(item)) is not None
            ]
        for path in sorted(candidates - read_by):
            file = self._index.get_file(self.side_name, path)
            for item in file.list_items():
                if item.group_kind == APPLICATION_SET:
                    self.application_sets.append(item)
                elif (entry := self.read_declaration(item, path)) is not None:
                    applications.append(entry)
        return list({(entry.key, entry.file): entry for entry in applications}.values())

    def read_declaration(self, item: ManifestWithLocations, path: str = "") -> SideApplication | None:
        if item.group_kind != APPLICATION:
            return None
        root = self._index.sides.root
        path = path or os.path.relpath(os.path.realpath(item.find_location().file), root)
        try:
            declaration = ApplicationDeclaration(
                read_application(item.manifest, relative_path(os.path.join(root, path))), item
            )
        except ArgosyError as error:
            self.notes.append(f"{item.find_location()}: {item.name} not compared: {error}")
            return None
        return SideApplication(declaration, path)

    def render_folder(self, folder: str) -> SideRender:
        """Render a kustomization that no Application uses."""
        app = Application(name=posixpath.basename(folder), sources=(read_source({"path": folder or "."}),))
        return self._renderer.render_application(
            self.side, app, "", FileLocation(relative_path(os.path.join(self._index.sides.root, folder)))
        )


def _parent_folder(path: str) -> str:
    return posixpath.dirname(path)


def _list_referenced_folders(file: YamlFile, folder: str) -> set[str]:
    item = file.find_kustomization()
    references = (
        (str(reference) for name in ("resources", "bases", "components") for reference in item.get_list(name))
        if item
        else ()
    )
    paths = (posixpath.normpath(posixpath.join(folder, reference)) for reference in references)
    return {"" if path == "." else path for path in paths}


def match_applications(
    before: list[SideApplication], after: list[SideApplication]
) -> list[tuple[SideApplication | None, SideApplication | None]]:
    """Pair Applications of both sides by name and file; after a file move, by name alone if that is unambiguous."""
    unmatched_before = {(application.key, application.file): application for application in before}
    pairs: list[tuple[SideApplication | None, SideApplication | None]] = []
    unmatched = []
    for application in after:
        if counterpart := unmatched_before.pop((application.key, application.file), None):
            pairs.append((counterpart, application))
        else:
            unmatched.append(application)
    for application in unmatched:
        same_key = [key for key in unmatched_before if key[0] == application.key]
        is_unambiguous = (
            len(same_key) == 1 and sum(counterpart.key == application.key for counterpart in unmatched) == 1
        )
        pairs.append((unmatched_before.pop(same_key[0]) if is_unambiguous else None, application))
    return [*pairs, *((application, None) for application in unmatched_before.values())]
