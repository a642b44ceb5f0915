"""Issues and verifies service account tokens; publishes the public keys as a JWKS.

In: an account, or a token. Out: a token, or its user. Never: stores a token. The signing key is created on first use.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from argosy.kube.client import User
from argosy.kube.client.private_file_permission_check import check_private_file
from argosy.kube.client.private_file_writer import write_private
from argosy.kube.objects import Manifest
from argosy.kube.objects.base64url import decode_base64url, encode_base64url
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.schema import field_error
from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.well_known_kinds import AUTHENTICATION_API_VERSION
from argosy.sandbox.apiserver import status_errors

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

ISSUER = "https://kubernetes.default.svc"
MIN_LIFETIME_SECONDS, DEFAULT_LIFETIME_SECONDS, MAX_LIFETIME_SECONDS = 600, 3600, 1 << 32
LEEWAY_SECONDS = 60  # k8s: a clock that is set back slightly must not refuse tokens issued just before
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount"
# k8s: tokens in Secrets have another issuer and other claims, and no end.
SECRET_TOKEN_ISSUER = "kubernetes/serviceaccount"
SECRET_TOKEN_CLAIM = "kubernetes.io/serviceaccount/"
TOKEN_SECRET_TYPE = "kubernetes.io/service-account-token"
ACCOUNT_NAME_ANNOTATION = "kubernetes.io/service-account.name"
ACCOUNT_UID_ANNOTATION = "kubernetes.io/service-account.uid"
_TOKEN_REQUEST = ApiResource(
    "authentication.k8s.io", "v1", "TokenRequest", "tokenrequests", "tokenrequest", True, ("create",)
)


class ServiceAccountTokens:
    """`find_account_uid` returns the uid of an existing account: a token is valid only while its account exists.

    `find_secret_uid` does the same for Secrets that tokens are bound to. `find_secret_token` returns the token that a
    Secret contains, empty without one.
    """

    def __init__(
        self,
        key_file: Path | None,
        find_account_uid: Callable[[str, str], str | None],
        find_secret_uid: Callable[[str, str], str | None] = lambda namespace, name: None,
        find_secret_token: Callable[[str, str], bytes] = lambda namespace, name: b"",
    ) -> None:
        self._key_file = key_file
        self._find_account_uid, self._find_secret_uid = find_account_uid, find_secret_uid
        self._find_secret_token = find_secret_token
        self._signing_key: RSAPrivateKey | None = None

    def create_token(self, account: Manifest, token_request: Mapping[str, Any], now: datetime) -> Manifest:
        """Issue a token for a TokenRequest."""
        spec = dict(token_request.get("spec") or {})
        seconds = spec.get("expirationSeconds") or DEFAULT_LIFETIME_SECONDS
        if not MIN_LIFETIME_SECONDS <= seconds <= MAX_LIFETIME_SECONDS:
            detail = (
                "may not specify a duration less than 10 minutes" if seconds < MIN_LIFETIME_SECONDS else "is too long"
            )
            invalid_field = field_error.invalid("spec.expirationSeconds", str(seconds), detail)
            raise status_errors.invalid(_TOKEN_REQUEST, "", [invalid_field])
        audiences = spec.get("audiences") or [ISSUER]
        expires = now + timedelta(seconds=seconds)
        bound_claims = self._build_bound_claims(account["metadata"]["namespace"], spec.get("boundObjectRef") or {})
        token = self._sign_token(account["metadata"], audiences, now, expires, bound_claims)
        metadata = {key: account["metadata"][key] for key in ("name", "namespace")}
        return {
            "kind": "TokenRequest",
            "apiVersion": AUTHENTICATION_API_VERSION,
            "metadata": {**metadata, "creationTimestamp": format_timestamp(now)},
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": format_timestamp(expires)},
        }

    def _build_bound_claims(self, namespace: str, reference: Mapping[str, Any]) -> dict[str, Any]:
        """k8s: the Secret whose deletion invalidates the token. References to Pods are not checked."""
        if reference.get("kind") != "Secret":
            return {}
        name = str(reference.get("name") or "")
        uid = self._find_secret_uid(namespace, name)
        if uid is None or reference.get("uid") not in (None, "", uid):
            invalid_field = field_error.invalid("spec.boundObjectRef", name, "is not a Secret of this namespace")
            raise status_errors.invalid(_TOKEN_REQUEST, "", [invalid_field])
        return {"secret": {"name": name, "uid": uid}}

    def _sign_token(
        self, account: Manifest, audiences: list[str], now: datetime, expires: datetime, bound_claims: Mapping[str, Any]
    ) -> str:
        namespace, name = account["namespace"], account["name"]
        issued_at = int(now.timestamp())
        claims = {
            "aud": audiences,
            "exp": int(expires.timestamp()),
            "iat": issued_at,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {
                "namespace": namespace,
                "serviceaccount": {"name": name, "uid": account["uid"]},
                **bound_claims,
            },
            "nbf": issued_at,
            "sub": f"{SERVICE_ACCOUNT_PREFIX}:{namespace}:{name}",
        }
        return self._sign_claims(claims)

    def sign_secret_token(self, account: Manifest, secret_name: str) -> str:
        """Issue the token of a Secret. It is valid while the Secret contains it, and its account exists."""
        namespace, name = account["namespace"], account["name"]
        claims = {
            "iss": SECRET_TOKEN_ISSUER,
            f"{SECRET_TOKEN_CLAIM}namespace": namespace,
            f"{SECRET_TOKEN_CLAIM}secret.name": secret_name,
            f"{SECRET_TOKEN_CLAIM}service-account.name": name,
            f"{SECRET_TOKEN_CLAIM}service-account.uid": account["uid"],
            "sub": f"{SERVICE_ACCOUNT_PREFIX}:{namespace}:{name}",
        }
        return self._sign_claims(claims)

    def _sign_claims(self, claims: Mapping[str, Any]) -> str:
        header = {"alg": "RS256", "kid": self._compute_key_id()}
        signing_input = f"{encode_base64url(orjson.dumps(header))}.{encode_base64url(orjson.dumps(claims))}"
        return f"{signing_input}.{encode_base64url(self._sign(signing_input.encode()))}"

    def find_user(self, token: str, now: datetime, audiences: Sequence[str] = (ISSUER,)) -> User | None:
        """The user of a token; None if it is invalid, expired, for other audiences, or its account is gone."""
        claims = self._find_signed_claims(token)
        if claims is not None and claims.get("iss") == SECRET_TOKEN_ISSUER:
            return self._find_user_of_secret(token, claims) if ISSUER in audiences else None
        if claims is None or not claims["nbf"] - LEEWAY_SECONDS <= now.timestamp() < claims["exp"]:
            return None
        if not set(audiences) & set(claims["aud"]):
            return None
        kubernetes_claims = claims["kubernetes.io"]
        namespace, account = kubernetes_claims["namespace"], kubernetes_claims["serviceaccount"]
        if self._find_account_uid(namespace, account["name"]) != account["uid"]:
            return None
        secret = kubernetes_claims.get("secret")
        if secret is not None and self._find_secret_uid(namespace, secret["name"]) != secret["uid"]:
            return None
        extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}
        return _build_user(namespace, account["name"], account["uid"], extra)

    def _find_user_of_secret(self, token: str, claims: Mapping[str, Any]) -> User | None:
        namespace, secret, name, uid = (
            claims[SECRET_TOKEN_CLAIM + field]
            for field in ("namespace", "secret.name", "service-account.name", "service-account.uid")
        )
        if not hmac.compare_digest(self._find_secret_token(namespace, secret), token.encode()):
            return None
        return _build_user(namespace, name, uid, {}) if self._find_account_uid(namespace, name) == uid else None

    def list_audiences(self, token: str) -> list[str]:
        """Audiences of a token; empty if this server did not sign it."""
        claims = self._find_signed_claims(token) or {}
        return [ISSUER] if claims.get("iss") == SECRET_TOKEN_ISSUER else list(claims.get("aud", ()))

    def _find_signed_claims(self, token: str) -> dict[str, Any] | None:
        if self._signing_key is None and (self._key_file is None or not self._key_file.exists()):
            return None  # no token was ever signed, and a stranger's token must not trigger key generation
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        try:
            header, body, signature = token.split(".")
            if orjson.loads(decode_base64url(header)).get("alg") != "RS256":
                return None
            public_key = self._get_key().public_key()
            public_key.verify(
                decode_base64url(signature), f"{header}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256()
            )
            claims: dict[str, Any] = orjson.loads(decode_base64url(body))
            return claims
        except (ValueError, AttributeError, InvalidSignature):
            return None

    def _sign(self, data: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        return self._get_key().sign(data, padding.PKCS1v15(), hashes.SHA256())

    async def ensure_key(self) -> None:
        """Load or create the key, in a thread because creating it is slow."""
        if self._signing_key is None:
            key = await asyncio.to_thread(_load_or_create_key, self._key_file)
            self._signing_key = self._signing_key or key

    def _get_key(self) -> RSAPrivateKey:
        if self._signing_key is None:
            self._signing_key = _load_or_create_key(self._key_file)
        return self._signing_key

    def _compute_key_id(self) -> str:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = self._get_key().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return encode_base64url(hashlib.sha256(public).digest())

    def build_jwks(self) -> Manifest:
        """The public key as a JSON Web Key Set."""
        numbers = self._get_key().public_key().public_numbers()
        parts = {"n": encode_base64url(_to_big_endian(numbers.n)), "e": encode_base64url(_to_big_endian(numbers.e))}
        return {"keys": [{"use": "sig", "kty": "RSA", "kid": self._compute_key_id(), "alg": "RS256", **parts}]}


def _build_user(namespace: str, name: str, uid: str, extra: Mapping[str, list[str]]) -> User:
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
    return User(f"{SERVICE_ACCOUNT_PREFIX}:{namespace}:{name}", groups, uid, dict(extra))


def _load_or_create_key(file: Path | None) -> RSAPrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    if file is not None and file.exists() and file.stat().st_size:  # an empty file is replaced like a missing one
        check_private_file(file)
        key = serialization.load_pem_private_key(file.read_bytes(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        return key
    new_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    if file is not None:
        key_format, no_encryption = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        pem = new_key.private_bytes(serialization.Encoding.PEM, key_format, no_encryption)
        write_private(file, pem)
    return new_key


def _to_big_endian(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
