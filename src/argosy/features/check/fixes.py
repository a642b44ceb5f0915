"""Applies the file fixes of findings, for `argosy check --fix`.

In: findings. Out: fixed findings, and unfixed ones with the reason. Never: edits a file with conflict markers or one
outside the checked paths; loses a comment line.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from argosy.errors import ManifestError
from argosy.gitops.analysis.finding import Finding
from argosy.gitops.analysis.violation import Mend, Place
from argosy.gitops.workspace.manifest_files import is_within
from argosy.kube.objects import Manifest, load_all
from argosy.kube.objects.yaml_edits import Edit, edited

_CONFLICT: Final = re.compile(r"^(?:<{7} |={7}$|>{7} )", re.MULTILINE)
_COMMENT: Final = re.compile(r"^[ \t-]*#", re.MULTILINE)


class Mended(NamedTuple):
    finding: Finding
    place: Place  # the first changed line


class Unmended(NamedTuple):
    finding: Finding
    why: str


class Mending(NamedTuple):
    done: list[Mended]
    left: list[Unmended]


def mend(findings: Sequence[Finding], paths: Sequence[str]) -> Mending:
    done: list[Mended] = []
    left: list[Unmended] = []
    for finding in findings:
        if finding.sight.mend is None:
            continue
        try:
            if (place := _mended(finding.sight.mend, paths)) is not None:
                done.append(Mended(finding, place))
        except ManifestError as error:
            left.append(Unmended(finding, error.message))
    return Mending(done, left)


def _mended(given: Mend, paths: Sequence[str]) -> Place | None:
    """Edit the file and return the changed line; None if the fix of another finding already made the change."""
    file = given.place.file
    if not os.path.isfile(file) or os.path.islink(file) or not _is_ours(file, paths):
        raise ManifestError("it is in a file outside the checked paths; edit it there")
    before = _text(file)
    document, above, manifest = _found(before, given)
    edits = [Edit((*above, *edit.path), edit.value) for edit in given.edits(manifest)]
    if not edits:
        raise ManifestError("the file differs from the rendered object; edit it by hand")
    after = edited(before, edits, document=document, where=file)
    if after == before:
        return None
    if len(_COMMENT.findall(after)) < len(_COMMENT.findall(before)):
        raise ManifestError("a comment would be lost; edit it by hand")
    _write(file, after)
    return Place(file, _first_difference(before, after))


def _is_ours(file: str, paths: Sequence[str]) -> bool:
    real = os.path.realpath(file)
    return any(is_within(real, os.path.realpath(each)) for each in paths)


def _write(file: str, text: str) -> None:
    """Replace the file atomically and keep its permissions."""
    new = f"{file}.argosy-new"
    Path(new).write_bytes(text.encode())
    shutil.copymode(file, new)
    os.replace(new, file)


def _text(file: str) -> str:
    try:
        text = Path(file).read_bytes().decode()
    except UnicodeDecodeError:
        raise ManifestError("the file is not UTF-8; save it as UTF-8 first") from None
    if _CONFLICT.search(text):
        raise ManifestError("the file has conflict markers; resolve them first")
    return text


def _found(text: str, given: Mend) -> tuple[int, tuple[str | int, ...], Manifest]:
    """Find the only object of this kind and name in the file; return document index, path and manifest."""
    documents = [each for each in load_all(text, where=given.place.file) if each is not None]
    found = [
        (number, path, manifest)
        for number, document in enumerate(documents)
        for path, manifest in _objects(document, ())
        if _is_it(manifest, given)
    ]
    if len(found) != 1:
        what = f"{given.key.kind}/{given.key.name}"
        often = f"has {what} {len(found)} times" if found else f"does not define {what} (another name, or a patch)"
        raise ManifestError(f"the file {often}; edit it by hand")
    return found[0]


def _objects(document: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Manifest]]:
    if not isinstance(document, dict):
        return
    items = document.get("items")
    if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
        for number, each in enumerate(items):
            yield from _objects(each, (*path, "items", number))
    else:
        yield path, document


def _is_it(manifest: Manifest, given: Mend) -> bool:
    metadata = manifest.get("metadata")
    named = metadata.get("name") if isinstance(metadata, dict) else None
    return manifest.get("kind") == given.key.kind and named == given.key.name


def _first_difference(before: str, after: str) -> int:
    pairs = zip(before.splitlines(), after.splitlines())
    return next((number for number, (one, other) in enumerate(pairs, 1) if one != other), before.count("\n") + 1)
