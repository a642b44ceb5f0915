"""Writes files that only their owner may read: keys, tokens and sandbox data.

In: a path and bytes. Out: the complete file. Never: a partial file, even after a power failure; a file that others may
read.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

from argosy.errors import UserError

DISK_FULL_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


def write_private(file: Path, data: bytes) -> None:
    """Write atomically and durably, readable only by the owner."""
    try:
        _write_atomically(file, data)
    except OSError as error:
        if error.errno not in DISK_FULL_ERRORS:
            raise
        file.with_name(f".{file.name}.part").unlink(missing_ok=True)
        message = "cannot be written, because the disk is full; free some space, then try again"
        raise UserError(message, where=str(file)) from error


def _write_atomically(file: Path, data: bytes) -> None:
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as out:
        os.fchmod(handle, 0o600)  # independent of the umask
        out.write(data)
        out.flush()
        os.fsync(handle)
    part.replace(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
