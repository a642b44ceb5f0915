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
from argosy.kube.client.connection import Connection, ExecPlugin
from argosy.kube.client.exec_plugin import Credential, run_plugin
from argosy.kube.client.tls import ssl_context

REREAD_TOKEN_AFTER = 60.0  # kubelets rotate tokens at 80 % of their life, an hour or more
EXPIRES_EARLY = 10.0  # a credential must still be valid when the request arrives


class Identity(NamedTuple):
    authorization: str  # the value of the Authorization header; empty: no header
    ssl: ssl.SSLContext | None


class Credentials:
    """Caches the identity until it expires. Concurrent callers share one run of an exec plugin. Must be closed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._identity: Identity | None = None
        self._good_until: float | None = None  # Unix time, from the plugin; None: does not expire
        self._read_token_at: float | None = None  # monotonic clock
        self._renewal: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._renewal is not None:
            self._renewal.cancel()
            await asyncio.wait({self._renewal})

    async def current(self) -> Identity:
        if self._identity is None or self._expired():
            await self._renewed()
        assert self._identity is not None
        return self._identity

    async def refused(self, identity: Identity) -> bool:
        """Renew after the server answered 401 to `identity`. True if there is a new identity to retry with."""
        if not (self._connection.exec_plugin or self._connection.token_file):
            return False
        if self._identity is identity:
            await self._renewed()
        return self._identity != identity

    async def _renewed(self) -> None:
        """Start or join a renewal. Cancelling a caller does not cancel it, else a slow plugin would never finish."""
        if self._renewal is None or self._renewal.done():
            self._renewal = asyncio.create_task(self._refresh())
            self._renewal.add_done_callback(_seen)
        renewal = self._renewal
        await asyncio.wait({renewal})
        if renewal.cancelled():
            raise TransientError(f"{self._connection.server}: the connection was closed")
        renewal.result()

    def _expired(self) -> bool:
        if self._read_token_at is not None and time.monotonic() - self._read_token_at >= REREAD_TOKEN_AFTER:
            return True
        return self._good_until is not None and time.time() >= self._good_until

    async def _refresh(self) -> None:
        connection = self._connection
        if connection.exec_plugin:
            credential = await self._asked(connection.exec_plugin)
            self._good_until = credential.expires and credential.expires - EXPIRES_EARLY
            self._identity = Identity(_bearer(credential.token), self._ssl(credential))
        elif connection.token_file:
            self._read_token_at = time.monotonic()
            self._identity = Identity(_bearer(self._token()), self._ssl(Credential()))
        else:
            self._identity = Identity(_fixed(connection), self._ssl(Credential()))

    async def _asked(self, plugin: ExecPlugin) -> Credential:
        try:
            return await run_plugin(plugin, self._connection)
        except UserError as error:
            if self._identity is None:
                raise
            raise TransientError(str(error)) from error  # it worked before, so this is probably an outage

    def _token(self) -> str:
        try:
            return Path(self._connection.token_file).read_text().strip()
        except OSError as error:
            if self._connection.token:
                return self._connection.token
            raise UserError(
                f"the token file cannot be read: {error.strerror}", where=self._connection.token_file
            ) from error

    def _ssl(self, credential: Credential) -> ssl.SSLContext | None:
        if not self._connection.secure:
            return None
        if self._identity and self._identity.ssl and not credential.cert:
            return self._identity.ssl  # with the same context, pooled connections are reused
        return ssl_context(self._connection, cert=credential.cert, key=credential.key)


def _seen(renewal: asyncio.Task[None]) -> None:
    """Retrieve the exception, so that asyncio does not log it if no caller waits any more."""
    if not renewal.cancelled():
        renewal.exception()


def _bearer(token: str) -> str:
    return f"Bearer {token}" if token else ""


def _fixed(connection: Connection) -> str:
    if connection.token:
        return _bearer(connection.token)
    if connection.username:
        pair = f"{connection.username}:{connection.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    return ""
