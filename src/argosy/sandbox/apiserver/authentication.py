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
from argosy.sandbox.apiserver.authorization import AccessChecker, Attributes
from argosy.sandbox.apiserver.metadata import Clock
from argosy.sandbox.apiserver.service_account_tokens import ISSUER, ServiceAccountTokens
from argosy.sandbox.store import Store, StoreEvent

USERS_NAMESPACE = "kube-system"
USER_SECRET_TYPE = "sandbox.argosy.dev/user"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = "system:anonymous"
AUTHENTICATION_GROUP = "authentication.k8s.io"
EXTRA_PREFIX = "impersonate-extra-"
_INVALID_PERCENT_ESCAPE = re.compile("%(?![0-9a-f]{2})")


def hash_token(token: str) -> str:
    """Tokens are stored and looked up as digests, so that neither files nor timing reveal them."""
    return hashlib.sha256(token.encode()).hexdigest()


class TokenAuthenticator:
    def __init__(self, store: Store, tokens: ServiceAccountTokens, admin: User, admin_token: str, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock
        self._admin, self._admin_digest = admin, hash_token(admin_token)
        self._users: dict[str, User] = {}
        for entry in store.list("secrets", USERS_NAMESPACE):
            self._load_user(entry.name, entry.body)
        store.subscribe(self._on_store_events)

    def _on_store_events(self, events: Sequence[StoreEvent]) -> None:
        for event in events:
            if event.bucket == "secrets" and event.namespace == USERS_NAMESPACE:
                self._users = {key: user for key, user in self._users.items() if user.uid != f"secret:{event.name}"}
                if event.type != "DELETED":
                    self._load_user(event.name, event.body)

    def _load_user(self, secret_name: str, body: bytes) -> None:
        """Load a user from a Secret of the user type: name, groups, and the digest of the token."""
        if USER_SECRET_TYPE.encode() not in body:
            return
        manifest = orjson.loads(body)
        if manifest.get("type") != USER_SECRET_TYPE:
            return
        annotations = manifest["metadata"].get("annotations") or {}
        name, token_digest = (
            annotations.get("sandbox.argosy.dev/user"),
            annotations.get("sandbox.argosy.dev/token-digest"),
        )
        if name and token_digest:
            groups = [group for group in annotations.get("sandbox.argosy.dev/groups", "").split(",") if group]
            self._users[token_digest] = User(name, (*groups, AUTHENTICATED), uid=f"secret:{secret_name}")

    def authenticate_token(self, token: str, audiences: Sequence[str] = (ISSUER,)) -> User | None:
        """The user of a token. Audiences only apply to service account tokens (JWTs)."""
        if not token:
            return None
        token_digest = hash_token(token)
        if hmac.compare_digest(token_digest, self._admin_digest):
            return self._admin
        if user := self._users.get(token_digest):
            return user
        return self._tokens.find_user(token, self._clock(), audiences) if token.count(".") == 2 else None

    def review_token(self, token: str, audiences: Sequence[str]) -> tuple[User, list[str]] | None:
        """k8s: the user of a token and its matching audiences; no audience means this server."""
        requested_audiences = audiences or (ISSUER,)
        user = self.authenticate_token(token, requested_audiences)
        token_audiences = self._tokens.list_audiences(token) if token.count(".") == 2 else [ISSUER]
        shared_audiences = [audience for audience in requested_audiences if audience in token_audiences]
        return (user, shared_audiences) if user is not None and shared_audiences else None

    def authenticate_header(self, authorization: str) -> User | None:
        scheme, _, token = authorization.partition(" ")
        return self.authenticate_token(token.strip()) if scheme.lower() == "bearer" else None


def list_service_account_groups(user_name: str) -> tuple[str, ...]:
    """k8s: the groups added when a service account is impersonated; empty for any other user."""
    if not user_name.startswith("system:serviceaccount:") or user_name.count(":") != 3:
        return ()
    return "system:serviceaccounts", f"system:serviceaccounts:{user_name.split(':')[2]}"


def add_implied_groups(name: str, groups: tuple[str, ...]) -> tuple[str, ...]:
    """k8s: the groups of an impersonated user, including those that the server adds."""
    all_groups = groups or list_service_account_groups(name)
    if name == ANONYMOUS:
        return all_groups if UNAUTHENTICATED in all_groups else (*all_groups, UNAUTHENTICATED)
    return all_groups if {AUTHENTICATED, UNAUTHENTICATED} & set(all_groups) else (*all_groups, AUTHENTICATED)


def impersonate(
    access: AccessChecker, user: User, headers: Mapping[bytes, bytes], raw_headers: list[tuple[bytes, bytes]]
) -> User:
    """k8s: impersonation is authorized separately for the user, each group, each extra value and the uid."""
    name = headers.get(b"impersonate-user", b"").decode(errors="replace")
    if not name:
        if any(header.startswith(b"impersonate-") for header in headers):
            raise status_errors.bad_request("requested impersonation without a user; send Impersonate-User too")
        return user
    build_attributes = partial(Attributes, "impersonate")
    if list_service_account_groups(name):
        _, _, namespace, account = name.split(":")
        access.require(user, build_attributes(resource="serviceaccounts", namespace=namespace, name=account))
    else:
        access.require(user, build_attributes(resource="users", name=name))
    groups = [value.decode(errors="replace") for header, value in raw_headers if header == b"impersonate-group"]
    for group in groups:
        access.require(user, build_attributes(resource="groups", name=group))
    extra = _read_impersonate_extra(raw_headers)
    for key, values in extra.items():
        for value in values:
            access.require(
                user, build_attributes(group=AUTHENTICATION_GROUP, resource="userextras", subresource=key, name=value)
            )
    uid = headers.get(b"impersonate-uid", b"").decode(errors="replace")
    if uid:
        access.require(user, build_attributes(group=AUTHENTICATION_GROUP, resource="uids", name=uid))
    return User(name, add_implied_groups(name, tuple(groups)), uid, extra or None)


def _read_impersonate_extra(raw_headers: list[tuple[bytes, bytes]]) -> dict[str, list[str]]:
    """k8s: keys are lowercased and then percent-decoded, unless an escape is invalid."""
    extras: dict[str, list[str]] = {}
    for header, value in raw_headers:
        name = header.decode(errors="replace").lower()
        if name.startswith(EXTRA_PREFIX):
            key = name.removeprefix(EXTRA_PREFIX)
            key = key if _INVALID_PERCENT_ESCAPE.search(key) else unquote(key)
            extras.setdefault(key, []).append(value.decode(errors="replace"))
    return extras
