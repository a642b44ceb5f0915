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
WHERE: Final = "keyData"
MOST: Final = 256 << 10


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
    if len(text) > MOST:
        raise UserError("is too long; send one key at a time", where=WHERE)
    if "PRIVATE KEY" in text:
        raise UserError("contains a private key; send only the public key: `gpg --export --armor ID`", where=WHERE)
    found = [_read(match[0], match[1]) for match in _BLOCK.finditer(text.replace("\r\n", "\n"))]
    if not found:
        raise UserError("contains no OpenPGP public key; send the output of `gpg --export --armor ID`", where=WHERE)
    return found


def _read(block: str, inside: str) -> PublicKey:
    _, gap, encoded = inside.partition("\n\n")  # optional headers come first
    lines = (encoded if gap else inside).split("\n")
    body = "".join(line.strip() for line in lines if line.strip() and not line.startswith("=") and ": " not in line)
    try:
        packets = list(_packets(base64.b64decode(body, validate=True)))
    except (binascii.Error, ValueError, IndexError):
        raise UserError("is not a valid OpenPGP key; export it again", where=WHERE) from None
    keys = [content for tag, content in packets if tag == _PUBLIC_KEY]
    if len(keys) != 1 or len(keys[0]) < 6 or keys[0][0] not in (4, 6):
        raise UserError("must contain one key of version 4 or 6 in each block; export the keys one by one", where=WHERE)
    key = keys[0]
    if key[0] == 4:
        fingerprint = hashlib.sha1(b"\x99" + len(key).to_bytes(2, "big") + key).hexdigest()  # noqa: S324 - RFC 9580
    else:
        fingerprint = hashlib.sha256(b"\x9b" + len(key).to_bytes(4, "big") + key).hexdigest()
    owners = [content.decode(errors="replace") for tag, content in packets if tag == _USER_ID]
    return PublicKey(fingerprint.upper(), owners[0] if owners else "", _ALGORITHMS.get(key[5], "unknown"), block + "\n")


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and content of every packet. Raises ValueError or IndexError for truncated data."""
    at = 0
    while at < len(data):
        head = data[at]
        if not head & 0x80:
            raise ValueError("not a packet header")
        if head & 0x40:
            tag, (size, used) = head & 0x3F, _new_size(data, at + 1)
        else:
            tag, used = (head >> 2) & 0x0F, 1 << (head & 3)
            if used == 8:
                raise ValueError("packet without a length")
            size = int.from_bytes(data[at + 1 : at + 1 + used], "big")
        begin = at + 1 + used
        if begin + size > len(data):
            raise ValueError("truncated packet")
        yield tag, data[begin : begin + size]
        at = begin + size


def _new_size(data: bytes, at: int) -> tuple[int, int]:
    first = data[at]
    if first < 192:
        return first, 1
    if first < 224:
        return ((first - 192) << 8) + data[at + 1] + 192, 2
    if first == 255:
        return int.from_bytes(data[at + 1 : at + 5], "big"), 5
    raise ValueError("partial body lengths are not supported")
