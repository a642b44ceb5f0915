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
from argosy.gitops.analysis.rule_violation import FileFix, FileLocation
from argosy.gitops.workspace.manifest_files import is_within
from argosy.kube.objects import Manifest, read_yaml_documents
from argosy.kube.objects.yaml_edits import YamlEdit, edited

_CONFLICT_MARKER_PATTERN: Final = re.compile(r"^(?:<{7} |={7}$|>{7} )", re.MULTILINE)
_COMMENT_LINE_PATTERN: Final = re.compile(r"^[ \t-]*#", re.MULTILINE)


class FixedFinding(NamedTuple):
    finding: Finding
    location: FileLocation  # the first changed line


class UnfixedFinding(NamedTuple):
    finding: Finding
    reason: str


class FixResult(NamedTuple):
    fixed: list[FixedFinding]
    unfixed: list[UnfixedFinding]


def apply_fixes(findings: Sequence[Finding], paths: Sequence[str]) -> FixResult:
    fixed: list[FixedFinding] = []
    unfixed: list[UnfixedFinding] = []
    for finding in findings:
        if finding.violation.file_fix is None:
            continue
        try:
            if (location := _apply_fix(finding.violation.file_fix, paths)) is not None:
                fixed.append(FixedFinding(finding, location))
        except ManifestError as error:
            unfixed.append(UnfixedFinding(finding, error.message))
    return FixResult(fixed, unfixed)


def _apply_fix(file_fix: FileFix, paths: Sequence[str]) -> FileLocation | None:
    """Edit the file and return the changed line; None if the fix of another finding already made the change."""
    file = file_fix.location.file
    if not os.path.isfile(file) or os.path.islink(file) or not _is_below_paths(file, paths):
        raise ManifestError("it is in a file outside the checked paths; edit it there")
    before = _read_text(file)
    document, above, manifest = _find_object(before, file_fix)
    edits = [YamlEdit((*above, *edit.path), edit.value) for edit in file_fix.edits(manifest)]
    if not edits:
        raise ManifestError("the file differs from the rendered object; edit it by hand")
    after = edited(before, edits, document_index=document, where=file)
    if after == before:
        return None
    if len(_COMMENT_LINE_PATTERN.findall(after)) < len(_COMMENT_LINE_PATTERN.findall(before)):
        raise ManifestError("a comment would be lost; edit it by hand")
    _write_atomically(file, after)
    return FileLocation(file, _find_first_changed_line(before, after))


def _is_below_paths(file: str, paths: Sequence[str]) -> bool:
    real = os.path.realpath(file)
    return any(is_within(real, os.path.realpath(path)) for path in paths)


def _write_atomically(file: str, text: str) -> None:
    """Replace the file atomically and keep its permissions."""
    new = f"{file}.argosy-new"
    Path(new).write_bytes(text.encode())
    shutil.copymode(file, new)
    os.replace(new, file)


def _read_text(file: str) -> str:
    try:
        text = Path(file).read_bytes().decode()
    except UnicodeDecodeError:
        raise ManifestError("the file is not UTF-8; save it as UTF-8 first") from None
    if _CONFLICT_MARKER_PATTERN.search(text):
        raise ManifestError("the file has conflict markers; resolve them first")
    return text


def _find_object(text: str, file_fix: FileFix) -> tuple[int, tuple[str | int, ...], Manifest]:
    """Find the only object of this kind and name in the file; return document index, path and manifest."""
    documents = [
        document_or_none
        for document_or_none in read_yaml_documents(text, where=file_fix.location.file)
        if document_or_none is not None
    ]
    matches = [
        (number, path, manifest)
        for number, document in enumerate(documents)
        for path, manifest in _iterate_objects(document, ())
        if _is_object_of_fix(manifest, file_fix)
    ]
    if len(matches) != 1:
        object_name = f"{file_fix.key.kind}/{file_fix.key.name}"
        problem = (
            f"has {object_name} {len(matches)} times"
            if matches
            else f"does not define {object_name} (another name, or a patch)"
        )
        raise ManifestError(f"the file {problem}; edit it by hand")
    return matches[0]


def _iterate_objects(document: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Manifest]]:
    if not isinstance(document, dict):
        return
    items = document.get("items")
    if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
        for number, item in enumerate(items):
            yield from _iterate_objects(item, (*path, "items", number))
    else:
        yield path, document


def _is_object_of_fix(manifest: Manifest, file_fix: FileFix) -> bool:
    metadata = manifest.get("metadata")
    object_name = metadata.get("name") if isinstance(metadata, dict) else None
    return manifest.get("kind") == file_fix.key.kind and object_name == file_fix.key.name


def _find_first_changed_line(before: str, after: str) -> int:
    pairs = zip(before.splitlines(), after.splitlines())
    return next(
        (number for number, (old_line, new_line) in enumerate(pairs, 1) if old_line != new_line), before.count("\n") + 1
    )
