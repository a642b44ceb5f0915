"""What a run left in its claims.

In: folders, and when the run began. Out: each new file's path and digest. Never: follows a link; reads without end;
fails because of a file that it may not read, or that goes meanwhile.
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
    """When a run began, for a comparison with the times of files that were written since."""

    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._began, self._began_monotonic = wall(), monotonic()

    def earliest_file_time(self) -> float:
        """The time of day at the start. If the clock was set back since, what it would have shown then: else files that
        were written after that would count as old."""
        return min(self._began, self._wall() - (self._monotonic() - self._began_monotonic))


def of(folders: Sequence[tuple[str, str]], began: float) -> tuple[dict[str, str], ...]:
    """Files that were written since, each folder with the name that the notebook knew; the newest of many."""
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
