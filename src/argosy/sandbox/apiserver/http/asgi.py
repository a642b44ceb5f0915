"""ASGI application of the Kubernetes API: authentication, routing, limits, errors as Status objects."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson

from argosy.errors import ArgosyError, ClusterError
from argosy.kube.client import User
from argosy.sandbox.apiserver import status_errors
from argosy.sandbox.apiserver.authentication import impersonate
from argosy.sandbox.apiserver.authorization import Attributes
from argosy.sandbox.apiserver.http.content_negotiation import MEDIA_TYPES, negotiate_format
from argosy.sandbox.apiserver.http.metrics import ApiServerMetrics
from argosy.sandbox.apiserver.http.nonresource_endpoints import UNAUTHENTICATED_PATHS, NonResourceEndpoints
from argosy.sandbox.apiserver.http.paths import NoSuchPath, resolve_path
from argosy.sandbox.apiserver.http.protocol_limits import FLOW_CONTROL_EXTENSION
from argosy.sandbox.apiserver.http.request_and_response_io import (
    MAX_HEADERS,
    MAX_WAITING_WRITES,
    MAX_WRITES_IN_FLIGHT,
    ClientTooSlow,
    HttpRequest,
    InFlightLimit,
    Receive,
    Scope,
    Send,
)
from argosy.sandbox.apiserver.http.resource_endpoints import ResourceEndpoints
from argosy.sandbox.apiserver.http.response_encoding import encode_response
from argosy.sandbox.apiserver.http.user_memory_and_watch_limits import WatchLimit, WriteBudget

if TYPE_CHECKING:
    from argosy.sandbox.apiserver.control_plane import ControlPlane

log = logging.getLogger(__name__)
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
ARGO_PATH_PART = "/argoproj.io/"
NOT_FOUND_BODY = b"404 page not found\n"


class ApiServerApp:
    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._registry = plane.registry
        self.budget = WriteBudget()
        self._resource_endpoints = ResourceEndpoints(
            plane.registry, plane.subresources, WatchLimit(plane.max_watches_per_user)
        )
        self._metrics = ApiServerMetrics(plane.registry.store)
        self._nonresource_endpoints = NonResourceEndpoints(plane, self._metrics)
        self._write_limit = InFlightLimit(MAX_WRITES_IN_FLIGHT, MAX_WAITING_WRITES)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = HttpRequest(scope, receive, send)
        started = False

        async def send_and_count(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._metrics.count_response(request.method, message["status"])
                _log_argo_write(request, message["status"])
            await send(message)

        request.set_send(send_and_count)
        try:
            if len(scope["headers"]) > MAX_HEADERS:
                raise ClusterError("too many header fields", code=431, reason="RequestHeaderFieldsTooLarge")
            await self._serve(request, scope["headers"])
        except ArgosyError as error:
            if not started:
                await self._respond_with_error(request, await self._prefer_write_error(request, error))
            elif isinstance(error, ClusterError) and error.code == 429:
                log.warning("closed a connection: unread responses of its user exceed the user's share of memory")
                _abort_connection(scope)
        except NoSuchPath:
            await request.respond(
                404,
                NOT_FOUND_BODY,
                media="text/plain; charset=utf-8",
                headers=[(b"x-content-type-options", b"nosniff")],
            )
        except ClientTooSlow as error:
            log.warning("closed a connection: %s %s: %s", request.method, request.path, error)
            _abort_connection(scope)
        except (ConnectionError, TimeoutError):
            if not started:
                await self._respond_with_error(
                    request, ClusterError("timeout while reading the request body", code=408, reason="Timeout")
                )
        except Exception:
            log.exception("%s %s", request.method, request.path)
            if not started:
                await self._respond_with_error(
                    request, status_errors.internal_error("internal error; see the log of the server")
                )

    async def _prefer_write_error(self, request: HttpRequest, error: ArgosyError) -> ArgosyError:
        """The error to return: an error may depend on a staged write; if that write fails, its error is returned."""
        if request.method != "GET":
            try:
                await self._plane.store.wait_until_durable()
            except ArgosyError as write_error:
                return write_error
        return error

    async def _serve(self, request: HttpRequest, raw_headers: list[tuple[bytes, bytes]]) -> None:
        path = request.path
        if path in UNAUTHENTICATED_PATHS and request.method == "GET":
            await self._nonresource_endpoints.serve(request)
            return
        user = self._authenticate(request, raw_headers)
        request.set_byte_counter(partial(self.budget.hold, user.name))
        if request.method not in METHODS:
            raise status_errors.method_not_allowed()
        if path.startswith(("/api/", "/apis/")) and path.count("/") >= 3 + path.startswith("/apis/"):
            target = resolve_path(self._registry.catalog, path)
            async with self._write_limit if request.method != "GET" else nullcontext():
                await self._resource_endpoints.serve(request, target, user)
            return
        if request.method != "GET":
            raise status_errors.method_not_allowed()
        self._registry.access.require(user, Attributes("get", path=path))
        await self._nonresource_endpoints.serve(request)

    def _authenticate(self, request: HttpRequest, raw_headers: list[tuple[bytes, bytes]]) -> User:
        user = self._plane.authenticator.authenticate_header(request.header(b"authorization"))
        if user is None:
            raise status_errors.unauthorized()
        return impersonate(self._registry.access, user, request.headers, raw_headers)

    async def _respond_with_error(self, request: HttpRequest, error: ArgosyError) -> None:
        status = status_errors.error_to_status(error)
        if status["code"] != 404 or request.method != "GET":  # a GET of a missing object is routine
            log.info("%s %s: %s %s", request.method, request.path, status["code"], error)
        retry = (status.get("details") or {}).get("retryAfterSeconds")
        headers = [(b"retry-after", str(retry).encode())] if retry else []
        code = int(status["code"])
        try:
            response_format = negotiate_format(request.header(b"accept"))._replace(projection="")
        except ClusterError:  # no acceptable format: respond with indented JSON
            await request.respond(code, orjson.dumps(status, option=orjson.OPT_INDENT_2), headers=headers)
            return
        await request.respond(
            code, encode_response(status, response_format), media=MEDIA_TYPES[response_format.encoding], headers=headers
        )


def _abort_connection(scope: Scope) -> None:
    """Abort the connection and discard its write buffer."""
    if flow := (scope.get("extensions") or {}).get(FLOW_CONTROL_EXTENSION):
        flow["abort"]()


def _log_argo_write(request: HttpRequest, code: int) -> None:
    """Log successful writes of Applications and AppProjects, like Argo CD's server does."""
    if request.method not in ("GET", "HEAD") and ARGO_PATH_PART in request.path and code < 400:
        log.info("%s %s: %s", request.method, request.path, code)
