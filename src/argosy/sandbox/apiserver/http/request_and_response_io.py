"""An HTTP request: reads its body within limits, and sends the response."""

from __future__ import annotations

import asyncio
import gzip
import uuid
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import Any
from urllib.parse import parse_qsl

from argosy.kube.objects.short_text_result_cache import cache_short_texts
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.http.protocol_limits import FLOW_CONTROL_EXTENSION

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_BODY_BYTES = 3 << 20  # k8s: the limit of request bodies
MAX_HEADERS = 200
MAX_WRITES_IN_FLIGHT, MAX_WAITING_WRITES = 200, 2000  # k8s: --max-mutating-requests-inflight, and a queue
BODY_TIMEOUT_SECONDS = 60.0
MIN_GZIP_BYTES = 128 << 10
WRITE_CHUNK_BYTES = 64 << 10  # written to a connection at once
WRITE_TIMEOUT_SECONDS = 60.0  # for a client to read one chunk
RESPONSE_TIMEOUT_SECONDS = 300.0  # for a client to read a response that is sent in chunks
GZIP_WBITS = zlib.MAX_WBITS | 16
# k8s: of all warnings together; of each one if there are more
MAX_WARNINGS_CHARACTERS, MAX_TRUNCATED_WARNING_CHARACTERS = 4096, 256

HoldBytes = Callable[[int], AbstractContextManager[None]]
NO_QUERY: MappingProxyType[str, str] = MappingProxyType({})


@cache_short_texts(256)
def parse_query(raw: bytes) -> MappingProxyType[str, str]:
    """The first value of each parameter, like Go's decoder."""
    query: dict[str, str] = {}
    for name, value in parse_qsl(raw.decode("latin-1"), keep_blank_values=True):
        query.setdefault(name, value)
    return MappingProxyType(query)


class ClientTooSlow(ConnectionError):
    """The client does not read its response."""


class HttpRequest:
    __slots__ = ("_hold", "_is_full", "_receive", "_send", "headers", "method", "path", "query", "warnings")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._hold: HoldBytes | None = None  # None: bytes are not counted
        flow = (scope.get("extensions") or {}).get(FLOW_CONTROL_EXTENSION) or {}
        self._is_full: Callable[[], bool] = flow.get("is_full", _assume_full)
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        raw: bytes = scope["query_string"]
        self.query = parse_query(raw) if raw else NO_QUERY
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.warnings: tuple[str, ...] = ()  # sent with any response

    def set_send(self, send: Send) -> None:
        """Send the response through `send` from now on."""
        self._send = send

    def set_byte_counter(self, hold: HoldBytes) -> None:
        """Count bytes that wait to be written with `hold` from now on."""
        self._hold = hold

    def count_held_bytes(self, size: int) -> AbstractContextManager[None]:
        """Count bytes that are in memory only for this response, while the block runs."""
        return self._hold(size) if self._hold is not None and size else nullcontext()

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1")

    async def read_body(self) -> bytes:
        """Read the whole body; raises if it is too large or too slow."""
        declared = self.headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > MAX_BODY_BYTES:
            raise status_errors.body_too_large(MAX_BODY_BYTES)
        chunks: list[bytes] = []
        size = 0
        async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionResetError("the client disconnected before it had sent the whole request")
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > MAX_BODY_BYTES:
                    raise status_errors.body_too_large(MAX_BODY_BYTES)
                if chunk:
                    chunks.append(chunk)
                if not message.get("more_body", False):
                    return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def wait_for_disconnect(self) -> None:
        """Return when the client has disconnected."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def respond(
        self,
        code: int,
        body: bytes,
        *,
        media: str = "application/json",
        headers: Sequence[tuple[bytes, bytes]] = (),
        warnings: Sequence[str] = (),
    ) -> None:
        with self.count_held_bytes(len(body) if len(body) > WRITE_CHUNK_BYTES else 0):
            await self._respond(code, body, media, [*headers, *build_warning_headers(warnings)])

    async def _respond(self, code: int, body: bytes, media: str, headers: list[tuple[bytes, bytes]]) -> None:
        if len(body) > MIN_GZIP_BYTES and "gzip" in self.header(b"accept-encoding"):
            body = await asyncio.to_thread(gzip.compress, body, 1)
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        await self.start_response(code, media, [*headers, (b"content-length", str(len(body)).encode())])
        await self.write(body, has_more=False)

    async def respond_in_chunks(self, code: int, chunks: AsyncIterator[bytes], *, media: str) -> None:
        """Send a response of which only one chunk is in memory: the next is built when this one was written."""
        compressor = (
            zlib.compressobj(1, zlib.DEFLATED, GZIP_WBITS) if "gzip" in self.header(b"accept-encoding") else None
        )
        headers = [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")] if compressor else []
        async with _ClientReadTimeout(RESPONSE_TIMEOUT_SECONDS):
            await self.start_response(code, media, headers)
            async for chunk in chunks:
                data = await asyncio.to_thread(compressor.compress, chunk) if compressor else chunk
                if data:
                    await self.write(data)
            await self.write(compressor.flush() if compressor else b"", has_more=False)

    async def start_response(self, code: int, media: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        default_headers = [
            (b"audit-id", str(uuid.uuid4()).encode()),
            (b"cache-control", b"no-cache, private"),
            (b"content-type", media.encode()),
        ]
        header_names = {name for name, _ in headers}
        kept_defaults = [pair for pair in default_headers if pair[0] not in header_names]
        all_headers = [*kept_defaults, *headers, *build_warning_headers(self.warnings)]
        await self._send_with_timeout({"type": "http.response.start", "status": code, "headers": all_headers})

    async def write(self, data: bytes, *, has_more: bool = True) -> None:
        """Write in chunks, so that little is buffered. Raises ClientTooSlow if the client does not read."""
        size = len(data)
        if size <= WRITE_CHUNK_BYTES:
            await self._send_with_timeout({"type": "http.response.body", "body": data, "more_body": has_more})
            return
        view = memoryview(data)
        for start in range(0, size, WRITE_CHUNK_BYTES):
            end = start + WRITE_CHUNK_BYTES
            chunk, more_body = bytes(view[start:end]), has_more or end < size
            await self._send_with_timeout({"type": "http.response.body", "body": chunk, "more_body": more_body})

    async def _send_with_timeout(self, message: MutableMapping[str, Any]) -> None:
        if not self._is_full():  # send does not wait
            await self._send(message)
            return
        async with _ClientReadTimeout(WRITE_TIMEOUT_SECONDS):
            await self._send(message)


def _assume_full() -> bool:
    return True


class _ClientReadTimeout:
    """Like asyncio.timeout, but raises ClientTooSlow."""

    __slots__ = ("_seconds", "_timeout")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *raised: Any) -> None:
        try:
            await self._timeout.__aexit__(*raised)
        except TimeoutError as error:
            raise ClientTooSlow(f"the client did not read its response for {self._seconds:g} s") from error


class InFlightLimit:
    """Limits concurrent requests; others wait, and if too many wait, further ones get TooManyRequests."""

    def __init__(self, max_running: int, max_waiting: int) -> None:
        self._semaphore = asyncio.Semaphore(max_running)
        self._free_places = max_running + max_waiting

    async def __aenter__(self) -> None:
        if self._free_places <= 0:
            raise status_errors.too_many_requests()
        self._free_places -= 1
        try:
            await self._semaphore.acquire()
        except BaseException:
            self._free_places += 1
            raise

    async def __aexit__(self, *_: object) -> None:
        self._semaphore.release()
        self._free_places += 1


def build_warning_headers(texts: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """k8s: each text once, without those that a header cannot hold; truncated if they are too long together."""
    valid_texts = [text for text in dict.fromkeys(texts) if text and not any(map(_is_control, text))]
    if sum(map(len, valid_texts)) > MAX_WARNINGS_CHARACTERS:
        valid_texts = [text[:MAX_TRUNCATED_WARNING_CHARACTERS] for text in valid_texts][
            : MAX_WARNINGS_CHARACTERS // MAX_TRUNCATED_WARNING_CHARACTERS
        ]
    return [(b"warning", _format_warning(text)) for text in valid_texts]


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character < "\xa0"


def _format_warning(text: str) -> bytes:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'.encode(errors="replace")
