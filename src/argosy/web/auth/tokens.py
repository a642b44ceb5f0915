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
from argosy.kube.objects import load_json

ISSUER: Final = "argocd"  # argo
PERSONS: Final = "argosy"  # issuer of SSO sessions
LONGEST: Final = 8 << 10
SHORTEST_KEY: Final = 16
DAY: Final = 24 * 3600
SKEW: Final = 5  # seconds of allowed clock skew
MAX_PARENTS: Final = 8
PARENTS_CLAIM: Final = "parents"
_LATEST: Final = 1 << 40
_FORM: Final = re.compile(r"[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{43}")
_HEADER: Final = {"alg": "HS256", "typ": "JWT"}


class BadToken(Exception):
    """The token is invalid. The reason is for the log; the caller does not see it."""


class ParentToken(NamedTuple):
    """A token that created another token."""

    subject: str
    id: str
    issued: int


@dataclass(frozen=True, slots=True)
class Claims:
    issuer: str
    subject: str
    id: str
    issued: int
    expires: int  # 0: never
    began: int  # start of the session, which renewed tokens keep
    groups: tuple[str, ...] = ()
    provider: str = ""  # id of the identity provider of the subject
    email: str = ""
    parents: tuple[ParentToken, ...] = ()  # the token that created this one, and its own parents


def sign(claims: Claims, key: bytes) -> str:
    said: dict[str, Any] = {
        "iss": claims.issuer,
        "sub": claims.subject,
        "jti": claims.id,
        "iat": claims.issued,
        "nbf": claims.issued,
    }
    if claims.expires:
        said["exp"] = claims.expires
    if claims.began != claims.issued:
        said["auth_time"] = claims.began
    if claims.issuer == PERSONS:
        said |= {"groups": list(claims.groups), "provider": claims.provider, "email": claims.email}
    if claims.parents:
        said[PARENTS_CLAIM] = [list(parent) for parent in claims.parents]
    return jwt.encode(said, key, algorithm="HS256", headers=_HEADER)


def read(token: str, key: bytes, now: int) -> Claims:
    """Raises BadToken."""
    if len(token) > LONGEST or not _FORM.fullmatch(token):
        raise BadToken("the token is malformed")
    if len(key) < SHORTEST_KEY:
        raise BadToken("there is no signing key")
    head, body, signature = token.split(".")
    if not hmac.compare_digest(decoded(signature), hmac.new(key, f"{head}.{body}".encode(), sha256).digest()):
        raise BadToken("the signature does not match")
    header = _mapping(decoded(head))
    if header.get("alg") != "HS256" or header.get("typ", "JWT") != "JWT" or header.keys() - _HEADER.keys():
        raise BadToken("the header is not one that this server writes")
    return _checked(_mapping(decoded(body)), now)


def algorithm_of(token: str) -> str:
    """Return the algorithm that a token claims, only to decide who must verify it."""
    head = token.partition(".")[0]
    try:
        return str(_mapping(decoded(head)).get("alg") or "")
    except BadToken:
        return ""


def _checked(said: Mapping[str, Any], now: int) -> Claims:
    issuer, subject, name = (_text(said, each) for each in ("iss", "sub", "jti"))
    if issuer not in (ISSUER, PERSONS):
        raise BadToken("unknown issuer")
    if "aud" in said and ISSUER not in (said["aud"] if isinstance(said["aud"], list) else [said["aud"]]):
        raise BadToken("wrong audience")
    issued = _time(said, "iat")
    begins = _time(said, "nbf") if "nbf" in said else issued
    expires = _time(said, "exp") if "exp" in said else 0
    began = _time(said, "auth_time") if "auth_time" in said else issued
    if max(issued, begins, began) > now + SKEW:
        raise BadToken("the token is not valid yet")
    if "exp" in said and expires <= now:
        raise BadToken("the token has expired")
    if (expires and expires <= issued) or began > issued:
        raise BadToken("the times of the token contradict each other")
    groups = said.get("groups", []) if issuer == PERSONS else []
    if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
        raise BadToken("groups is not a list of strings")
    provider, email = (said.get("provider", ""), said.get("email", "")) if issuer == PERSONS else ("", "")
    if not (isinstance(provider, str) and isinstance(email, str)):
        raise BadToken("provider or email is not a string")
    return Claims(issuer, subject, name, issued, expires, began, tuple(groups), provider, email, _parents(said))


def _parents(said: Mapping[str, Any]) -> tuple[ParentToken, ...]:
    parents = said.get(PARENTS_CLAIM, [])
    if not isinstance(parents, list) or len(parents) > MAX_PARENTS:
        raise BadToken("the list of parent tokens is malformed")
    for parent in parents:
        if not isinstance(parent, list) or [type(part) for part in parent] != [str, str, int]:
            raise BadToken("the list of parent tokens is malformed")
    return tuple(ParentToken(*parent) for parent in parents)


def _text(said: Mapping[str, Any], name: str) -> str:
    found = said.get(name)
    if not isinstance(found, str) or not found.strip() or not found.isprintable() or len(found) > 512:
        raise BadToken(f"{name} is missing")
    return found


def _time(said: Mapping[str, Any], name: str) -> int:
    found = said.get(name)
    if type(found) is not int or not 0 < found < _LATEST:
        raise BadToken(f"{name} is not a time")
    return found


def encoded(data: bytes) -> str:
    made: str = jwt.utils.base64url_encode(data).decode()
    return made


def decoded(text: str) -> bytes:
    """Raises BadToken."""
    try:
        found: bytes = jwt.utils.base64url_decode(text)
    except ValueError as error:
        raise BadToken("invalid base64") from error
    if encoded(found) != text:  # leftover bits would allow a second encoding
        raise BadToken("invalid base64")
    return found


def _mapping(text: bytes) -> dict[str, Any]:
    try:
        found = load_json(text, where="token", strict=True)
    except UserError as error:
        raise BadToken("invalid JSON") from error
    if not isinstance(found.value, dict) or found.duplicates:
        raise BadToken("not a JSON object with unique keys")
    return found.value
