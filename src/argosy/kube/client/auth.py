"""Provides the credentials of a connection and renews them: an Authorization header and an SSLContext.

In: a Connection. Out: a `ClientIdentity`. Never: writes a secret to disk or to the log.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from pathlib import Path
from typing import NamedTuple

from argosy.errors import TransientError, UserError
from argosy.kube.client.connection_settings import Connection, ExecPlugin
from argosy.kube.client.exec_plugin import ExecCredential, run_plugin
from argosy.kube.client.tls import build_ssl_context

TOKEN_REREAD_INTERVAL_SECONDS = 60.0  # kubelets rotate tokens at 80 % of their life, an hour or more
EXPIRY_MARGIN_SECONDS = 10.0  # a credential must still be valid when the request arrives


class ClientIdentity(NamedTuple):
    authorization: str  # the value of the Authorization header; empty: no header
    ssl: ssl.SSLContext | None


class CredentialProvider:
    """Caches the identity until it expires. Concurrent callers share one run of an exec plugin. Must be closed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._identity: ClientIdentity | None = None
        self._expires_at: float | None = None  # Unix time, from the plugin; None: does not expire
        self._token_read_at: float | None = None  # monotonic clock
        self._renewal: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait({self._renewal})

    async def get_identity(self) -> ClientIdentity:
        if self._identity is None or self._is_expired():
            await self._wait_for_renewal()
        assert self._identity is not None
        return self._identity

    async def renew_after_401(self, identity: ClientIdentity) -> bool:
        """Renew after the server answered 401 to `identity`. True if there is a new identity to retry with."""
        if not (self._connection.exec_plugin or self._connection.token_file):
            return False
        if self._identity is identity:
            await self._wait_for_renewal()
        return self._identity != identity

    async def _wait_for_renewal(self) -> None:
        """Start or join a renewal. Cancelling a caller does not cancel it, else a slow plugin would never finish."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._refresh())
            self._renewal.add_done_callback(_consume_exception)
        renewal = self._renewal
        await asyncio.wait({renewal})
        if renewal.cancelled():
            raise TransientError(f"{self._connection.server}: the connection was closed")
        renewal.result()

    def _is_expired(self) -> bool:
        if self._token_read_at is not None and time.monotonic() - self._token_read_at >= TOKEN_REREAD_INTERVAL_SECONDS:
            return True
        return self._expires_at is not None and time.time() >= self._expires_at

    async def _refresh(self) -> None:
        connection = self._connection
        if connection.exec_plugin:
            credential = await self._run_exec_plugin(connection.exec_plugin)
            self._expires_at = credential.expires and credential.expires - EXPIRY_MARGIN_SECONDS
            self._identity = ClientIdentity(_format_bearer(credential.token), self._get_ssl_context(credential))
        elif connection.token_file:
            self._token_read_at = time.monotonic()
            self._identity = ClientIdentity(_format_bearer(self._load_token()), self._get_ssl_context(ExecCredential()))
        else:
            self._identity = ClientIdentity(
                _build_static_authorization(connection), self._get_ssl_context(ExecCredential())
            )

    async def _run_exec_plugin(self, plugin: ExecPlugin) -> ExecCredential:
        try:
            return await run_plugin(plugin, self._connection)
        except UserError as error:
            if self._identity is None:
                raise
            raise TransientError(str(error)) from error  # it worked before, so this is probably an outage

    def _load_token(self) -> str:
        try:
            return Path(self._connection.token_file).read_text().strip()
        except OSError as error:
            if self._connection.token:
                return self._connection.token
            raise UserError(
                f"the token file cannot be read: {error.strerror}", where=self._connection.token_file
            ) from error

    def _get_ssl_context(self, credential: ExecCredential) -> ssl.SSLContext | None:
        if not self._connection.is_secure:
            return None
        if self._identity and self._identity.ssl and not credential.cert:
            return self._identity.ssl  # with the same context, pooled connections are reused
        return build_ssl_context(self._connection, cert=credential.cert, key=credential.key)


def _consume_exception(renewal: asyncio.Task[None]) -> None:
    """Retrieve the exception, so that asyncio does not log it if no caller waits any more."""
    if not renewal.cancelled():
        renewal.exception()


def _format_bearer(token: str) -> str:
    return f"Bearer {token}" if token else ""


def _build_static_authorization(connection: Connection) -> str:
    if connection.token:
        return _format_bearer(connection.token)
    if connection.username:
        username_and_password = f"{connection.username}:{connection.password}".encode()
        return f"Basic {base64.b64encode(username_and_password).decode()}"
    return ""
