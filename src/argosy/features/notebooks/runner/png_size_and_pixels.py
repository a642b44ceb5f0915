"""Reads PNG images: size and pixels without metadata such as the program version or the time.

In: the bytes of a PNG. Out: its size, and its pixels as stored. Never: decompresses more than a limit.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

_SIGNATURE: Final = b"\x89PNG\r\n\x1a\n"
_VISIBLE_CHUNKS: Final = (b"IHDR", b"PLTE", b"tRNS")
MAX_PIXEL_BYTES: Final = 64 << 20


def read_visible_content(png: bytes) -> bytes | None:
    """The visible content of the image; None if it is not a readable PNG."""
    parts, compressed = [], []
    try:
        for name, content in _iterate_chunks(png):
            if name in _VISIBLE_CHUNKS:
                parts.append(content)
            elif name == b"IDAT":
                compressed.append(content)
        decompressor = zlib.decompressobj()
        pixels = decompressor.decompress(b"".join(compressed), MAX_PIXEL_BYTES)
    except (ValueError, struct.error, zlib.error):
        return None
    return None if decompressor.unconsumed_tail or not parts else b"".join([*parts, pixels])


def read_size(png: bytes) -> tuple[int, int]:
    """Width and height; 0 and 0 if it is not a PNG."""
    if not png.startswith(_SIGNATURE) or len(png) < 24:
        return 0, 0
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def _iterate_chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not png.startswith(_SIGNATURE):
        raise ValueError("not a PNG")
    offset = len(_SIGNATURE)
    while offset + 8 <= len(png):
        (length,) = struct.unpack(">I", png[offset : offset + 4])
        yield png[offset + 4 : offset + 8], png[offset + 8 : offset + 8 + length]
        offset += length + 12
