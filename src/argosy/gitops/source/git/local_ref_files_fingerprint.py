"""Detects changes of the refs of a local repository without running git.

In: git's own folder. Out: a value that differs after every change, or None if changes cannot be detected. Never: reads
the refs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_REF_FILES: Final = 2_000  # files; above that git itself is as fast
RefFingerprint = tuple[tuple[str, int, int, int], ...]


def refs_fingerprint(folder: Path) -> RefFingerprint | None:
    """Return paths, mtimes, sizes and inodes of the files that hold refs. None: ask git."""
    entries: list[tuple[str, int, int, int]] = []
    try:
        for path in _list_ref_files(str(folder)):
            try:
                file_stat = os.stat(path)
            except FileNotFoundError:
                continue
            entries.append((path, file_stat.st_mtime_ns, file_stat.st_size, file_stat.st_ino))
            if len(entries) > MAX_REF_FILES:
                return None
    except OSError:
        return None
    return tuple(entries)


def _list_ref_files(folder: str) -> Iterator[str]:
    for name in ("HEAD", "packed-refs", "config", "reftable/tables.list"):
        yield f"{folder}/{name}"
    yield from _walk_files(f"{folder}/refs")


def _walk_files(folder: str) -> Iterator[str]:
    yield folder
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                yield from _walk_files(entry.path)
            else:
                yield entry.path
