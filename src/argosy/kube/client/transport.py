"""HTTP transport to one API server.

In: method, path, body. Out: bytes or a stream, or a ClusterError or TransientError. Never: retries a write; raises an
exception of the HTTP library; exposes a token.
This is the only module of the package that imports aiohttp, which is slow to import: import it only when a connection
is opened.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

import aiohttp
import aiohttp.abc
import orjson
from multidict import CIMultiDict
from yarl import URL

from argosy.errors import ArgosyError, ClusterError, UserError
from argosy.kube.client.auth import Credentials, Identity
from argosy.kube.client.connection import Connection
from argosy.kube.client.deep_json import CUT_LEVEL, holds_cut
from argosy.kube.client.proxy import is_loopback, proxy_for, split_server
from argosy.kube.client.reachability import Contact
from argosy.kube.client.response_checks import MAX_ANSWER_BYTES, load_json, too_large
from argosy.kube.client.status_errors import Unavailable, Untrusted, refusal
from argosy.kube.client.write_hook import BEFORE_SENDING
from argosy.kube.names import ResourceKey

JSON = "application/json"
# k8s: a server ends every request except watches after a minute; `total` limits a server that sends byte by byte.
ANSWER_TIMEOUT = aiohttp.ClientTimeout(total=300, sock_connect=10, sock_read=60)
MAX_REFUSAL_BYTES = 2**20
READ_BUFFER = 2**18
PATIENCE = 5.0  # seconds without a response after which a cancelled request counts as unanswered
_NUMBER = re.compile(r"\[Errno (\d+)\]")


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes


class Asking(aiohttp.ClientRequest):
    """Runs the write hook after the connection is open, immediately before the request is sent."""

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        if self.method != "GET":
            BEFORE_SENDING.get()()
        return await super().send(conn)


class NameService(aiohttp.abc.AbstractResolver):
    """Resolves each host name in its own thread: slow lookups would block asyncio's shared threads, and the process
    would wait for them at exit."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        found: Future[list[Any]] = Future()
        found.set_running_or_notify_cancel()  # a running lookup cannot be cancelled, only ignored
        wanted = host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG
        threading.Thread(target=_look_up, args=(found, wanted), name=f"address of {host}", daemon=True).start()
        return [
            aiohttp.abc.ResolveResult(
                hostname=host,
                host=_host(address),
                port=address[1],
                family=family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for family, _, protocol, _, address in await asyncio.wrap_future(found)
        ]

    async def close(self) -> None:
        pass


class Wire:
    def __init__(self, connection: Connection) -> None:
        self._server = connection.server
        parts = split_server(connection.server)
        self.host = parts.netloc.rpartition("@")[2]
        self._credentials = Credentials(connection)
        self._authority = _authority(connection)
        self.contact: Contact | None = None  # only in long-running processes
        self._proxy = proxy_for(connection.server, connection.proxy_url) or None
        self._server_name = connection.tls_server_name or None
        # On loopback, compression costs more than it saves.
        packed = connection.compressed and not is_loopback(parts.hostname or "")
        self._session = aiohttp.ClientSession(
            # No limit: every watch holds a connection.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30, resolver=NameService()),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "argosy", "Accept-Encoding": "gzip" if packed else "identity"},
            timeout=ANSWER_TIMEOUT,
            read_bufsize=READ_BUFFER,
            request_class=Asking,
        )
        # aiohttp would send a PUT or DELETE twice if a pooled connection dies; see `_send`.
        self._session._retry_connection = False

    async def prepare(self) -> None:
        """Load the credentials now, so that a mistake in them is a UserError and not a later 401."""
        await self._credentials.current()

    async def close(self) -> None:
        await self._credentials.close()
        await self._session.close()

    async def call(
        self,
        method: str,
        path: str,
        content: Any = None,
        *,
        headers: Iterable[tuple[str, str]] = (),
        key: ResourceKey | None = None,
    ) -> Answer:
        data = None if content is None else encoded(content, key)
        async with self._open(method, path, data, headers, ANSWER_TIMEOUT) as response:
            if response.status >= 400:
                raise await self._refusal(response, key)
            if 300 <= response.status != 304:
                raise Unavailable(f"{self.host}: answers with a redirect, which is not followed", code=response.status)
            return Answer(response.status, response.headers, await self._read(response, MAX_ANSWER_BYTES))

    async def _refusal(self, response: aiohttp.ClientResponse, key: ResourceKey | None) -> ArgosyError:
        body = await self._read(response, MAX_REFUSAL_BYTES)
        return refusal(response.status, body, response.headers, host=self.host, key=key)

    async def _read(self, response: aiohttp.ClientResponse, most: int) -> bytes:
        """Read and decompress in chunks: a few kilobytes of gzip may expand to gigabytes."""
        pieces, size = list[bytes](), 0
        async for piece in response.content.iter_any():
            size += len(piece)
            if size > most:
                response.close()
                raise too_large(self.host)
            pieces.append(piece)
        return b"".join(pieces)

    async def json(
        self,
        method: str,
        path: str,
        content: Any = None,
        *,
        headers: Iterable[tuple[str, str]] = (),
        key: ResourceKey | None = None,
    ) -> Any:
        return self.decoded(await self.call(method, path, content, headers=headers, key=key))

    def decoded(self, answer: Answer) -> Any:
        return load_json(answer.content, self.host)

    @contextlib.asynccontextmanager
    async def stream(
        self,
        path: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        key: ResourceKey | None = None,
        seconds: float | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream the lines of a response, without line breaks; a dropped connection ends the stream."""
        timeout = aiohttp.ClientTimeout(total=seconds, sock_connect=10)
        async with self._open("GET", path, None, headers, timeout) as response:
            if response.status >= 400:
                raise await self._refusal(response, key)
            if response.status >= 300:
                raise Unavailable(f"{self.host}: answers with a redirect, which is not followed", code=response.status)
            keep_alive(response)
            async with contextlib.aclosing(lines(response, self.host)) as found:
                yield found

    @contextlib.asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        data: bytes | None,
        headers: Iterable[tuple[str, str]],
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        began = time.monotonic()
        try:
            identity = await self._identity()
            response = await self._ask(method, path, data, headers, timeout, identity)
            # After a 401 nothing was written, so one retry is safe even for a write.
            if response.status == 401 and await self._refreshed(identity):
                response.release()
                response = await self._ask(method, path, data, headers, timeout, await self._identity())
        except (aiohttp.ClientError, OSError, TimeoutError, ssl.SSLError) as error:
            raise self._unreachable(error) from error
        except asyncio.CancelledError as error:
            me = asyncio.current_task()
            if me is not None and not me.cancelling():  # the task was not cancelled: the session was closed meanwhile
                raise self._closed() from error
            # cancelled by a caller that stopped waiting
            waited = time.monotonic() - began
            if self.contact is not None and waited >= PATIENCE:
                self.contact.missed(f"{self.host}: did not answer in time", waited)
            raise
        except RuntimeError as error:
            if not self._session.closed:
                raise
            raise self._closed() from error
        except ValueError as error:  # a line break in a header, from the name of a user or group
            raise ClusterError(
                "the name of a user or group contains a line break", code=400, reason="BadRequest"
            ) from error
        if self.contact is not None:
            self.contact.answered()
        async with response:
            try:
                yield response
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise self._unreachable(error) from error

    async def _ask(
        self,
        method: str,
        path: str,
        data: bytes | None,
        headers: Iterable[tuple[str, str]],
        timeout: aiohttp.ClientTimeout,
        identity: Identity,
    ) -> aiohttp.ClientResponse:
        all_headers = CIMultiDict(headers)
        if identity.authorization:
            all_headers["Authorization"] = identity.authorization
        if data is not None:
            all_headers.setdefault("Content-Type", JSON)
        for attempt in (1, 2):
            try:
                return await self._session.request(
                    method,
                    URL(self._server + path, encoded=True),
                    data=data,
                    headers=all_headers,
                    ssl=identity.ssl or True,
                    server_hostname=self._server_name,
                    proxy=self._proxy,
                    timeout=timeout,
                    allow_redirects=False,  # an API server sends none, and a token must not follow one
                )
            except aiohttp.ServerDisconnectedError:
                # A pooled connection may have died just before use. Retry reads; a write may have been done.
                if method != "GET" or attempt == 2:
                    raise
        raise AssertionError("unreachable")

    async def _identity(self) -> Identity:
        try:
            return await self._credentials.current()
        except UserError as error:
            raise ClusterError(str(error), code=401, reason="Unauthorized") from error

    async def _refreshed(self, identity: Identity) -> bool:
        try:
            return await self._credentials.refused(identity)
        except UserError as error:
            raise ClusterError(str(error), code=401, reason="Unauthorized") from error

    def _closed(self) -> Unavailable:
        return Unavailable(f"{self.host}: the connection was closed")

    def _unreachable(self, error: BaseException) -> Unavailable:
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            why = getattr(error.certificate_error, "verify_message", "") or error.certificate_error
            return Untrusted(f"{self.host}: the certificate is not trusted by {self._authority}: {why}")
        if isinstance(error, TimeoutError):
            what = "did not answer in time"
        elif isinstance(error, aiohttp.ClientConnectorError):
            what = f"cannot be reached: {_why(error.os_error)}"
        else:
            what = f"the connection broke: {type(error).__name__}"
        if self.contact is not None:
            self.contact.missed(f"{self.host}: {what}")
        return Unavailable(f"{self.host}: {what}")


def _look_up(found: Future[list[Any]], wanted: tuple[Any, ...]) -> None:
    try:
        found.set_result(socket.getaddrinfo(*wanted))
    except BaseException as error:
        found.set_exception(error)


def _host(address: tuple[Any, ...]) -> str:
    """Format an address; a link-local address needs its scope id."""
    return f"{address[0]}%{address[3]}" if address[3:] and address[3] else str(address[0])


def _authority(connection: Connection) -> str:
    """Describe the CA that must have issued the server's certificate."""
    if connection.ca_file:
        return f"the CA in {connection.ca_file}"
    return "the configured CA" if connection.ca_data else "a CA that this machine trusts"


def _why(error: OSError) -> str:
    """Return the operating system's message: asyncio's names a call and an address, and joins several attempts."""
    if isinstance(error, ssl.SSLError):  # its errno is OpenSSL's, not the system's
        reason = (error.reason or "unknown reason").replace("_", " ").lower()
        return f"TLS handshake failed ({reason}); check that the server speaks TLS 1.2 or newer on this port"
    if isinstance(error, ConnectionResetError) and not error.args:  # raised by asyncio during the handshake
        return "the server ended the TLS handshake; check that it speaks TLS 1.2 or newer on this port"
    tried = _NUMBER.search(str(error))
    number = error.errno or (int(tried[1]) if tried else 0)
    if number <= 0:  # getaddrinfo errors have negative numbers
        return str(error.strerror or error)
    return os.strerror(number)[:1].lower() + os.strerror(number)[1:]


def keep_alive(response: aiohttp.ClientResponse) -> None:
    """Enable TCP keepalive: an idle watch of a vanished server ends within a minute instead of at its timeout."""
    transport = response.connection.transport if response.connection else None
    sock = transport.get_extra_info("socket") if transport else None
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):  # macOS has another name for the first option
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def encoded(content: Any, key: ResourceKey | None) -> bytes:
    """Encode a request body. Raises ClusterError if it is not JSON data, or contains truncated content."""
    try:
        text = orjson.dumps(content)
    except TypeError as error:
        raise ClusterError(f"cannot be encoded as JSON: {error}", code=400, reason="BadRequest", key=key) from error
    if holds_cut(text):
        message = f"the live object is nested more than {CUT_LEVEL} levels deep, and deeper fields were not read; "
        message += "writing it back would delete them; remove the field from ignoreDifferences, or flatten the object"
        raise ClusterError(message, code=400, reason="BadRequest", key=key)
    return text


async def lines(response: aiohttp.ClientResponse, host: str) -> AsyncGenerator[bytes]:
    """Yield lines of any length: aiohttp's readline has a small limit, and a watch event may be megabytes."""
    pending: list[bytes] = []
    size = 0  # of the line so far
    try:
        async for chunk in response.content.iter_any():
            first, *rest = chunk.split(b"\n")
            pending.append(first)
            size = size + len(first) if not rest else len(rest[-1])
            if size > MAX_ANSWER_BYTES:
                raise too_large(host)
            for following in rest:
                yield b"".join(pending)
                pending = [following]
    except (aiohttp.ClientError, OSError, TimeoutError):
        return  # an incomplete line is dropped
    if last := b"".join(pending):
        yield last
