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
FORMAT = 3007000
SMALLEST_PAGE, LARGEST_PAGE = 512, 65536
LARGE_LOG_BYTES = 16 * 1024 * 1024  # takes about a second to check
MASK = 0xFFFFFFFF

Sums = tuple[int, int]


class Frame(NamedTuple):
    is_commit: bool
    salts: bytes
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
        order = _byte_order(header)
        if order is None or _checksum(header[:24], order, (0, 0)) != struct.unpack(">II", header[24:32]):
            if not _is_checkpointed(file, database):
                raise Damage(f"the header of {wal.name} was changed")
        elif lost := _acknowledged_after_last_valid(read_frames(file, header, order)):
            raise Damage(f"{lost} acknowledged transactions in {wal.name} cannot be read")


def read_frames(file: BinaryIO, header: bytes, order: str) -> Iterator[Frame]:
    """All frames that belong to the header, which the caller has validated."""
    salts = header[16:24]
    sums: Sums = struct.unpack(">II", header[24:32])
    size = struct.unpack(">I", header[8:12])[0] + FRAME_HEADER_BYTES
    if not SMALLEST_PAGE < size <= LARGEST_PAGE + FRAME_HEADER_BYTES:
        return  # SQLite also treats such a log as empty
    valid = True
    for number, frame in enumerate(_read_raw_frames(file, size)):
        if number == 0 and frame[8:16] != salts:
            return  # the log was restarted, so the old frames were checkpointed
        if valid:
            sums = _checksum(frame[FRAME_HEADER_BYTES:], order, _checksum(frame[:8], order, sums))
            valid = frame[8:16] == salts and struct.unpack(">II", frame[16:24]) == sums
        yield Frame(frame[4:8] != b"\0\0\0\0", frame[8:16], valid)


def _read_raw_frames(file: BinaryIO, size: int) -> Iterator[bytes]:
    file.seek(HEADER_BYTES)
    while len(frame := file.read(size)) == size:
        yield frame


def _byte_order(header: bytes) -> str | None:
    """Byte order of the checksums: `<` or `>`."""
    magic, version = struct.unpack(">II", header[:8])
    if version != FORMAT:
        return None
    return {MAGIC_LITTLE_ENDIAN: "<", MAGIC_BIG_ENDIAN: ">"}.get(magic)


def _is_checkpointed(file: BinaryIO, database: Path) -> bool:
    """True if the database already has every page in the log, so that the log is not needed.

    A power loss may leave half a header when the log is restarted; all of its frames had been checkpointed by then.
    """
    try:
        stored = database.open("rb")
    except FileNotFoundError:
        return True
    with stored:
        page_bytes = int.from_bytes(stored.read(18)[16:18], "big")
        page_bytes = LARGEST_PAGE if page_bytes == 1 else page_bytes
        if page_bytes < SMALLEST_PAGE:
            return False
        size = page_bytes + FRAME_HEADER_BYTES
        for number, frame_number in _newest_frames(file, size).items():
            file.seek(HEADER_BYTES + frame_number * size + FRAME_HEADER_BYTES)
            stored.seek((number - 1) * page_bytes)
            if stored.read(page_bytes) != file.read(page_bytes):
                return False
    return True


def _newest_frames(file: BinaryIO, size: int) -> dict[int, int]:
    """Number of each committed page → number of the last frame that contains it."""
    committed: dict[int, int] = {}
    pages: dict[int, int] = {}
    salts = b""
    for number, frame in enumerate(_read_raw_frames(file, size)):
        salts = salts or frame[8:16]
        if frame[8:16] != salts:
            break
        pages[int.from_bytes(frame[:4], "big")] = number
        if frame[4:8] != b"\0\0\0\0":
            committed |= pages
            pages = {}
    return committed


def _checksum(data: bytes, order: str, sums: Sums) -> Sums:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & MASK
        second = (second + words[index + 1] + first) & MASK
    return first, second


def _acknowledged_after_last_valid(frames: Iterator[Frame]) -> int:
    """Count synced commits after the last valid one. A commit was synced if another frame follows it."""
    acknowledged, is_after_commit = 0, False
    salts = b""
    for frame in frames:
        salts = salts or frame.salts
        if frame.is_valid and frame.is_commit:
            acknowledged, is_after_commit = 0, False
        elif frame.salts == salts:
            acknowledged += is_after_commit
            is_after_commit = frame.is_commit
    return acknowledged
