"""Compresses responses with gzip.

In: bytes, their media type, the Accept-Encoding header. Out: the bytes, perhaps compressed. Never: for streams.
"""

from __future__ import annotations

import gzip
from typing import Final

LEAST: Final = 1 << 10
PACKED: Final = ("text/", "application/json", "image/svg+xml")
LEVEL: Final = 4


def packed(data: bytes, media: str, accepted: str) -> tuple[bytes, bool]:
    if len(data) <= LEAST or not media.startswith(PACKED) or not takes_gzip(accepted):
        return data, False
    return gzip.compress(data, LEVEL, mtime=0), True


def takes_gzip(accepted: str) -> bool:
    for each in accepted.lower().split(","):
        name, _, quality = each.partition(";")
        if name.strip() == "gzip":
            return quality.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False
