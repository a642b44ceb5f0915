"""Stores the output of a container in a file.

In: bytes. Out: lines, including later ones. Never: more bytes than a limit; the oldest are dropped first.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

MAX_FILE_BYTES: Final = 4 << 20  # maximum size of each of two files: the current one and the one before it
POLL_INTERVAL_SECONDS: Final = 0.1


class ContainerLogFile:
    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file, self._older_file = file, file.with_suffix(".older")
        self._stream = file.open("ab")
        self._size = self._stream.tell()

    def write(self, data: bytes) -> None:
        if self._stream.closed:
            return
        if self._size + len(data) > MAX_FILE_BYTES:
            self._stream.close()
            self._file.replace(self._older_file)
            self._stream, self._size = self._file.open("wb"), 0
        self._stream.write(data[-MAX_FILE_BYTES:])
        self._stream.flush()
        self._size += len(data)

    def close(self) -> None:
        self._stream.close()


async def read_lines(file: Path, *, tail: int | None, follow: bool, is_over: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield the stored lines, and with `follow` also new ones until `is_over` returns True."""
    older, _ = _read_from(file.with_suffix(".older"), 0)
    data, offset = _read_from(file, 0)
    *complete_lines, partial_line = (older + data).split(b"\n")
    if partial_line and not follow:
        complete_lines, partial_line = [*complete_lines, partial_line], b""
    for line in complete_lines if tail is None else complete_lines[max(len(complete_lines) - tail, 0) :]:
        yield _decode(line)
    while follow:
        is_last_read = is_over()
        data, offset = _read_from(file, offset)
        *complete_lines, partial_line = (partial_line + data).split(b"\n")
        for line in complete_lines:
            yield _decode(line)
        if is_last_read:
            break
        await asyncio.sleep(POLL_INTERVAL_SECONDS)
    if partial_line:
        yield _decode(partial_line)


def _decode(line: bytes) -> str:
    return line.decode(errors="replace")


def _read_from(file: Path, offset: int) -> tuple[bytes, int]:
    """Read from an offset to the end; from the beginning if the file was replaced."""
    try:
        with file.open("rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(offset if offset <= size else 0)
            data = stream.read()
            return data, stream.tell()
    except FileNotFoundError:
        return b"", 0
