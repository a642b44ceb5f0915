"""Serves `/activity`: syncs, promotions, Events and settings changes, newest first.

In: a request. Out: a page of the timeline. Never: shows activity of an Application that the caller may not see.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.features.activity import timeline
from argosy.features.activity.timeline import Wanted
from argosy.features.activity.visible_events import happenings
from argosy.gitops.application import APPLICATION
from argosy.gitops.live.inference_service import INFERENCE_SERVICE
from argosy.kube.names import GroupKind
from argosy.web.event_cache import everywhere
from argosy.web.live_updates.live_parts import Live, touches_kinds
from argosy.web.object_lookup import PROJECT
from argosy.web.owned_objects import JOB
from argosy.web.page_templates import part
from argosy.web.request import Asked
from argosy.web.responses import Page
from argosy.web.route import Filtered, Route

COMMANDS: Final = ("argosy app list", "argosy app history NAME", "argosy promote history")


async def page(asked: Asked) -> Page:
    return Page("activity/activity.html", await values(asked))


async def values(asked: Asked) -> dict[str, Any]:
    found = [each async for each in happenings(asked)]
    wanted = _wanted(asked)
    shown = timeline.timeline(found, wanted)
    first = (shown.page - 1) * timeline.PAGE + 1 if shown.total else 0
    return {
        "title": "Activity",
        "is_live": True,
        "section": "activity",
        "state": "",
        "line": shown,
        "wanted": wanted,
        "apps": timeline.apps_of(found),
        "first": first,
        "last": first + len(shown.shown) - 1 if shown.total else 0,
        "chosen": [(key, value) for key in ("kind", "app", "only", "q") for value in asked.query.all(key) if value],
        "commands": COMMANDS,
        "fault": (await everywhere(asked)).fault,
    }


def _wanted(asked: Asked) -> Wanted:
    query = asked.query
    kinds = tuple(each for each in query.all("kind") if each in timeline.KINDS)
    severity = "bad" if query.text("only") == "bad" else ""
    given = query.text("page")
    page_number = int(given) if given.isascii() and given.isdecimal() and len(given) < 7 else 1
    return Wanted(kinds, query.text("app"), severity, query.text("q"), page_number)


ROUTES = (Route("GET", "/activity", Filtered("applications", "get"), page, "Show the activity page."),)


async def build_updates(asked: Asked) -> dict[str, str]:
    """Update the first page only, so that a reader of an older page is not disturbed."""
    line = (await values(asked))["line"]
    return (
        {"happenings": part("activity/parts.html", "happenings", line.shown)} if line.page == 1 and line.shown else {}
    )


SHOWN_KINDS: Final = (GroupKind(*APPLICATION), JOB, INFERENCE_SERVICE, PROJECT)
LIVE = (Live("/activity", Filtered("applications", "get"), build_updates, touches_kinds(*SHOWN_KINDS)),)
