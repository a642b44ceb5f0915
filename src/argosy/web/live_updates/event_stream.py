"""`/live`: event stream of an open page.

In: `GET /live?at=PAGE`. Out: server-sent events. Never: for a page that is not live or that the caller may not see.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from functools import partial

from argosy.web.live_updates.hub import SIGNED_OUT_EVENT
from argosy.web.request import NotFoundOrForbidden, RequestContext
from argosy.web.request_limits import ConcurrencyLimits
from argosy.web.responses import StreamResponse
from argosy.web.route import QueryParameter, Route, SignedIn


async def stream_live_updates(limits: ConcurrencyLimits, request: RequestContext) -> StreamResponse:
    if request.live_updates is None:
        raise NotFoundOrForbidden
    limits.check_stream_limit(request.caller.name)  # before anything is rendered
    events = request.live_updates.stream(request)
    first = await anext(events)  # raises if forbidden, while an error response is still possible
    if request.method == "HEAD":  # nobody reads the events
        await events.aclose()
    return StreamResponse(
        _prepend(first, events), last_chunk=SIGNED_OUT_EVENT, headers=(("cache-control", "no-store"),)
    )


async def _prepend(first: bytes, events: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    try:
        yield first
        async for event in events:
            yield event
    finally:
        await events.aclose()


def build_routes(limits: ConcurrencyLimits) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            "/live",
            SignedIn(),
            partial(stream_live_updates, limits),
            "Changed parts of a page, as server-sent events.",
            query=(
                QueryParameter("at", "the path and query of the page", is_required=True),
                QueryParameter("since", "position in the change feed when the page was rendered"),
            ),
        ),
    )
