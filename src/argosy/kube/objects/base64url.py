"""Base64 with the URL alphabet and without padding, as in JSON Web Tokens (RFC 7515).

In, out: bytes and text. Never: accepts a second spelling of the same bytes.
"""

from __future__ import annotations

import base64


def encode_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """Raises ValueError, also for other characters and for leftover bits, which Python ignores."""
    data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    if encode_base64url(data) != text:
        raise ValueError("not canonical base64url")
    return data
