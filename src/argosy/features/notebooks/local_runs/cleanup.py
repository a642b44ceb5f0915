"""Removes what a run made, however it tried to prevent that.

In: a folder whose processes have ended. Out: no folder. Never: follows a link; gives up because names are too long, or
folders too deep or closed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def remove(folder: Path) -> None:
    """Folders are lifted to one level as they are met, so that no path grows."""
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
