"""Finds kubeconfig files by content, whatever their names.

In: the given paths, and the files read as manifests. Out: manifests, and notes about what was not read. Never: reads a
file that Git does not track, if there is a repository; follows a link.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from typing import Final, NamedTuple

from argosy.errors import ArgosyError
from argosy.gitops.analysis.repository import Item
from argosy.gitops.workspace.manifest_files import MOST_BYTES, MOST_FILES, File, below, shown
from argosy.gitops.workspace.paths import enclosing

_FIELDS: Final = (b"clusters", b"users")
_BINARY_PROBE_BYTES: Final = 1024


class Kubeconfigs(NamedTuple):
    items: tuple[Item, ...]
    notes: tuple[str, ...]


class TrackedFiles:
    """The files that Git tracks, by repository; each repository is listed once."""

    def __init__(self) -> None:
        self._by_root: dict[str, frozenset[str] | ArgosyError] = {}

    def list_files(self, root: str) -> frozenset[str]:
        """List absolute paths. Raises ArgosyError if Git fails."""
        if root not in self._by_root:
            try:
                self._by_root[root] = frozenset(os.path.join(root, name) for name in _tracked(root))
            except ArgosyError as error:
                self._by_root[root] = error
        files = self._by_root[root]
        if isinstance(files, ArgosyError):
            raise files
        return files

    def is_tracked(self, path: str) -> bool:
        real = os.path.realpath(path)
        root = enclosing(os.path.dirname(real))
        try:
            return root is not None and real in self.list_files(root)
        except ArgosyError:
            return True  # it is in a repository, so assume tracked


def find_kubeconfigs(paths: Sequence[str], manifests: Sequence[File], tracked: TrackedFiles) -> Kubeconfigs:
    """Find kubeconfigs below the paths, except those that are already read as manifests."""
    likely = (file for file in manifests if b"Config" in file.text and b"users" in file.text)
    known = {file.path for file in likely if any(item.kind == ("", "Config") for item in file.items())}
    notes: list[str] = []
    candidates = dict.fromkeys(path for path in _candidates(paths, tracked, notes) if path not in known)
    items = [item for path in candidates if (file := _read_text(path)) and (item := file.kubeconfig())]
    return Kubeconfigs(tuple(items), tuple(notes))


def _candidates(paths: Sequence[str], tracked: TrackedFiles, notes: list[str]) -> Iterator[str]:
    typed_by_root: dict[str, set[str]] = {}
    for typed in paths:
        real = os.path.realpath(typed)
        root = enclosing(real if os.path.isdir(real) else os.path.dirname(real))
        if root is None:
            yield from _untracked(typed, real, notes)
        else:
            typed_by_root.setdefault(root, set()).add(real)
    for root, reals in typed_by_root.items():
        try:
            yield from sorted(path for path in tracked.list_files(root) if _is_within_any(path, reals))
        except ArgosyError as error:
            notes.append(f"{shown(root)}: files were not searched for kubeconfigs: {error}")


def _is_within_any(path: str, folders: Container[str]) -> bool:
    while path not in folders:
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return True


def _untracked(typed: str, real: str, notes: list[str]) -> Iterator[str]:
    """Yield files outside Git."""
    for count, path in enumerate(below(real, ("",)) if os.path.isdir(real) else [real]):
        if count >= MOST_FILES:
            told = f"{typed}: only the first {MOST_FILES} files were searched for kubeconfigs"
            notes.append(f"{told}; choose a smaller folder")
            return
        yield path


def _tracked(root: str) -> list[str]:
    from argosy.features.preview.revisions import Repository

    repository = Repository(root)
    try:
        return repository.run(repository.history.tracked())
    finally:
        repository.close()


def _read_text(path: str) -> File | None:
    """Return a text file that contains the fields of a kubeconfig; None for all others, so that few are parsed."""
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > MOST_BYTES:
        return None
    try:
        with open(path, "rb") as opened:
            text = opened.read(_BINARY_PROBE_BYTES)
            if b"\0" in text:
                return None
            text += opened.read()
    except OSError:
        return None
    return File(path, text) if all(field in text for field in _FIELDS) else None
