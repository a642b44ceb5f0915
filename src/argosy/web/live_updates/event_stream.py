"""`/live`: event stream of an open page.

In: `GET /live?at=PAGE`. Out: server-sent events. Never: for a page that is not live or that the caller may not see.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator

from argosy.web.live_updates.hub import SIGNED_OUT
from argosy.web.request import Asked, Refused
from argosy.web.responses import Stream
from argosy.web.route import Parameter, Route, SignedIn


async def live(asked: Asked) -> Stream:
    if asked.site.hub is None:
        raise Refused
    asked.entry.turnstile.check_stream(asked.caller.name)  # before anything is rendered
    events = asked.site.hub.stream(asked)
    first = await anext(events)  # raises if forbidden, while an error response is still possible
    if asked.method == "HEAD":  # nobody reads the events
        await events.aclose()
    return Stream(_after(first, events), farewell=SIGNED_OUT, headers=(("cache-control", "no-store"),))


async def _after(first: bytes, events: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    try:
        yield first
        async for event in events:
            yield event
    finally:
        await events.aclose()


ROUTES = (
    Route(
        "GET",
        "/live",
        SignedIn(),
        live,
        "Changed parts of a page, as server-sent events.",
        query=(
            Parameter("at", "the path and query of the page", is_required=True),
            Parameter("since", "position in the change feed when the page was rendered"),
        ),
    ),
)
