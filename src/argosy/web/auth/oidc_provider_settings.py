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

from argosy.annotations import PART_OF
from argosy.errors import UserError
from argosy.gitops.application.sync_policy import parse_duration
from argosy.kube.objects import Manifest, read_yaml
from argosy.web.auth.accounts import ACCOUNTS_SECRET, decode_secret_data

DEFAULT_SCOPES: Final = ("openid", "profile", "email", "groups")  # argo
PLACEHOLDER: Final = "https://known.example"  # stands in for a Secret value
SETTING_LOCATION: Final = "argocd-cm: oidc.config"


@dataclass(frozen=True, slots=True)
class OidcProvider:
    issuer: str
    client_id: str
    name: str = ""  # label of the login button
    client_secret: str = field(default="", repr=False)
    scopes: tuple[str, ...] = DEFAULT_SCOPES
    audiences: tuple[str, ...] = ()  # argo: allowedAudiences; empty: our client id
    root_ca: str = ""  # argo: rootCA, in addition to the system CAs
    id_token_claims: str = ""  # argo: requestedIDTokenClaims, as the JSON to send
    user_info_url: str = ""  # argo: userinfo endpoint for groups, with enableUserInfoGroups
    user_info_cache_seconds: float = 0.0  # argo: userInfoCacheExpiration; 0: groups are valid as long as the session

    @property
    def provider_id(self) -> str:
        """Id of the provider: another URL or client means other users or other groups."""
        return f"{self.issuer} {self.client_id} {self.user_info_url}".rstrip()


def find_secret_value(reference: str, find_secret: Callable[[str], Manifest | None]) -> str | None:
    """argo: `$key` refers to argocd-secret, `$name:key` to another Secret labelled as part of Argo CD."""
    name, _, key = reference.removeprefix("$").rpartition(":")
    secret = find_secret(name or ACCOUNTS_SECRET) or {}
    labels = (secret.get("metadata") or {}).get("labels") or {}
    if name and labels.get(PART_OF) != "argocd":
        return None
    value = decode_secret_data(secret).get(key)
    return value.decode(errors="replace").strip() if value is not None else None


def list_referenced_secrets(settings: Mapping[str, str]) -> frozenset[str]:
    """Names of the Secrets that `oidc.config` refers to."""
    names: set[str] = set()

    def record_reference(reference: str) -> str:
        names.add(reference.removeprefix("$").rpartition(":")[0] or ACCOUNTS_SECRET)
        return PLACEHOLDER

    read_provider(settings, record_reference)
    return frozenset(names)


def read_provider(
    settings: Mapping[str, str], find_value: Callable[[str], str | None]
) -> tuple[OidcProvider | None, str]:
    """Return the provider and an error message. None and "": no provider is configured."""
    text = settings.get("oidc.config", "")
    if not text.strip():
        return None, ""
    try:
        config = read_yaml(text, where=SETTING_LOCATION)
    except UserError as error:  # its message may quote a clientSecret
        return None, str(UserError("is not valid YAML; correct this line", where=SETTING_LOCATION, line=error.line))
    if not isinstance(config, dict):
        return None, f"{SETTING_LOCATION}: is not a map; set issuer, clientID and clientSecret"
    try:
        return _build_provider(config, find_value), ""
    except UserError as error:
        return None, str(error)


def _build_provider(config: Mapping[str, Any], find_value: Callable[[str], str | None]) -> OidcProvider:
    issuer = _read_text(config, "issuer", find_value)
    client = _read_text(config, "clientID", find_value)
    parts = _split_https_url(issuer)
    if parts is None or not parts.hostname or parts.query or parts.fragment:
        raise UserError("issuer must begin with https:// and have no query or fragment", where=SETTING_LOCATION)
    if not client:
        raise UserError("clientID is missing; add it", where=SETTING_LOCATION)
    scopes = _read_text_list(config, "requestedScopes") or DEFAULT_SCOPES
    user_info_url = _read_user_info_url(config, issuer, find_value)
    return OidcProvider(
        issuer,
        client,
        _read_text(config, "name", find_value) or parts.hostname,
        _read_text(config, "clientSecret", find_value),
        scopes if "openid" in scopes else ("openid", *scopes),
        _read_text_list(config, "allowedAudiences"),
        _read_text(config, "rootCA", find_value),
        _read_requested_claims(config),
        user_info_url,
        _read_user_info_cache_seconds(config) if user_info_url else 0.0,  # argo: ignored without enableUserInfoGroups
    )


def _read_user_info_url(config: Mapping[str, Any], issuer: str, find_value: Callable[[str], str | None]) -> str:
    """argo: userInfoBaseURL or the issuer, plus userInfoPath. Empty: groups come from the ID token."""
    is_enabled = config.get("enableUserInfoGroups") or False
    if not isinstance(is_enabled, bool):
        raise UserError("enableUserInfoGroups is neither true nor false; correct it", where=SETTING_LOCATION)
    if not is_enabled:
        return ""
    path = _read_text(config, "userInfoPath", find_value)
    if not path:
        raise UserError(
            "enableUserInfoGroups needs userInfoPath; add it, for example /userinfo", where=SETTING_LOCATION
        )
    base = _read_text(config, "userInfoBaseURL", find_value) or issuer
    parts, base_parts = _split_https_url(base + path), _split_https_url(base)
    if parts is None or base_parts is None or parts.netloc != base_parts.netloc:
        raise UserError(
            "the userinfo address must begin with https://, and userInfoPath with a slash; correct them",
            where=SETTING_LOCATION,
        )
    return base + path


def _read_user_info_cache_seconds(config: Mapping[str, Any]) -> float:
    text = _read_text(config, "userInfoCacheExpiration", lambda reference: reference)
    try:
        return parse_duration(text) if text else 0.0
    except ValueError as error:
        raise UserError(f"userInfoCacheExpiration: {error}", where=SETTING_LOCATION) from None


def _split_https_url(text: str) -> SplitResult | None:
    """Split an https:// URL with a host and without a user; None if the text is something else."""
    try:
        parts = urlsplit(text)
        is_usable = parts.scheme == "https" and parts.hostname and not parts.username and parts.port != 0
    except ValueError:  # invalid brackets, characters or port
        return None
    return parts if is_usable else None


def _read_requested_claims(config: Mapping[str, Any]) -> str:
    """Return the `claims` parameter. Standard providers put groups into an ID token only if requested."""
    claims = config.get("requestedIDTokenClaims") or {}
    if not isinstance(claims, dict) or not all(claim is None or isinstance(claim, dict) for claim in claims.values()):
        raise UserError(
            "requestedIDTokenClaims is not a map of claims; use groups: {essential: true}", where=SETTING_LOCATION
        )
    return json.dumps({"id_token": claims}, separators=(",", ":")) if claims else ""


def _read_text(config: Mapping[str, Any], name: str, find_value: Callable[[str], str | None]) -> str:
    value = config.get(name) or ""
    if not isinstance(value, str):
        raise UserError(f"{name} is not a string", where=SETTING_LOCATION)
    if not value.startswith("$"):
        return value.strip()
    secret_value = find_value(value)
    if secret_value is None:
        raise UserError(f"{name} refers to a missing Secret key; add it to argocd-secret", where=SETTING_LOCATION)
    return secret_value


def _read_text_list(config: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = config.get(name) or []
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UserError(f"{name} is not a list of strings", where=SETTING_LOCATION)
    return tuple(value)
