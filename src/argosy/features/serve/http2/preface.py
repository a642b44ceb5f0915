"""The first bytes of a connection tell HTTP/2 from HTTP/1.1.

In: the bytes. Out: which protocol they begin; the bytes that refuse HTTP/2. Never: waits for more bytes than needed.
"""

from __future__ import annotations

from typing import Final

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
# For a client that is refused: the empty SETTINGS of the server, and GOAWAY with the error ENHANCE_YOUR_CALM.
REFUSAL: Final = b"\0\0\0\4\0\0\0\0\0" + b"\0\0\x08\7\0\0\0\0\0" + b"\0\0\0\0" + b"\0\0\0\x0b"


def has_preface(data: bytes) -> bool | None:
    """True if a connection begins with the preface; None if these first bytes do not tell: P may begin POST, too."""
    if data.startswith(PREFACE):
        return True
    return None if PREFACE.startswith(data) else False
