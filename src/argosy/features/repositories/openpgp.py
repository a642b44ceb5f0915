"""Reads OpenPGP public keys.

In: armoured text. Out: id, fingerprint, owner and algorithm. Never: runs gpg; accepts a private key; checks a
signature.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from argosy.errors import UserError

_BLOCK: Final = re.compile(
    r"-----BEGIN PGP PUBLIC KEY BLOCK-----\s*?\n(.*?)-----END PGP PUBLIC KEY BLOCK-----", re.DOTALL
)
_PUBLIC_KEY, _USER_ID = 6, 13  # packet types of RFC 9580
_ALGORITHMS: Final = {1: "rsa", 2: "rsa", 3: "rsa", 16: "elgamal", 17: "dsa", 18: "ecdh", 19: "ecdsa", 22: "eddsa"}
ERROR_LOCATION: Final = "keyData"
MAX_KEY_CHARACTERS: Final = 256 << 10


@dataclass(frozen=True)
class PublicKey:
    fingerprint: str
    owner: str
    algorithm: str
    text: str  # armoured

    @property
    def id(self) -> str:
        """argo: the last 16 hex digits of the fingerprint."""
        return self.fingerprint[-16:]


def read_keys(text: str) -> list[PublicKey]:
    if len(text) > MAX_KEY_CHARACTERS:
        raise UserError("is too long; send one key at a time", where=ERROR_LOCATION)
    if "PRIVATE KEY" in text:
        raise UserError(
            "contains a private key; send only the public key: `gpg --export --armor ID`", where=ERROR_LOCATION
        )
    keys = [_read_block(match[0], match[1]) for match in _BLOCK.finditer(text.replace("\r\n", "\n"))]
    if not keys:
        raise UserError(
            "contains no OpenPGP public key; send the output of `gpg --export --armor ID`", where=ERROR_LOCATION
        )
    return keys


def _read_block(block: str, inside: str) -> PublicKey:
    _, gap, encoded = inside.partition("\n\n")  # optional headers come first
    lines = (encoded if gap else inside).split("\n")
    body = "".join(line.strip() for line in lines if line.strip() and not line.startswith("=") and ": " not in line)
    try:
        packets = list(_read_packets(base64.b64decode(body, validate=True)))
    except (binascii.Error, ValueError, IndexError):
        raise UserError("is not a valid OpenPGP key; export it again", where=ERROR_LOCATION) from None
    keys = [content for tag, content in packets if tag == _PUBLIC_KEY]
    if len(keys) != 1 or len(keys[0]) < 6 or keys[0][0] not in (4, 6):
        raise UserError(
            "must contain one key of version 4 or 6 in each block; export the keys one by one", where=ERROR_LOCATION
        )
    key = keys[0]
    if key[0] == 4:
        fingerprint = hashlib.sha1(b"\x99" + len(key).to_bytes(2, "big") + key).hexdigest()  # noqa: S324 - RFC 9580
    else:
        fingerprint = hashlib.sha256(b"\x9b" + len(key).to_bytes(4, "big") + key).hexdigest()
    owners = [content.decode(errors="replace") for tag, content in packets if tag == _USER_ID]
    return PublicKey(fingerprint.upper(), owners[0] if owners else "", _ALGORITHMS.get(key[5], "unknown"), block + "\n")


def _read_packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and content of every packet. Raises ValueError or IndexError for truncated data."""
    offset = 0
    while offset < len(data):
        header = data[offset]
        if not header & 0x80:
            raise ValueError("not a packet header")
        if header & 0x40:
            tag, (size, length_bytes) = header & 0x3F, _read_new_format_size(data, offset + 1)
        else:
            tag, length_bytes = (header >> 2) & 0x0F, 1 << (header & 3)
            if length_bytes == 8:
                raise ValueError("packet without a length")
            size = int.from_bytes(data[offset + 1 : offset + 1 + length_bytes], "big")
        start = offset + 1 + length_bytes
        if start + size > len(data):
            raise ValueError("truncated packet")
        yield tag, data[start : start + size]
        offset = start + size


def _read_new_format_size(data: bytes, offset: int) -> tuple[int, int]:
    first = data[offset]
    if first < 192:
        return first, 1
    if first < 224:
        return ((first - 192) << 8) + data[offset + 1] + 192, 2
    if first == 255:
        return int.from_bytes(data[offset + 1 : offset + 5], "big"), 5
    raise ValueError("partial body lengths are not supported")
