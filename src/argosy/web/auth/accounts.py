"""Reads accounts from argocd-cm and argocd-secret.

In: their data. Out: Account values. Never: raises; grants anything because of a value that cannot be read.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, NamedTuple

from argosy.errors import UserError
from argosy.gitops.application.sync_policy import parse_duration
from argosy.gitops.policy.builtin_and_project_roles import is_reserved
from argosy.kube.objects import Manifest, read_json

ADMIN: Final = "admin"
LOGIN, API_KEY = "login", "apiKey"
CAPABILITIES: Final = (LOGIN, API_KEY)
SETTINGS_CONFIG_MAP: Final = "argocd-cm"
ACCOUNTS_SECRET: Final = "argocd-secret"
SIGNING_KEY: Final = "server.secretkey"
MAX_SESSION_SECONDS: Final = 24 * 3600
_PREFIX: Final = "accounts."


class TokenRecord(NamedTuple):
    """argo: the stored record of a token; a time of 0 means none."""

    id: str
    issued_at: int
    expires_at: int = 0


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    is_enabled: bool = True
    capabilities: tuple[str, ...] = ()
    password_hash: bytes = field(default=b"", repr=False)  # bcrypt hash
    password_changed_at: int = 0  # time of the last password change; older tokens are invalid
    tokens: tuple[TokenRecord, ...] = ()

    def has_capability(self, capability: str) -> bool:
        return self.is_enabled and capability in self.capabilities


def read_accounts(settings: Mapping[str, str], secrets: Mapping[str, bytes]) -> dict[str, Account]:
    """Return accounts by name; admin always exists, but may be disabled."""
    capabilities_by_name = {ADMIN: [LOGIN]}
    enabled_by_name = {ADMIN: _is_not_false(settings.get("admin.enabled", ""))}
    for key, value in settings.items():
        match key.removeprefix(_PREFIX).split(".") if key.startswith(_PREFIX) else []:
            case [name] if name and not is_reserved(name):
                words = [word.strip() for word in value.split(",")]
                capabilities_by_name[name] = [
                    *capabilities_by_name.get(name, ()),
                    *(word for word in words if word in CAPABILITIES),
                ]
            case [name, "enabled"] if name != ADMIN:
                enabled_by_name[name] = _is_not_false(value)
    return {
        name: _build_account(name, enabled_by_name.get(name, True), tuple(dict.fromkeys(capabilities)), secrets)
        for name, capabilities in sorted(capabilities_by_name.items())
    }


def read_session_seconds(settings: Mapping[str, str]) -> int:
    """argo: users.session.duration; at most one day."""
    text = settings.get("users.session.duration", "").strip()
    try:
        return max(1, min(MAX_SESSION_SECONDS, int(parse_duration(text)))) if text else MAX_SESSION_SECONDS
    except ValueError:
        return MAX_SESSION_SECONDS


def build_argocd_secret_key(name: str, field_name: str) -> str:
    """argo: key of an account's field in argocd-secret."""
    return f"{name}.{field_name}" if name == ADMIN else f"{_PREFIX}{name}.{field_name}"


def decode_secret_data(secret: Manifest | None) -> dict[str, bytes]:
    data: Any = (secret or {}).get("data") or {}
    return {name: decoded for name, value in data.items() if (decoded := _decode_base64(value)) is not None}


def read_config_map_data(config_map: Manifest | None) -> dict[str, str]:
    data: Any = (config_map or {}).get("data") or {}
    return {name: value for name, value in data.items() if isinstance(value, str)}


def parse_token_records(text: bytes) -> tuple[TokenRecord, ...]:
    """argo: parse a JSON list; an invalid entry is not a token."""
    if not text.strip():
        return ()
    try:
        items = read_json(text, where="tokens").value
    except UserError:
        return ()
    return tuple(_list_token_records(items))


def read_role_token_records(items: Any) -> tuple[TokenRecord, ...]:
    """Read a list that is already parsed, such as that of a project role."""
    return tuple(_list_token_records(items))


def _list_token_records(items: Any) -> list[TokenRecord]:
    records = []
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(item.get("iat"), int):
            expires = item.get("exp") or 0
            issued = item["iat"]
            if isinstance(expires, int):
                records.append(TokenRecord(str(item.get("id") or issued), issued, expires))
    return records


def _build_account(name: str, is_enabled: bool, capabilities: tuple[str, ...], secrets: Mapping[str, bytes]) -> Account:
    return Account(
        name,
        is_enabled,
        capabilities,
        secrets.get(build_argocd_secret_key(name, "password"), b"").strip(),
        parse_unix_time(secrets.get(build_argocd_secret_key(name, "passwordMtime"), b"")),
        parse_token_records(secrets.get(build_argocd_secret_key(name, "tokens"), b"")),
    )


def _is_not_false(text: str) -> bool:
    """argo: enabled unless set to false."""
    return text.strip().lower() not in ("false", "f", "0")


def parse_unix_time(text: bytes) -> int:
    try:
        return int(datetime.fromisoformat(text.decode().strip().replace("Z", "+00:00")).timestamp())
    except (ValueError, OverflowError):
        return 0


def _decode_base64(value: Any) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return None
