"""Removes the folder of a run, even if the run made that difficult.

In: a folder whose processes have ended. Out: nothing is left of it. Never: follows a link; fails because names are too
long, or folders are too deep or not readable.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path


def remove_folder(folder: Path) -> None:
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
    number, pending_folders = 0, [folder]
    while pending_folders:
        current_folder = pending_folders.pop()
        with contextlib.suppress(OSError):
            current_folder.chmod(0o700)
        try:
            entries = list(os.scandir(current_folder))
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
                pending_folders.append(lifted)
        with contextlib.suppress(OSError):
            if current_folder != folder:
                current_folder.rmdir()
    shutil.rmtree(folder, ignore_errors=True)
