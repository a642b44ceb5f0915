"""Tokens that this installation signs: JSON Web Tokens with HS256, as in Argo CD.

In: claims and a key, or a token and a key. Out: a token, or Claims. Never: returns claims of a token with a wrong
signature; accepts an encoding that Argo CD would not have written.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

import jwt

from argosy.errors import UserError
from argosy.kube.objects import read_json
from argosy.kube.objects.base64url import decode_base64url

ISSUER: Final = "argocd"  # argo
SSO_ISSUER: Final = "argosy"  # issuer of SSO sessions
MAX_TOKEN_CHARACTERS: Final = 8 << 10
MIN_KEY_BYTES: Final = 16
DAY_SECONDS: Final = 24 * 3600
CLOCK_SKEW_SECONDS: Final = 5  # seconds of allowed clock skew
MAX_PARENTS: Final = 8
PARENTS_CLAIM: Final = "parents"
_MAX_UNIX_TIME: Final = 1 << 40
_TOKEN_PATTERN: Final = re.compile(r"[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{43}")
_HEADER: Final = {"alg": "HS256", "typ": "JWT"}


class BadToken(Exception):
    """The token is invalid. The reason is for the log; the caller does not see it."""


class RevokedToken(BadToken):
    """The token is valid but for its revocation."""


class ParentToken(NamedTuple):
    """A token that created another token."""

    subject: str
    id: str
    issued: int


@dataclass(frozen=True, slots=True)
class TokenClaims:
    issuer: str
    subject: str
    id: str
    issued_at: int
    expires_at: int  # 0: never
    session_started_at: int  # start of the session, which renewed tokens keep
    groups: tuple[str, ...] = ()
    provider: str = ""  # id of the identity provider of the subject
    email: str = ""
    parents: tuple[ParentToken, ...] = ()  # the token that created this one, and its own parents


def check_signing_key(key: bytes) -> None:
    """Raises UserError for a key that is too short: its tokens would be refused."""
    if len(key) < MIN_KEY_BYTES:
        raise UserError(
            f"server.secretkey of Secret argocd-secret has {len(key)} bytes; at least {MIN_KEY_BYTES} are needed;"
            " remove that field and restart the server, which then writes a new one"
        )


def sign_token(claims: TokenClaims, key: bytes) -> str:
    """Raises UserError for a key that is too short."""
    check_signing_key(key)
    payload: dict[str, Any] = {
        "iss": claims.issuer,
        "sub": claims.subject,
        "jti": claims.id,
        "iat": claims.issued_at,
        "nbf": claims.issued_at,
    }
    if claims.expires_at:
        payload["exp"] = claims.expires_at
    if claims.session_started_at != claims.issued_at:
        payload["auth_time"] = claims.session_started_at
    if claims.issuer == SSO_ISSUER:
        payload |= {"groups": list(claims.groups), "provider": claims.provider, "email": claims.email}
    if claims.parents:
        payload[PARENTS_CLAIM] = [list(parent) for parent in claims.parents]
    return jwt.encode(payload, key, algorithm="HS256", headers=_HEADER)


def verify_token(token: str, key: bytes, now: int) -> TokenClaims:
    """Raises BadToken."""
    if len(token) > MAX_TOKEN_CHARACTERS or not _TOKEN_PATTERN.fullmatch(token):
        raise BadToken("the token is malformed")
    if len(key) < MIN_KEY_BYTES:
        raise BadToken("there is no signing key")
    header_part, payload_part, signature = token.split(".")
    if not hmac.compare_digest(
        _decode_part(signature), hmac.new(key, f"{header_part}.{payload_part}".encode(), sha256).digest()
    ):
        raise BadToken("the signature does not match")
    header = _parse_json_object(_decode_part(header_part))
    if header.get("alg") != "HS256" or header.get("typ", "JWT") != "JWT" or header.keys() - _HEADER.keys():
        raise BadToken("the header is not one that this server writes")
    return _read_claims(_parse_json_object(_decode_part(payload_part)), now)


def read_algorithm(token: str) -> str:
    """Return the algorithm that a token claims, only to decide who must verify it."""
    header_part = token.partition(".")[0]
    try:
        return str(_parse_json_object(_decode_part(header_part)).get("alg") or "")
    except BadToken:
        return ""


def _read_claims(payload: Mapping[str, Any], now: int) -> TokenClaims:
    issuer, subject, name = (_read_text(payload, claim) for claim in ("iss", "sub", "jti"))
    if issuer not in (ISSUER, SSO_ISSUER):
        raise BadToken("unknown issuer")
    if "aud" in payload and ISSUER not in (payload["aud"] if isinstance(payload["aud"], list) else [payload["aud"]]):
        raise BadToken("wrong audience")
    issued = _read_time(payload, "iat")
    not_before = _read_time(payload, "nbf") if "nbf" in payload else issued
    expires = _read_time(payload, "exp") if "exp" in payload else 0
    session_started_at = _read_time(payload, "auth_time") if "auth_time" in payload else issued
    if max(issued, not_before, session_started_at) > now + CLOCK_SKEW_SECONDS:
        raise BadToken("the token is not valid yet")
    if "exp" in payload and expires <= now:
        raise BadToken("the token has expired")
    if (expires and expires <= issued) or session_started_at > issued:
        raise BadToken("the times of the token contradict each other")
    groups = payload.get("groups", []) if issuer == SSO_ISSUER else []
    if not isinstance(groups, list) or not all(isinstance(claim, str) for claim in groups):
        raise BadToken("groups is not a list of strings")
    provider, email = (payload.get("provider", ""), payload.get("email", "")) if issuer == SSO_ISSUER else ("", "")
    if not (isinstance(provider, str) and isinstance(email, str)):
        raise BadToken("provider or email is not a string")
    return TokenClaims(
        issuer,
        subject,
        name,
        issued,
        expires,
        session_started_at,
        tuple(groups),
        provider,
        email,
        _read_parents(payload),
    )


def _read_parents(payload: Mapping[str, Any]) -> tuple[ParentToken, ...]:
    parents = payload.get(PARENTS_CLAIM, [])
    if not isinstance(parents, list) or len(parents) > MAX_PARENTS:
        raise BadToken("the list of parent tokens is malformed")
    for parent in parents:
        if not isinstance(parent, list) or [type(part) for part in parent] != [str, str, int]:
            raise BadToken("the list of parent tokens is malformed")
    return tuple(ParentToken(*parent) for parent in parents)


def _read_text(payload: Mapping[str, Any], name: str) -> str:
    text = payload.get(name)
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or len(text) > 512:
        raise BadToken(f"{name} is missing")
    return text


def _read_time(payload: Mapping[str, Any], name: str) -> int:
    seconds = payload.get(name)
    if type(seconds) is not int or not 0 < seconds < _MAX_UNIX_TIME:
        raise BadToken(f"{name} is not a time")
    return seconds


def _decode_part(text: str) -> bytes:
    try:
        return decode_base64url(text)
    except ValueError as error:
        raise BadToken("invalid base64") from error


def _parse_json_object(text: bytes) -> dict[str, Any]:
    try:
        document = read_json(text, where="token", strict=True)
    except UserError as error:
        raise BadToken("invalid JSON") from error
    if not isinstance(document.value, dict) or document.duplicates:
        raise BadToken("not a JSON object with unique keys")
    return document.value
