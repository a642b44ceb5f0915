"""Checks the write-ahead log before SQLite opens it.

In: the path of the store. Out: nothing, or a Damage. Never: writes.

SQLite silently ends its recovery at the first frame with a wrong checksum, because a crash may leave the last
transaction half written. But a transaction that is followed by other frames was synced and acknowledged: a wrong
checksum there is damage, and ending at it would lose acknowledged writes.
"""

from __future__ import annotations

import logging
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from argosy.sandbox.store.checksums import Damage

log = logging.getLogger(__name__)

HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
MAGIC_LITTLE_ENDIAN, MAGIC_BIG_ENDIAN = 0x377F0682, 0x377F0683
WAL_FORMAT_VERSION = 3007000
MIN_PAGE_BYTES, MAX_PAGE_BYTES = 512, 65536
LARGE_LOG_BYTES = 16 * 1024 * 1024  # takes about a second to check
UINT32_MASK = 0xFFFFFFFF
SECTOR_BYTES = 512  # what a disk writes completely or not at all
COMMIT_FIELD_END = 8  # a frame header: page number, commit size, salts, checksum

Checksum = tuple[int, int]


class WalFrame(NamedTuple):
    is_commit: bool  # ends a transaction; False if the commit size may be left over from an overwritten frame
    is_current: bool  # of this generation of the log; False for frames that it has not overwritten yet
    is_valid: bool


def check_wal(database: Path) -> None:
    """Raise Damage if acknowledged transactions cannot be read. Only one frame at a time is in memory."""
    wal = database.with_name(database.name + "-wal")
    try:
        file = wal.open("rb")
    except FileNotFoundError:
        return
    with file:
        size = os.fstat(file.fileno()).st_size
        if size < HEADER_BYTES + FRAME_HEADER_BYTES:
            return
        if size >= LARGE_LOG_BYTES:
            log.info("checking the write-ahead log %s (%d MB)", wal, size // 1_000_000)
        header = file.read(HEADER_BYTES)
        order = _read_byte_order(header)
        if order is None or _compute_checksum(header[:24], order, (0, 0)) != struct.unpack(">II", header[24:32]):
            if not _is_checkpointed(file, database):
                raise Damage(f"the header of {wal.name} was changed")
        elif lost_transactions := _count_acknowledged_after_last_valid(read_frames(file, header, order)):
            raise Damage(f"{lost_transactions} acknowledged transactions in {wal.name} cannot be read")


def read_frames(file: BinaryIO, header: bytes, order: str) -> Iterator[WalFrame]:
    """All frames that belong to the header, which the caller has validated."""
    salts = header[16:24]
    checksum: Checksum = struct.unpack(">II", header[24:32])
    frame_bytes = struct.unpack(">I", header[8:12])[0] + FRAME_HEADER_BYTES
    if not MIN_PAGE_BYTES < frame_bytes <= MAX_PAGE_BYTES + FRAME_HEADER_BYTES:
        return  # SQLite also treats such a log as empty
    has_old_frames = header[12:16] != b"\0\0\0\0"  # checkpoint number: this generation overwrites an older one
    is_valid, is_current, previous_checksum = True, True, checksum
    for number, frame in enumerate(_read_raw_frames(file, frame_bytes)):
        stored_checksum: Checksum = struct.unpack(">II", frame[16:24])
        # The checksum does not cover the salts: a frame that continues the chain is a current one with damaged salts.
        is_current = frame[8:16] == salts or (
            is_current and _compute_frame_checksum(frame, order, previous_checksum) == stored_checksum
        )
        if number == 0 and not is_current:
            return  # the log was restarted, so the old frames were checkpointed
        if is_valid:
            checksum = _compute_frame_checksum(frame, order, checksum)
            is_valid = frame[8:16] == salts and stored_checksum == checksum
        is_commit = frame[4:8] != b"\0\0\0\0"
        if is_commit and not is_valid and has_old_frames and _is_header_split(number, frame_bytes):
            is_commit = _compute_frame_checksum(frame, order, previous_checksum) == stored_checksum
        previous_checksum = stored_checksum
        yield WalFrame(is_commit, is_current, is_valid)


def _is_header_split(number: int, frame_bytes: int) -> bool:
    """True if a sector ends between the commit size and the salts of a frame.

    A power loss may keep the old commit size there and write the new salts.
    """
    return (HEADER_BYTES + number * frame_bytes + COMMIT_FIELD_END) % SECTOR_BYTES == 0


def _compute_frame_checksum(frame: bytes, order: str, initial: Checksum) -> Checksum:
    return _compute_checksum(frame[FRAME_HEADER_BYTES:], order, _compute_checksum(frame[:8], order, initial))


def _read_raw_frames(file: BinaryIO, frame_bytes: int) -> Iterator[bytes]:
    file.seek(HEADER_BYTES)
    while len(frame := file.read(frame_bytes)) == frame_bytes:
        yield frame


def _read_byte_order(header: bytes) -> str | None:
    """Byte order of the checksums: `<` or `>`."""
    magic, version = struct.unpack(">II", header[:8])
    if version != WAL_FORMAT_VERSION:
        return None
    return {MAGIC_LITTLE_ENDIAN: "<", MAGIC_BIG_ENDIAN: ">"}.get(magic)


def _is_checkpointed(file: BinaryIO, database: Path) -> bool:
    """True if the database already has every page in the log, so that the log is not needed.

    A power loss may leave half a header when the log is restarted; all of its frames had been checkpointed by then.
    """
    try:
        database_file = database.open("rb")
    except FileNotFoundError:
        return True
    with database_file:
        page_bytes = int.from_bytes(database_file.read(18)[16:18], "big")
        page_bytes = MAX_PAGE_BYTES if page_bytes == 1 else page_bytes
        if page_bytes < MIN_PAGE_BYTES:
            return False
        frame_bytes = page_bytes + FRAME_HEADER_BYTES
        for page_number, frame_number in _find_newest_frames(file, frame_bytes).items():
            file.seek(HEADER_BYTES + frame_number * frame_bytes + FRAME_HEADER_BYTES)
            database_file.seek((page_number - 1) * page_bytes)
            if database_file.read(page_bytes) != file.read(page_bytes):
                return False
    return True


def _find_newest_frames(file: BinaryIO, frame_bytes: int) -> dict[int, int]:
    """Number of each committed page → number of the last frame that contains it."""
    committed: dict[int, int] = {}
    pages: dict[int, int] = {}
    salts = b""
    for number, frame in enumerate(_read_raw_frames(file, frame_bytes)):
        salts = salts or frame[8:16]
        if frame[8:16] != salts:
            break
        pages[int.from_bytes(frame[:4], "big")] = number
        if frame[4:8] != b"\0\0\0\0":
            committed |= pages
            pages = {}
    return committed


def _compute_checksum(data: bytes, order: str, initial: Checksum) -> Checksum:
    first, second = initial
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & UINT32_MASK
        second = (second + words[index + 1] + first) & UINT32_MASK
    return first, second


def _count_acknowledged_after_last_valid(frames: Iterator[WalFrame]) -> int:
    """Count synced commits after the last valid one. A commit was synced if another frame follows it."""
    acknowledged, is_after_commit = 0, False
    for frame in frames:
        if frame.is_valid and frame.is_commit:
            acknowledged, is_after_commit = 0, False
        elif frame.is_current:
            acknowledged += is_after_commit
            is_after_commit = frame.is_commit
    return acknowledged
