"""Tokens that this installation signs: JSON Web Tokens by HS256, as Argo CD makes them.

In: claims and a key, or a token and a key. Out: a token, or Claims. Never: a claim of a token whose signature does not
fit; more than one way to write anything: what Argo CD would not have written does not count.
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
PERSONS: Final = "argosy"  # of sessions of who came by an identity provider
LONGEST: Final = 8 << 10
SHORTEST_KEY: Final = 16
DAY: Final = 24 * 3600
SKEW: Final = 5  # seconds that clocks may differ
MAX_PARENTS: Final = 8
PARENTS_CLAIM: Final = "parents"
_LATEST: Final = 1 << 40
_FORM: Final = re.compile(r"[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]{43}")
_HEADER: Final = {"alg": "HS256", "typ": "JWT"}


class BadToken(Exception):
    """It does not count. Why is for a log: whoever showed it is told nothing."""


class ParentToken(NamedTuple):
    """A token that another was created with."""

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
    began: int  # the session, where a token takes the place of another
    groups: tuple[str, ...] = ()
    provider: str = ""  # which identity provider knows the subject
    email: str = ""
    parents: tuple[ParentToken, ...] = ()  # the token that this one was created with, and that one's own


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
        raise BadToken("no token")
    if len(key) < SHORTEST_KEY:
        raise BadToken("there is no key to sign with")
    head, body, signature = token.split(".")
    if not hmac.compare_digest(decoded(signature), hmac.new(key, f"{head}.{body}".encode(), sha256).digest()):
        raise BadToken("the signature does not fit")
    header = _mapping(decoded(head))
    if header.get("alg") != "HS256" or header.get("typ", "JWT") != "JWT" or header.keys() - _HEADER.keys():
        raise BadToken("the header is not ours")
    return _checked(_mapping(decoded(body)), now)


def algorithm_of(token: str) -> str:
    """Which algorithm a token says it is signed by: only to know who is to check it."""
    head = token.partition(".")[0]
    try:
        return str(_mapping(decoded(head)).get("alg") or "")
    except BadToken:
        return ""


def _checked(said: Mapping[str, Any], now: int) -> Claims:
    issuer, subject, name = (_text(said, each) for each in ("iss", "sub", "jti"))
    if issuer not in (ISSUER, PERSONS):
        raise BadToken("another has issued it")
    if "aud" in said and ISSUER not in (said["aud"] if isinstance(said["aud"], list) else [said["aud"]]):
        raise BadToken("it is for others")
    issued = _time(said, "iat")
    begins = _time(said, "nbf") if "nbf" in said else issued
    expires = _time(said, "exp") if "exp" in said else 0
    began = _time(said, "auth_time") if "auth_time" in said else issued
    if max(issued, begins, began) > now + SKEW:
        raise BadToken("it is not valid yet")
    if "exp" in said and expires <= now:
        raise BadToken("it is over")
    if (expires and expires <= issued) or began > issued:
        raise BadToken("its times contradict each other")
    groups = said.get("groups", []) if issuer == PERSONS else []
    if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
        raise BadToken("its groups are none")
    provider, email = (said.get("provider", ""), said.get("email", "")) if issuer == PERSONS else ("", "")
    if not (isinstance(provider, str) and isinstance(email, str)):
        raise BadToken("it names no provider")
    return Claims(issuer, subject, name, issued, expires, began, tuple(groups), provider, email, _parents(said))


def _parents(said: Mapping[str, Any]) -> tuple[ParentToken, ...]:
    parents = said.get(PARENTS_CLAIM, [])
    if not isinstance(parents, list) or len(parents) > MAX_PARENTS:
        raise BadToken("its list of parent tokens is malformed")
    for parent in parents:
        if not isinstance(parent, list) or [type(part) for part in parent] != [str, str, int]:
            raise BadToken("its list of parent tokens is malformed")
    return tuple(ParentToken(*parent) for parent in parents)


def _text(said: Mapping[str, Any], name: str) -> str:
    found = said.get(name)
    if not isinstance(found, str) or not found.strip() or not found.isprintable() or len(found) > 512:
        raise BadToken(f"{name} is missing")
    return found


def _time(said: Mapping[str, Any], name: str) -> int:
    found = said.get(name)
    if type(found) is not int or not 0 < found < _LATEST:
        raise BadToken(f"{name} is no time")
    return found


def encoded(data: bytes) -> str:
    made: str = jwt.utils.base64url_encode(data).decode()
    return made


def decoded(text: str) -> bytes:
    """Raises BadToken."""
    try:
        found: bytes = jwt.utils.base64url_decode(text)
    except ValueError as error:
        raise BadToken("no base64") from error
    if encoded(found) != text:  # bits that are left over would be a second spelling
        raise BadToken("no base64")
    return found


def _mapping(text: bytes) -> dict[str, Any]:
    try:
        found = load_json(text, where="token", strict=True)
    except UserError as error:
        raise BadToken("no JSON") from error
    if not isinstance(found.value, dict) or found.duplicates:
        raise BadToken("no JSON object that says each thing once")
    return found.value
