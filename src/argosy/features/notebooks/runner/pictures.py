"""Reads PNG images: size and pixels without metadata such as the program version or the time.

In: the bytes of a PNG. Out: its size, and its pixels as stored. Never: decompresses more than a limit.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_SHOWN: Final = (b"IHDR", b"PLTE", b"tRNS")
MOST_PIXEL_BYTES: Final = 64 << 20


def shown_by(png: bytes) -> bytes | None:
    """The visible content of the image; None if it is not a readable PNG."""
    parts, packed = [], []
    try:
        for name, content in _chunks(png):
            if name in _SHOWN:
                parts.append(content)
            elif name == b"IDAT":
                packed.append(content)
        unpacking = zlib.decompressobj()
        pixels = unpacking.decompress(b"".join(packed), MOST_PIXEL_BYTES)
    except (ValueError, struct.error, zlib.error):
        return None
    return None if unpacking.unconsumed_tail or not parts else b"".join([*parts, pixels])


def size_of(png: bytes) -> tuple[int, int]:
    """Width and height; 0 and 0 if it is not a PNG."""
    if not png.startswith(_SIGNATURE) or len(png) < 24:
        return 0, 0
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not png.startswith(_SIGNATURE):
        raise ValueError("not a PNG")
    place = len(_SIGNATURE)
    while place + 8 <= len(png):
        (length,) = struct.unpack(">I", png[place : place + 4])
        yield png[place + 4 : place + 8], png[place + 8 : place + 8 + length]
        place += length + 12
