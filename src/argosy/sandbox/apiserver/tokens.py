"""Issues and verifies service account tokens; publishes the public keys as a JWKS.

In: an account, or a token. Out: a token, or its user. Never: stores a token. The signing key is created on first use.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from argosy.kube.client import User
from argosy.kube.client.file_permissions import check_private
from argosy.kube.client.private_files import write_private
from argosy.kube.objects import Manifest
from argosy.kube.schema import field_error
from argosy.kube.schema.resources import Resource
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.metadata import stamp

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

ISSUER = "https://kubernetes.default.svc"
SHORTEST, USUAL, LONGEST = 600, 3600, 1 << 32
LEEWAY_SECONDS = 60  # k8s: a clock that is set back slightly must not refuse tokens issued just before
ACCOUNT = "system:serviceaccount"
_REQUEST = Resource("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests", "tokenrequest", True, ("create",))


class Tokens:
    """`find_account_uid` returns the uid of an existing account: a token is valid only while its account exists.

    `find_secret_uid` does the same for Secrets that tokens are bound to.
    """

    def __init__(
        self,
        key_file: Path | None,
        account_uid: Callable[[str, str], str | None],
        secret_uid: Callable[[str, str], str | None] = lambda namespace, name: None,
    ) -> None:
        self._file = key_file
        self._account_uid, self._secret_uid = account_uid, secret_uid
        self._signing: RSAPrivateKey | None = None

    def request(self, account: Manifest, value: Mapping[str, Any], now: datetime) -> Manifest:
        """Issue a token for a TokenRequest."""
        spec = dict(value.get("spec") or {})
        seconds = spec.get("expirationSeconds") or USUAL
        if not SHORTEST <= seconds <= LONGEST:
            detail = "may not specify a duration less than 10 minutes" if seconds < SHORTEST else "is too long"
            problem = field_error.invalid("spec.expirationSeconds", str(seconds), detail)
            raise status_errors.invalid(_REQUEST, "", [problem])
        audiences = spec.get("audiences") or [ISSUER]
        expires = now + timedelta(seconds=seconds)
        bound = self._bound(account["metadata"]["namespace"], spec.get("boundObjectRef") or {})
        token = self._issue(account["metadata"], audiences, now, expires, bound)
        metadata = {key: account["metadata"][key] for key in ("name", "namespace")}
        return {
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {**metadata, "creationTimestamp": stamp(now)},
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": stamp(expires)},
        }

    def _bound(self, namespace: str, reference: Mapping[str, Any]) -> dict[str, Any]:
        """k8s: the Secret whose deletion invalidates the token. References to Pods are not checked."""
        if reference.get("kind") != "Secret":
            return {}
        name = str(reference.get("name") or "")
        uid = self._secret_uid(namespace, name)
        if uid is None or reference.get("uid") not in (None, "", uid):
            problem = field_error.invalid("spec.boundObjectRef", name, "is not a Secret of this namespace")
            raise status_errors.invalid(_REQUEST, "", [problem])
        return {"secret": {"name": name, "uid": uid}}

    def _issue(
        self, account: Manifest, audiences: list[str], now: datetime, expires: datetime, bound: Mapping[str, Any]
    ) -> str:
        namespace, name = account["namespace"], account["name"]
        issued = int(now.timestamp())
        claims = {
            "aud": audiences,
            "exp": int(expires.timestamp()),
            "iat": issued,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {"namespace": namespace, "serviceaccount": {"name": name, "uid": account["uid"]}, **bound},
            "nbf": issued,
            "sub": f"{ACCOUNT}:{namespace}:{name}",
        }
        head = {"alg": "RS256", "kid": self._key_id()}
        signed = f"{_pack(orjson.dumps(head))}.{_pack(orjson.dumps(claims))}"
        return f"{signed}.{_pack(self._sign(signed.encode()))}"

    def user(self, token: str, now: datetime, audiences: Sequence[str] = (ISSUER,)) -> User | None:
        """The user of a token; None if it is invalid, expired, for other audiences, or its account is gone."""
        claims = self._claims(token)
        if claims is None or not claims["nbf"] - LEEWAY_SECONDS <= now.timestamp() < claims["exp"]:
            return None
        if not set(audiences) & set(claims["aud"]):
            return None
        bound = claims["kubernetes.io"]
        namespace, account = bound["namespace"], bound["serviceaccount"]
        if self._account_uid(namespace, account["name"]) != account["uid"]:
            return None
        secret = bound.get("secret")
        if secret is not None and self._secret_uid(namespace, secret["name"]) != secret["uid"]:
            return None
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}
        return User(f"{ACCOUNT}:{namespace}:{account['name']}", groups, account["uid"], extra)

    def audiences(self, token: str) -> list[str]:
        """Audiences of a token; empty if this server did not sign it."""
        return list((self._claims(token) or {}).get("aud", ()))

    def _claims(self, token: str) -> dict[str, Any] | None:
        if self._signing is None and (self._file is None or not self._file.exists()):
            return None  # no token was ever signed, and a stranger's token must not trigger key generation
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        try:
            head, body, signature = token.split(".")
            if orjson.loads(_unpack(head)).get("alg") != "RS256":
                return None
            public = self._key().public_key()
            public.verify(_unpack(signature), f"{head}.{body}".encode(), padding.PKCS1v15(), hashes.SHA256())
            claims: dict[str, Any] = orjson.loads(_unpack(body))
            return claims
        except (ValueError, AttributeError, InvalidSignature):
            return None

    def _sign(self, data: bytes) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        return self._key().sign(data, padding.PKCS1v15(), hashes.SHA256())

    async def ready(self) -> None:
        """Load or create the key, in a thread because creating it is slow."""
        if self._signing is None:
            made = await asyncio.to_thread(_read_or_make, self._file)
            self._signing = self._signing or made

    def _key(self) -> RSAPrivateKey:
        if self._signing is None:
            self._signing = _read_or_make(self._file)
        return self._signing

    def _key_id(self) -> str:
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        public = self._key().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return _pack(hashlib.sha256(public).digest())

    def keys(self) -> Manifest:
        """The public key as a JSON Web Key Set."""
        numbers = self._key().public_key().public_numbers()
        parts = {"n": _pack(_big(numbers.n)), "e": _pack(_big(numbers.e))}
        return {"keys": [{"use": "sig", "kty": "RSA", "kid": self._key_id(), "alg": "RS256", **parts}]}


def _read_or_make(file: Path | None) -> RSAPrivateKey:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    if file is not None and file.exists() and file.stat().st_size:  # an empty file is replaced like a missing one
        check_private(file)
        key = serialization.load_pem_private_key(file.read_bytes(), None)
        assert isinstance(key, rsa.RSAPrivateKey)
        return key
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    if file is not None:
        form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        pem = made.private_bytes(serialization.Encoding.PEM, form, plain)
        write_private(file, pem)
    return made


def _pack(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _unpack(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _big(number: int) -> bytes:
    return number.to_bytes((number.bit_length() + 7) // 8, "big")
