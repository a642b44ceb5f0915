"""Marker file that records that a store was created here, so that a lost database is not mistaken for a first start.

In: the path of the store. Out: a marker file next to it, a boolean, or a Damage. Never: writes the marker before the
schema is on disk, because a first start that was killed must be able to start again.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from argosy.sandbox.store.checksums import Damage

log = logging.getLogger(__name__)

MARKER_SUFFIX, WAL_SUFFIX = ".initialized", "-wal"


def is_initialized(database: Path) -> bool:
    """True if a store with a schema was opened at this path before."""
    return database.with_name(database.name + MARKER_SUFFIX).exists()


def write_initialized_marker(database: Path) -> None:
    """Create the marker durably. If the disk has no space for it, the store still opens and the next start retries."""
    if is_initialized(database):
        return
    try:
        create_durable_file(database.with_name(database.name + MARKER_SUFFIX))
    except OSError as error:
        log.warning("%s: cannot write the marker that the store is initialized: %s", database, error.strerror)


def check_database_not_lost(database: Path) -> None:
    """Raise Damage if the database is empty or missing although a store was here.

    SQLite would create a new database and drop the write-ahead log. A crash cannot cause this: the first page of the
    database is on disk before the log gets its first byte.
    """
    if get_file_size(database):
        return
    state = "is empty" if database.exists() else "is missing"
    if get_file_size(database.with_name(database.name + WAL_SUFFIX)):
        raise Damage(f"{database.name} {state}, but its log {database.name}{WAL_SUFFIX} is there")
    if is_initialized(database):
        raise Damage(f"{database.name} {state}, but a store was here before")


def get_file_size(file: Path) -> int:
    """Size in bytes; 0 for a file that does not exist."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def create_durable_file(file: Path) -> None:
    """Create an empty file with mode 0600 and sync its directory entry. An existing file is left unchanged."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    directory = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
