"""Removes the folder of a run, even if the run made that difficult.

In: a folder whose processes have ended. Out: nothing is left of it. Never: follows a link; fails because names are too
long, or folders are too deep or not readable.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def remove(folder: Path) -> None:
    """Move nested folders to the top level first, so that paths do not get too long."""
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    try:
        shutil.rmtree(folder)
        return
    except (OSError, RecursionError):
        pass
    number, left = 0, [folder]
    while left:
        at = left.pop()
        with contextlib.suppress(OSError):
            at.chmod(0o700)
        try:
            entries = list(os.scandir(at))
        except OSError:
            continue
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
                continue
            number += 1
            lifted = folder / f"lifted-{number}"
            with contextlib.suppress(OSError):
                os.chmod(entry.path, 0o700)
                os.rename(entry.path, lifted)
                left.append(lifted)
        with contextlib.suppress(OSError):
            if at != folder:
                at.rmdir()
    shutil.rmtree(folder, ignore_errors=True)
