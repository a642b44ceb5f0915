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
from argosy.gitops.analysis.repository import Item
from argosy.gitops.analysis.violation import Place
from argosy.gitops.workspace.paths import enclosing
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of_source, load_all
from argosy.kube.objects.field_lines import Lines

MOST_BYTES: Final = 1 << 20
_ENDINGS: Final = (".yaml", ".yml", ".json")
KUSTOMIZATIONS: Final = ("kustomization.yaml", "kustomization.yml", "Kustomization")
MOST_FILES: Final = 5_000  # limit outside of a repository: more are hardly intended
_VALUES_NAME: Final = re.compile(r"(?i)(?:^|[-._])values(?:[-._]|$)")
_LEFT_OUT: Final = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})


@dataclass(frozen=True)
class File:
    """A file by its real path; it has no documents if it is not YAML."""

    path: str
    text: bytes

    @property
    def folder(self) -> str:
        return os.path.dirname(self.path)

    @property
    def is_kustomization(self) -> bool:
        return os.path.basename(self.path) in KUSTOMIZATIONS

    @property
    def is_for_kubernetes(self) -> bool:
        """True for manifests, kustomizations and values files; other YAML files may belong to any program."""
        is_manifest = any({"apiVersion", "kind"} <= document.keys() for document in _flat(self.documents))
        return is_manifest or self.is_kustomization or self.is_values_by_name

    @cached_property
    def documents(self) -> list[Any]:
        try:
            return [each for each in load_all(self.text, where=self.path) if each is not None]
        except ArgosyError:
            return []

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.text.decode("utf-8", "replace"))

    def items(self) -> Iterator[Item]:
        """Yield its objects, with lists expanded. Locations are lines of this file."""
        for number, manifest in enumerate(_flat(self.documents)):
            key = _key(manifest)
            if key is not None:
                yield Item(manifest, key, self._locator(number))

    def kustomization(self) -> Item | None:
        """Return a kustomization as a whole, named by its folder."""
        first = self.documents[0] if self.is_kustomization and self.documents else None
        key = ResourceKey("kustomize.config.k8s.io", "Kustomization", "", shown(self.folder))
        return Item(first, key, self._locator(0)) if isinstance(first, dict) else None

    def values(self) -> Item | None:
        """Return a file without manifests as the values of a chart, named by its path."""
        first = self.documents[0] if len(self.documents) == 1 else None
        if not isinstance(first, dict) or self.is_kustomization or {"apiVersion", "kind"} <= first.keys():
            return None
        return Item(first, ResourceKey("", "Values", "", shown(self.path)), self._locator(0))

    @property
    def is_values_by_name(self) -> bool:
        return _VALUES_NAME.search(os.path.basename(self.path)) is not None

    def kubeconfig(self) -> Item | None:
        """Return a file that kubectl would read as a kubeconfig. k8s: apiVersion and kind may be omitted."""
        for number, document in enumerate(_flat(self.documents)):
            is_config = document.get("kind") in (None, "", "Config") and document.get("apiVersion") in (None, "", "v1")
            if is_config and _has_entries(document, "clusters", "cluster") and _has_entries(document, "users", "user"):
                return Item(document, ResourceKey("", "Config", "", "kubeconfig"), self._locator(number))
        return None

    def patch(self) -> Item | None:
        """Return a file with JSON patch operations, named by its path."""
        first = self.documents[0] if len(self.documents) == 1 else None
        if not isinstance(first, list) or not first:
            return None
        if not all(isinstance(each, dict) and {"op", "path"} <= each.keys() for each in first):
            return None
        key = ResourceKey("", "Patch", "", shown(self.path))
        return Item({"steps": first}, key, self._step_locator)

    def _step_locator(self, pointer: str) -> Place:
        path = [int(step) if step.isdecimal() else step for step in pointer.split("/")[2:]]
        found = self._lines.documents[0].at(path)[0].line if self._lines.documents else 1
        return Place(shown(self.path), found)

    def _locator(self, number: int) -> Any:
        def locate(pointer: str) -> Place:
            steps = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
            path = [int(step) if step.isdecimal() else step for step in steps]
            return Place(shown(self.path), self._lines.of_field(number, path))

        return locate


def _flat(documents: list[Any]) -> Iterator[Manifest]:
    for document in documents:
        if not isinstance(document, dict):
            continue
        items = document.get("items")
        if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
            yield from _flat(items)
        else:
            yield document


def _has_entries(document: Manifest, field: str, inner: str) -> bool:
    """True if the field is a list of named entries, such as `{name: prod, cluster: {...}}`."""
    entries = document.get(field)
    listed = entries if isinstance(entries, list) else []
    return any(isinstance(entry, dict) and {"name", inner} <= entry.keys() for entry in listed)


def _key(manifest: Manifest) -> ResourceKey | None:
    if manifest.get("kind") == "Config" and manifest.get("apiVersion") == "v1":
        return ResourceKey("", "Config", "", "kubeconfig")
    try:
        key = key_of_source(manifest)
    except ArgosyError:
        return None
    return key if all(isinstance(part, str) for part in key) else None


def shown(path: str) -> str:
    """Return the path relative to the current folder if it is below it."""
    relative = os.path.relpath(path, os.path.realpath(os.curdir))
    return path if relative.startswith("..") else relative


def top_of(path: str, typed: Sequence[str] = ()) -> str:
    """Return the folder that contains all files related to a path: its repository, else the typed or current folder."""
    folder = path if os.path.isdir(path) else os.path.dirname(path)
    if (repository := enclosing(folder)) is not None:
        return repository
    above = [os.path.realpath(each) for each in (os.curdir, *typed) if os.path.isdir(each)]
    return min((each for each in above if is_within(folder, each)), key=len, default=folder)


def is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def files_of(paths: Sequence[str]) -> Iterator[File]:
    seen: set[str] = set()
    for typed in paths:
        real = os.path.realpath(typed)
        if not os.path.exists(real):
            raise UserError("no such file or folder; correct the path", where=typed)
        is_bounded = os.path.isdir(real) and enclosing(real) is None
        for count, path in enumerate(below(real) if os.path.isdir(real) else [real]):
            if is_bounded and count >= MOST_FILES:
                advice = "pass the folder that contains the manifests"
                raise UserError(f"not in a Git repository, and has more than {MOST_FILES} files; {advice}", where=typed)
            if path not in seen:
                seen.add(path)
                yield from _read(path)


def below(folder: str, endings: tuple[str, ...] = (*_ENDINGS, *KUSTOMIZATIONS)) -> Iterator[str]:
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LEFT_OUT)
        for name in sorted(names):
            path = os.path.join(here, name)
            if name.endswith(endings) and not os.path.islink(path):
                yield path


def holds_notebooks(paths: Sequence[str]) -> bool:
    return any(path.endswith(".ipynb") or next(below(path, (".ipynb",)), "") for path in paths)


def _read(path: str) -> Iterator[File]:
    if os.path.getsize(path) <= MOST_BYTES:
        with open(path, "rb") as opened:
            yield File(path, opened.read())
