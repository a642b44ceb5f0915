"""Temporary folders that are removed even if the process that made them is killed.

In: a prefix. Out: a private folder, for as long as it is needed. Never: removes a folder whose process lives, or that
another user made.

Each folder holds a lock file, and its process holds an flock on it. The kernel drops the flock when the process ends,
however that happens, so a sweep that gets it knows that nobody needs the folder. Unlike a process id, this holds across
containers that share a folder for temporary files.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PREFIXES: Final = ("argosy-tree-", "argosy-run-")
LOCK: Final = ".lock"


@contextlib.contextmanager
def scratch_folder(prefix: str) -> Iterator[Path]:
    """Make a folder whose name begins with one of PREFIXES, and remove it after."""
    assert prefix in PREFIXES
    made = Path(tempfile.mkdtemp(prefix=f".{prefix}"))
    # Under its final name it is locked already: a sweep must never find it without its lock.
    folder = made.with_name(made.name.removeprefix("."))
    handle = os.open(made / LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        made.rename(folder)
        yield folder
    finally:
        _remove(folder)
        os.close(handle)


def sweep_scratch_folders() -> int:
    """Remove the folders of processes that have ended; return how many there were."""
    removed = 0
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        found = [Path(entry.path) for entry in entries if entry.name.startswith(PREFIXES)]
        for folder in found:
            with contextlib.suppress(OSError):
                removed += _sweep(folder)
    return removed


def _sweep(folder: Path) -> bool:
    status = folder.lstat()
    if not folder.is_dir() or folder.is_symlink() or status.st_uid != os.geteuid():
        return False
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)  # without one it is not ours to judge
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(folder)
        return True
    finally:
        os.close(handle)


def _remove(folder: Path) -> None:
    if os.geteuid() != 0:  # exported trees are read-only
        for at, _, _ in os.walk(folder):
            with contextlib.suppress(OSError):
                os.chmod(at, 0o700)
    shutil.rmtree(folder, ignore_errors=True)
