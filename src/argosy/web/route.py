"""What a route is: where, what it needs, what it answers. One that does not say what it needs cannot be made.

In: parts of a table. Out: Route values, and a tree that finds one by a path. Never: decides who may.
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
    """What a request is about, and its name for the policy. `fault`: told to who may see it, and to nobody else."""

    subject: Any
    thing: str
    fault: UserError | None = None
    action: str = ""  # argo: a finer one in place of the route's, such as update/apps/Deployment/ml/web
    read: Callable[[], Any] | None = None  # makes the subject, once it is known that it may be seen


Resolver = Callable[[Asked], Awaitable[Found | None]]


@dataclass(frozen=True)
class Public:
    """For everybody. Why is for who reviews the list of these."""

    why: str


@dataclass(frozen=True)
class SignedIn:
    """For whoever has shown who they are."""


@dataclass(frozen=True)
class May:
    resource: str
    action: str
    of: Resolver


@dataclass(frozen=True)
class Filtered:
    """A list: for whoever is signed in, and the answer leaves out what they may not."""

    resource: str
    action: str


Needs = Public | SignedIn | May | Filtered


@dataclass(frozen=True)
class Parameter:
    """Of the query."""

    name: str
    about: str = ""
    kind: str = "string"  # string, boolean, integer, or array (of strings)
    is_required: bool = False


@dataclass(frozen=True)
class Route:
    method: str
    path: str  # /api/v1/applications/{name}; {rest*} at the end takes what is left
    needs: Needs
    answer: Callable[[Asked], Awaitable[Answer]]
    about: str = ""
    query: tuple[Parameter | str, ...] = ()
    takes: Mapping[str, Any] | str | None = None  # the schema of what is sent, or its name in api/schemas.py
    gives: Mapping[str, Any] | str | None = None  # of what is answered
    makes: tuple[str, ...] = ("application/json",)  # media types of what is answered
    is_change: bool | None = None  # None: by the method
    media: tuple[str, ...] = ()  # what may be sent; empty: JSON to the API, forms to pages
    most: int = MOST_BODY
    tag: str = ""
    operation: str = ""  # its name in the OpenAPI document; empty: by its function

    def __post_init__(self) -> None:
        if not isinstance(self.needs, Public | SignedIn | May | Filtered):
            raise TypeError(f"{self.method} {self.path}: say what it needs")
        if self.method not in METHODS or not self.path.startswith("/"):
            raise TypeError(f"{self.method} {self.path}: is no route")
        if self.method == "GET" and self.is_change:
            raise TypeError(f"GET {self.path}: a question changes nothing")

    @property
    def changes(self) -> bool:
        return self.method not in READING if self.is_change is None else self.is_change

    @property
    def is_api(self) -> bool:
        return is_api(self.path)

    @property
    def names(self) -> tuple[str, ...]:
        """Of what stands in braces."""
        return tuple(part[1:-1].rstrip("*") for part in self.path.split("/") if part.startswith("{"))


def is_api(path: str) -> bool:
    """Answers of these are for programs: errors are JSON there, and pages elsewhere."""
    return path.startswith("/api/") or path in ("/metrics", "/healthz", "/readyz", "/swagger.json")


@dataclass
class _Node:
    named: dict[str, _Node] = field(default_factory=dict)
    any: _Node | None = None
    here: dict[str, Route] = field(default_factory=dict)  # by method
    rest: dict[str, Route] = field(default_factory=dict)


@dataclass(frozen=True)
class Match:
    route: Route | None  # None: only other methods lead on from here
    values: Mapping[str, str]
    allowed: tuple[str, ...]  # where there is none


class Tree:
    """All routes, by the parts of their paths. A part that is written out goes before one in braces."""

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
        """The path as it was sent: a slash in a name is percent-encoded, and is read as part of the name."""
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
        raise TypeError(f"{route.method} {route.path}: there is {routes[route.method].path} already")
    routes[route.method] = route


def _walk(node: _Node, parts: list[str], at: int, values: list[str]) -> Iterator[tuple[dict[str, Route], list[str]]]:
    """All that fit, the best first: what is written out for one method leaves the others to what is in braces."""
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
