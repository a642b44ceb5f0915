"""Lists the files that a run wrote to its volumes.

In: folders, and the time at which the run started. Out: path and digest of every new file. Never: follows symbolic
links; reads without a limit; fails because a file is unreadable or disappears.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Callable, Sequence
from typing import Final

MAX_FILES, MAX_TOTAL_BYTES = 50, 2 << 30
_CHUNK_BYTES: Final = 1 << 20


class RunStart:
    """The start of a run, compared with the modification times of files."""

    def __init__(
        self, wall_clock: Callable[[], float] = time.time, monotonic_clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wall_clock, self._monotonic_clock = wall_clock, monotonic_clock
        self._started_at, self._started_at_monotonic = wall_clock(), monotonic_clock()

    def earliest_file_time(self) -> float:
        """Time of day at the start of the run. If the clock was set back during the run, the start is moved back with
        it; otherwise files written after that would count as old.
        """
        return min(self._started_at, self._wall_clock() - (self._monotonic_clock() - self._started_at_monotonic))


def list_written_files(folders: Sequence[tuple[str, str]], started_at: float) -> tuple[dict[str, str], ...]:
    """List the files written since the start, newest first up to a limit; each folder with the path that the notebook
    used.
    """
    files: list[tuple[float, str, str]] = []
    bytes_left = MAX_TOTAL_BYTES
    for folder, display_folder in folders:
        for folder_path, _, names, folder_fd in os.fwalk(folder, follow_symlinks=False):
            for name in names:
                with contextlib.suppress(OSError):
                    stat_result = os.stat(name, dir_fd=folder_fd, follow_symlinks=False)
                    if (
                        not stat.S_ISREG(stat_result.st_mode)
                        or stat_result.st_mtime < started_at
                        or stat_result.st_size > bytes_left
                    ):
                        continue
                    digest = _compute_digest(name, folder_fd)
                    bytes_left -= stat_result.st_size
                    relative_path = os.path.relpath(os.path.join(folder_path, name), folder)
                    files.append((stat_result.st_mtime, os.path.join(display_folder, relative_path), digest))
    newest = sorted(files, reverse=True)[:MAX_FILES]
    return tuple({"path": path, "digest": digest} for _, path, digest in sorted(newest, key=lambda entry: entry[1]))


def _compute_digest(name: str, folder_fd: int) -> str:
    file_fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder_fd)
    sha = hashlib.sha256()
    with open(file_fd, "rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            sha.update(chunk)
    return f"sha256:{sha.hexdigest()}"
