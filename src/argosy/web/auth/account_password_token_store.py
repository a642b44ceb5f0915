"""Changes accounts in the cluster: passwords, tokens, signing key. Safe with several servers and users at once.

In: a cluster and the namespace of an installation. Out: accounts, and a new token or password, shown once. Never:
overwrites a concurrent change; replaces an existing key or password unasked.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from argosy.annotations import PART_OF
from argosy.errors import Conflict, TransientError, UserError
from argosy.kube.client import Cluster
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP, SECRET
from argosy.web.auth import passwords
from argosy.web.auth.accounts import (
    ACCOUNTS_SECRET,
    ADMIN,
    API_KEY,
    SETTINGS_CONFIG_MAP,
    SIGNING_KEY,
    Account,
    TokenRecord,
    build_argocd_secret_key,
    decode_secret_data,
    parse_token_records,
    parse_unix_time,
    read_accounts,
    read_config_map_data,
)
from argosy.web.auth.derived_token_limits import NO_LIMITS, TokenLimits
from argosy.web.auth.passwords import PasswordHasher
from argosy.web.auth.signed_tokens import ISSUER, TokenClaims, check_signing_key, sign_token

INITIAL_ADMIN_SECRET: Final = "argocd-initial-admin-secret"
MAX_WRITE_ATTEMPTS: Final = 20
_KEY_BYTES: Final = 32
_RETRY_STEP_SECONDS: Final = 0.005  # seconds
SecretChanges = dict[str, bytes | None]  # None: delete the key


class AccountStore:
    def __init__(
        self, cluster: Cluster, namespace: str, clock: Clock = SYSTEM_CLOCK, hashing: PasswordHasher | None = None
    ) -> None:
        self._cluster, self._namespace, self._clock = cluster, namespace, clock
        self.hashing = hashing or PasswordHasher()

    async def list_accounts(self) -> dict[str, Account]:
        settings = await self._cluster.get(ResourceKey(*CONFIG_MAP, self._namespace, SETTINGS_CONFIG_MAP))
        return read_accounts(
            read_config_map_data(settings), decode_secret_data(await self._load_secret(ACCOUNTS_SECRET))
        )

    async def get_account(self, name: str) -> Account:
        account = (await self.list_accounts()).get(name)
        if account is None:
            raise UserError(f"account {name!r} not found; run 'argosy account list'")
        return account

    # -- first start --------------------------------------------------------------------------------------------

    async def ensure_key_and_admin_password(self) -> bool:
        """Create the signing key and the admin password if they are missing. True if the password is new."""
        await self._create_secret_if_missing(ACCOUNTS_SECRET, {})
        await self._patch_account_secret(self._add_signing_key)
        admin = (await self.list_accounts())[ADMIN]
        if admin.password_hash or not admin.is_enabled:
            return False
        await self._create_secret_if_missing(INITIAL_ADMIN_SECRET, {"password": passwords.generate_password().encode()})
        await self._fill_initial_secret()
        password = decode_secret_data(await self._load_secret(INITIAL_ADMIN_SECRET)).get("password")
        if not password:
            raise UserError(f"Secret {INITIAL_ADMIN_SECRET} has no password; delete the Secret and restart the server")
        password_hash = await self.hashing.hash_password(password.decode())
        timestamp = self._format_now()

        def set_first_password(data: Mapping[str, bytes]) -> SecretChanges:
            if data.get("admin.password"):
                return {}
            return {"admin.password": password_hash, "admin.passwordMtime": timestamp}

        return await self._patch_account_secret(set_first_password)

    async def _fill_initial_secret(self) -> None:
        """Fill an empty initial Secret, which the installation creates for a server that may not create Secrets."""
        secret = await self._load_secret(INITIAL_ADMIN_SECRET)
        if secret is None or decode_secret_data(secret):
            return
        metadata = {"resourceVersion": secret["metadata"]["resourceVersion"]}
        patch = {
            "metadata": metadata,
            "data": _encode_secret_data({"password": passwords.generate_password().encode()}),
        }
        with contextlib.suppress(Conflict):  # another server was first
            await self._cluster.patch(ResourceKey(*SECRET, self._namespace, INITIAL_ADMIN_SECRET), patch)

    async def load_initial_password(self) -> str:
        password = decode_secret_data(await self._load_secret(INITIAL_ADMIN_SECRET)).get("password")
        if not password:
            raise UserError(f"Secret {INITIAL_ADMIN_SECRET} not found; it was deleted, or no server has started yet")
        return password.decode()

    # -- changes ------------------------------------------------------------------------------------------------

    async def set_password(self, name: str, password: str) -> None:
        """Set the password. All earlier sessions and tokens of the account become invalid."""
        await self.get_account(name)
        settings = await self._cluster.get(ResourceKey(*CONFIG_MAP, self._namespace, SETTINGS_CONFIG_MAP))
        passwords.check_password_pattern(password, read_config_map_data(settings).get("passwordPattern", ""))
        password_hash = await self.hashing.hash_password(password)

        def build_change(data: Mapping[str, bytes]) -> SecretChanges:
            """Date the change one second after the previous one, so that tokens issued in this second are invalid."""
            previous_change = parse_unix_time(data.get(build_argocd_secret_key(name, "passwordMtime"), b""))
            changed_at = datetime.fromtimestamp(max(self.now(), previous_change + 1), UTC)
            return {
                build_argocd_secret_key(name, "password"): password_hash,
                build_argocd_secret_key(name, "passwordMtime"): format_timestamp(changed_at).encode(),
            }

        await self._patch_account_secret(build_change)

    async def add_token(
        self, name: str, *, lifetime_seconds: int = 0, token_id: str = "", limits: TokenLimits = NO_LIMITS
    ) -> str:
        """Issue a token and return it. Only its id is stored."""
        account = await self.get_account(name)
        if not account.is_enabled:
            raise UserError(f"account {name!r} is disabled; enable it first")
        if API_KEY not in account.capabilities:
            raise UserError(f"account {name!r} does not have apiKey capability; add it to accounts.{name} in argocd-cm")
        if lifetime_seconds < 0:
            raise UserError("token lifetime must not be negative; use 0 for no expiry")
        record = self._build_token_record(account.password_changed_at, lifetime_seconds, token_id)
        limits.check_expiry(record)

        def append_record(data: Mapping[str, bytes]) -> SecretChanges:
            check_signing_key(data.get(SIGNING_KEY, b""))
            records = parse_token_records(data.get(build_argocd_secret_key(name, "tokens"), b""))
            if any(existing.id == record.id for existing in records):
                raise UserError(f"account {name!r} already has a token with id {record.id!r}; choose another id")
            return {build_argocd_secret_key(name, "tokens"): _serialize_token_records((*records, record))}

        await self._patch_account_secret(append_record)
        key = decode_secret_data(await self._load_secret(ACCOUNTS_SECRET)).get(SIGNING_KEY, b"")
        subject = f"{name}:{API_KEY}"
        claims = TokenClaims(
            ISSUER, subject, record.id, record.issued_at, record.expires_at, record.issued_at, parents=limits.parents
        )
        return sign_token(claims, key)

    async def remove_token(self, name: str, token_id: str) -> None:
        await self.get_account(name)

        def drop_record(data: Mapping[str, bytes]) -> SecretChanges:
            records = parse_token_records(data.get(build_argocd_secret_key(name, "tokens"), b""))
            remaining = tuple(record for record in records if record.id != token_id)
            if remaining == records:
                raise UserError(f"account {name!r} has no token with id {token_id!r}; run 'argosy account get'")
            return {build_argocd_secret_key(name, "tokens"): _serialize_token_records(remaining)}

        await self._patch_account_secret(drop_record)

    def _build_token_record(self, password_changed_at: int, lifetime_seconds: int, token_id: str) -> TokenRecord:
        """Date the token after the last password change: older tokens are invalid."""
        issued = max(self.now(), password_changed_at + 1)
        return TokenRecord(
            token_id or generate_token_id(), issued, issued + lifetime_seconds if lifetime_seconds else 0
        )

    # -- cluster ------------------------------------------------------------------------------------------------

    async def _load_secret(self, name: str) -> Manifest | None:
        return await self._cluster.get(ResourceKey(*SECRET, self._namespace, name))

    async def _create_secret_if_missing(self, name: str, data: Mapping[str, bytes]) -> None:
        """Create a Secret if it does not exist."""
        if await self._load_secret(name) is not None:
            return
        labels = {"app.kubernetes.io/name": name, PART_OF: "argocd"}
        metadata = {"name": name, "namespace": self._namespace, "labels": labels}
        try:
            await self._cluster.create(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": metadata,
                    "type": "Opaque",
                    "data": _encode_secret_data(data),
                }
            )
        except Conflict:  # created concurrently: wait until it can be read
            for attempt in range(MAX_WRITE_ATTEMPTS):
                if await self._load_secret(name) is not None:
                    return
                await asyncio.sleep(_RETRY_STEP_SECONDS * attempt)

    async def _patch_account_secret(self, change: Callable[[Mapping[str, bytes]], SecretChanges]) -> bool:
        """Patch argocd-secret with the result of `change`; retry on a write conflict."""
        secret: Manifest | None = None
        for attempt in range(MAX_WRITE_ATTEMPTS):
            await asyncio.sleep(_RETRY_STEP_SECONDS * attempt)  # the concurrent write may not be readable yet
            secret = await self._load_secret(ACCOUNTS_SECRET)
            if secret is None:
                continue
            data = change(decode_secret_data(secret))
            if not data:
                return False
            version = secret["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "data": _encode_secret_data(data)}
            try:
                await self._cluster.patch(ResourceKey(*SECRET, self._namespace, ACCOUNTS_SECRET), patch)
            except Conflict:
                continue
            return True
        if secret is None:
            raise UserError(f"Secret {ACCOUNTS_SECRET} not found in {self._namespace}; start the server once")
        raise TransientError(f"Secret {ACCOUNTS_SECRET} gave up after {MAX_WRITE_ATTEMPTS} write conflicts; try again")

    def _add_signing_key(self, data: Mapping[str, bytes]) -> SecretChanges:
        if data.get(SIGNING_KEY):
            return {}
        return {SIGNING_KEY: base64.b64encode(secrets.token_bytes(_KEY_BYTES))}

    def now(self) -> int:
        return int(self._clock.now().timestamp())

    def _format_now(self) -> bytes:
        return format_timestamp(self._clock.now()).encode()


def generate_token_id() -> str:
    """argo: a random id in UUID format."""
    text = secrets.token_hex(16)
    return "-".join((text[:8], text[8:12], f"4{text[13:16]}", f"a{text[17:20]}", text[20:]))


def _encode_secret_data(data: Mapping[str, bytes | None]) -> dict[str, Any]:
    return {name: None if value is None else base64.b64encode(value).decode() for name, value in data.items()}


def _serialize_token_records(records: tuple[TokenRecord, ...]) -> bytes:
    items = [
        {"id": record.id, "iat": record.issued_at, **({"exp": record.expires_at} if record.expires_at else {})}
        for record in records
    ]
    return json.dumps(items, separators=(",", ":")).encode()
