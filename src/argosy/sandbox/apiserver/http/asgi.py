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
from argosy.sandbox.apiserver.authentication import impersonated
from argosy.sandbox.apiserver.authorization import Attributes
from argosy.sandbox.apiserver.http.content_negotiation import MEDIA_TYPES, form_for
from argosy.sandbox.apiserver.http.metrics import Metrics
from argosy.sandbox.apiserver.http.nonresource_endpoints import OPEN_PATHS, Plumbing
from argosy.sandbox.apiserver.http.paths import NoSuchPath, resolve
from argosy.sandbox.apiserver.http.protocol_limits import FLOW
from argosy.sandbox.apiserver.http.request import (
    MOST_HEADERS,
    MOST_WAITING,
    MOST_WRITES,
    ClientTooSlow,
    InFlight,
    Receive,
    Request,
    Scope,
    Send,
)
from argosy.sandbox.apiserver.http.resource_endpoints import Resources
from argosy.sandbox.apiserver.http.response_encoding import encode
from argosy.sandbox.apiserver.http.write_budget import WatchLimit, WriteBudget

if TYPE_CHECKING:
    from argosy.sandbox.apiserver.control_plane import Plane

log = logging.getLogger(__name__)
METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})
DELIVERY = "/argoproj.io/"
NOT_FOUND = b"404 page not found\n"


class App:
    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._registry = plane.registry
        self.budget = WriteBudget()
        self._resources = Resources(plane.registry, plane.actions, WatchLimit(plane.max_watches_per_user))
        self._metrics = Metrics(plane.registry.store)
        self._plumbing = Plumbing(plane, self._metrics)
        self._writes = InFlight(MOST_WRITES, MOST_WAITING)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive, send)
        started = False

        async def once(message: MutableMapping[str, Any]) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._metrics.answered(request.method, message["status"])
                _tell(request, message["status"])
            await send(message)

        request.send_with(once)
        try:
            if len(scope["headers"]) > MOST_HEADERS:
                raise ClusterError("too many header fields", code=431, reason="RequestHeaderFieldsTooLarge")
            await self._serve(request, scope["headers"])
        except ArgosyError as error:
            if not started:
                await self._refuse(request, await self._settled_refusal(request, error))
            elif isinstance(error, ClusterError) and error.code == 429:
                log.warning("closed a connection: unread responses of its user exceed the user's share of memory")
                _abort(scope)
        except NoSuchPath:
            await request.respond(
                404, NOT_FOUND, media="text/plain; charset=utf-8", headers=[(b"x-content-type-options", b"nosniff")]
            )
        except ClientTooSlow as error:
            log.warning("closed a connection: %s %s: %s", request.method, request.path, error)
            _abort(scope)
        except (ConnectionError, TimeoutError):
            if not started:
                await self._refuse(
                    request, ClusterError("timeout while reading the request body", code=408, reason="Timeout")
                )
        except Exception:
            log.exception("%s %s", request.method, request.path)
            if not started:
                await self._refuse(request, status_errors.internal("internal error; see the log of the server"))

    async def _settled_refusal(self, request: Request, error: ArgosyError) -> ArgosyError:
        """The error to return: an error may depend on a staged write; if that write fails, its error is returned."""
        if request.method != "GET":
            try:
                await self._plane.store.settled()
            except ArgosyError as unwritten:
                return unwritten
        return error

    async def _serve(self, request: Request, raw_headers: list[tuple[bytes, bytes]]) -> None:
        path = request.path
        if path in OPEN_PATHS and request.method == "GET":
            await self._plumbing.serve(request)
            return
        user = self._user(request, raw_headers)
        request.count_with(partial(self.budget.hold, user.name))
        if request.method not in METHODS:
            raise status_errors.method_not_allowed()
        if path.startswith(("/api/", "/apis/")) and path.count("/") >= 3 + path.startswith("/apis/"):
            target = resolve(self._registry.catalog, path)
            async with self._writes if request.method != "GET" else nullcontext():
                await self._resources.serve(request, target, user)
            return
        if request.method != "GET":
            raise status_errors.method_not_allowed()
        self._registry.access.require(user, Attributes("get", path=path))
        await self._plumbing.serve(request)

    def _user(self, request: Request, raw_headers: list[tuple[bytes, bytes]]) -> User:
        user = self._plane.identity.of_header(request.header(b"authorization"))
        if user is None:
            raise status_errors.unauthorized()
        return impersonated(self._registry.access, user, request.headers, raw_headers)

    async def _refuse(self, request: Request, error: ArgosyError) -> None:
        status = status_errors.status_of(error)
        if status["code"] != 404 or request.method != "GET":  # a GET of a missing object is routine
            log.info("%s %s: %s %s", request.method, request.path, status["code"], error)
        retry = (status.get("details") or {}).get("retryAfterSeconds")
        headers = [(b"retry-after", str(retry).encode())] if retry else []
        code = int(status["code"])
        try:
            form = form_for(request.header(b"accept"))._replace(projection="")
        except ClusterError:  # no acceptable format: respond with indented JSON
            await request.respond(code, orjson.dumps(status, option=orjson.OPT_INDENT_2), headers=headers)
            return
        await request.respond(code, encode(status, form), media=MEDIA_TYPES[form.encoding], headers=headers)


def _abort(scope: Scope) -> None:
    """Abort the connection and discard its write buffer."""
    if flow := (scope.get("extensions") or {}).get(FLOW):
        flow["abort"]()


def _tell(request: Request, code: int) -> None:
    """Log successful writes of Applications and AppProjects, like Argo CD's server does."""
    if request.method not in ("GET", "HEAD") and DELIVERY in request.path and code < 400:
        log.info("%s %s: %s", request.method, request.path, code)
