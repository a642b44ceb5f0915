"""What a run left in its claims.

In: folders, and when the run began. Out: each new file's path and digest. Never: follows a link; reads without end.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from typing import Final

from argosy.addons.notebooks.local.surroundings import Mounted

MOST_FILES, MOST_BYTES = 50, 2 << 30
_CHUNK: Final = 1 << 20


def of(mounts: Sequence[Mounted], began: float) -> tuple[dict[str, str], ...]:
    """Files that were written since, under the names that the notebook knew; the newest where there are many."""
    found: list[tuple[float, str, str]] = []
    left = MOST_BYTES
    for mount in mounts:
        if not mount.is_claim or mount.read_only:
            continue
        for at, _, names, folder in os.fwalk(mount.source, follow_symlinks=False):
            for name in names:
                facts = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if not stat.S_ISREG(facts.st_mode) or facts.st_mtime < began or facts.st_size > left:
                    continue
                left -= facts.st_size
                inner = os.path.relpath(os.path.join(at, name), mount.source)
                found.append((facts.st_mtime, os.path.join(mount.name, inner), _digest(name, folder)))
    newest = sorted(found, reverse=True)[:MOST_FILES]
    return tuple({"path": path, "digest": digest} for _, path, digest in sorted(newest, key=lambda each: each[1]))


def _digest(name: str, folder: int) -> str:
    number = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    sha = hashlib.sha256()
    with open(number, "rb") as file:
        while more := file.read(_CHUNK):
            sha.update(more)
    return f"sha256:{sha.hexdigest()}"
