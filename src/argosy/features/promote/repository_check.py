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
from argosy.features.promote.environment_states import Survey
from argosy.gitops.application.file_tree import Tree
from argosy.gitops.workspace.checkouts import cache_folder
from argosy.isolation.scratch_folders import scratch_folder

FRESH: Final = 600.0  # remote bases may change
MOST_BYTES: Final = 64 << 20  # of a checked repository, without files larger than _MAX_FILE_BYTES
_LARGEST: Final = 1 << 20


def checked(survey: Survey, files: Mapping[str, bytes]) -> tuple[bool, str]:
    """Return the cached result if the same files were checked with the same rules recently."""
    kept = _kept(survey.repository.git("rev-parse", f"{survey.head}^{{tree}}"), files)
    with contextlib.suppress(OSError, ValueError):
        if _is_fresh(kept):
            is_green, told = json.loads(kept.read_bytes())
            return bool(is_green), str(told)
    found = _checked(survey, files)
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for each in kept.parent.iterdir():
            if not _is_fresh(each):
                each.unlink(missing_ok=True)
        part = kept.with_suffix(".part")
        part.write_text(json.dumps(found))
        part.replace(kept)
    return found


def _is_fresh(kept: Path) -> bool:
    """False also for an mtime in the future: after the clock was set back, the file would stay fresh too long."""
    return 0 <= time.time() - kept.stat().st_mtime < FRESH


def _kept(tree: str, files: Mapping[str, bytes]) -> Path:
    """The file name is a digest of the content and of the installed rules."""
    rules = Path(str(files_of("argosy.gitops.analysis") / "rules"))
    newest = max((each.stat().st_mtime_ns for each in rules.glob("*.py")), default=0)
    digest = hashlib.sha256(f"{__version__} {newest} {tree}".encode())
    for path, content in sorted(files.items()):
        digest.update(f"\0{path}\0{len(content)}\0".encode() + content)
    return cache_folder().parent / "promote-checks" / digest.hexdigest()


def _checked(survey: Survey, files: Mapping[str, bytes]) -> tuple[bool, str]:
    from argosy.features.check.service import Manner, check
    from argosy.gitops.analysis.violation import Severity

    with scratch_folder("argosy-promote-") as scratch:
        folder = str(scratch / "tree")
        os.mkdir(folder)
        if not _export(survey.tree, files, Path(folder)):
            return False, f"unknown: the repository has more than {MOST_BYTES >> 20} MiB of files"
        try:
            found = check([folder], manner=Manner(boundary=os.path.realpath(folder)), talk=lambda _: None)
        except ArgosyError as error:
            return False, f"unknown: {error}".replace(f"{folder}/", "")
        bad = [each for each in found.findings if each.severity.weight >= Severity.WARNING.weight]
        if not bad:
            return True, f"no errors, no warnings in {found.objects} objects"
        first = bad[0]
        place = str(first.sight.place).replace(f"{folder}/", "")
        return False, f"{len(bad)} findings, such as {place}: {first.rule.id} {first.sight.message}"


def _export(tree: Tree, files: Mapping[str, bytes], folder: Path) -> bool:
    """Write the tree to a folder. False if it is too large: checking only a part of it proves nothing."""
    left = MOST_BYTES
    for path, content in _contents(tree, files):
        if len(content) > _LARGEST:
            continue
        left -= len(content)
        if left < 0:
            return False
        place = folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    return True


def _contents(tree: Tree, files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    waiting = [""]
    while waiting:
        here = waiting.pop()
        for entry in tree.listing(here):
            path = posixpath.join(here, entry.name)
            if os.path.normpath(path) != path or path.startswith(("/", "../")):
                continue
            if entry.kind == "folder":
                waiting.append(path)
            elif entry.kind == "file":
                yield path, files[path] if path in files else tree.read(path)
