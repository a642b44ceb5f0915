"""Authenticates bearer tokens of the administrator, sandbox users and service accounts; handles impersonation.

In: an Authorization header. Out: a User, or None. Never: decides what the user may do.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from functools import partial
from urllib.parse import unquote

import orjson

from argosy.kube.client import User
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.authorization import Access, Attributes
from argosy.sandbox.apiserver.metadata import Clock
from argosy.sandbox.apiserver.tokens import ISSUER, Tokens
from argosy.sandbox.store import Event, Store

USERS_NAMESPACE = "kube-system"
USER_SECRET_TYPE = "sandbox.argosy.dev/user"  # noqa: S105 - a type's name
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
AUTHENTICATION = "authentication.k8s.io"
EXTRA_PREFIX = "impersonate-extra-"
_WRONG_ESCAPE = re.compile("%(?![0-9a-f]{2})")


def digest(token: str) -> str:
    """Tokens are stored and looked up as digests, so that neither files nor timing reveal them."""
    return hashlib.sha256(token.encode()).hexdigest()


class Identity:
    def __init__(self, store: Store, tokens: Tokens, admin: User, admin_token: str, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock
        self._admin, self._admin_digest = admin, digest(admin_token)
        self._users: dict[str, User] = {}
        for entry in store.list("secrets", USERS_NAMESPACE):
            self._learn(entry.name, entry.body)
        store.subscribe(self._changed)

    def _changed(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.bucket == "secrets" and event.namespace == USERS_NAMESPACE:
                self._users = {key: user for key, user in self._users.items() if user.uid != f"secret:{event.name}"}
                if event.type != "DELETED":
                    self._learn(event.name, event.body)

    def _learn(self, secret: str, body: bytes) -> None:
        """Load a user from a Secret of the user type: name, groups, and the digest of the token."""
        if USER_SECRET_TYPE.encode() not in body:
            return
        manifest = orjson.loads(body)
        if manifest.get("type") != USER_SECRET_TYPE:
            return
        annotations = manifest["metadata"].get("annotations") or {}
        name, key = annotations.get("sandbox.argosy.dev/user"), annotations.get("sandbox.argosy.dev/token-digest")
        if name and key:
            groups = [group for group in annotations.get("sandbox.argosy.dev/groups", "").split(",") if group]
            self._users[key] = User(name, (*groups, AUTHENTICATED), uid=f"secret:{secret}")

    def of_token(self, token: str, audiences: Sequence[str] = (ISSUER,)) -> User | None:
        """The user of a token. Audiences only apply to service account tokens (JWTs)."""
        if not token:
            return None
        key = digest(token)
        if hmac.compare_digest(key, self._admin_digest):
            return self._admin
        if user := self._users.get(key):
            return user
        return self._tokens.user(token, self._clock(), audiences) if token.count(".") == 2 else None

    def reviewed(self, token: str, audiences: Sequence[str]) -> tuple[User, list[str]] | None:
        """k8s: the user of a token and its matching audiences; no audience means this server."""
        wanted = audiences or (ISSUER,)
        user = self.of_token(token, wanted)
        good = self._tokens.audiences(token) if token.count(".") == 2 else [ISSUER]
        common = [each for each in wanted if each in good]
        return (user, common) if user is not None and common else None

    def of_header(self, authorization: str) -> User | None:
        scheme, _, token = authorization.partition(" ")
        return self.of_token(token.strip()) if scheme.lower() == "bearer" else None


def implied_groups(user: str) -> tuple[str, ...]:
    """k8s: the groups added when a service account is impersonated; empty for any other user."""
    if not user.startswith("system:serviceaccount:") or user.count(":") != 3:
        return ()
    return "system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}"


def add_implied_groups(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """k8s: the groups of an impersonated user, including those that the server adds."""
    chosen = groups or implied_groups(name)
    if name == ANONYMOUS:
        return chosen if UNAUTHENTICATED in chosen else (*chosen, UNAUTHENTICATED)
    return chosen if {AUTHENTICATED, UNAUTHENTICATED} & set(chosen) else (*chosen, AUTHENTICATED)


def impersonated(access: Access, user: User, headers: Mapping[bytes, bytes], raw: list[tuple[bytes, bytes]]) -> User:
    """k8s: impersonation is authorized separately for the user, each group, each extra value and the uid."""
    name = headers.get(b"impersonate-user", b"").decode(errors="replace")
    if not name:
        if any(header.startswith(b"impersonate-") for header in headers):
            raise status_errors.bad_request("requested impersonation without a user; send Impersonate-User too")
        return user
    ask = partial(Attributes, "impersonate")
    if implied_groups(name):
        _, _, namespace, account = name.split(":")
        access.require(user, ask(resource="serviceaccounts", namespace=namespace, name=account))
    else:
        access.require(user, ask(resource="users", name=name))
    groups = [value.decode(errors="replace") for header, value in raw if header == b"impersonate-group"]
    for group in groups:
        access.require(user, ask(resource="groups", name=group))
    extra = _read_extras(raw)
    for key, values in extra.items():
        for value in values:
            access.require(user, ask(group=AUTHENTICATION, resource="userextras", subresource=key, name=value))
    uid = headers.get(b"impersonate-uid", b"").decode(errors="replace")
    if uid:
        access.require(user, ask(group=AUTHENTICATION, resource="uids", name=uid))
    return User(name, add_implied_groups(name, tuple(groups)), uid, extra or None)


def _read_extras(raw: list[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    """k8s: keys are lowercased and then percent-decoded, unless an escape is invalid."""
    extras: dict[str, list[str]] = {}
    for header, value in raw:
        name = header.decode(errors="replace").lower()
        if name.startswith(EXTRA_PREFIX):
            key = name.removeprefix(EXTRA_PREFIX)
            key = key if _WRONG_ESCAPE.search(key) else unquote(key)
            extras.setdefault(key, []).append(value.decode(errors="replace"))
    return extras
