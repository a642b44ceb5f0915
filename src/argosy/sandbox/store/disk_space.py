"""A full disk: how it is recognized, told and noticed to be over.

In: errors of SQLite, and the folder of the store. Out: a StorageFull, or whether there is room again. Never: touches
the database.
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import apsw

from argosy.errors import StorageFull

PROBE_BYTES = 256 * 1024  # less would be taken by the next batch, and the store would go back and forth
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT})
# Not a failed sync: after that nobody knows which pages the disk has.
WRITES = frozenset({apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE, apsw.SQLITE_IOERR_TRUNCATE})


def is_full(error: apsw.Error, connection: apsw.Connection) -> bool:
    """True if there was no room. SQLite has rolled the transaction back then, and later ones may succeed."""
    if isinstance(error, apsw.FullError):
        return True
    return getattr(error, "extendedresult", 0) in WRITES and connection.system_errno in NO_SPACE


def storage_full(path: Path) -> StorageFull:
    return StorageFull(
        f"the disk that holds {path} is full: nothing can be written until there is space, reads go on; "
        "free some space, and writes go on by themselves"
    )


def has_space(path: Path, wanted: int = PROBE_BYTES) -> bool:
    """Writes a file beside the store: quotas and reserved blocks are seen by no other means."""
    probe = path.with_name(path.name + ".probe")
    try:
        descriptor = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            left = wanted
            while left > 0:
                left -= os.write(descriptor, bytes(left))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return True
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()
