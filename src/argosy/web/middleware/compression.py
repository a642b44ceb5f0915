"""Compresses responses with gzip.

In: bytes, their media type, the Accept-Encoding header. Out: the bytes, perhaps compressed. Never: for streams.
"""

from __future__ import annotations

import gzip
from typing import Final

MIN_BYTES: Final = 1 << 10
COMPRESSIBLE_MEDIA: Final = ("text/", "application/json", "image/svg+xml")
GZIP_LEVEL: Final = 4


def compress(data: bytes, media_type: str, accept_encoding: str) -> tuple[bytes, bool]:
    if len(data) <= MIN_BYTES or not media_type.startswith(COMPRESSIBLE_MEDIA) or not accepts_gzip(accept_encoding):
        return data, False
    return gzip.compress(data, GZIP_LEVEL, mtime=0), True


def accepts_gzip(accept_encoding: str) -> bool:
    for encoding in accept_encoding.lower().split(","):
        name, _, quality = encoding.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
