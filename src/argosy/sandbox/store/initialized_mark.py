"""The mark that a store was made here, so that a lost database is not taken for a first start.

In: the path of the store. Out: a mark beside it, an answer, or a Damage. Never: marks a store before its schema is on
disk, because a first start that was killed must be able to start again.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path

from argosy.sandbox.store.checksums import Damage

log = logging.getLogger(__name__)

MARK_SUFFIX, LOG_SUFFIX = ".initialized", "-wal"


def is_initialized(database: Path) -> bool:
    """True if a store with a schema was opened at this path before."""
    return database.with_name(database.name + MARK_SUFFIX).exists()


def write_initialized_mark(database: Path) -> None:
    """Creates the mark, durably. A disk without space for it is no reason to refuse the store: the next start tries."""
    if is_initialized(database):
        return
    try:
        create_durable_file(database.with_name(database.name + MARK_SUFFIX))
    except OSError as error:
        log.warning("%s: the mark that it was initialized was not written: %s", database, error.strerror)


def check_not_lost(database: Path) -> None:
    """Raises Damage if the database is empty or missing although a store was here.

    SQLite would make a new database and drop the write-ahead log. No crash leaves this: the first page of the database
    is on disk before the log gets its first byte.
    """
    if size_of(database):
        return
    state = "is empty" if database.exists() else "is missing"
    if size_of(database.with_name(database.name + LOG_SUFFIX)):
        raise Damage(f"{database.name} {state}, but its log {database.name}{LOG_SUFFIX} is there")
    if is_initialized(database):
        raise Damage(f"{database.name} {state}, but a store was here before")


def size_of(file: Path) -> int:
    """Size in bytes; 0 for a file that does not exist."""
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0


def create_durable_file(file: Path) -> None:
    """Creates an empty file with mode 0600 whose directory entry is on disk. An existing file stays as it is."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    directory = os.open(file.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
