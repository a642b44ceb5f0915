"""Serves `/activity`: syncs, promotions, Events and settings changes, newest first.

In: a request. Out: a page of the timeline. Never: shows activity of an Application that the caller may not see.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from argosy.features.activity import timeline
from argosy.features.activity.timeline import ActivityFilter
from argosy.features.activity.visible_activity import ActivitySources, iterate_visible_entries
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import APP_PROJECT, APPLICATION, INFERENCE_SERVICE, NOTEBOOK_JOB
from argosy.web.live_updates.live_page_definitions import LivePage, build_kind_predicate
from argosy.web.page_templates import render_macro
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse
from argosy.web.route import FilteredList, Route

LISTS: Final = FilteredList("applications", "get")
COMMANDS: Final = ("argosy app list", "argosy app history NAME", "argosy promote history")


async def show_activity(sources: ActivitySources, request: RequestContext) -> PageResponse:
    return PageResponse("activity/activity.html", await build_page_values(request, sources))


async def build_page_values(request: RequestContext, sources: ActivitySources) -> dict[str, Any]:
    entries = [entry async for entry in iterate_visible_entries(request, sources)]
    filters = _read_filters(request)
    activity_page = timeline.build_timeline(entries, filters)
    first = (activity_page.page - 1) * timeline.ENTRIES_PER_PAGE + 1 if activity_page.total else 0
    return {
        "title": "Activity",
        "is_live": True,
        "section": "activity",
        "state": "",
        "line": activity_page,
        "wanted": filters,
        "apps": timeline.count_by_application(entries),
        "first": first,
        "last": first + len(activity_page.shown) - 1 if activity_page.total else 0,
        "chosen": [
            (key, value) for key in ("kind", "app", "only", "q") for value in request.query.get_all(key) if value
        ],
        "commands": COMMANDS,
        "fault": (await request.events.list_all()).error,
    }


def _read_filters(request: RequestContext) -> ActivityFilter:
    query = request.query
    kinds = tuple(kind for kind in query.get_all("kind") if kind in timeline.KINDS)
    severity = "bad" if query.get_text("only") == "bad" else ""
    page_text = query.get_text("page")
    page_number = int(page_text) if page_text.isascii() and page_text.isdecimal() and len(page_text) < 7 else 1
    return ActivityFilter(kinds, query.get_text("app"), severity, query.get_text("q"), page_number)


def build_routes(sources: ActivitySources) -> tuple[Route, ...]:
    return (Route("GET", "/activity", LISTS, partial(show_activity, sources), "Show the activity page."),)


async def build_updates(sources: ActivitySources, request: RequestContext) -> dict[str, str]:
    """Update the first page only, so that a reader of an older page is not disturbed."""
    line = (await build_page_values(request, sources))["line"]
    return (
        {"happenings": render_macro("activity/parts.html", "happenings", line.shown)}
        if line.page == 1 and line.shown
        else {}
    )


SHOWN_KINDS: Final = (GroupKind(*APPLICATION), NOTEBOOK_JOB, INFERENCE_SERVICE, APP_PROJECT)


def build_live_pages(sources: ActivitySources) -> tuple[LivePage, ...]:
    return (LivePage("/activity", LISTS, partial(build_updates, sources), build_kind_predicate(*SHOWN_KINDS)),)
