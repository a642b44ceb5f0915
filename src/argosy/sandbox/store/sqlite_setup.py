"""Opens, checks and sets up the SQLite file.

In: a path. Out: connections whose durability settings were set and read back. Never: opens a file of another program or
of a newer argosy, or uses a SQLite that has the WAL-reset bug (fixed in 3.51.3).
"""

from __future__ import annotations

import logging
from pathlib import Path

import apsw

from argosy.errors import UserError
from argosy.sandbox.store.checksums import (
    Damage,
    build_startup_damage_error,
    compute_compacted_checksum,
    compute_format_1_checksum,
)
from argosy.sandbox.store.disk_full_detection import has_space, is_disk_full
from argosy.sandbox.store.encryption import BodyCipher
from argosy.sandbox.store.lost_database_detection import WAL_SUFFIX, create_durable_file, get_file_size, is_initialized

log = logging.getLogger(__name__)

MIN_SQLITE_VERSION = (3, 51, 3)
APPLICATION_ID = 0x41524759  # "ARGY"
SCHEMA_VERSION = 2
APPLICATION_ID_OFFSET = 68  # in the header of a SQLite file
MAX_KEPT_WAL_BYTES = 4 * 1024 * 1024
BUSY_TIMEOUT_MILLISECONDS = 100

# `prev` is the revision that a row replaces, 0 for a new object. It gives every event its previous state and shows
# compaction which rows are superseded, without an index over keys, which would halve the write rate.
SCHEMA = f"""
CREATE TABLE history(
  rev INTEGER PRIMARY KEY, bucket TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
  deleted INTEGER NOT NULL, sealed INTEGER NOT NULL, prev INTEGER NOT NULL, body BLOB NOT NULL,
  sum INTEGER NOT NULL DEFAULT 0);
CREATE TABLE meta(name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES('compacted', 0), ('compacted_sum', {compute_compacted_checksum(0)});
"""

# Set, then read back: a build or file system that silently ignores a setting cannot promise durable writes.
PRAGMAS: dict[str, tuple[str, object]] = {
    "journal_mode": ("WAL", "wal"),
    "synchronous": ("FULL", 2),
    "fullfsync": ("ON", 1),
    "checkpoint_fullfsync": ("ON", 1),
    "wal_autocheckpoint": ("0", 0),
    "journal_size_limit": (str(MAX_KEPT_WAL_BYTES), MAX_KEPT_WAL_BYTES),
    "trusted_schema": ("OFF", 0),
    "cell_size_check": ("ON", 1),
}

# Schema version n → the statements that migrate it to n + 1, run in one transaction.
MIGRATIONS: dict[int, str] = {
    1: """
ALTER TABLE history ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
UPDATE history SET sum = checksum_of_row(rev, bucket, namespace, name, deleted, sealed, prev, body);
INSERT INTO meta SELECT 'compacted_sum', checksum_of_compacted(value) FROM meta WHERE name = 'compacted'
"""
}
MAX_REPORTED_DAMAGES = 3


def open_writer(path: Path) -> apsw.Connection:
    """Open the only connection that may write and checkpoint."""
    _check_sqlite_version(path)
    _create_database_file(path)
    connection = _connect(path, apsw.SQLITE_OPEN_READWRITE)
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)  # a refused file must stay unchanged
    try:
        _check_identity(connection, path)
        _check_structure(connection)
        _set_pragmas(connection, path)
        _prepare_schema(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def has_store(path: Path) -> bool:
    """True if argosy created a store here, even if its database was lost since. Does not open it, so changes nothing.

    A database whose schema is still only in the write-ahead log has no application id yet.
    """
    if is_initialized(path) or get_file_size(path.with_name(path.name + WAL_SUFFIX)):
        return True
    try:
        with path.open("rb") as file:
            file.seek(APPLICATION_ID_OFFSET)
            return file.read(4) == APPLICATION_ID.to_bytes(4, "big")
    except FileNotFoundError:
        return False


def build_open_error(error: apsw.Error, path: Path) -> UserError:
    """Convert SQLite's error about a file that it cannot open to one that says what to do."""
    if isinstance(error, apsw.NotADBError):
        message = "this is not an argosy store; choose another data directory"
    elif isinstance(error, apsw.CorruptError | apsw.SQLError):  # SQLError: not the tables that argosy created
        return build_startup_damage_error(path, error)
    elif isinstance(error, apsw.BusyError):
        message = "another program holds the store locked; close it first"
    elif isinstance(error, apsw.FullError) or (isinstance(error, apsw.IOError) and not has_space(path)):
        message = "the disk that holds it is full; free some space, then start again"
    else:
        message = f"the store cannot be opened: {error}; check the disk and the permissions"
    return UserError(message, where=str(path))


def open_reader(path: Path) -> apsw.Connection:
    connection = _connect(path, apsw.SQLITE_OPEN_READONLY)
    for name, value, expected in (("query_only", "ON", 1), ("trusted_schema", "OFF", 0), ("cell_size_check", "ON", 1)):
        _set_pragma(connection, path, name, value, expected)
    return connection


def truncate_wal(connection: apsw.Connection, path: Path) -> None:
    """Move the write-ahead log into the database, so that the next write starts a new generation of frames.

    After a crash, SQLite would continue the old generation and leave frames of the torn transaction after the new
    ones. After a second power loss, the log check could not tell those frames from acknowledged ones.
    """
    try:
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        log.warning("%s: the write-ahead log was not emptied, because another program reads the store", path)
    except apsw.Error as error:
        if not is_disk_full(error, connection):
            raise
        log.warning("%s: the write-ahead log was not emptied, because the disk is full", path)


def restart_wal(connection: apsw.Connection, path: Path) -> apsw.Connection:
    """Truncate the write-ahead log and return a new connection, which numbers the generations of the log from 0 again.

    The log check needs that number: only later generations overwrite older frames.
    """
    truncate_wal(connection, path)
    connection.close()
    connection = _connect(path, apsw.SQLITE_OPEN_READWRITE)
    try:
        _set_pragmas(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def check_encryption_key(connection: apsw.Connection, cipher: BodyCipher | None, path: Path) -> None:
    """Check that the key belongs to this store, by decrypting a known value that the store keeps."""
    row = connection.execute("SELECT value FROM meta WHERE name = 'key'").fetchone()
    if cipher is None:
        if row is not None:
            raise UserError("the store has encrypted objects; its key is needed to open it", where=str(path))
    elif row is None:
        connection.execute("INSERT INTO meta VALUES('key', ?)", (cipher.encrypt(b"argosy", "meta", "", "key", 0),))
    else:
        try:
            cipher.decrypt(row[0], "meta", "", "key", 0)
        except UserError as error:
            raise UserError(
                "the key does not fit this store; give the key it was made with, or reset the store", where=str(path)
            ) from error


def _check_sqlite_version(path: Path) -> None:
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < MIN_SQLITE_VERSION:
        raise UserError(
            f"SQLite {version} can damage a store (WAL-reset bug); install apsw 3.51.3 or newer", where=str(path)
        )


def _create_database_file(path: Path) -> None:
    """Create an empty file with mode 0600, which the WAL inherits, and sync its directory entry."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_durable_file(path)
    except OSError as error:
        raise UserError(f"the store cannot be created: {error.strerror}", where=str(path)) from error


def _connect(path: Path, flags: int) -> apsw.Connection:
    connection = apsw.Connection(str(path), flags=flags)
    connection.enable_load_extension(False)
    connection.set_busy_timeout(BUSY_TIMEOUT_MILLISECONDS)
    return connection


def _check_identity(connection: apsw.Connection, path: Path) -> None:
    application = connection.pragma("application_id")
    if not connection.pragma("schema_version") and is_initialized(path):
        raise Damage(f"{path.name} has no tables, but a store was here before")
    if connection.pragma("schema_version") and application != APPLICATION_ID:
        raise UserError("this is a database of another program; choose another data directory", where=str(path))
    version = connection.pragma("user_version")
    if version > SCHEMA_VERSION:
        raise UserError(
            f"the store was written by a newer argosy (format {version}, not {SCHEMA_VERSION}); upgrade argosy",
            where=str(path),
        )


def _check_structure(connection: apsw.Connection) -> None:
    """Check the page structure. Values are checked when the rows are loaded."""
    faults = [str(fault) for (fault,) in connection.execute(f"PRAGMA quick_check({MAX_REPORTED_DAMAGES})")]
    if faults != ["ok"]:
        raise Damage("; ".join(fault.replace("\n", " ") for fault in faults))


def _set_pragma(connection: apsw.Connection, path: Path, name: str, value: str, expected: object) -> None:
    if name == "journal_mode" and not connection.pragma("schema_version"):
        connection.pragma("auto_vacuum", "INCREMENTAL")  # must precede the first page, which the journal mode writes
    connection.pragma(name, value)
    actual = connection.pragma(name)
    if actual != expected:
        raise UserError(f"SQLite refuses {name}={value} here (it is {actual}); use a local disk", where=str(path))


def _set_pragmas(connection: apsw.Connection, path: Path) -> None:
    for name, (value, expected) in PRAGMAS.items():
        _set_pragma(connection, path, name, value, expected)


def _prepare_schema(connection: apsw.Connection, path: Path) -> None:
    if not connection.pragma("schema_version"):
        connection.execute(
            f"BEGIN IMMEDIATE; {SCHEMA} PRAGMA application_id = {APPLICATION_ID};"
            f"PRAGMA user_version = {SCHEMA_VERSION}; COMMIT"
        )
    if connection.pragma("user_version") < SCHEMA_VERSION:
        _migrate(connection, path)


def _migrate(connection: apsw.Connection, path: Path) -> None:
    while (version := connection.pragma("user_version")) < SCHEMA_VERSION:
        if version not in MIGRATIONS:
            advice = "open it with the argosy that wrote it, or remove all in it with: argosy sandbox reset"
            message = f"the store has format {version}, which this argosy cannot upgrade; {advice}"
            raise UserError(message, where=str(path))
        truncate_wal(connection, path)
        connection.create_scalar_function("checksum_of_row", compute_format_1_checksum)
        connection.create_scalar_function(
            "checksum_of_compacted", lambda *values: compute_compacted_checksum(values[0])
        )
        connection.execute(f"BEGIN IMMEDIATE; {MIGRATIONS[version]}; PRAGMA user_version = {version + 1}; COMMIT")
    truncate_wal(connection, path)  # the migration rewrote every row into the log
