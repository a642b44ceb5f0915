"""Which parts of a page are live.

In: what a page says of itself. Out: Live values, found by the path of a page. Never: renders.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

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
