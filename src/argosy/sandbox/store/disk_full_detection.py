"""Detects a full disk, builds the error for it, and probes whether there is space again.

In: errors of SQLite, and the path of the store. Out: a StorageFull, or True if there is space. Never: touches the
database.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import apsw

from argosy.errors import StorageFull

PROBE_BYTES = 256 * 1024  # a smaller probe would fit before a batch does, and the store would flap
NO_SPACE_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})
# A failed sync is not in this list: after it, the content of the disk is unknown.
WRITE_ERROR_CODES = frozenset({apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_TRUNCATE})


def is_disk_full(error: apsw.Error, connection: apsw.Connection) -> bool:
    """True if the disk had no space. SQLite has rolled the transaction back then, and later ones may succeed."""
    if isinstance(error, apsw.FullError):
        return True
    return getattr(error, "extendedresult", 0) in WRITE_ERROR_CODES and connection.system_errno in NO_SPACE_ERRNOS


def build_storage_full_error(path: Path) -> StorageFull:
    return StorageFull(
        f"the disk that holds {path} is full: nothing can be written until there is space, reads go on; "
        "free some space, and writes go on by themselves"
    )


def has_space(path: Path, size: int = PROBE_BYTES) -> bool:
    """Probe by writing a file next to the store, because only a write detects quotas and reserved blocks."""
    probe = path.with_name(path.name + ".probe")
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            remaining = size
            while remaining > 0:
                remaining -= os.write(descriptor, bytes(remaining))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return True
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
