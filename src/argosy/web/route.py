"""Route definitions: path, required permission, handler. A route without a permission cannot be constructed.

In: entries of the route table. Out: Route values, and a tree that finds a route by its path. Never: authorizes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

from argosy.errors import UserError
from argosy.web.request import Asked
from argosy.web.responses import Answer

READING: Final = ("GET", "HEAD")
METHODS: Final = ("DELETE", "GET", "PATCH", "POST", "PUT")
MOST_BODY: Final = 3 << 20  # argo: bytes


@dataclass(frozen=True)
class Found:
    """Object that a request is about, and its RBAC object name. `error` is reported only to callers who may see it."""

    subject: Any
    thing: str
    fault: UserError | None = None
    action: str = ""  # argo: finer action than the route's, such as update/apps/Deployment/ml/web
    read: Callable[[], Any] | None = None  # builds the subject after authorization


Resolver = Callable[[Asked], Awaitable[Found | None]]


@dataclass(frozen=True)
class Public:
    """Open to everyone; `reason` is for reviewers of the list of public routes."""

    why: str


@dataclass(frozen=True)
class SignedIn:
    """Open to every signed-in caller."""


@dataclass(frozen=True)
class May:
    resource: str
    action: str
    of: Resolver


@dataclass(frozen=True)
class Filtered:
    """A list: open to every signed-in caller; the handler leaves out items that they may not see."""

    resource: str
    action: str


Needs = Public | SignedIn | May | Filtered


@dataclass(frozen=True)
class Parameter:
    """A query parameter."""

    name: str
    about: str = ""
    kind: str = "string"  # string, boolean, integer, or array (of strings)
    is_required: bool = False


@dataclass(frozen=True)
class Route:
    method: str
    path: str  # /api/v1/applications/{name}; {rest*} at the end matches the remaining path
    needs: Needs
    answer: Callable[[Asked], Awaitable[Answer]]
    about: str = ""
    query: tuple[Parameter | str, ...] = ()
    takes: Mapping[str, Any] | str | None = None  # schema of the request body, or its name in api/schemas.py
    gives: Mapping[str, Any] | str | None = None  # schema of the response
    makes: tuple[str, ...] = ("application/json",)  # media types of the response
    is_change: bool | None = None  # None: derived from the method
    media: tuple[str, ...] = ()  # accepted media types; empty: JSON for the API, forms for pages
    most: int = MOST_BODY
    tag: str = ""
    operation: str = ""  # operationId in OpenAPI; empty: derived from the handler

    def __post_init__(self) -> None:
        if not isinstance(self.needs, Public | SignedIn | May | Filtered):
            raise TypeError(f"{self.method} {self.path}: a permission is required")
        if self.method not in METHODS or not self.path.startswith("/"):
            raise TypeError(f"{self.method} {self.path}: invalid method or path")
        if self.method == "GET" and self.is_change:
            raise TypeError(f"GET {self.path}: a GET route must not change anything")

    @property
    def changes(self) -> bool:
        return self.method not in READING if self.is_change is None else self.is_change

    @property
    def is_api(self) -> bool:
        return is_api(self.path)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the path parameters."""
        return tuple(part[1:-1].rstrip("*") for part in self.path.split("/") if part.startswith("{"))


def is_api(path: str) -> bool:
    """True if the path is for programs: errors are JSON, not pages."""
    return path.startswith("/api/") or path in ("/metrics", "/healthz", "/readyz", "/swagger.json")


@dataclass
class _Node:
    named: dict[str, _Node] = field(default_factory=dict)
    any: _Node | None = None
    here: dict[str, Route] = field(default_factory=dict)  # by method
    rest: dict[str, Route] = field(default_factory=dict)


@dataclass(frozen=True)
class Match:
    route: Route | None  # None: the path exists, but only for other methods
    values: Mapping[str, str]
    allowed: tuple[str, ...]  # methods, if `route` is None


class Tree:
    """Routes by path segment. A literal segment takes precedence over a parameter."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._root = _Node()
        for route in routes:
            self._add(route)

    def _add(self, route: Route) -> None:
        node = self._root
        for part in route.path[1:].split("/"):
            if part.endswith("*}"):
                _put(node.rest, route)
                return
            if part.startswith("{"):
                node.any = node.any or _Node()
                node = node.any
            else:
                node = node.named.setdefault(part, _Node())
        _put(node.here, route)

    def find(self, method: str, raw_path: str) -> Match | None:
        """Find a route by the raw path: a percent-encoded slash is part of a parameter."""
        parts = [unquote(part, errors="strict") for part in raw_path[1:].split("/")]
        if any(part in (".", "..") or "\0" in part for part in parts):
            return None
        allowed: set[str] = set()
        for routes, values in _walk(self._root, parts, 0, []):
            if route := routes.get("GET" if method == "HEAD" else method):
                return Match(route, dict(zip(route.names, values)), ())
            allowed |= {*routes, *(("HEAD",) if "GET" in routes else ())}
        return Match(None, {}, tuple(sorted(allowed))) if allowed else None


def _put(routes: dict[str, Route], route: Route) -> None:
    if route.method in routes:
        raise TypeError(f"{route.method} {route.path}: conflicts with {routes[route.method].path}")
    routes[route.method] = route


def _walk(node: _Node, parts: list[str], at: int, values: list[str]) -> Iterator[tuple[dict[str, Route], list[str]]]:
    """Yield all matches, best first: a literal path for one method leaves other methods to parameter paths."""
    if at == len(parts):
        if node.here:
            yield node.here, values
        return
    if named := node.named.get(parts[at]):
        yield from _walk(named, parts, at + 1, values)
    if node.any and parts[at]:
        yield from _walk(node.any, parts, at + 1, [*values, parts[at]])
    if node.rest:
        yield node.rest, [*values, "/".join(parts[at:])]
