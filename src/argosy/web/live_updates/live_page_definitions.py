"""Definitions of live page parts.

In: definitions by pages. Out: LivePage values, found by the path of a page. Never: renders.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.responses import WebResponse
from argosy.web.route import Route, RouteAccess

Fragments = Callable[[RequestContext], Awaitable[Mapping[str, str]]]
ChangePredicate = Callable[[Manifest | None, Manifest | None], bool]
PageChangePredicate = Callable[[RequestContext, Manifest | None, Manifest | None], bool]


@dataclass(frozen=True)
class LivePage:
    """Live parts of a page. `fragments` runs like the page's handler and returns whole elements by their ids.

    They are shared by all readers with the same permissions, so they contain nothing of one caller. `may_affect` is a
    quick check whether a change may affect any page of this path; `affects_page`, whether it affects this one.
    """

    path: str
    access: RouteAccess
    fragments: Fragments
    may_affect: ChangePredicate
    affects_page: PageChangePredicate | None = None

    @property
    def route(self) -> Route:
        """Route with the page's path and permission, to find and authorize the page."""
        return Route("GET", self.path, self.access, _refuse)


async def _refuse(request: RequestContext) -> WebResponse:
    raise NotFoundOrForbidden  # the page has its own handler; this route is only a placeholder


def build_kind_predicate(*kinds: GroupKind) -> ChangePredicate:
    """Build a predicate for changes of objects of these kinds."""
    names = {kind.kind for kind in kinds}

    def may_affect(before: Manifest | None, after: Manifest | None) -> bool:
        return (after or before or {}).get("kind") in names

    return may_affect


def is_in_page_namespace(request: RequestContext, before: Manifest | None, after: Manifest | None) -> bool:
    """True if the changed object is in the namespace of the page's object or of the control plane."""
    changed: Mapping[str, Any] = (after or before or {}).get("metadata") or {}
    return changed.get("namespace") in (request.path_parameters.get("ns"), request.service.control_namespace)
