"""Which parts of a page are live.

In: what a page says of itself. Out: Live values, found by the path of a page. Never: renders.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.web.request import Asked, Refused
from argosy.web.responses import Answer
from argosy.web.route import Needs, Route

Fragments = Callable[[Asked], Awaitable[Mapping[str, str]]]
Touches = Callable[[Manifest | None, Manifest | None], bool]
TouchesThis = Callable[[Asked, Manifest | None, Manifest | None], bool]


@dataclass(frozen=True)
class Live:
    """`fragments` is asked as the page itself is, and gives whole elements by their ids.

    They are shared by all who may the same: nothing in them is of one caller. `touches` is a quick look whether a
    change may matter to any page of this path; `of` whether it matters to this one.
    """

    path: str
    needs: Needs
    fragments: Fragments
    touches: Touches
    of: TouchesThis | None = None

    @property
    def route(self) -> Route:
        """As its page: to be found by a path, and to ask for the same permission."""
        return Route("GET", self.path, self.needs, _page)


async def _page(asked: Asked) -> Answer:
    raise Refused  # the page itself answers; this only stands for it


def touches_kinds(*kinds: GroupKind) -> Touches:
    """Build a test that is true for changes of objects of these kinds."""
    names = {kind.kind for kind in kinds}

    def touches(before: Manifest | None, after: Manifest | None) -> bool:
        return (after or before or {}).get("kind") in names

    return touches


def is_in_namespace(asked: Asked, before: Manifest | None, after: Manifest | None) -> bool:
    """True if the changed object is in the namespace of the page's object, or in that of Applications."""
    changed: Mapping[str, Any] = (after or before or {}).get("metadata") or {}
    return changed.get("namespace") in (asked.values.get("ns"), asked.site.desk.control)
