"""Checks the write-ahead log before SQLite opens it.

In: the path of the store. Out: nothing, or a Damage. Never: writes.

SQLite ends its recovery silently at the first frame whose checksum is wrong, because a crash may leave the last
transaction half written. A transaction that other frames follow was synced and acknowledged, though: a wrong checksum
there is damage, and ending at it would lose acknowledged writes.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from argosy.apiserver.store.damage import Damage

HEADER_BYTES, FRAME_HEADER_BYTES = 32, 24
MAGIC_LITTLE_ENDIAN, MAGIC_BIG_ENDIAN = 0x377F0682, 0x377F0683
FORMAT = 3007000
SMALLEST_PAGE = 512
MASK = 0xFFFFFFFF

Sums = tuple[int, int]


class Frame(NamedTuple):
    is_commit: bool
    salts: bytes
    is_valid: bool


def check_wal(database: Path) -> None:
    wal = database.with_name(database.name + "-wal")
    try:
        data = wal.read_bytes()
    except FileNotFoundError:
        return
    if len(data) < HEADER_BYTES + FRAME_HEADER_BYTES:
        return
    header = data[:HEADER_BYTES]
    order = _byte_order(header)
    if order is None or _checksum(header[:24], order, (0, 0)) != struct.unpack(">II", header[24:32]):
        if not _is_checkpointed(data, database):
            raise Damage(f"the header of {wal.name} was changed")
    elif lost := _acknowledged_after_first_invalid(read_frames(data, order)):
        raise Damage(f"{lost} acknowledged transactions in {wal.name} cannot be read")


def read_frames(data: bytes, order: str) -> list[Frame]:
    """All frames, if they belong to the header; it is valid."""
    header = data[:HEADER_BYTES]
    salts = data[HEADER_BYTES + 8 : HEADER_BYTES + 16]  # of the first frame
    if header[16:24] != salts:
        return []  # the log was begun anew, and what follows was checkpointed
    sums: Sums = struct.unpack(">II", header[24:32])
    size = struct.unpack(">I", header[8:12])[0] + FRAME_HEADER_BYTES
    frames: list[Frame] = []
    valid = True
    for start in range(HEADER_BYTES, len(data) - size + 1, size):
        frame = data[start : start + size]
        if valid:
            sums = _checksum(frame[FRAME_HEADER_BYTES:], order, _checksum(frame[:8], order, sums))
            valid = frame[8:16] == salts and struct.unpack(">II", frame[16:24]) == sums
        frames.append(Frame(frame[4:8] != b"\0\0\0\0", frame[8:16], valid))
    return frames


def _byte_order(header: bytes) -> str | None:
    """Byte order of the checksums: `<` or `>`."""
    magic, version = struct.unpack(">II", header[:8])
    if version != FORMAT:
        return None
    return {MAGIC_LITTLE_ENDIAN: "<", MAGIC_BIG_ENDIAN: ">"}.get(magic)


def _is_checkpointed(data: bytes, database: Path) -> bool:
    """True if the database has every page that the log has, so that the log is not needed.

    A power loss may leave half a header where the log was begun anew; all of its frames had been checkpointed then.
    """
    try:
        stored = database.read_bytes()
    except FileNotFoundError:
        return True
    page_bytes = int.from_bytes(stored[16:18], "big")
    page_bytes = 65536 if page_bytes == 1 else page_bytes
    if page_bytes < SMALLEST_PAGE:
        return False
    size = page_bytes + FRAME_HEADER_BYTES
    salts = data[HEADER_BYTES + 8 : HEADER_BYTES + 16]
    committed: dict[int, bytes] = {}
    pages: dict[int, bytes] = {}
    for start in range(HEADER_BYTES, len(data) - size + 1, size):
        frame = data[start : start + size]
        if frame[8:16] != salts:
            break
        pages[int.from_bytes(frame[:4], "big")] = frame[FRAME_HEADER_BYTES:]
        if frame[4:8] != b"\0\0\0\0":
            committed |= pages
            pages = {}
    return all(stored[(number - 1) * page_bytes : number * page_bytes] == page for number, page in committed.items())


def _checksum(data: bytes, order: str, sums: Sums) -> Sums:
    first, second = sums
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    for index in range(0, len(words), 2):
        first = (first + words[index] + second) & MASK
        second = (second + words[index + 1] + first) & MASK
    return first, second


def _acknowledged_after_first_invalid(frames: list[Frame]) -> int:
    """Commits after the first invalid frame that were synced: SQLite writes no further frame before that."""
    if not frames:
        return 0
    salts = frames[0].salts
    commits = [index for index, frame in enumerate(frames) if frame.is_valid and frame.is_commit]
    last_valid_commit = commits[-1] if commits else -1
    later = [frame for frame in frames[last_valid_commit + 1 :] if frame.salts == salts]
    return sum(frame.is_commit for frame in later[:-1])
