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

from argosy.kube.objects.text_cache import remembered
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.http.protocol_limits import FLOW

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BYTES = 3 << 20  # k8s: the limit of request bodies
MOST_HEADERS = 200
MOST_WRITES, MOST_WAITING = 200, 2000  # k8s: --max-mutating-requests-inflight, and a queue
BODY_SECONDS = 60.0
GZIP_FROM = 128 << 10
PIECE_BYTES = 64 << 10  # written to a connection at once
WRITE_SECONDS = 60.0  # for a client to read one chunk
ANSWER_SECONDS = 300.0  # for a client to read a response that is sent in chunks
GZIP_STREAM = zlib.MAX_WBITS | 16
MOST_WARNING, MOST_WARNING_ITEM = 4096, 256  # k8s: of all warnings together; of each one if there are more

Held = Callable[[int], AbstractContextManager[None]]
NO_QUERY: MappingProxyType[str, str] = MappingProxyType({})


@remembered(256)
def parsed_query(raw: bytes) -> MappingProxyType[str, str]:
    """The first value of each parameter, like Go's decoder."""
    query: dict[str, str] = {}
    for name, value in parse_qsl(raw.decode("latin-1"), keep_blank_values=True):
        query.setdefault(name, value)
    return MappingProxyType(query)


class ClientTooSlow(ConnectionError):
    """The client does not read its response."""


class Request:
    __slots__ = ("_held", "_is_full", "_receive", "_send", "headers", "method", "notes", "path", "query")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._held: Held | None = None  # None: bytes are not counted
        flow = (scope.get("extensions") or {}).get(FLOW) or {}
        self._is_full: Callable[[], bool] = flow.get("is_full", _unknown)
        self.method: str = scope["method"]
        self.path: str = scope["path"]
        raw: bytes = scope["query_string"]
        self.query = parsed_query(raw) if raw else NO_QUERY
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        self.notes: tuple[str, ...] = ()  # sent with any response

    def send_with(self, send: Send) -> None:
        """Send the response through `send` from now on."""
        self._send = send

    def count_with(self, held: Held) -> None:
        """Count bytes that wait to be written with `hold` from now on."""
        self._held = held

    def held(self, size: int) -> AbstractContextManager[None]:
        """Count bytes that are in memory only for this response, while the block runs."""
        return self._held(size) if self._held is not None and size else nullcontext()

    def header(self, name: bytes) -> str:
        return self.headers.get(name, b"").decode("latin-1")

    async def body(self) -> bytes:
        """Read the whole body; raises if it is too large or too slow."""
        declared = self.headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > MOST_BYTES:
            raise status_errors.too_large_body(MOST_BYTES)
        chunks: list[bytes] = []
        size = 0
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise ConnectionResetError("the client disconnected before it had sent the whole request")
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > MOST_BYTES:
                    raise status_errors.too_large_body(MOST_BYTES)
                if chunk:
                    chunks.append(chunk)
                if not message.get("more_body", False):
                    return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def gone(self) -> None:
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
        with self.held(len(body) if len(body) > PIECE_BYTES else 0):
            await self._respond(code, body, media, [*headers, *warning_headers(warnings)])

    async def _respond(self, code: int, body: bytes, media: str, extra: list[tuple[bytes, bytes]]) -> None:
        if len(body) > GZIP_FROM and "gzip" in self.header(b"accept-encoding"):
            body = await asyncio.to_thread(gzip.compress, body, 1)
            extra += [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")]
        await self.start(code, media, [*extra, (b"content-length", str(len(body)).encode())])
        await self.write(body, more=False)

    async def respond_in_pieces(self, code: int, pieces: AsyncIterator[bytes], *, media: str) -> None:
        """Send a response of which only one chunk is in memory: the next is built when this one was written."""
        packer = zlib.compressobj(1, zlib.DEFLATED, GZIP_STREAM) if "gzip" in self.header(b"accept-encoding") else None
        packed = [(b"content-encoding", b"gzip"), (b"vary", b"Accept-Encoding")] if packer else []
        async with _ReadingTimeout(ANSWER_SECONDS):
            await self.start(code, media, packed)
            async for piece in pieces:
                sent = await asyncio.to_thread(packer.compress, piece) if packer else piece
                if sent:
                    await self.write(sent)
            await self.write(packer.flush() if packer else b"", more=False)

    async def start(self, code: int, media: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        usual = [
            (b"audit-id", str(uuid.uuid4()).encode()),
            (b"cache-control", b"no-cache, private"),
            (b"content-type", media.encode()),
        ]
        named = {name for name, _ in headers}
        kept = [pair for pair in usual if pair[0] not in named]
        sent = [*kept, *headers, *warning_headers(self.notes)]
        await self._send_in_time({"type": "http.response.start", "status": code, "headers": sent})

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Write in chunks, so that little is buffered. Raises ClientTooSlow if the client does not read."""
        size = len(data)
        if size <= PIECE_BYTES:
            await self._send_in_time({"type": "http.response.body", "body": data, "more_body": more})
            return
        view = memoryview(data)
        for start in range(0, size, PIECE_BYTES):
            end = start + PIECE_BYTES
            piece, is_followed = bytes(view[start:end]), more or end < size
            await self._send_in_time({"type": "http.response.body", "body": piece, "more_body": is_followed})

    async def _send_in_time(self, message: MutableMapping[str, Any]) -> None:
        if not self._is_full():  # send does not wait
            await self._send(message)
            return
        async with _ReadingTimeout(WRITE_SECONDS):
            await self._send(message)


def _unknown() -> bool:
    return True


class _ReadingTimeout:
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


class InFlight:
    """Limits concurrent requests; others wait, and if too many wait, further ones get TooManyRequests."""

    def __init__(self, most: int, waiting: int) -> None:
        self._places = asyncio.Semaphore(most)
        self._left = most + waiting

    async def __aenter__(self) -> None:
        if self._left <= 0:
            raise status_errors.too_many_requests()
        self._left -= 1
        try:
            await self._places.acquire()
        except BaseException:
            self._left += 1
            raise

    async def __aexit__(self, *_: object) -> None:
        self._places.release()
        self._left += 1


def warning_headers(texts: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """k8s: each text once, without those that a header cannot hold; truncated if they are too long together."""
    chosen = [text for text in dict.fromkeys(texts) if text and not any(map(_is_control, text))]
    if sum(map(len, chosen)) > MOST_WARNING:
        chosen = [text[:MOST_WARNING_ITEM] for text in chosen][: MOST_WARNING // MOST_WARNING_ITEM]
    return [(b"warning", _warning(text)) for text in chosen]


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character < "\xa0"


def _warning(text: str) -> bytes:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{quoted}"'.encode(errors="replace")
