"""Builds the JSON Web Token with which a GitHub App requests an installation token.

In: the App's id, its private key, a time. Out: a signed token. Never: stores or prints the key.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import Final

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from argosy.errors import UserError
from argosy.kube.objects.base64url import encode_base64url

TOKEN_LIFETIME_SECONDS: Final = 300


def build_app_jwt(app_id: str, private_key: str, now: datetime) -> str:
    """Build a JSON Web Token (RS256) that is valid for five minutes."""
    try:
        key = serialization.load_pem_private_key(private_key.encode(), password=None)
    except (ValueError, TypeError) as error:
        raise UserError("service.github: privateKey is not a private key in PEM; use the App's key") from error
    if not isinstance(key, rsa.RSAPrivateKey):
        raise UserError("service.github: privateKey is not an RSA key; use the App's key")
    issued_at = int(now.timestamp())
    header = _encode_part({"alg": "RS256", "typ": "JWT"})
    body = _encode_part({"iat": issued_at - 60, "exp": issued_at + TOKEN_LIFETIME_SECONDS, "iss": app_id})
    signature = key.sign(f"{header}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{header}.{body}.{encode_base64url(signature)}"


def _encode_part(values: dict[str, str | int]) -> str:
    return encode_base64url(json.dumps(values, separators=(",", ":")).encode())
