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
from argosy.gitops.policy.roles import is_reserved
from argosy.kube.objects import Manifest, load_json

ADMIN: Final = "admin"
LOGIN, API_KEY = "login", "apiKey"
CAPABILITIES: Final = (LOGIN, API_KEY)
SETTINGS: Final = "argocd-cm"
SECRET: Final = "argocd-secret"  # noqa: S105 - name of the Secret
SIGNING_KEY: Final = "server.secretkey"
_PREFIX: Final = "accounts."


class TokenMark(NamedTuple):
    """argo: the stored record of a token; a time of 0 means none."""

    id: str
    issued: int
    expires: int = 0


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    is_enabled: bool = True
    capabilities: tuple[str, ...] = ()
    password: bytes = field(default=b"", repr=False)  # bcrypt hash
    changed: int = 0  # time of the last password change; older tokens are invalid
    tokens: tuple[TokenMark, ...] = ()

    def can(self, capability: str) -> bool:
        return self.is_enabled and capability in self.capabilities


def read_accounts(settings: Mapping[str, str], secrets: Mapping[str, bytes]) -> dict[str, Account]:
    """Return accounts by name; admin always exists, but may be disabled."""
    written = {ADMIN: [LOGIN]}
    enabled = {ADMIN: _is_true(settings.get("admin.enabled", ""))}
    for key, value in settings.items():
        match key.removeprefix(_PREFIX).split(".") if key.startswith(_PREFIX) else []:
            case [name] if name and not is_reserved(name):
                words = [word.strip() for word in value.split(",")]
                written[name] = [*written.get(name, ()), *(word for word in words if word in CAPABILITIES)]
            case [name, "enabled"] if name != ADMIN:
                enabled[name] = _is_true(value)
    return {
        name: _account(name, enabled.get(name, True), tuple(dict.fromkeys(capabilities)), secrets)
        for name, capabilities in sorted(written.items())
    }


def secret_key(name: str, field_name: str) -> str:
    """argo: key of an account's field in argocd-secret."""
    return f"{name}.{field_name}" if name == ADMIN else f"{_PREFIX}{name}.{field_name}"


def secret_data(secret: Manifest | None) -> dict[str, bytes]:
    data: Any = (secret or {}).get("data") or {}
    return {name: decoded for name, value in data.items() if (decoded := _decoded(value)) is not None}


def map_data(config_map: Manifest | None) -> dict[str, str]:
    data: Any = (config_map or {}).get("data") or {}
    return {name: value for name, value in data.items() if isinstance(value, str)}


def read_marks(text: bytes) -> tuple[TokenMark, ...]:
    """argo: parse a JSON list; an invalid entry is not a token."""
    if not text.strip():
        return ()
    try:
        found = load_json(text, where="tokens").value
    except UserError:
        return ()
    return tuple(_marks(found))


def marks_of(items: Any) -> tuple[TokenMark, ...]:
    """Read a list that is already parsed, such as that of a project role."""
    return tuple(_marks(items))


def _marks(items: Any) -> list[TokenMark]:
    found = []
    for each in items if isinstance(items, list) else ():
        if isinstance(each, dict) and isinstance(each.get("iat"), int):
            expires = each.get("exp") or 0
            issued = each["iat"]
            if isinstance(expires, int):
                found.append(TokenMark(str(each.get("id") or issued), issued, expires))
    return found


def _account(name: str, is_enabled: bool, capabilities: tuple[str, ...], secrets: Mapping[str, bytes]) -> Account:
    return Account(
        name,
        is_enabled,
        capabilities,
        secrets.get(secret_key(name, "password"), b"").strip(),
        read_time(secrets.get(secret_key(name, "passwordMtime"), b"")),
        read_marks(secrets.get(secret_key(name, "tokens"), b"")),
    )


def _is_true(text: str) -> bool:
    """argo: enabled unless set to false."""
    return text.strip().lower() not in ("false", "f", "0")


def read_time(text: bytes) -> int:
    try:
        return int(datetime.fromisoformat(text.decode().strip().replace("Z", "+00:00")).timestamp())
    except (ValueError, OverflowError):
        return 0


def _decoded(value: Any) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError):
        return None
