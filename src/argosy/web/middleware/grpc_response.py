"""The response of a gRPC or gRPC-Web call: encodes what a REST route answers.

In: ASGI events of a REST response. Out: ASGI events with frames of messages, and the status. Never: an HTTP error; a
part of a message.

gRPC has its status in the trailers of HTTP/2, and in the headers if there is nothing else. gRPC-Web has a frame for it.
argo: over gRPC-Web, the CLI reads the status of a failed call from the headers, and ignores that frame; other clients
read the frame. An error before the first message is in both.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from enum import StrEnum
from functools import partial
from typing import Any, Final

import orjson

from argosy.errors import ManifestError
from argosy.web.error_details import GRPC_CODES
from argosy.web.grpc.call_status import CallError, CallStatus, StatusCode
from argosy.web.grpc.codec_threads import CodecThreads
from argosy.web.grpc.message_codec import encode_message
from argosy.web.grpc.message_frames import encode_frame, encode_trailers
from argosy.web.grpc.service_table import Method
from argosy.web.middleware.response_headers import build_headers

log = logging.getLogger(__name__)
Event = MutableMapping[str, Any]
# Headers of a REST response that are about its JSON.
_BODY_HEADERS: Final = frozenset({b"content-type", b"content-length", b"content-encoding", b"vary", b"location"})


class ResponseEncoding(StrEnum):
    """The value is the content type."""

    GRPC = "application/grpc+proto"
    GRPC_WEB = "application/grpc-web+proto"


class GrpcResponse:
    def __init__(
        self,
        send: Callable[[Event], Awaitable[None]],
        threads: CodecThreads,
        encoding: ResponseEncoding,
        *,
        is_tls: bool,
    ) -> None:
        self._send, self._threads, self._encoding = send, threads, encoding
        self._method: Method | None = None
        self._is_signed_in = False
        self._code = 200
        headers = build_headers((), is_tls=is_tls)
        self._headers = [(name.encode(), value.encode()) for name, value in headers]
        self._chunks: list[bytes] = []  # of the REST response, as far as they were not encoded
        self._has_started = self._is_finished = False

    def begin(self, method: Method, *, is_signed_in: bool) -> None:
        self._method, self._is_signed_in = method, is_signed_in

    async def take_event(self, event: Event) -> None:
        """Take an event of the REST response; raise CallError if a stream cannot go on."""
        if self._is_finished:  # by the deadline of the call
            return
        if event["type"] == "http.response.start":
            self._code = event["status"]
            self._headers = [(name, value) for name, value in event.get("headers", ()) if name not in _BODY_HEADERS]
        elif event["type"] == "http.response.body":
            self._chunks.append(event.get("body", b""))
            if self._is_stream and b"\n" in self._chunks[-1]:
                await self._send_lines()

    async def end(self) -> CallStatus:
        """Send the message of a unary call; return the status of the call."""
        data = b"".join(self._chunks)
        if self._code >= 400:
            return _read_error(self._code, data)
        if not self._is_stream:
            encode = partial(self._encode, data)
            message = await self._threads.run(encode, len(data), is_signed_in=self._is_signed_in)
            await self._send_chunk(encode_frame(message))
        return CallStatus()

    async def finish(self, status: CallStatus) -> None:
        """Send the trailers, and the headers if nothing was sent yet. A second call does nothing."""
        if self._is_finished:
            return
        self._is_finished = True
        had_started, is_web = self._has_started, self._encoding == ResponseEncoding.GRPC_WEB
        if not had_started:
            await self._start(status.build_headers(), has_trailers=False)
        trailers_frame = encode_trailers(status) if is_web else b""
        await self._send({"type": "http.response.body", "body": trailers_frame, "more_body": False})
        if had_started and not is_web:
            await self._send({"type": "http.response.trailers", "headers": status.build_headers()})

    @property
    def _is_stream(self) -> bool:
        return self._method is not None and self._method.is_server_stream and self._code < 400

    async def _send_lines(self) -> None:
        """Send a message for each complete line: a JSON document with the field `result` or `error`."""
        *lines, rest = b"".join(self._chunks).split(b"\n")
        self._chunks = [rest]
        for line in lines:
            encode = partial(self._encode_line, line)
            message = await self._threads.run(encode, len(line), is_signed_in=self._is_signed_in)
            if message is not None:
                await self._send_chunk(encode_frame(message))

    def _encode_line(self, line: bytes) -> bytes | None:
        """Encode a line; raise CallError if it is the error that ends the stream."""
        document = _load(line) if line.strip() else None
        if not isinstance(document, dict):
            return None
        if isinstance(error := document.get("error"), dict):
            code = error.get("grpc_code")
            raise CallError(code if isinstance(code, int) else StatusCode.INTERNAL, str(error.get("message") or ""))
        return self._encode_document(document.get("result"))

    def _encode(self, data: bytes) -> bytes:
        return self._encode_document(_load(data) if data.strip() else {})

    def _encode_document(self, document: Any) -> bytes:
        assert self._method is not None
        try:
            return encode_message(self._method.response, document)
        except (ManifestError, ValueError, TypeError, OverflowError, RecursionError) as error:
            log.warning("cannot encode a response: method=%s error=%s", self._method.path, type(error).__name__)
            reason = str(error) if isinstance(error, ManifestError) else "a value has another type than in the message"
            raise CallError(StatusCode.INTERNAL, f"cannot encode the response: {reason}") from None

    async def _send_chunk(self, data: bytes) -> None:
        if not self._has_started:
            await self._start([], has_trailers=self._encoding == ResponseEncoding.GRPC)
        await self._send({"type": "http.response.body", "body": data, "more_body": True})

    async def _start(self, status_headers: list[tuple[bytes, bytes]], *, has_trailers: bool) -> None:
        self._has_started = True
        headers = [*self._headers, (b"content-type", self._encoding.encode()), *status_headers]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers, "trailers": has_trailers})


def _load(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return None


def _read_error(code: int, data: bytes) -> CallStatus:
    """Read an error of the REST API: it has the gRPC code that Argo CD gives."""
    document = _load(data)
    fields = document if isinstance(document, dict) else {}
    grpc_code, message = fields.get("code"), fields.get("message")
    return CallStatus(
        grpc_code if isinstance(grpc_code, int) and 0 < grpc_code <= 16 else GRPC_CODES.get(code, StatusCode.INTERNAL),
        message if isinstance(message, str) else f"the server answered with HTTP status {code}",
    )
