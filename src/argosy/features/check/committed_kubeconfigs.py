"""Finds kubeconfig files by content, whatever their names.

In: the given paths, and the files read as manifests. Out: manifests, and notes about what was not read. Never: reads a
file that Git does not track, if there is a repository; follows a link.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator, Sequence
from typing import Final, NamedTuple

from argosy.errors import ArgosyError
from argosy.gitops.analysis.repository_view import ManifestWithLocations
from argosy.gitops.workspace.enclosing_repository_lookup import find_enclosing_repository
from argosy.gitops.workspace.manifest_files import MAX_FILE_BYTES, MAX_FILES, YamlFile, list_files, relative_path

_KUBECONFIG_FIELDS: Final = (b"clusters", b"users")
_BINARY_PROBE_BYTES: Final = 1024


class Kubeconfigs(NamedTuple):
    items: tuple[ManifestWithLocations, ...]
    notes: tuple[str, ...]


class TrackedFiles:
    """The files that Git tracks, by repository; each repository is listed once."""

    def __init__(self) -> None:
        self._by_root: dict[str, frozenset[str] | ArgosyError] = {}

    def list_files(self, root: str) -> frozenset[str]:
        """List absolute paths. Raises ArgosyError if Git fails."""
        if root not in self._by_root:
            try:
                self._by_root[root] = frozenset(os.path.join(root, name) for name in _list_tracked_files(root))
            except ArgosyError as error:
                self._by_root[root] = error
        files = self._by_root[root]
        if isinstance(files, ArgosyError):
            raise files
        return files

    def is_tracked(self, path: str) -> bool:
        real = os.path.realpath(path)
        root = find_enclosing_repository(os.path.dirname(real))
        try:
            return root is not None and real in self.list_files(root)
        except ArgosyError:
            return True  # it is in a repository, so assume tracked


def find_kubeconfigs(paths: Sequence[str], manifests: Sequence[YamlFile], tracked: TrackedFiles) -> Kubeconfigs:
    """Find kubeconfigs below the paths, except those that are already read as manifests."""
    likely = (file for file in manifests if b"Config" in file.text and b"users" in file.text)
    manifest_paths = {
        file.path for file in likely if any(item.group_kind == ("", "Config") for item in file.list_items())
    }
    notes: list[str] = []
    candidates = dict.fromkeys(
        path for path in _iterate_candidates(paths, tracked, notes) if path not in manifest_paths
    )
    items = [
        item for path in candidates if (file := _read_likely_kubeconfig(path)) and (item := file.find_kubeconfig())
    ]
    return Kubeconfigs(tuple(items), tuple(notes))


def _iterate_candidates(paths: Sequence[str], tracked: TrackedFiles, notes: list[str]) -> Iterator[str]:
    typed_by_root: dict[str, set[str]] = {}
    for typed in paths:
        real = os.path.realpath(typed)
        root = find_enclosing_repository(real if os.path.isdir(real) else os.path.dirname(real))
        if root is None:
            yield from _iterate_untracked_files(typed, real, notes)
        else:
            typed_by_root.setdefault(root, set()).add(real)
    for root, reals in typed_by_root.items():
        try:
            yield from sorted(path for path in tracked.list_files(root) if _is_within_any(path, reals))
        except ArgosyError as error:
            notes.append(f"{relative_path(root)}: files were not searched for kubeconfigs: {error}")


def _is_within_any(path: str, folders: Container[str]) -> bool:
    while path not in folders:
        above = os.path.dirname(path)
        if above == path:
            return False
        path = above
    return True


def _iterate_untracked_files(given_path: str, real_path: str, notes: list[str]) -> Iterator[str]:
    """Yield files outside Git."""
    for count, path in enumerate(list_files(real_path, ("",)) if os.path.isdir(real_path) else [real_path]):
        if count >= MAX_FILES:
            problem = f"{given_path}: only the first {MAX_FILES} files were searched for kubeconfigs"
            notes.append(f"{problem}; choose a smaller folder")
            return
        yield path


def _list_tracked_files(root: str) -> list[str]:
    from argosy.features.preview.revision_range_trees import PreviewRepository

    repository = PreviewRepository(root)
    try:
        return repository.run(repository.history.list_tracked_files())
    finally:
        repository.close()


def _read_likely_kubeconfig(path: str) -> YamlFile | None:
    """Return a text file that contains the fields of a kubeconfig; None for all others, so that few are parsed."""
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > MAX_FILE_BYTES:
        return None
    try:
        with open(path, "rb") as stream:
            text = stream.read(_BINARY_PROBE_BYTES)
            if b"\0" in text:
                return None
            text += stream.read()
    except OSError:
        return None
    return YamlFile(path, text) if all(field in text for field in _KUBECONFIG_FIELDS) else None
