"""Opens a store file: takes the lock, checks the file, loads the state and starts the journal.

In: path and key. Out: a SqliteJournal and the loaded state, or a UserError. Never: leaves the lock or the file open on
an error.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from argosy.errors import UserError
from argosy.sandbox.store.checksums import Damage, damaged_on_opening
from argosy.sandbox.store.database import check_key, empty_log, open_writer, opening_error
from argosy.sandbox.store.encryption import Seal
from argosy.sandbox.store.file_lock import FileLock
from argosy.sandbox.store.history import History, Loaded
from argosy.sandbox.store.initialized_mark import check_not_lost, write_initialized_mark
from argosy.sandbox.store.journal import Fatal
from argosy.sandbox.store.sqlite_journal import DiskJournal
from argosy.sandbox.store.wal import check_wal


def open_journal(
    path: Path, *, key: bytes | None, encrypted_buckets: frozenset[str], fatal: Fatal
) -> tuple[DiskJournal, Loaded]:
    if encrypted_buckets and key is None:
        raise UserError("a key is needed to encrypt " + ", ".join(sorted(encrypted_buckets)), where=str(path))
    seal = Seal(key) if key is not None else None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(path)
    except OSError as error:
        raise UserError(f"the store cannot be created: {error.strerror}", where=str(path)) from error
    connection = None
    try:
        check_not_lost(path)
        check_wal(path)
        connection = open_writer(path)
        check_key(connection, seal, path)
        history = History(seal, encrypted_buckets)
        loaded = history.load(connection)
        empty_log(connection, path)
        write_initialized_mark(path)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        return DiskJournal(path, lock, connection, history, fatal), loaded
    except BaseException as error:
        lock.release()
        if connection is not None:
            connection.close()
        if isinstance(error, apsw.Error):
            raise opening_error(error, path) from error
        if isinstance(error, Damage | UnicodeDecodeError):
            raise damaged_on_opening(path, error) from error
        if isinstance(error, UserError) and not error.where:
            raise damaged_on_opening(path, error) from error
        raise
