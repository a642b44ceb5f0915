"""Keeps downloaded charts and indexes in a folder, up to a size.

In: a name, bytes. Out: a path. Never: exceeds its limits for longer than one write; leaves a file half written.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from pathlib import Path
from typing import Final

from argosy.errors import SourceUnreachable

MAX_CACHE_BYTES: Final = 2 << 30
MAX_CACHE_FILES: Final = 5_000
_PARTIAL_PREFIX: Final = ".partial-"
_STALE_SECONDS: Final = 3600.0  # a file that is still partial then belongs to a process that was killed


class ChartCache:
    """Several processes may share the folder. The access time of a file is when it was last used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, name: str) -> Path | None:
        """Return the file, and mark it as used."""
        path = self.folder / name
        try:
            os.utime(path, ns=(time.time_ns(), path.stat().st_mtime_ns))
        except OSError:
            return None
        return path

    def remove(self, name: str) -> None:
        with contextlib.suppress(OSError):
            (self.folder / name).unlink()

    def store(self, name: str, content: bytes) -> Path:
        """Write or replace the file, then delete the least recently used ones beyond the limits."""
        path = self.folder / name
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, partial = tempfile.mkstemp(prefix=_PARTIAL_PREFIX, dir=self.folder)
            try:
                with open(descriptor, "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())  # else the file may be empty after a power loss, under its new name
                os.replace(partial, path)
            except OSError:
                with contextlib.suppress(OSError):
                    os.unlink(partial)
                raise
        except OSError as error:
            message = "the chart cannot be stored; the disk of the mirrors is full or read-only: free some space"
            raise SourceUnreachable(message) from error
        self._trim(path)
        return path

    def _trim(self, newest: Path) -> None:
        files, total = [], 0
        for file in os.scandir(self.folder):
            with contextlib.suppress(OSError):
                status = file.stat(follow_symlinks=False)
                if file.name.startswith(_PARTIAL_PREFIX) and time.time() - status.st_mtime < _STALE_SECONDS:
                    continue
                files.append((status.st_atime_ns, status.st_size, file.path))
                total += status.st_size
        count = len(files)
        for _, size, name in sorted(files):
            if total <= MAX_CACHE_BYTES and count <= MAX_CACHE_FILES and not _is_partial(name):
                break
            if name != str(newest):
                with contextlib.suppress(OSError):
                    os.unlink(name)
                total, count = total - size, count - 1


def _is_partial(path: str) -> bool:
    return os.path.basename(path).startswith(_PARTIAL_PREFIX)
