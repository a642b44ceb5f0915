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

MOST_FILES, MOST_BYTES = 50, 2 << 30
_CHUNK: Final = 1 << 20


class RunStart:
    """The start of a run, compared with the modification times of files."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._began, self._began_monotonic = wall(), monotonic()

    def earliest_file_time(self) -> float:
        """Time of day at the start of the run. If the clock was set back during the run, the start is moved back with
        it; otherwise files written after that would count as old.
        """
        return min(self._began, self._wall() - (self._monotonic() - self._began_monotonic))


def of(folders: Sequence[tuple[str, str]], began: float) -> tuple[dict[str, str], ...]:
    """List the files written since the start, newest first up to a limit; each folder with the path that the notebook
    used.
    """
    found: list[tuple[float, str, str]] = []
    left = MOST_BYTES
    for folder, named in folders:
        for at, _, names, number in os.fwalk(folder, follow_symlinks=False):
            for name in names:
                with contextlib.suppress(OSError):
                    facts = os.stat(name, dir_fd=number, follow_symlinks=False)
                    if not stat.S_ISREG(facts.st_mode) or facts.st_mtime < began or facts.st_size > left:
                        continue
                    digest = _digest(name, number)
                    left -= facts.st_size
                    inner = os.path.relpath(os.path.join(at, name), folder)
                    found.append((facts.st_mtime, os.path.join(named, inner), digest))
    newest = sorted(found, reverse=True)[:MOST_FILES]
    return tuple({"path": path, "digest": digest} for _, path, digest in sorted(newest, key=lambda each: each[1]))


def _digest(name: str, folder: int) -> str:
    number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    sha = hashlib.sha256()
    with open(number, "rb") as file:
        while more := file.read(_CHUNK):
            sha.update(more)
    return f"sha256:{sha.hexdigest()}"
