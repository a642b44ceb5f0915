"""Stores the output of a container in a file.

In: bytes. Out: lines, including later ones. Never: more bytes than a limit; the oldest are dropped first.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 4 << 20  # maximum size of each of two files: the current one and the one before it
LOOK: Final = 0.1


class Journal:
    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._file, self._older = file, file.with_suffix(".older")
        self._open = file.open("ab")
        self._size = self._open.tell()

    def write(self, data: bytes) -> None:
        if self._open.closed:
            return
        if self._size + len(data) > MOST_BYTES:
            self._open.close()
            self._file.replace(self._older)
            self._open, self._size = self._file.open("wb"), 0
        self._open.write(data[-MOST_BYTES:])
        self._open.flush()
        self._size += len(data)

    def close(self) -> None:
        self._open.close()


async def lines(file: Path, *, tail: int | None, follow: bool, is_over: Callable[[], bool]) -> AsyncIterator[str]:
    """Yield the stored lines, and with `follow` also new ones until `is_over` returns True."""
    older, _ = _since(file.with_suffix(".older"), 0)
    data, at = _since(file, 0)
    *found, rest = (older + data).split(b"\n")
    if rest and not follow:
        found, rest = [*found, rest], b""
    for line in found if tail is None else found[max(len(found) - tail, 0) :]:
        yield _text(line)
    while follow:
        ends = is_over()
        data, at = _since(file, at)
        *found, rest = (rest + data).split(b"\n")
        for line in found:
            yield _text(line)
        if ends:
            break
        await asyncio.sleep(LOOK)
    if rest:
        yield _text(rest)


def _text(line: bytes) -> str:
    return line.decode(errors="replace")


def _since(file: Path, at: int) -> tuple[bytes, int]:
    """Read from an offset to the end; from the beginning if the file was replaced."""
    try:
        with file.open("rb") as opened:
            size = opened.seek(0, os.SEEK_END)
            opened.seek(at if at <= size else 0)
            data = opened.read()
            return data, opened.tell()
    except FileNotFoundError:
        return b"", 0
