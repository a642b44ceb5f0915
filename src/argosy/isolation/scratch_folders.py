"""Temporary folders that are removed even if the process that created them is killed.

In: a prefix. Out: a private folder, as long as it is needed. Never: removes a folder whose process lives, or that
another user or host created.

Each folder contains a lock file, and its process holds an flock on it. The kernel releases the flock when the process
ends for any reason, so a sweep that gets the flock knows that the folder is unused. Unlike a process id, this works
across containers that share a temporary folder. The lock file names the host and its boot: an flock of another host may
not be visible here.

A folder gets its final name after it is locked; before, its name begins with a dot. A process that is killed in between
leaves such a folder, perhaps without a lock, so a sweep removes those that are older than a day.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

RENDER_PREFIXES: Final = ("argosy-tree-", "argosy-run-")
PREFIXES: Final = (
    *RENDER_PREFIXES, "argosy-nb-", "argosy-notifications-", "argosy-pod-", "argosy-probe-", "argosy-promote-",
    "argosy-sandbox-",
)  # fmt: skip
UNFINISHED_PREFIXES: Final = tuple(f".{prefix}" for prefix in PREFIXES)
MAX_UNFINISHED_SECONDS: Final = 24 * 3600.0
LOCK_FILE_NAME: Final = ".lock"
BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_NOT_SUPPORTED: Final = (errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL)
_MAX_LOCK_BYTES: Final = 1024


@contextlib.contextmanager
def create_scratch_folder(prefix: str) -> Iterator[Path]:
    """Create a folder whose name begins with one of PREFIXES, and remove it afterwards.

    Callers give programs a folder inside it, never the folder itself, because programs must not remove the lock.
    """
    assert prefix in PREFIXES
    unfinished = Path(tempfile.mkdtemp(prefix=f".{prefix}"))
    # It is locked before it gets its final name: a sweep must never find it without its lock.
    folder, handle = unfinished.with_name(unfinished.name.removeprefix(".")), None
    try:
        handle = _lock(unfinished / LOCK_FILE_NAME)
        unfinished.rename(folder)
        yield folder
    finally:
        try:
            _remove(unfinished)
            _remove(folder)
        finally:
            if handle is not None:
                os.close(handle)


def find_scratch_folder(path: Path) -> Path | None:
    """Find the temporary render folder that contains a path."""
    return next((parent for parent in path.parents if parent.name.startswith(RENDER_PREFIXES)), None)


def sweep_scratch_folders() -> int:
    """Remove the folders of ended processes; return their number."""
    removed = 0
    with contextlib.suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        candidates = [Path(entry.path) for entry in entries if entry.name.startswith((*PREFIXES, *UNFINISHED_PREFIXES))]
        for folder in candidates:
            with contextlib.suppress(OSError):
                removed += _sweep(folder)
    return removed


def _lock(file: Path) -> int | None:
    """Create and lock a lock file. None, and no file, if the file system has no locks: sweeps then skip the folder."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        os.write(handle, "\n".join([*_host_and_boot(), ""]).encode())
    except OSError as error:
        os.close(handle)
        if error.errno not in _NOT_SUPPORTED:
            raise
        os.unlink(file)
        return None
    return handle


def _host_and_boot() -> tuple[str, str]:
    boot = ""
    with contextlib.suppress(OSError):
        boot = BOOT_ID.read_text().strip()
    return os.uname().nodename, boot


def _is_of_this_host(handle: int) -> bool:
    """True if the lock names this boot, even in another container, or this host before its last boot.

    Hosts are distinguished by name. Two hosts with the same name that share a temporary folder on a file system with
    local locks would remove each other's folders: give them different names or folders.
    """
    lines = os.read(handle, _MAX_LOCK_BYTES).decode(errors="replace").splitlines()
    host, boot = _host_and_boot()
    return len(lines) == 2 and (lines[0] == host or (boot != "" and lines[1] == boot))


def _sweep(folder: Path) -> bool:
    status = folder.lstat()
    if not folder.is_dir() or folder.is_symlink() or status.st_uid != os.geteuid():
        return False
    is_unfinished = folder.name.startswith(UNFINISHED_PREFIXES)
    if is_unfinished and abs(time.time() - status.st_mtime) < MAX_UNFINISHED_SECONDS:
        return False
    try:
        handle = os.open(folder / LOCK_FILE_NAME, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        if is_unfinished:
            _remove(folder)
        return is_unfinished  # any other folder without a lock may be in use
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not is_unfinished and not _is_of_this_host(handle):
            return False
        _remove(folder)
        return True
    finally:
        os.close(handle)


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last, so that a sweep can finish an interrupted removal."""
    if os.geteuid() != 0:  # exported trees are read-only
        for path, _, _ in os.walk(folder):
            with contextlib.suppress(OSError):
                os.chmod(path, 0o700)
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            if name != LOCK_FILE_NAME:
                _remove_entry(folder / name)
        if os.listdir(folder) == [LOCK_FILE_NAME]:
            os.unlink(folder / LOCK_FILE_NAME)
    with contextlib.suppress(OSError):
        os.rmdir(folder)  # also where there are too few file descriptors to list it


def _remove_entry(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            os.unlink(path)
