"""Recent activity over argosy's own API: syncs, promotions, Events and changes of settings.

In: a request. Out: JSON. Never: activity of an Application that the caller may not see.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import UserError
from argosy.features.activity import timeline
from argosy.features.activity.timeline import Happening, Wanted
from argosy.features.activity.visible_events import happenings
from argosy.web.api import json_schemas as schema
from argosy.web.api.paging import PAGING, page
from argosy.web.request import Asked, quoted
from argosy.web.responses import Json
from argosy.web.route import Filtered, Parameter, Route

TAG: Final = "overview"
HAPPENING: Final = schema.fields(
    time=schema.TEXT, kind=schema.TEXT, severity=schema.TEXT, title=schema.TEXT, text=schema.TEXT,
    application=schema.TEXT, who=schema.TEXT, count=schema.COUNT, revision=schema.TEXT,
)  # fmt: skip


async def what_happened(asked: Asked) -> Json:
    """List activity, newest first; the continue token is a time."""
    query = asked.query
    if wrong := [each for each in query.all("kind") if each not in timeline.KINDS]:
        raise UserError(f"unknown kind {quoted(wrong[0])}; use one of {', '.join(timeline.KINDS)}", where="kind")
    severity = "bad" if query.text("only") == "bad" else ""
    wanted = Wanted(query.all("kind"), query.text("app"), severity, query.text("q"))
    every = [each async for each in happenings(asked)]
    ordered = timeline.newest(each for each in every if timeline.fits(each, wanted))
    marks = {id(each): f"{_backwards(each.time)} {place:06}" for place, each in enumerate(ordered)}
    return page(asked, ordered, lambda each: marks[id(each)], tell=happening)


def _backwards(time: str) -> str:
    """Invert the digits of a timestamp, so that the newest sorts first as text."""
    return "".join(str(9 - int(char)) if char.isascii() and char.isdigit() else char for char in time)


def happening(given: Happening) -> dict[str, Any]:
    return {
        "time": given.time,
        "kind": given.kind,
        "severity": given.severity,
        "title": given.title,
        "text": given.text,
        "application": given.app,
        "who": given.who,
        "count": given.count,
        "revision": given.revision,
    }


SEEN: Final = "Only activity of Applications that the caller may see."
ROUTES = (
    Route(
        "GET", "/api/argosy/v1/activity", Filtered("applications", "get"), what_happened,
        f"List activity, newest first. {SEEN}",
        query=(
            Parameter("kind", "sync, promotion, event or setting.", "array"),
            Parameter("app", "Only about this Application."), Parameter("only", "bad: only what went wrong."),
            Parameter("q", "Only with this text."), *PAGING,
        ),
        gives=schema.fields(metadata=schema.ANY, items=schema.many(HAPPENING)), tag=TAG, operation="ListActivity",
    ),
)  # fmt: skip
