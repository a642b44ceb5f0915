"""gRPC-Web: hands each call to the REST route of its method, and encodes the response as protobuf.

In: ASGI requests with gRPC-Web frames. Out: for the routes, REST requests; for the client, frames and a status.
Never: another way to the data than a REST route, with its authentication, permission, limits, redaction and audit.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from argosy.errors import ManifestError
from argosy.web import request_limits
from argosy.web.grpc_web.call_status import CallError, CallStatus, StatusCode
from argosy.web.grpc_web.message_codec import decode_message
from argosy.web.grpc_web.message_frames import HEADER_BYTES, split_frames
from argosy.web.grpc_web.rest_requests import RestRequest, build_rest_request
from argosy.web.grpc_web.service_table import Method, find_method, list_services
from argosy.web.middleware.error_responses import GRPC_CODES, describe_error
from argosy.web.middleware.grpc_web_response import GrpcWebResponse
from argosy.web.request_limits import ConcurrencyLimits, RequestLimitExceeded
from argosy.web.route import MAX_BODY_BYTES

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MEDIA_PREFIX: Final = b"application/grpc"
MEDIA_TYPES: Final = (b"application/grpc-web", b"application/grpc-web+proto")
CALL_EXTENSION: Final = "argosy.grpc_call"  # marks the scope of a REST request that was a call
MAX_ANONYMOUS_BODY_BYTES: Final = 64 << 10
THREAD_THRESHOLD_BYTES: Final = 64 << 10  # larger messages are decoded in a thread
_TIMEOUT: Final = re.compile(r"(\d{1,8})([HMSmun])", re.ASCII)
_SECONDS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
# Headers about the call's own body, or replaced by those of the REST request.
_OWN_HEADERS: Final = frozenset({
    b"accept", b"accept-encoding", b"connection", b"content-encoding", b"content-length", b"content-type",
    b"grpc-accept-encoding", b"grpc-encoding", b"grpc-timeout", b"te", b"token", b"transfer-encoding",
})  # fmt: skip


@dataclass(frozen=True)
class CallerCheck:
    """Who calls: known before the body is read, so that strangers cannot make the server read large ones."""

    peer: str
    is_signed_in: bool


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


def is_grpc_call(scope: Scope) -> bool:
    return scope["method"] == "POST" and _get_header(scope, b"content-type").lower().startswith(MEDIA_PREFIX)


def get_max_url_bytes(scope: Scope) -> int:
    """A call has its parameters in its body; in the URL they may be longer than a browser's."""
    is_call = CALL_EXTENSION in scope.get("extensions", {})
    return request_limits.MAX_CALL_URL_BYTES if is_call else request_limits.MAX_URL_BYTES


class GrpcWebGateway:
    def __init__(
        self,
        application: Application,
        check_caller: Callable[[Scope], Awaitable[CallerCheck]],
        limits: ConcurrencyLimits,
        closing: asyncio.Event,
        *,
        is_tls: bool,
    ) -> None:
        self._application, self._check_caller = application, check_caller
        self._limits, self._closing, self._is_tls = limits, closing, is_tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = GrpcWebResponse(send, is_tls=self._is_tls)
        try:
            async with asyncio.timeout(_read_timeout(scope)):
                await self._handle(scope, receive, response)
        except CallError as error:
            await response.finish(error.status)
        except ManifestError as error:
            problem = f"grpc: failed to unmarshal the received message: {error}"  # argo
            await response.finish(CallStatus(StatusCode.INTERNAL, problem))
        except TimeoutError:
            await response.finish(CallStatus(StatusCode.DEADLINE_EXCEEDED, "context deadline exceeded"))
        except ClientGone:
            return
        except Exception as error:
            details = describe_error(error)
            await response.finish(CallStatus(GRPC_CODES.get(details.code, StatusCode.INTERNAL), details.message))

    async def _handle(self, scope: Scope, receive: Receive, response: GrpcWebResponse) -> None:
        method = _find_method(scope)
        caller = await self._check_caller(_build_scope(scope, RestRequest("POST", scope["path"], "", b"")))
        encoding = _get_header(scope, b"grpc-encoding").decode("latin-1").strip().lower()
        messages = split_frames(await self._read_body(scope, receive, caller), encoding)
        if not messages:
            raise CallError(StatusCode.INTERNAL, f"cardinality violation: {method.path} received no request message")
        if len(messages) > 1 and not method.is_client_stream:
            raise CallError(StatusCode.INTERNAL, f"cardinality violation: {method.path} takes one request message")
        # argo: the first message of a client stream says what it is about; its files are in the others
        is_long = len(messages[0]) > THREAD_THRESHOLD_BYTES
        build = partial(_build_request, method, messages[0])
        request = await asyncio.to_thread(build) if is_long else build()
        response.begin(method)
        await self._application(
            _build_scope(scope, request), _build_receive(request.body, receive), response.take_event
        )
        status = await response.end()
        if method.is_server_stream and not status.code and self._closing.is_set():
            status = CallStatus(StatusCode.UNAVAILABLE, "the server is shutting down")
        await response.finish(status)

    async def _read_body(self, scope: Scope, receive: Receive, caller: CallerCheck) -> bytes:
        maximum = MAX_BODY_BYTES + HEADER_BYTES if caller.is_signed_in else MAX_ANONYMOUS_BODY_BYTES
        chunks = _read_chunks(receive)
        declared = _get_header(scope, b"content-length").decode("latin-1")
        if caller.is_signed_in:
            with self._limits.limit_request(is_change=False):
                request_limits.check_content_length(declared, maximum)
                return await request_limits.read_body(chunks, maximum)
        with self._limits.limit_anonymous(caller.peer):
            try:
                request_limits.check_content_length(declared, maximum)
                return await request_limits.read_body(chunks, maximum, request_limits.ANONYMOUS_BODY_TIMEOUT_SECONDS)
            except RequestLimitExceeded as error:
                if error.code == 413:  # no message of a login is that long
                    raise CallError(StatusCode.UNAUTHENTICATED, "no session information") from None
                raise


def _find_method(scope: Scope) -> Method:
    media = _get_header(scope, b"content-type").partition(b";")[0].strip().lower()
    if media not in MEDIA_TYPES:
        supported = MEDIA_TYPES[-1].decode()
        raise CallError(StatusCode.UNIMPLEMENTED, f"{media.decode('latin-1')[:60]} is not supported; send {supported}")
    path: str = scope["path"]
    if method := find_method(path):
        return method
    service, _, name = path.lstrip("/").partition("/")
    if service in list_services():
        raise CallError(StatusCode.UNIMPLEMENTED, f"unknown method {name[:100]} for service {service}")
    raise CallError(StatusCode.UNIMPLEMENTED, f"unknown service {service[:100]}")


def _build_request(method: Method, data: bytes) -> RestRequest:
    return build_rest_request(method, decode_message(method.request, data))


def _read_timeout(scope: Scope) -> float | None:
    text = _get_header(scope, b"grpc-timeout").decode("latin-1")
    if not text:
        return None
    match = _TIMEOUT.fullmatch(text)
    if match is None:
        raise CallError(StatusCode.INVALID_ARGUMENT, "malformed grpc-timeout; send up to 8 digits and one of HMSmun")
    return int(match[1]) * _SECONDS[match[2]]


def _build_scope(scope: Scope, request: RestRequest) -> Scope:
    """Build the scope of the REST request. argo: the metadata `token` wins over Authorization and cookie."""
    headers = [(name, value) for name, value in scope["headers"] if name not in _OWN_HEADERS]
    if token := _get_header(scope, b"token").strip():
        headers = [(name, value) for name, value in headers if name != b"authorization"]
        headers.append((b"authorization", b"Bearer " + token))
    headers.append((b"accept", b"application/json"))
    if request.http_method != "GET":
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(request.body))]
    return {
        **scope,
        "method": request.http_method,
        "path": unquote(request.raw_path),
        "raw_path": request.raw_path.encode(),
        "query_string": request.query.encode(),
        "headers": headers,
        "extensions": {**scope.get("extensions", {}), CALL_EXTENSION: {}},
    }


def _build_receive(body: bytes, receive: Receive) -> Receive:
    """Return a function that gives the body of the REST request, and then only tells when the client is gone."""
    events = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_event() -> MutableMapping[str, Any]:
        return events.pop() if events else await receive()

    return receive_event


async def _read_chunks(receive: Receive) -> AsyncIterator[bytes]:
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise ClientGone
        yield event.get("body", b"")
        if not event.get("more_body", False):
            return


def _get_header(scope: Scope, name: bytes) -> bytes:
    """Return the last value of a header."""
    value: bytes = next((value for header, value in reversed(scope["headers"]) if header == name), b"")
    return value
