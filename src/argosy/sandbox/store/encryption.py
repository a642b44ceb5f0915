"""Encrypts object bodies at rest with AES-256-GCM.

In: a body, its key and its revision. Out: nonce + ciphertext + tag. Never: decrypts a body under another key or
revision than it was encrypted for, because both are authenticated.
"""

from __future__ import annotations

import os

from argosy.errors import UserError
from argosy.sandbox.store.checksums import format_object_name

NONCE_BYTES = 12
KEY_BYTES = 32


class BodyCipher:
    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 20 ms to import: only where it is used

        if len(key) != KEY_BYTES:
            raise UserError(f"the key of the store must have {KEY_BYTES} bytes, not {len(key)}")
        self._cipher = AESGCM(key)

    def encrypt(self, body: bytes, bucket: str, namespace: str, name: str, revision: int) -> bytes:
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, body, _associated_data(bucket, namespace, name, revision))

    def decrypt(self, encrypted: bytes, bucket: str, namespace: str, name: str, revision: int) -> bytes:
        from cryptography.exceptions import InvalidTag

        try:
            return self._cipher.decrypt(
                encrypted[:NONCE_BYTES], encrypted[NONCE_BYTES:], _associated_data(bucket, namespace, name, revision)
            )
        except (InvalidTag, ValueError) as error:
            object_text = format_object_name(bucket, namespace, name)
            raise UserError(
                f"{object_text} at revision {revision} cannot be decrypted: "
                "it was changed or moved on disk, or encrypted with another key"
            ) from error


def _associated_data(bucket: str, namespace: str, name: str, revision: int) -> bytes:
    return f"{bucket}\0{namespace}\0{name}\0{revision}".encode()
