"""Opens a store file: takes the lock, checks the file, loads the state and starts the journal.

In: path and key. Out: a SqliteJournal and the loaded state, or a UserError. Never: leaves the lock or the file open on
an error.
"""

from __future__ import annotations

from pathlib import Path

import apsw

from argosy.errors import UserError
from argosy.sandbox.store.checksums import Damage, build_startup_damage_error
from argosy.sandbox.store.encryption import BodyCipher
from argosy.sandbox.store.file_lock import FileLock
from argosy.sandbox.store.history_table import HistoryTable, LoadedState
from argosy.sandbox.store.journal_protocol import FatalErrorHandler
from argosy.sandbox.store.lost_database_detection import check_database_not_lost, write_initialized_marker
from argosy.sandbox.store.sqlite_journal import SqliteJournal
from argosy.sandbox.store.sqlite_setup import build_open_error, check_encryption_key, open_writer, restart_wal
from argosy.sandbox.store.wal_checksum_check import check_wal


def open_journal(
    path: Path, *, key: bytes | None, encrypted_buckets: frozenset[str], on_fatal_error: FatalErrorHandler
) -> tuple[SqliteJournal, LoadedState]:
    if encrypted_buckets and key is None:
        raise UserError("a key is needed to encrypt " + ", ".join(sorted(encrypted_buckets)), where=str(path))
    cipher = BodyCipher(key) if key is not None else None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(path)
    except OSError as error:
        raise UserError(f"the store cannot be created: {error.strerror}", where=str(path)) from error
    connection = None
    try:
        check_database_not_lost(path)
        check_wal(path)
        connection = open_writer(path)
        check_encryption_key(connection, cipher, path)
        history = HistoryTable(cipher, encrypted_buckets)
        state = history.load(connection)
        connection = restart_wal(connection, path)
        write_initialized_marker(path)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        return SqliteJournal(path, lock, connection, history, on_fatal_error), state
    except BaseException as error:
        lock.release()
        if connection is not None:
            connection.close()
        if isinstance(error, apsw.Error):
            raise build_open_error(error, path) from error
        if isinstance(error, Damage | UnicodeDecodeError):
            raise build_startup_damage_error(path, error) from error
        if isinstance(error, UserError) and not error.where:
            raise build_startup_damage_error(path, error) from error
        raise
