"""Recent activity over argosy's own API: syncs, promotions, Events and changes of settings.

In: a request. Out: JSON. Never: activity of an Application that the caller may not see.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.activity import timeline
from argosy.features.activity.timeline import ActivityEntry, ActivityFilter
from argosy.features.activity.visible_activity import ActivitySources, iterate_visible_entries
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.paging import PAGING, build_page
from argosy.web.request import RequestContext, quote_input
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, QueryParameter, Route

TAG: Final = "overview"
ACTIVITY_SCHEMA: Final = schema.build_object_schema(
    time=schema.STRING_SCHEMA,
    kind=schema.STRING_SCHEMA,
    severity=schema.STRING_SCHEMA,
    title=schema.STRING_SCHEMA,
    text=schema.STRING_SCHEMA,
    application=schema.STRING_SCHEMA,
    who=schema.STRING_SCHEMA,
    count=schema.INTEGER_SCHEMA,
    revision=schema.STRING_SCHEMA,
)


async def list_activity(sources: ActivitySources, request: RequestContext) -> JsonResponse:
    """List activity, newest first; the continue token is a time."""
    query = request.query
    if unknown_kinds := [item for item in query.get_all("kind") if item not in timeline.KINDS]:
        raise UserError(
            f"unknown kind {quote_input(unknown_kinds[0])}; use one of {', '.join(timeline.KINDS)}", where="kind"
        )
    severity = "bad" if query.get_text("only") == "bad" else ""
    filters = ActivityFilter(query.get_all("kind"), query.get_text("app"), severity, query.get_text("q"))
    entries = [item async for item in iterate_visible_entries(request, sources)]
    ordered = timeline.select_newest_entries(item for item in entries if timeline.matches_filter(item, filters))
    marks = {id(item): f"{_invert_timestamp(item.time)} {index:06}" for index, item in enumerate(ordered)}
    return build_page(request, ordered, lambda item: marks[id(item)], to_wire=entry_to_wire)


def _invert_timestamp(time: str) -> str:
    """Invert the digits of a timestamp, so that the newest sorts first as text."""
    return "".join(str(9 - int(char)) if char.isascii() and char.isdigit() else char for char in time)


def entry_to_wire(entry: ActivityEntry) -> dict[str, Any]:
    return {
        "time": entry.time,
        "kind": entry.kind,
        "severity": entry.severity,
        "title": entry.title,
        "text": entry.text,
        "application": entry.app,
        "who": entry.who,
        "count": entry.count,
        "revision": entry.revision,
    }


VISIBILITY_NOTE: Final = "Only activity of Applications that the caller may see."


def build_routes(sources: ActivitySources) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            "/api/argosy/v1/activity",
            FilteredList("applications", "get"),
            partial(list_activity, sources),
            f"List activity, newest first. {VISIBILITY_NOTE}",
            query=(
                QueryParameter("kind", "sync, promotion, event or setting.", "array"),
                QueryParameter("app", "Only about this Application."),
                QueryParameter("only", "bad: only what went wrong."),
                QueryParameter("q", "Only with this text."),
                *PAGING,
            ),
            response_schema=schema.build_object_schema(
                metadata=schema.OBJECT_SCHEMA, items=schema.build_array_schema(ACTIVITY_SCHEMA)
            ),
            tag=TAG,
            operation_id="ListActivity",
        ),
    )
