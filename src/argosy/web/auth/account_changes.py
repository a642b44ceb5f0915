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

from argosy.errors import Conflict, TransientError, UserError
from argosy.kube.client import Cluster
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps import written
from argosy.web.auth import passwords
from argosy.web.auth.accounts import (
    ADMIN,
    API_KEY,
    SECRET,
    SETTINGS,
    SIGNING_KEY,
    Account,
    TokenMark,
    map_data,
    read_accounts,
    read_marks,
    read_time,
    secret_data,
    secret_key,
)
from argosy.web.auth.passwords import Hashing
from argosy.web.auth.token_limits import NO_LIMITS, TokenLimits
from argosy.web.auth.tokens import ISSUER, Claims, sign

INITIAL: Final = "argocd-initial-admin-secret"
ATTEMPTS: Final = 20
_KEY_BYTES: Final = 32
_MOMENT: Final = 0.005  # seconds
Data = dict[str, bytes | None]  # None: delete the key


class AccountBook:
    def __init__(
        self, cluster: Cluster, namespace: str, clock: Clock = SYSTEM_CLOCK, hashing: Hashing | None = None
    ) -> None:
        self._cluster, self._namespace, self._clock = cluster, namespace, clock
        self.hashing = hashing or Hashing()

    async def all(self) -> dict[str, Account]:
        settings = await self._cluster.get(ResourceKey("", "ConfigMap", self._namespace, SETTINGS))
        return read_accounts(map_data(settings), secret_data(await self._secret(SECRET)))

    async def one(self, name: str) -> Account:
        found = (await self.all()).get(name)
        if found is None:
            raise UserError(f"account {name!r} not found; run 'argosy account list'")
        return found

    # -- first start --------------------------------------------------------------------------------------------

    async def prepare(self) -> bool:
        """Create the signing key and the admin password if they are missing. True if the password is new."""
        await self._create(SECRET, {})
        await self._change(self._with_key)
        admin = (await self.all())[ADMIN]
        if admin.password or not admin.is_enabled:
            return False
        await self._create(INITIAL, {"password": passwords.initial().encode()})
        await self._fill_initial()
        password = secret_data(await self._secret(INITIAL)).get("password")
        if not password:
            raise UserError(f"Secret {INITIAL} has no password; delete the Secret and restart the server")
        made = await self.hashing.hashed(password.decode())
        at = self._now_written()

        def first(data: Mapping[str, bytes]) -> Data:
            if data.get("admin.password"):
                return {}
            return {"admin.password": made, "admin.passwordMtime": at}

        return await self._change(first)

    async def _fill_initial(self) -> None:
        """Fill an empty initial Secret, which the installation creates for a server that may not create Secrets."""
        found = await self._secret(INITIAL)
        if found is None or secret_data(found):
            return
        metadata = {"resourceVersion": found["metadata"]["resourceVersion"]}
        patch = {"metadata": metadata, "data": _encoded({"password": passwords.initial().encode()})}
        with contextlib.suppress(Conflict):  # another server was first
            await self._cluster.patch(ResourceKey("", "Secret", self._namespace, INITIAL), patch)

    async def initial_password(self) -> str:
        found = secret_data(await self._secret(INITIAL)).get("password")
        if not found:
            raise UserError(f"Secret {INITIAL} not found; it was deleted, or no server has started yet")
        return found.decode()

    # -- changes ------------------------------------------------------------------------------------------------

    async def set_password(self, name: str, password: str) -> None:
        """Set the password. All earlier sessions and tokens of the account become invalid."""
        await self.one(name)
        settings = await self._cluster.get(ResourceKey("", "ConfigMap", self._namespace, SETTINGS))
        passwords.check_rule(password, map_data(settings).get("passwordPattern", ""))
        made = await self.hashing.hashed(password)

        def changed(data: Mapping[str, bytes]) -> Data:
            """Date the change one second after the previous one, so that tokens issued in this second are invalid."""
            before = read_time(data.get(secret_key(name, "passwordMtime"), b""))
            at = datetime.fromtimestamp(max(self.now(), before + 1), UTC)
            return {secret_key(name, "password"): made, secret_key(name, "passwordMtime"): written(at).encode()}

        await self._change(changed)

    async def add_token(
        self, name: str, *, seconds: int = 0, token_id: str = "", limits: TokenLimits = NO_LIMITS
    ) -> str:
        """Issue a token and return it. Only its id is stored."""
        account = await self.one(name)
        if not account.is_enabled:
            raise UserError(f"account {name!r} is disabled; enable it first")
        if API_KEY not in account.capabilities:
            raise UserError(f"account {name!r} does not have apiKey capability; add it to accounts.{name} in argocd-cm")
        if seconds < 0:
            raise UserError("token lifetime must not be negative; use 0 for no expiry")
        mark = self._mark(account.changed, seconds, token_id)
        limits.check_end(mark)

        def added(data: Mapping[str, bytes]) -> Data:
            marks = read_marks(data.get(secret_key(name, "tokens"), b""))
            if any(each.id == mark.id for each in marks):
                raise UserError(f"account {name!r} already has a token with id {mark.id!r}; choose another id")
            return {secret_key(name, "tokens"): _written_marks((*marks, mark))}

        await self._change(added)
        key = secret_data(await self._secret(SECRET)).get(SIGNING_KEY, b"")
        subject = f"{name}:{API_KEY}"
        claims = Claims(ISSUER, subject, mark.id, mark.issued, mark.expires, mark.issued, parents=limits.parents)
        return sign(claims, key)

    async def remove_token(self, name: str, token_id: str) -> None:
        await self.one(name)

        def removed(data: Mapping[str, bytes]) -> Data:
            marks = read_marks(data.get(secret_key(name, "tokens"), b""))
            left = tuple(each for each in marks if each.id != token_id)
            if left == marks:
                raise UserError(f"account {name!r} has no token with id {token_id!r}; run 'argosy account get'")
            return {secret_key(name, "tokens"): _written_marks(left)}

        await self._change(removed)

    def _mark(self, changed: int, seconds: int, token_id: str) -> TokenMark:
        """Date the token after the last password change: older tokens are invalid."""
        issued = max(self.now(), changed + 1)
        return TokenMark(token_id or new_id(), issued, issued + seconds if seconds else 0)

    # -- cluster ------------------------------------------------------------------------------------------------

    async def _secret(self, name: str) -> Manifest | None:
        return await self._cluster.get(ResourceKey("", "Secret", self._namespace, name))

    async def _create(self, name: str, data: Mapping[str, bytes]) -> None:
        """Create a Secret if it does not exist."""
        if await self._secret(name) is not None:
            return
        labels = {"app.kubernetes.io/name": name, "app.kubernetes.io/part-of": "argocd"}
        metadata = {"name": name, "namespace": self._namespace, "labels": labels}
        try:
            await self._cluster.create(
                {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": _encoded(data)}
            )
        except Conflict:  # created concurrently: wait until it can be read
            for attempt in range(ATTEMPTS):
                if await self._secret(name) is not None:
                    return
                await asyncio.sleep(_MOMENT * attempt)

    async def _change(self, change: Callable[[Mapping[str, bytes]], Data]) -> bool:
        """Patch argocd-secret with the result of `change`; retry on a write conflict."""
        found: Manifest | None = None
        for attempt in range(ATTEMPTS):
            await asyncio.sleep(_MOMENT * attempt)  # the concurrent write may not be readable yet
            found = await self._secret(SECRET)
            if found is None:
                continue
            data = change(secret_data(found))
            if not data:
                return False
            version = found["metadata"]["resourceVersion"]
            patch = {"metadata": {"resourceVersion": version}, "data": _encoded(data)}
            try:
                await self._cluster.patch(ResourceKey("", "Secret", self._namespace, SECRET), patch)
            except Conflict:
                continue
            return True
        if found is None:
            raise UserError(f"Secret {SECRET} not found in {self._namespace}; start the server once")
        raise TransientError(f"Secret {SECRET} gave up after {ATTEMPTS} write conflicts; try again")

    def _with_key(self, data: Mapping[str, bytes]) -> Data:
        if data.get(SIGNING_KEY):
            return {}
        return {SIGNING_KEY: base64.b64encode(secrets.token_bytes(_KEY_BYTES))}

    def now(self) -> int:
        return int(self._clock.now().timestamp())

    def _now_written(self) -> bytes:
        return written(self._clock.now()).encode()


def new_id() -> str:
    """argo: a random id in UUID format."""
    text = secrets.token_hex(16)
    return "-".join((text[:8], text[8:12], f"4{text[13:16]}", f"a{text[17:20]}", text[20:]))


def _encoded(data: Mapping[str, bytes | None]) -> dict[str, Any]:
    return {name: None if value is None else base64.b64encode(value).decode() for name, value in data.items()}


def _written_marks(marks: tuple[TokenMark, ...]) -> bytes:
    items = [{"id": each.id, "iat": each.issued, **({"exp": each.expires} if each.expires else {})} for each in marks]
    return json.dumps(items, separators=(",", ":")).encode()
