"""Files that are kubeconfigs by content, whatever they are called.

In: paths that were typed, and the files that are read as manifests. Out: items, and notes of what was not read. Never:
a file that Git does not track, where there is a repository; a link followed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from argosy.advise.repository import Item
from argosy.desk.checking.files import MOST_BYTES, MOST_FILES, File, below, is_within
from argosy.desk.rendering.places import enclosing
from argosy.model.errors import ArgosyError

_FIELDS: Final = (b"clusters", b"users")
_BINARY_PROBE_BYTES: Final = 1024


class Kubeconfigs(NamedTuple):
    items: tuple[Item, ...]
    notes: tuple[str, ...]


def find_kubeconfigs(paths: Sequence[str], manifests: Sequence[File]) -> Kubeconfigs:
    """Kubeconfigs below the paths, without those that are manifests by their name and content."""
    likely = (file for file in manifests if b"Config" in file.text and b"users" in file.text)
    known = {file.path for file in likely if any(item.kind == ("", "Config") for item in file.items())}
    notes: list[str] = []
    candidates = dict.fromkeys(path for typed in paths for path in _candidates(typed, notes) if path not in known)
    items = [item for path in candidates if (file := _read_text(path)) and (item := file.kubeconfig())]
    return Kubeconfigs(tuple(items), tuple(notes))


def _candidates(typed: str, notes: list[str]) -> Iterator[str]:
    real = os.path.realpath(typed)
    root = enclosing(real if os.path.isdir(real) else os.path.dirname(real))
    if root is not None:
        try:
            yield from (path for name in _tracked(root) if is_within(path := os.path.join(root, name), real))
        except ArgosyError as error:
            notes.append(f"{typed}: files were not searched for kubeconfigs: {error}")
        return
    for count, path in enumerate(below(real, ("",)) if os.path.isdir(real) else [real]):
        if count >= MOST_FILES:
            told = f"{typed}: only the first {MOST_FILES} files were searched for kubeconfigs"
            notes.append(f"{told}; name a smaller folder")
            return
        yield path


def _tracked(root: str) -> list[str]:
    from argosy.desk.previewing.sides import Repository

    repository = Repository(root)
    try:
        return repository.run(repository.history.tracked())
    finally:
        repository.close()


def _read_text(path: str) -> File | None:
    """A text that has the fields of a kubeconfig; None for all others, so that few files are parsed."""
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
