"""Finds the files of a repository that contain manifests.

In: typed paths. Out: each YAML or JSON file with its contents. Never: follows a link; reports a file that is not YAML:
templates are files too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from argosy.errors import ArgosyError, UserError
from argosy.gitops.analysis.repository_view import ManifestWithLocations
from argosy.gitops.analysis.rule_violation import FileLocation
from argosy.gitops.workspace.enclosing_repository_lookup import find_enclosing_repository
from argosy.kube.objects import Manifest, key_of_desired, read_yaml_documents
from argosy.kube.objects.field_lines import FieldLines
from argosy.kube.resource_key import ResourceKey

MAX_FILE_BYTES: Final = 1 << 20
_MANIFEST_EXTENSIONS: Final = (".yaml", ".yml", ".json")
KUSTOMIZATION_NAMES: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
MAX_FILES: Final = 5_000  # limit outside of a repository: more are hardly intended
_VALUES_FILE_NAME: Final = re.compile(r"(?i)(?:^|[-._])values(?:[-._]|$)")
_SKIPPED_FOLDERS: Final = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})


@dataclass(frozen=True)
class YamlFile:
    """A file by its real path; it has no documents if it is not YAML."""

    path: str
    text: bytes

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)

    @property
    def is_kustomization(self) -> bool:
        return os.path.basename(self.path) in KUSTOMIZATION_NAMES

    @property
    def is_for_kubernetes(self) -> bool:
        """True for manifests, kustomizations and values files; other YAML files may belong to any program."""
        is_manifest = any({"apiVersion", "kind"} <= document.keys() for document in _flatten(self.documents))
        return is_manifest or self.is_kustomization or self.is_values_by_name

    @cached_property
    def documents(self) -> list[Any]:
        try:
            return [document for document in read_yaml_documents(self.text, where=self.path) if document is not None]
        except ArgosyError:
            return []

    @cached_property
    def _lines(self) -> FieldLines:
        return FieldLines(self.text.decode("utf-8", "replace"))

    def list_items(self) -> Iterator[ManifestWithLocations]:
        """Yield its objects, with lists expanded. Locations are lines of this file."""
        for number, manifest in enumerate(_flatten(self.documents)):
            key = _find_key(manifest)
            if key is not None:
                yield ManifestWithLocations(manifest, key, self._build_locator(number))

    def find_kustomization(self) -> ManifestWithLocations | None:
        """Return a kustomization as a whole, named by its folder."""
        first = self.documents[0] if self.is_kustomization and self.documents else None
        key = ResourceKey("kustomize.config.k8s.io", "Kustomization", "", relative_path(self.folder))
        return ManifestWithLocations(first, key, self._build_locator(0)) if isinstance(first, dict) else None

    def find_values(self) -> ManifestWithLocations | None:
        """Return a file without manifests as the values of a chart, named by its path."""
        first = self.documents[0] if len(self.documents) == 1 else None
        if not isinstance(first, dict) or self.is_kustomization or {"apiVersion", "kind"} <= first.keys():
            return None
        return ManifestWithLocations(
            first, ResourceKey("", "Values", "", relative_path(self.path)), self._build_locator(0)
        )

    @property
    def is_values_by_name(self) -> bool:
        return _VALUES_FILE_NAME.search(os.path.basename(self.path)) is not None

    def find_kubeconfig(self) -> ManifestWithLocations | None:
        """Return a file that kubectl would read as a kubeconfig. k8s: apiVersion and kind may be omitted."""
        for number, document in enumerate(_flatten(self.documents)):
            is_config = document.get("kind") in (None, "", "Config") and document.get("apiVersion") in (None, "", "v1")
            if is_config and _has_entries(document, "clusters", "cluster") and _has_entries(document, "users", "user"):
                return ManifestWithLocations(
                    document, ResourceKey("", "Config", "", "kubeconfig"), self._build_locator(number)
                )
        return None

    def find_patch(self) -> ManifestWithLocations | None:
        """Return a file with JSON patch operations, named by its path."""
        first = self.documents[0] if len(self.documents) == 1 else None
        if not isinstance(first, list) or not first:
            return None
        if not all(isinstance(operation, dict) and {"op", "path"} <= operation.keys() for operation in first):
            return None
        key = ResourceKey("", "Patch", "", relative_path(self.path))
        return ManifestWithLocations({"steps": first}, key, self._locate_operation)

    def _locate_operation(self, pointer: str) -> FileLocation:
        path = [int(step) if step.isdecimal() else step for step in pointer.split("/")[2:]]
        line = self._lines.documents[0].find_deepest(path)[0].line if self._lines.documents else 1
        return FileLocation(relative_path(self.path), line)

    def _build_locator(self, number: int) -> Any:
        def locate(pointer: str) -> FileLocation:
            steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
            path = [int(step) if step.isdecimal() else step for step in steps]
            return FileLocation(relative_path(self.path), self._lines.find_field_line(number, path))

        return locate


def _flatten(documents: list[Any]) -> Iterator[Manifest]:
    for document in documents:
        if not isinstance(document, dict):
            continue
        items = document.get("items")
        if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
            yield from _flatten(items)
        else:
            yield document


def _has_entries(document: Manifest, field: str, inner: str) -> bool:
    """True if the field is a list of named entries, such as `{name: prod, cluster: {...}}`."""
    entries = document.get(field)
    listed = entries if isinstance(entries, list) else []
    return any(isinstance(entry, dict) and {"name", inner} <= entry.keys() for entry in listed)


def _find_key(manifest: Manifest) -> ResourceKey | None:
    if manifest.get("kind") == "Config" and manifest.get("apiVersion") == "v1":
        return ResourceKey("", "Config", "", "kubeconfig")
    try:
        key = key_of_desired(manifest)
    except ArgosyError:
        return None
    return key if all(isinstance(part, str) for part in key) else None


def relative_path(path: str) -> str:
    """Return the path relative to the current folder if it is below it."""
    relative = os.path.relpath(path, os.path.realpath(os.curdir))
    return path if relative.startswith("..") else relative


def find_top_folder(path: str, typed: Sequence[str] = ()) -> str:
    """Return the folder that contains all files related to a path: its repository, else the typed or current folder."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    if (repository := find_enclosing_repository(folder)) is not None:
        return repository
    parents = [os.path.realpath(parent) for parent in (os.curdir, *typed) if os.path.isdir(parent)]
    return min((parent for parent in parents if is_within(folder, parent)), key=len, default=folder)


def is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def load_manifest_files(paths: Sequence[str]) -> Iterator[YamlFile]:
    seen: set[str] = set()
    for typed in paths:
        real = os.path.realpath(typed)
        if not os.path.exists(real):
            raise UserError("no such file or folder; correct the path", where=typed)
        is_bounded = os.path.isdir(real) and find_enclosing_repository(real) is None
        for count, path in enumerate(list_files(real) if os.path.isdir(real) else [real]):
            if is_bounded and count >= MAX_FILES:
                advice = "pass the folder that contains the manifests"
                raise UserError(f"not in a Git repository, and has more than {MAX_FILES} files; {advice}", where=typed)
            if path not in seen:
                seen.add(path)
                yield from _load_file(path)


def list_files(folder: str, endings: tuple[str, ...] = (*_MANIFEST_EXTENSIONS, *KUSTOMIZATION_NAMES)) -> Iterator[str]:
    for current_folder, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED_FOLDERS)
        for name in sorted(names):
            path = os.path.join(current_folder, name)
            if name.endswith(endings) and not os.path.islink(path):
                yield path


def has_notebooks(paths: Sequence[str]) -> bool:
    return any(path.endswith(".ipynb") or next(list_files(path, (".ipynb",)), "") for path in paths)


def _load_file(path: str) -> Iterator[YamlFile]:
    if os.path.getsize(path) <= MAX_FILE_BYTES:
        with open(path, "rb") as stream:
            yield YamlFile(path, stream.read())
