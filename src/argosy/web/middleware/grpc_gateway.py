"""gRPC and gRPC-Web: hands each call to the REST route of its method, and encodes the response as protobuf.

In: ASGI requests with the frames of messages. Out: for the routes, REST requests; for the client, frames and a status.
Never: another way to the data than a REST route, with its authentication, permission, limits, redaction and audit.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol
from urllib.parse import unquote

from argosy.errors import ManifestError
from argosy.web import request_limits
from argosy.web.auth.caller import BadCredential, Caller
from argosy.web.authorization import NotAuthenticated
from argosy.web.error_details import describe_error
from argosy.web.grpc.call_status import CallError, CallStatus, StatusCode
from argosy.web.grpc.codec_threads import MAX_INLINE_BYTES, CodecThreads
from argosy.web.grpc.message_codec import decode_message
from argosy.web.grpc.message_frames import HEADER_BYTES, split_frames
from argosy.web.grpc.rest_requests import RestRequest, build_rest_request, build_stream_request
from argosy.web.grpc.service_table import Method, find_method, list_services
from argosy.web.middleware import request_head
from argosy.web.middleware.grpc_client_stream import ClientStream
from argosy.web.middleware.grpc_response import GrpcResponse, ResponseEncoding
from argosy.web.request import QueryParameters
from argosy.web.request_limits import ConcurrencyLimits, RequestLimitExceeded
from argosy.web.route import MAX_BODY_BYTES, Public, Route, RouteTree

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

MEDIA_PREFIX: Final = b"application/grpc"
MEDIA_TYPES: Final = (b"application/grpc-web", b"application/grpc-web+proto")
NATIVE_MEDIA_TYPES: Final = (b"application/grpc", b"application/grpc+proto")  # over HTTP/2 only
CALL_EXTENSION: Final = "argosy.grpc_call"  # the query parameters of a REST request that was a call
MAX_ANONYMOUS_BODY_BYTES: Final = 64 << 10
CLIENT_CLOSED_REQUEST: Final = 499
_HTTP_CODES: Final[dict[int, int]] = {  # of refused calls; argo: Internal means a malformed message
    StatusCode.INVALID_ARGUMENT: 400, StatusCode.RESOURCE_EXHAUSTED: 429, StatusCode.UNIMPLEMENTED: 501,
    StatusCode.INTERNAL: 400,
}  # fmt: skip
_TIMEOUT: Final = re.compile(r"(\d{1,8})([HMSmun])", re.ASCII)
_SECONDS: Final = {"H": 3600.0, "M": 60.0, "S": 1.0, "m": 1e-3, "u": 1e-6, "n": 1e-9}
# Headers about the call's own body, or replaced by those of the REST request.
_OWN_HEADERS: Final = frozenset({
    b"accept", b"accept-encoding", b"connection", b"content-encoding", b"content-length", b"content-type",
    b"grpc-accept-encoding", b"grpc-encoding", b"grpc-timeout", b"te", b"token", b"transfer-encoding",
})  # fmt: skip


class CallHandler(Protocol):
    """What the REST pipeline does for a call before, or instead of, the REST request."""

    @property
    def client_address(self) -> str: ...

    @property
    def credential_error(self) -> BadCredential | None:
        """Why the credentials of the call are invalid; None if they are valid or missing."""
        ...

    async def identify_caller(self) -> Caller:
        """Check the head of the call; return the caller, NOBODY without valid credentials."""
        ...

    def record_refusal(self, route: Route | None, code: int) -> None:
        """Count a call that ended before its REST request, and write its audit line if the route changes something."""
        ...


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


def is_grpc_call(scope: Scope) -> bool:
    return scope["method"] == "POST" and _get_header(scope, b"content-type").lower().startswith(MEDIA_PREFIX)


def find_call_parameters(scope: Scope) -> QueryParameters | None:
    """Return the query parameters of a REST request that was a call; None for other requests."""
    parameters: QueryParameters | None = scope.get("extensions", {}).get(CALL_EXTENSION)
    return parameters


class GrpcGateway:
    def __init__(
        self,
        application: Application,
        build_handler: Callable[[Scope, Receive], CallHandler],
        routes: RouteTree,
        limits: ConcurrencyLimits,
        closing: asyncio.Event,
        *,
        is_tls: bool,
    ) -> None:
        self._application, self._build_handler, self._routes = application, build_handler, routes
        self._limits, self._closing, self._is_tls = limits, closing, is_tls
        self._threads = CodecThreads()
        self._changes: set[asyncio.Task[None]] = set()  # REST requests that change something

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        encoding = ResponseEncoding.GRPC if _is_native(scope) else ResponseEncoding.GRPC_WEB
        response = GrpcResponse(send, self._threads, encoding, is_tls=self._is_tls)
        call = _Call(self._build_handler({**scope, "headers": _build_headers(scope)}, receive))
        try:
            async with asyncio.timeout(_read_timeout(scope)):
                await self._handle(scope, receive, call, response)
        except ClientGone:
            call.record_refusal(CLIENT_CLOSED_REQUEST)
        except (Exception, asyncio.CancelledError) as error:
            status, http_code = _describe_end(error)
            call.record_refusal(CLIENT_CLOSED_REQUEST if request_head.is_client_gone(scope) else http_code)
            await response.finish(status)
            if isinstance(error, asyncio.CancelledError):
                raise

    async def _handle(self, scope: Scope, receive: Receive, call: _Call, response: GrpcResponse) -> None:
        caller = await call.handler.identify_caller()
        method = _find_method(scope)
        call.route = route = self._find_route(method)
        if caller.is_nobody and not isinstance(route.access, Public):
            raise call.handler.credential_error or NotAuthenticated  # before the body is read
        stream = self._open_stream(scope, receive, method, route) if method.is_client_stream else None
        rest_receive: Receive
        if stream is not None:
            rest_scope, rest_receive = _build_scope(scope, build_stream_request(method)), stream.receive_event
        else:
            request = await self._read_request(scope, receive, method, caller, call.handler.client_address)
            rest_scope, rest_receive = _build_scope(scope, request), _build_receive(request.body, receive)
        response.begin(method, is_signed_in=not caller.is_nobody)
        call.is_recorded = True  # by the REST request
        running = self._application(rest_scope, rest_receive, response.take_event)
        await (self._complete(running) if route.is_mutating else running)
        if stream is not None and stream.error is not None:
            raise stream.error
        status = await response.end()
        if method.is_server_stream and not status.code and self._closing.is_set():
            status = CallStatus(StatusCode.UNAVAILABLE, "the server is shutting down")
        await response.finish(status)

    def _find_route(self, method: Method) -> Route:
        """Find the route of a method. Its bindings differ in their parameters only."""
        binding = method.bindings[0]
        match = self._routes.find(binding.http_method, binding.build_path(dict.fromkeys(binding.parameter_names, "x")))
        if match is None or match.route is None:
            raise CallError(StatusCode.UNIMPLEMENTED, f"method {method.path} is not implemented")
        return match.route

    async def _complete(self, running: Awaitable[None]) -> None:
        """Run a change to its end, even if the deadline of the call ends the call: its result is recorded then."""
        task = asyncio.ensure_future(running)
        self._changes.add(task)
        task.add_done_callback(self._changes.discard)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._closing.is_set():  # REST requests that the stopping server does not wait for are cancelled, too
                task.cancel()
            raise

    def _open_stream(self, scope: Scope, receive: Receive, method: Method, route: Route) -> ClientStream:
        """Open the messages of a client stream, whose REST request reads them when its caller may send them."""
        return ClientStream(
            method,
            _read_chunks(receive),
            receive,
            self._threads,
            encoding=_read_encoding(scope),
            max_bytes=route.max_body_bytes + HEADER_BYTES,
        )

    async def _read_request(
        self, scope: Scope, receive: Receive, method: Method, caller: Caller, client_address: str
    ) -> RestRequest:
        """Read and decode the message of a call, both within the limits of its caller."""
        encoding = _read_encoding(scope)
        is_signed_in = not caller.is_nobody
        limits = self._limits
        with limits.limit_request(is_change=False) if is_signed_in else limits.limit_anonymous(client_address):
            body = await _read_body(scope, receive, is_signed_in=is_signed_in)
            decode = partial(_build_request, method, body, encoding)
            is_large = is_signed_in and len(body) > MAX_INLINE_BYTES
            with limits.limit_decoding(caller.name) if is_large else nullcontext():
                return await self._threads.run(decode, len(body), is_signed_in=is_signed_in)


@dataclass
class _Call:
    handler: CallHandler
    route: Route | None = None
    is_recorded: bool = False

    def record_refusal(self, code: int) -> None:
        if not self.is_recorded:
            self.is_recorded = True
            self.handler.record_refusal(self.route, code)


def _describe_end(error: BaseException) -> tuple[CallStatus, int]:
    """Return the status of a call that an error ended, and the HTTP code that counts it."""
    match error:
        case CallError():
            return error.status, _HTTP_CODES.get(error.status.code, 500)
        case ManifestError():  # argo
            problem = f"grpc: failed to unmarshal the received message: {error}"
            return CallStatus(StatusCode.INTERNAL, problem), 400
        case TimeoutError():
            return CallStatus(StatusCode.DEADLINE_EXCEEDED, "context deadline exceeded"), 408
        case asyncio.CancelledError():
            return CallStatus(StatusCode.UNAVAILABLE, "the server is shutting down"), 503
        case _:
            details = describe_error(error)
            return CallStatus(details.grpc_code, details.message), details.code


async def _read_body(scope: Scope, receive: Receive, *, is_signed_in: bool) -> bytes:
    maximum = MAX_BODY_BYTES + HEADER_BYTES if is_signed_in else MAX_ANONYMOUS_BODY_BYTES
    declared, chunks = _get_header(scope, b"content-length").decode("latin-1"), _read_chunks(receive)
    try:
        request_limits.check_content_length(declared, maximum)
        if is_signed_in:
            return await request_limits.read_body(chunks, maximum)
        return await request_limits.read_body(chunks, maximum, request_limits.ANONYMOUS_BODY_TIMEOUT_SECONDS)
    except RequestLimitExceeded as error:
        if error.code == 413 and not is_signed_in:  # no message of a login is that long
            raise NotAuthenticated from None
        raise


def _is_native(scope: Scope) -> bool:
    """True for gRPC over HTTP/2, false for gRPC-Web over any version of HTTP."""
    media = _get_header(scope, b"content-type").lower()
    return bool(scope["http_version"] == "2" and not media.startswith(MEDIA_TYPES[0]))


def _read_encoding(scope: Scope) -> str:
    return _get_header(scope, b"grpc-encoding").decode("latin-1").strip().lower()


def _find_method(scope: Scope) -> Method:
    media = _get_header(scope, b"content-type").partition(b";")[0].strip().lower()
    is_native = _is_native(scope)
    if media not in (NATIVE_MEDIA_TYPES if is_native else MEDIA_TYPES):
        supported = (NATIVE_MEDIA_TYPES if is_native else MEDIA_TYPES)[-1].decode()
        raise CallError(StatusCode.UNIMPLEMENTED, f"{media.decode('latin-1')[:60]} is not supported; send {supported}")
    path: str = scope["path"]
    if method := find_method(path):
        return method
    service, _, name = path.lstrip("/").partition("/")
    if service in list_services():
        raise CallError(StatusCode.UNIMPLEMENTED, f"unknown method {name[:100]} for service {service}")
    raise CallError(StatusCode.UNIMPLEMENTED, f"unknown service {service[:100]}")


def _build_request(method: Method, body: bytes, encoding: str) -> RestRequest:
    messages = split_frames(body, encoding)
    if not messages:
        raise CallError(StatusCode.INTERNAL, f"cardinality violation: {method.path} received no request message")
    if len(messages) > 1:
        raise CallError(StatusCode.INTERNAL, f"cardinality violation: {method.path} takes one request message")
    return build_rest_request(method, decode_message(method.request, messages[0]))


def _read_timeout(scope: Scope) -> float | None:
    text = _get_header(scope, b"grpc-timeout").decode("latin-1")
    if not text:
        return None
    match = _TIMEOUT.fullmatch(text)
    if match is None:
        raise CallError(StatusCode.INVALID_ARGUMENT, "malformed grpc-timeout; send up to 8 digits and one of HMSmun")
    return int(match[1]) * _SECONDS[match[2]]


def _build_scope(scope: Scope, request: RestRequest) -> Scope:
    headers = _build_headers(scope)
    if request.http_method != "GET":
        headers.append((b"content-type", b"application/json"))
    if request.body:
        headers.append((b"content-length", b"%d" % len(request.body)))
    return {
        **scope,
        "method": request.http_method,
        "path": unquote(request.raw_path),
        "raw_path": request.raw_path.encode(),
        "query_string": b"",
        "headers": headers,
        "extensions": {**scope.get("extensions", {}), CALL_EXTENSION: QueryParameters(list(request.parameters))},
    }


def _build_headers(scope: Scope) -> list[tuple[bytes, bytes]]:
    """Build the headers of the REST request. argo: the metadata `token` wins over Authorization and cookie."""
    headers = [(name, value) for name, value in scope["headers"] if name not in _OWN_HEADERS]
    if token := _get_header(scope, b"token").strip():
        headers = [(name, value) for name, value in headers if name != b"authorization"]
        headers.append((b"authorization", b"Bearer " + token))
    return [*headers, (b"accept", b"application/json")]


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
