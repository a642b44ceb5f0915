"""Runs `argosy check` on a repository as it would be after a promotion, and caches the result by content.

In: a RepositorySnapshot and the edited files. Out: (passed, message).
Never: writes outside its own scratch folder and cache.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import posixpath
import time
from collections.abc import Iterator, Mapping
from importlib.resources import files as files_of
from pathlib import Path
from typing import Final

from argosy import __version__
from argosy.errors import ArgosyError
from argosy.features.promote.environments_at_commit import RepositorySnapshot
from argosy.gitops.application.file_tree_protocol import FileTree
from argosy.gitops.workspace.command_file_tree_cache import find_cache_folder
from argosy.isolation.scratch_folders import create_scratch_folder

RESULT_LIFETIME_SECONDS: Final = 600.0  # remote bases may change
MAX_REPOSITORY_BYTES: Final = 64 << 20  # of a checked repository, without files larger than _MAX_FILE_BYTES
_MAX_FILE_BYTES: Final = 1 << 20


def check_edited_repository(snapshot: RepositorySnapshot, files: Mapping[str, bytes]) -> tuple[bool, str]:
    """Return the cached result if the same files were checked with the same rules recently."""
    cache_file = _get_cache_path(snapshot.repository.run_git("rev-parse", f"{snapshot.head}^{{tree}}"), files)
    with contextlib.suppress(OSError, ValueError):
        if _is_fresh(cache_file):
            is_green, message = json.loads(cache_file.read_bytes())
            return bool(is_green), str(message)
    result = _run_check(snapshot, files)
    with contextlib.suppress(OSError):
        cache_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old_file in cache_file.parent.iterdir():
            if not _is_fresh(old_file):
                old_file.unlink(missing_ok=True)
        part = cache_file.with_suffix(".part")
        part.write_text(json.dumps(result))
        part.replace(cache_file)
    return result


def _is_fresh(cache_file: Path) -> bool:
    """False also for an mtime in the future: after the clock was set back, the file would stay fresh too long."""
    return 0 <= time.time() - cache_file.stat().st_mtime < RESULT_LIFETIME_SECONDS


def _get_cache_path(tree: str, files: Mapping[str, bytes]) -> Path:
    """The file name is a digest of the content and of the installed rules."""
    rules = Path(str(files_of("argosy.gitops.analysis") / "rules"))
    newest = max((rule_file.stat().st_mtime_ns for rule_file in rules.glob("*.py")), default=0)
    digest = hashlib.sha256(f"{__version__} {newest} {tree}".encode())
    for path, content in sorted(files.items()):
        digest.update(f"\0{path}\0{len(content)}\0".encode() + content)
    return find_cache_folder().parent / "promote-checks" / digest.hexdigest()


def _run_check(snapshot: RepositorySnapshot, files: Mapping[str, bytes]) -> tuple[bool, str]:
    from argosy.features.check.service import CheckRunOptions, check_paths
    from argosy.gitops.analysis.rule_violation import Severity

    with create_scratch_folder("argosy-promote-") as scratch:
        folder = str(scratch / "tree")
        os.mkdir(folder)
        if not _export_tree(snapshot.tree, files, Path(folder)):
            return False, f"unknown: the repository has more than {MAX_REPOSITORY_BYTES >> 20} MiB of files"
        try:
            report = check_paths(
                [folder], options=CheckRunOptions(boundary=os.path.realpath(folder)), log=lambda _: None
            )
        except ArgosyError as error:
            return False, f"unknown: {error}".replace(f"{folder}/", "")
        bad = [finding for finding in report.findings if finding.severity.weight >= Severity.WARNING.weight]
        if not bad:
            return True, f"no errors, no warnings in {report.objects} objects"
        first = bad[0]
        location = str(first.violation.location).replace(f"{folder}/", "")
        return False, f"{len(bad)} findings, such as {location}: {first.rule.id} {first.violation.message}"


def _export_tree(tree: FileTree, files: Mapping[str, bytes], folder: Path) -> bool:
    """Write the tree to a folder. False if it is too large: checking only a part of it proves nothing."""
    remaining_bytes = MAX_REPOSITORY_BYTES
    for path, content in _iterate_files(tree, files):
        if len(content) > _MAX_FILE_BYTES:
            continue
        remaining_bytes -= len(content)
        if remaining_bytes < 0:
            return False
        file_path = folder / path
        file_path.parent.mkdir(parents=True, exist_ok=True)
        file_path.write_bytes(content)
    return True


def _iterate_files(tree: FileTree, files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    queue = [""]
    while queue:
        current = queue.pop()
        for entry in tree.list_folder(current):
            path = posixpath.join(current, entry.name)
            if os.path.normpath(path) != path or path.startswith(("/", "../")):
                continue
            if entry.kind == "folder":
                queue.append(path)
            elif entry.kind == "file":
                yield path, files[path] if path in files else tree.read_file(path)
