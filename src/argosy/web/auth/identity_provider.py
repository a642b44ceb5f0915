"""OIDC provider settings: `oidc.config` of argocd-cm.

In: settings, and a function that looks up Secret values. Out: an OidcProvider, or an error message. Never: raises; puts
a secret into a message.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

from argosy.errors import UserError
from argosy.gitops.application.sync_policy import seconds_of
from argosy.kube.objects import Manifest, load
from argosy.web.auth.accounts import SECRET, secret_data

USUAL_SCOPES: Final = ("openid", "profile", "email", "groups")  # argo
PLACEHOLDER: Final = "https://known.example"  # stands in for a Secret value
WHERE: Final = "argocd-cm: oidc.config"


@dataclass(frozen=True, slots=True)
class Provider:
    issuer: str
    client: str
    name: str = ""  # label of the login button
    secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = USUAL_SCOPES
    audiences: tuple[str, ...] = ()  # argo: allowedAudiences; empty: our client id
    authorities: str = ""  # argo: rootCA, in addition to the system CAs
    id_token_claims: str = ""  # argo: requestedIDTokenClaims, as the JSON to send
    user_info_url: str = ""  # argo: userinfo endpoint for groups, with enableUserInfoGroups
    user_info_seconds: float = 0.0  # argo: userInfoCacheExpiration; 0: groups are valid as long as the session

    @property
    def title(self) -> str:
        """Id of the provider: another URL or client means other users or other groups."""
        return f"{self.issuer} {self.client} {self.user_info_url}".rstrip()


def secret_value(reference: str, find_secret: Callable[[str], Manifest | None]) -> str | None:
    """argo: `$key` refers to argocd-secret, `$name:key` to another Secret labelled as part of Argo CD."""
    name, _, key = reference.removeprefix("$").rpartition(":")
    found = find_secret(name or SECRET) or {}
    labels = (found.get("metadata") or {}).get("labels") or {}
    if name and labels.get("app.kubernetes.io/part-of") != "argocd":
        return None
    value = secret_data(found).get(key)
    return value.decode(errors="replace").strip() if value is not None else None


def referenced_secrets(settings: Mapping[str, str]) -> frozenset[str]:
    """Names of the Secrets that `oidc.config` refers to."""
    found: set[str] = set()

    def note(reference: str) -> str:
        found.add(reference.removeprefix("$").rpartition(":")[0] or SECRET)
        return PLACEHOLDER

    read_provider(settings, note)
    return frozenset(found)


def read_provider(settings: Mapping[str, str], secret: Callable[[str], str | None]) -> tuple[Provider | None, str]:
    """Return the provider and an error message. None and "": no provider is configured."""
    text = settings.get("oidc.config", "")
    if not text.strip():
        return None, ""
    try:
        found = load(text, where=WHERE)
    except UserError as error:  # its message may quote a clientSecret
        return None, str(UserError("is not valid YAML; correct this line", where=WHERE, line=error.line))
    if not isinstance(found, dict):
        return None, f"{WHERE}: is not a map; set issuer, clientID and clientSecret"
    try:
        return _provider(found, secret), ""
    except UserError as error:
        return None, str(error)


def _provider(found: Mapping[str, Any], secret: Callable[[str], str | None]) -> Provider:
    issuer = _text(found, "issuer", secret)
    client = _text(found, "clientID", secret)
    parts = _split_address(issuer)
    if parts is None or not parts.hostname or parts.query or parts.fragment:
        raise UserError("issuer must begin with https:// and have no query or fragment", where=WHERE)
    if not client:
        raise UserError("clientID is missing; add it", where=WHERE)
    scopes = _texts(found, "requestedScopes") or USUAL_SCOPES
    user_info_url = _user_info_url(found, issuer, secret)
    return Provider(
        issuer,
        client,
        _text(found, "name", secret) or parts.hostname,
        _text(found, "clientSecret", secret),
        scopes if "openid" in scopes else ("openid", *scopes),
        _texts(found, "allowedAudiences"),
        _text(found, "rootCA", secret),
        _requested_claims(found),
        user_info_url,
        _user_info_seconds(found) if user_info_url else 0.0,  # argo: ignored without enableUserInfoGroups
    )


def _user_info_url(found: Mapping[str, Any], issuer: str, secret: Callable[[str], str | None]) -> str:
    """argo: userInfoBaseURL or the issuer, plus userInfoPath. Empty: groups come from the ID token."""
    is_enabled = found.get("enableUserInfoGroups") or False
    if not isinstance(is_enabled, bool):
        raise UserError("enableUserInfoGroups is neither true nor false; correct it", where=WHERE)
    if not is_enabled:
        return ""
    path = _text(found, "userInfoPath", secret)
    if not path:
        raise UserError("enableUserInfoGroups needs userInfoPath; add it, for example /userinfo", where=WHERE)
    base = _text(found, "userInfoBaseURL", secret) or issuer
    parts, base_parts = _split_address(base + path), _split_address(base)
    if parts is None or base_parts is None or parts.netloc != base_parts.netloc:
        raise UserError(
            "the userinfo address must begin with https://, and userInfoPath with a slash; correct them", where=WHERE
        )
    return base + path


def _user_info_seconds(found: Mapping[str, Any]) -> float:
    text = _text(found, "userInfoCacheExpiration", lambda reference: reference)
    try:
        return seconds_of(text) if text else 0.0
    except ValueError as error:
        raise UserError(f"userInfoCacheExpiration: {error}", where=WHERE) from None


def _split_address(text: str) -> SplitResult | None:
    """Split an https:// URL with a host and without a user; None if the text is something else."""
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme == "https" and parts.hostname and not parts.username and parts.port != 0
    except ValueError:  # invalid brackets, characters or port
        return None
    return parts if is_usable else None


def _requested_claims(found: Mapping[str, Any]) -> str:
    """Return the `claims` parameter. Standard providers put groups into an ID token only if requested."""
    claims = found.get("requestedIDTokenClaims") or {}
    if not isinstance(claims, dict) or not all(each is None or isinstance(each, dict) for each in claims.values()):
        raise UserError("requestedIDTokenClaims is not a map of claims; use groups: {essential: true}", where=WHERE)
    return json.dumps({"id_token": claims}, separators=(",", ":")) if claims else ""


def _text(found: Mapping[str, Any], name: str, secret: Callable[[str], str | None]) -> str:
    value = found.get(name) or ""
    if not isinstance(value, str):
        raise UserError(f"{name} is not a string", where=WHERE)
    if not value.startswith("$"):
        return value.strip()
    looked_up = secret(value)
    if looked_up is None:
        raise UserError(f"{name} refers to a missing Secret key; add it to argocd-secret", where=WHERE)
    return looked_up


def _texts(found: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = found.get(name) or []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise UserError(f"{name} is not a list of strings", where=WHERE)
    return tuple(value)
