"""Detects changes of the refs of a local repository without running git.

In: git's own folder. Out: a value that differs after every change, or None if changes cannot be detected. Never: reads
the refs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MOST: Final = 2_000  # files; above that git itself is as fast
Footprint = tuple[tuple[str, int, int, int], ...]


def footprint(folder: Path) -> Footprint | None:
    """Return paths, mtimes, sizes and inodes of the files that hold refs. None: ask git."""
    found: list[tuple[str, int, int, int]] = []
    try:
        for path in _places(str(folder)):
            try:
                seen = os.stat(path)
            except FileNotFoundError:
                continue
            found.append((path, seen.st_mtime_ns, seen.st_size, seen.st_ino))
            if len(found) > MOST:
                return None
    except OSError:
        return None
    return tuple(found)


def _places(folder: str) -> Iterator[str]:
    for name in ("HEAD", "packed-refs", "config", "reftable/tables.list"):
        yield f"{folder}/{name}"
    yield from _below(f"{folder}/refs")


def _below(folder: str) -> Iterator[str]:
    yield folder
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            if entry.is_dir(follow_symlinks=False):
                yield from _below(entry.path)
            else:
                yield entry.path
