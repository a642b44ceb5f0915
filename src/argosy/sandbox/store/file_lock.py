"""File lock that lets one process at a time open a store.

In: the path of the store. Out: a held lock, or a UserError after half a second. Never: leaves a stale lock behind; the
kernel releases it when the process ends, even by SIGKILL.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
import weakref
from pathlib import Path

from argosy.errors import UserError

LOCK_TIMEOUT_SECONDS = 0.5


class FileLock:
    """Locks a separate file, because closing any descriptor of the store file would drop SQLite's own locks."""

    def __init__(self, path: Path) -> None:
        self.path = path.with_name(path.name + ".lock")
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            self._acquire()
        except BlockingIOError as error:
            owner = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            self.release()
            holder = f"process {owner}" if owner else "another process"
            raise UserError(
                f"{holder} has this store open; stop it first, or choose another data directory", where=str(path)
            ) from error
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, f"{os.getpid()}\n".encode(), 0)
        # A forked child shares the lock and would keep it after this process ends.
        release_in_child = weakref.WeakMethod(self.release)
        os.register_at_fork(after_in_child=lambda: (release := release_in_child()) and release())

    def _acquire(self) -> None:
        """Retry for a moment: a child that was just forked, or a process that is about to end, soon releases it."""
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        while True:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.01)

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)
