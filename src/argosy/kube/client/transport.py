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
from argosy.kube.client.auth import ClientIdentity, CredentialProvider
from argosy.kube.client.before_write_hook import BEFORE_WRITE
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.deep_json_truncation import TRUNCATION_LEVEL, has_truncated_content
from argosy.kube.client.http_proxy_selection import find_proxy, is_loopback, split_server_url
from argosy.kube.client.reachability_log import ReachabilityLog
from argosy.kube.client.response_validator import (
    MAX_RESPONSE_BYTES,
    build_too_large_error,
    read_response_json,
)
from argosy.kube.client.status_errors import ApiServerNotTrusted, ApiServerUnavailable, error_from_response
from argosy.kube.resource_key import ResourceKey

JSON_MEDIA_TYPE = "application/json"
# k8s: a server ends every request except watches after a minute; `total` limits a server that sends byte by byte.
REQUEST_TIMEOUT = aiohttp.ClientTimeout(total=300, sock_connect=10, sock_read=60)
MAX_ERROR_BYTES = 2**20
READ_BUFFER_BYTES = 2**18
NO_ANSWER_SECONDS = 5.0  # seconds without a response after which a cancelled request counts as unanswered
_ERRNO = re.compile(r"\[Errno (\d+)\]")


class HttpResponse(NamedTuple):
    status: int
    headers: Mapping[str, str]
    content: bytes


class HookedRequest(aiohttp.ClientRequest):
    """Runs the write hook after the connection is open, immediately before the request is sent."""

    async def send(self, conn: Any) -> aiohttp.ClientResponse:
        if self.method != "GET":
            BEFORE_WRITE.get()()
        return await super().send(conn)


class ThreadedResolver(aiohttp.abc.AbstractResolver):
    """Resolves each host name in its own thread: slow lookups would block asyncio's shared threads, and the process
    would wait for them at exit."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[aiohttp.abc.ResolveResult]:
        future: Future[list[Any]] = Future()
        future.set_running_or_notify_cancel()  # a running lookup cannot be cancelled, only ignored
        arguments = host, port, family, socket.SOCK_STREAM, 0, socket.AI_ADDRCONFIG
        threading.Thread(
            target=_resolve_address, args=(future, arguments), name=f"address of {host}", daemon=True
        ).start()
        return [
            aiohttp.abc.ResolveResult(
                hostname=host,
                host=_format_address(address),
                port=address[1],
                family=family,
                proto=protocol,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for family, _, protocol, _, address in await asyncio.wrap_future(future)
        ]

    async def close(self) -> None:
        pass


class HttpTransport:
    def __init__(self, connection: Connection) -> None:
        self._server = connection.server
        parts = split_server_url(connection.server)
        self.host = parts.netloc.rpartition("@")[2]
        self._credentials = CredentialProvider(connection)
        self._authority_description = _describe_trusted_ca(connection)
        self.reachability_log: ReachabilityLog | None = None  # only in long-running processes
        self._proxy = find_proxy(connection.server, connection.proxy_url) or None
        self._server_name = connection.tls_server_name or None
        # On loopback, compression costs more than it saves.
        is_compressed = connection.compressed and not is_loopback(parts.hostname or "")
        self._session = aiohttp.ClientSession(
            # No limit: every watch holds a connection.
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=30, resolver=ThreadedResolver()),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "argosy", "Accept-Encoding": "gzip" if is_compressed else "identity"},
            timeout=REQUEST_TIMEOUT,
            read_bufsize=READ_BUFFER_BYTES,
            request_class=HookedRequest,
        )
        # aiohttp would send a PUT or DELETE twice if a pooled connection dies; see `_send`.
        self._session._retry_connection = False

    async def load_credentials(self) -> None:
        """Load the credentials now, so that a mistake in them is a UserError and not a later 401."""
        await self._credentials.get_identity()

    async def close(self) -> None:
        await self._credentials.close()
        await self._session.close()

    async def request(
        self,
        method: str,
        path: str,
        content: Any = None,
        *,
        headers: Iterable[tuple[str, str]] = (),
        key: ResourceKey | None = None,
    ) -> HttpResponse:
        data = None if content is None else encode_json(content, key)
        async with self._open(method, path, data, headers, REQUEST_TIMEOUT) as response:
            if response.status >= 400:
                raise await self._build_error(response, key)
            if 300 <= response.status != 304:
                raise ApiServerUnavailable(
                    f"{self.host}: answers with a redirect, which is not followed", code=response.status
                )
            return HttpResponse(response.status, response.headers, await self._read(response, MAX_RESPONSE_BYTES))

    async def _build_error(self, response: aiohttp.ClientResponse, key: ResourceKey | None) -> ArgosyError:
        body = await self._read(response, MAX_ERROR_BYTES)
        return error_from_response(response.status, body, response.headers, host=self.host, key=key)

    async def _read(self, response: aiohttp.ClientResponse, max_bytes: int) -> bytes:
        """Read and decompress in chunks: a few kilobytes of gzip may expand to gigabytes."""
        chunks, size = list[bytes](), 0
        async for chunk in response.content.iter_any():
            size += len(chunk)
            if size > max_bytes:
                response.close()
                raise build_too_large_error(self.host)
            chunks.append(chunk)
        return b"".join(chunks)

    async def request_json(
        self,
        method: str,
        path: str,
        content: Any = None,
        *,
        headers: Iterable[tuple[str, str]] = (),
        key: ResourceKey | None = None,
    ) -> Any:
        return self.decode_json(await self.request(method, path, content, headers=headers, key=key))

    def decode_json(self, response: HttpResponse) -> Any:
        return read_response_json(response.content, self.host)

    @contextlib.asynccontextmanager
    async def stream_lines(
        self,
        path: str,
        *,
        headers: Iterable[tuple[str, str]] = (),
        key: ResourceKey | None = None,
        timeout_seconds: float | None = None,
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream the lines of a response, without line breaks; a dropped connection ends the stream."""
        timeout = aiohttp.ClientTimeout(total=timeout_seconds, sock_connect=10)
        async with self._open("GET", path, None, headers, timeout) as response:
            if response.status >= 400:
                raise await self._build_error(response, key)
            if response.status >= 300:
                raise ApiServerUnavailable(
                    f"{self.host}: answers with a redirect, which is not followed", code=response.status
                )
            enable_keepalive(response)
            async with contextlib.aclosing(iterate_lines(response, self.host)) as line_stream:
                yield line_stream

    @contextlib.asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        data: bytes | None,
        headers: Iterable[tuple[str, str]],
        timeout: aiohttp.ClientTimeout,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        started_at = time.monotonic()
        try:
            identity = await self._identity()
            response = await self._send(method, path, data, headers, timeout, identity)
            # After a 401 nothing was written, so one retry is safe even for a write.
            if response.status == 401 and await self._renew_credentials(identity):
                response.release()
                response = await self._send(method, path, data, headers, timeout, await self._identity())
        except (aiohttp.ClientError, OSError, TimeoutError, ssl.SSLError) as error:
            raise self._build_unreachable_error(error) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if (
                task is not None and not task.cancelling()
            ):  # the task was not cancelled: the session was closed meanwhile
                raise self._build_closed_error() from error
            # cancelled by a caller that stopped waiting
            waited = time.monotonic() - started_at
            if self.reachability_log is not None and waited >= NO_ANSWER_SECONDS:
                self.reachability_log.record_failure(f"{self.host}: did not answer in time", waited)
            raise
        except RuntimeError as error:
            if not self._session.closed:
                raise
            raise self._build_closed_error() from error
        except ValueError as error:  # a line break in a header, from the name of a user or group
            raise ClusterError(
                "the name of a user or group contains a line break", code=400, reason="BadRequest"
            ) from error
        if self.reachability_log is not None:
            self.reachability_log.record_answer()
        async with response:
            try:
                yield response
            except (aiohttp.ClientError, OSError, TimeoutError) as error:
                raise self._build_unreachable_error(error) from error

    async def _send(
        self,
        method: str,
        path: str,
        data: bytes | None,
        headers: Iterable[tuple[str, str]],
        timeout: aiohttp.ClientTimeout,
        identity: ClientIdentity,
    ) -> aiohttp.ClientResponse:
        all_headers = CIMultiDict(headers)
        if identity.authorization:
            all_headers["Authorization"] = identity.authorization
        if data is not None:
            all_headers.setdefault("Content-Type", JSON_MEDIA_TYPE)
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

    async def _identity(self) -> ClientIdentity:
        try:
            return await self._credentials.get_identity()
        except UserError as error:
            raise ClusterError(str(error), code=401, reason="Unauthorized") from error

    async def _renew_credentials(self, identity: ClientIdentity) -> bool:
        try:
            return await self._credentials.renew_after_401(identity)
        except UserError as error:
            raise ClusterError(str(error), code=401, reason="Unauthorized") from error

    def _build_closed_error(self) -> ApiServerUnavailable:
        return ApiServerUnavailable(f"{self.host}: the connection was closed")

    def _build_unreachable_error(self, error: BaseException) -> ApiServerUnavailable:
        if isinstance(error, aiohttp.ClientConnectorCertificateError):
            reason = getattr(error.certificate_error, "verify_message", "") or error.certificate_error
            return ApiServerNotTrusted(
                f"{self.host}: the certificate is not trusted by {self._authority_description}: {reason}"
            )
        if isinstance(error, TimeoutError):
            problem = "did not answer in time"
        elif isinstance(error, aiohttp.ClientConnectorError):
            problem = f"cannot be reached: {_describe_os_error(error.os_error)}"
        else:
            problem = f"the connection broke: {type(error).__name__}"
        if self.reachability_log is not None:
            self.reachability_log.record_failure(f"{self.host}: {problem}")
        return ApiServerUnavailable(f"{self.host}: {problem}")


def _resolve_address(future: Future[list[Any]], arguments: tuple[Any, ...]) -> None:
    try:
        future.set_result(socket.getaddrinfo(*arguments))
    except BaseException as error:
        future.set_exception(error)


def _format_address(address: tuple[Any, ...]) -> str:
    """Format an address; a link-local address needs its scope id."""
    return f"{address[0]}%{address[3]}" if address[3:] and address[3] else str(address[0])


def _describe_trusted_ca(connection: Connection) -> str:
    """Describe the CA that must have issued the server's certificate."""
    if connection.ca_file:
        return f"the CA in {connection.ca_file}"
    return "the configured CA" if connection.ca_data else "a CA that this machine trusts"


def _describe_os_error(error: OSError) -> str:
    """Return the operating system's message: asyncio's names a call and an address, and joins several attempts."""
    if isinstance(error, ssl.SSLError):  # its errno is OpenSSL's, not the system's
        reason = (error.reason or "unknown reason").replace("_", " ").lower()
        return f"TLS handshake failed ({reason}); check that the server speaks TLS 1.2 or newer on this port"
    if isinstance(error, ConnectionResetError) and not error.args:  # raised by asyncio during the handshake
        return "the server ended the TLS handshake; check that it speaks TLS 1.2 or newer on this port"
    match = _ERRNO.search(str(error))
    number = error.errno or (int(match[1]) if match else 0)
    if number <= 0:  # getaddrinfo errors have negative numbers
        return str(error.strerror or error)
    return os.strerror(number)[:1].lower() + os.strerror(number)[1:]


def enable_keepalive(response: aiohttp.ClientResponse) -> None:
    """Enable TCP keepalive: an idle watch of a vanished server ends within a minute instead of at its timeout."""
    transport = response.connection.transport if response.connection else None
    sock = transport.get_extra_info("socket") if transport else None
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):  # macOS has another name for the first option
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


def encode_json(content: Any, key: ResourceKey | None) -> bytes:
    """Encode a request body. Raises ClusterError if it is not JSON data, or contains truncated content."""
    try:
        text = orjson.dumps(content)
    except TypeError as error:
        raise ClusterError(f"cannot be encoded as JSON: {error}", code=400, reason="BadRequest", key=key) from error
    if has_truncated_content(text):
        message = (
            f"the live object is nested more than {TRUNCATION_LEVEL} levels deep, and deeper fields were not read; "
        )
        message += "writing it back would delete them; remove the field from ignoreDifferences, or flatten the object"
        raise ClusterError(message, code=400, reason="BadRequest", key=key)
    return text


async def iterate_lines(response: aiohttp.ClientResponse, host: str) -> AsyncGenerator[bytes]:
    """Yield lines of any length: aiohttp's readline has a small limit, and a watch event may be megabytes."""
    pending: list[bytes] = []
    size = 0  # of the line so far
    try:
        async for chunk in response.content.iter_any():
            first, *complete_lines = chunk.split(b"\n")
            pending.append(first)
            size = size + len(first) if not complete_lines else len(complete_lines[-1])
            if size > MAX_RESPONSE_BYTES:
                raise build_too_large_error(host)
            for next_line in complete_lines:
                yield b"".join(pending)
                pending = [next_line]
    except (aiohttp.ClientError, OSError, TimeoutError):
        return  # an incomplete line is dropped
    if last := b"".join(pending):
        yield last
