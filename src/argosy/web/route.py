"""Route definitions: path, required permission, handler. A route without a permission cannot be constructed.

In: entries of the route table. Out: Route values, and a tree that finds a route by its path. Never: authorizes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from argosy.errors import UserError
from argosy.web.request import ObjectNotFound, RequestContext
from argosy.web.responses import WebResponse

READ_METHODS: Final = ("GET", "HEAD")
METHODS: Final = ("DELETE", "GET", "PATCH", "POST", "PUT")
MAX_BODY_BYTES: Final = 3 << 20  # argo: bytes


@dataclass(frozen=True)
class ResolvedObject:
    """Object that a request is about, and its RBAC object name. `error` is reported only to callers who may see it."""

    subject: Any
    rbac_object: str
    error: UserError | ObjectNotFound | None = None
    action: str = ""  # argo: finer action than the route's, such as update/apps/Deployment/ml/web
    build_subject: Callable[[], Any] | None = None  # builds the subject after authorization
    is_from_request_only: bool = False  # the RBAC object name repeats what was sent, so a refusal may name it


Resolver = Callable[[RequestContext], Awaitable[ResolvedObject | None]]


@dataclass(frozen=True)
class Public:
    """Open to everyone; `reason` is for reviewers of the list of public routes."""

    reason: str


@dataclass(frozen=True)
class SignedIn:
    """Open to every signed-in caller."""


@dataclass(frozen=True)
class RequiresPermission:
    resource: str
    action: str
    resolver: Resolver


@dataclass(frozen=True)
class FilteredList:
    """A list: open to every signed-in caller; the handler leaves out items that they may not see."""

    resource: str
    action: str


RouteAccess = Public | SignedIn | RequiresPermission | FilteredList


@dataclass(frozen=True)
class QueryParameter:
    """A query parameter."""

    name: str
    description: str = ""
    kind: str = "string"  # string, boolean, integer, or array (of strings)
    is_required: bool = False


@dataclass(frozen=True)
class Route:
    method: str
    path: str  # /api/v1/applications/{name}; {rest*} at the end matches the remaining path
    access: RouteAccess
    handler: Callable[[RequestContext], Awaitable[WebResponse]]
    summary: str = ""
    query: tuple[QueryParameter | str, ...] = ()
    request_schema: Mapping[str, Any] | str | None = None  # request body, or a name in api/component_schemas.py
    response_schema: Mapping[str, Any] | str | None = None  # schema of the response
    response_media_types: tuple[str, ...] = ("application/json",)  # media types of the response
    is_change: bool | None = None  # None: derived from the method
    accepted_media_types: tuple[str, ...] = ()  # accepted media types; empty: JSON for the API, forms for pages
    max_body_bytes: int = MAX_BODY_BYTES
    tag: str = ""
    operation_id: str = ""  # operationId in OpenAPI; empty: derived from the handler

    def __post_init__(self) -> None:
        if not isinstance(self.access, Public | SignedIn | RequiresPermission | FilteredList):
            raise TypeError(f"{self.method} {self.path}: a permission is required")
        if self.method not in METHODS or not self.path.startswith("/"):
            raise TypeError(f"{self.method} {self.path}: invalid method or path")
        if self.method == "GET" and self.is_change:
            raise TypeError(f"GET {self.path}: a GET route must not change anything")

    @property
    def is_mutating(self) -> bool:
        return self.method not in READ_METHODS if self.is_change is None else self.is_change

    @property
    def is_api(self) -> bool:
        return is_api_path(self.path)

    @property
    def rbac_resource(self) -> str:
        return self.access.resource if isinstance(self.access, RequiresPermission | FilteredList) else ""

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the path parameters."""
        return tuple(part[1:-1].rstrip("*") for part in self.path.split("/") if part.startswith("{"))


def is_api_path(path: str) -> bool:
    """True if the path is for programs: errors are JSON, not pages."""
    return path.startswith("/api/") or path in ("/metrics", "/healthz", "/readyz", "/swagger.json")


@dataclass
class _RouteNode:
    literal_children: dict[str, _RouteNode] = field(default_factory=dict)
    parameter_child: _RouteNode | None = None
    routes_by_method: dict[str, Route] = field(default_factory=dict)  # by method
    wildcard_routes: dict[str, Route] = field(default_factory=dict)


@dataclass(frozen=True)
class RouteMatch:
    route: Route | None  # None: the path exists, but only for other methods
    values: Mapping[str, str]
    allowed_methods: tuple[str, ...]  # methods, if `route` is None


class RouteTree:
    """Routes by path segment. A literal segment takes precedence over a parameter."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._root = _RouteNode()
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node = self._root
        for part in route.path[1:].split("/"):
            if part.endswith("*}"):
                _register(node.wildcard_routes, route)
                return
            if part.startswith("{"):
                node.parameter_child = node.parameter_child or _RouteNode()
                node = node.parameter_child
            else:
                node = node.literal_children.setdefault(part, _RouteNode())
        _register(node.routes_by_method, route)

    def find(self, method: str, raw_path: str, *, accepts_any_name: bool = False) -> RouteMatch | None:
        """Find a route by the raw path: a percent-encoded slash is part of a parameter.

        `accepts_any_name`: `.`, `..` and names with NUL are parameters, because no URL was sent that they could change.
        """
        parts = [unquote(part, errors="strict") for part in raw_path[1:].split("/")]
        if not accepts_any_name and any(part in (".", "..") or "\0" in part for part in parts):
            return None
        allowed: set[str] = set()
        for routes, values in _find_matches(self._root, parts, 0, []):
            if route := routes.get("GET" if method == "HEAD" else method):
                return RouteMatch(route, dict(zip(route.parameter_names, values)), ())
            allowed |= {*routes, *(("HEAD",) if "GET" in routes else ())}
        return RouteMatch(None, {}, tuple(sorted(allowed))) if allowed else None


def _register(routes: dict[str, Route], route: Route) -> None:
    if route.method in routes:
        raise TypeError(f"{route.method} {route.path}: conflicts with {routes[route.method].path}")
    routes[route.method] = route


def _find_matches(
    node: _RouteNode, parts: list[str], index: int, values: list[str]
) -> Iterator[tuple[dict[str, Route], list[str]]]:
    """Yield all matches, best first: a literal path for one method leaves other methods to parameter paths."""
    if index == len(parts):
        if node.routes_by_method:
            yield node.routes_by_method, values
        return
    if child := node.literal_children.get(parts[index]):
        yield from _find_matches(child, parts, index + 1, values)
    if node.parameter_child and parts[index]:
        yield from _find_matches(node.parameter_child, parts, index + 1, [*values, parts[index]])
    if node.wildcard_routes:
        yield node.wildcard_routes, [*values, "/".join(parts[index:])]
