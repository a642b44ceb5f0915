"""A site on a real socket, without a cluster; the test defines the live objects and the callers.

In: manifests, permissions. Out: a Site, and responses over HTTP. Never: mocks a cluster.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, cast

from argosy.features.serve.http_server import open_listener, serve_application
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.cluster_view.cluster_view import ViewFreshness
from argosy.gitops.policy.rbac import RbacRequester
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.render_cache import RenderCache
from argosy.kube.controller.cache import InformerCache
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.web.auth.caller import NOBODY, BadCredential, Caller, RequestCredentials
from argosy.web.auth.derived_token_limits import NO_LIMITS, TokenLimits
from argosy.web.middleware.asgi_request_pipeline import WebApplication
from argosy.web.middleware.request_head import is_trusted_proxy
from argosy.web.request import QueryParameters, RequestContext
from argosy.web.route import Route
from argosy.web.serve_options import ServeOptions
from argosy.web.site_services import Site
from support.deadlines import HANG_SECONDS
from support.route_table import build_routes

CONTROL = "argocd"
NO_QUERY = QueryParameters([])
SEND_BUFFER_BYTES = 1 << 16


class StillLookout:
    """A cluster view that contains only the objects that a test adds."""

    has_stopped = False
    as_of = ViewFreshness(datetime.now(UTC), is_up=True)
    rules = ReconcilerSettings(repositories=cast(Any, None), assess_all=cast(Any, None))  # no health rules
    render_cache = RenderCache(cast(Any, None), AppMemos())  # never renders

    def __init__(self, manifests: Iterable[Manifest] = ()) -> None:
        self.cache = InformerCache()
        self._listeners: list[Callable[[Manifest | None, Manifest | None], None]] = []
        for manifest in manifests:
            self.put(manifest)

    def put(self, manifest: Manifest) -> None:
        previous = self.cache.put(manifest)
        for listener in tuple(self._listeners):
            listener(previous, manifest)

    def drop(self, key: ResourceKey) -> None:
        previous = self.cache.drop(key)
        for listener in tuple(self._listeners):
            listener(previous, None)

    def add_listener(self, callback: Callable[[Manifest | None, Manifest | None], None]) -> Callable[[], None]:
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)


class KnownPermissions(NamedTuple):
    may: Callable[[str, str, str], bool]
    digest: str


@dataclass
class KnownPeople:
    """Authenticator with fixed users. A token is `NAME` or `NAME:SUFFIX`; `allowed` has a function for each user."""

    allowed: dict[str, Callable[[str, str, str], bool]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    past: set[str] = field(default_factory=set)  # users with an expired token
    signing_key: bytes = b"a key of tests"

    async def identify(self, shown: RequestCredentials) -> Caller | None:
        token, how = (shown.bearer, "bearer") if shown.bearer else (shown.cookies.get("argosy", ""), "cookie")
        if not token:
            return None
        name = token.partition(":")[0]
        if name not in self.allowed or name in self.gone | self.past:
            raise BadCredential
        return Caller(name, (), how, f"id-of-{name}")  # type: ignore[arg-type]

    def get_login_counts(self) -> dict[str, int]:
        return {}

    def get_token_limits(self, caller: Caller, subjects: RbacRequester) -> TokenLimits:
        return NO_LIMITS

    def renew_token(self, caller: Caller) -> str | None:
        return None

    def is_still_valid(self, caller: Caller) -> bool:
        return caller.name not in self.gone | self.past

    def is_expired(self, caller: Caller) -> bool:
        return caller.name in self.past

    def permissions(self, caller: Caller) -> KnownPermissions:
        return KnownPermissions(self.allowed[caller.name], f"{caller.name} {caller.groups}")

    def is_allowed(self, caller: Caller, resource: str, action: str, rbac_object: str) -> bool:
        return self.allowed[caller.name](resource, action, rbac_object)


def anything(resource: str, action: str, thing: str) -> bool:
    return True


def nothing(resource: str, action: str, thing: str) -> bool:
    return False


def a_site(
    manifests: Iterable[Manifest] = (), people: KnownPeople | None = None, cluster: Any = None, **options: Any
) -> Site:
    identities = people or KnownPeople({"ann": anything, "bob": nothing})
    desk = ApplicationService(cluster, "a test", CONTROL, CONTROL)
    return Site(desk, StillLookout(manifests), identities, None, ServeOptions(version="1.2.3", **options))


def a_request(
    site: Site,
    method: str,
    path: str,
    path_parameters: Mapping[str, str] | None = None,
    query: QueryParameters = NO_QUERY,
    headers: Mapping[str, str] | None = None,
    caller: Caller = NOBODY,
    **more: Any,
) -> RequestContext:
    """A request to call handlers with."""
    build = WebApplication(site, ()).build_request
    return build(method, path, path_parameters or {}, query, headers or {}, caller, **more)


class Answered(NamedTuple):
    code: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Each call is one request on a new connection, from another thread."""

    port: int

    def ask(
        self, method: str, path: str, body: bytes | str | None = None, headers: Mapping[str, str] | None = None
    ) -> Answered:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HANG_SECONDS)
        try:
            connection.request(method, path, body, dict(headers or {}))
            got = connection.getresponse()
            return Answered(got.status, {name.lower(): value for name, value in got.getheaders()}, got.read())
        finally:
            connection.close()

    def bearer(self, who: str, method: str, path: str, document: Any = None) -> Answered:
        headers = {"Authorization": f"Bearer {who}", "Content-Type": "application/json"}
        return self.ask(method, path, None if document is None else json.dumps(document), headers)


@contextlib.asynccontextmanager
async def on_a_socket(
    site: Site, routes: Iterable[Route] | None = None
) -> AsyncIterator[tuple[Client, WebApplication]]:
    """Serve these routes, or all of argosy's.

    With a small send buffer; the default varies, and holds megabytes for a client that does not read.
    """
    entry = WebApplication(site, build_routes(site) if routes is None else tuple(routes))
    listener = open_listener("127.0.0.1", 0)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)  # accepted connections inherit this
    is_proxy = partial(is_trusted_proxy, site)
    async with serve_application(entry, [listener], on_closing=entry.close, is_trusted_proxy=is_proxy) as port:
        yield Client(port), entry
