"""Page `/notebooks`: the notebook jobs and their results.

In: a request. Out: rows. Never: shows a job of an Application that the caller may not see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from argosy.features.notebooks import job_views
from argosy.features.notebooks.job_views import JobRow
from argosy.gitops.application_client.application_service import utc_now
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import APPLICATION, NOTEBOOK_JOB
from argosy.web.live_updates.live_page_definitions import LivePage, build_kind_predicate
from argosy.web.objects_of_visible_applications import get_owner_page_path, list_visible_objects
from argosy.web.page_templates import render_macro, render_page_state
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse
from argosy.web.route import FilteredList, Route

COMMANDS: Final = ("argosy notebook run train.ipynb", "argosy notebook list", "argosy demo")
PHASES: Final = ("Failed", "Running", "Pending", "Succeeded")


@dataclass(frozen=True)
class JobListEntry:
    row: JobRow
    app_path: str
    app: str


async def page(request: RequestContext) -> PageResponse:
    return PageResponse("notebooks/notebooks.html", build_values(request))


def build_values(request: RequestContext) -> dict[str, Any]:
    now, rows = utc_now(), list[JobListEntry]()
    for entry in list_visible_objects(request, NOTEBOOK_JOB):
        path = get_owner_page_path(request, entry)
        rows.append(JobListEntry(job_views.build_row(entry, now), path, path.rpartition("/")[2]))
    search_text, phase = request.query.get_text("q").lower(), request.query.get_text("phase")
    matching_rows = [
        entry for entry in rows if search_text in _build_search_text(entry) and phase in ("", entry.row.phase)
    ]
    phases = [entry.row.phase for entry in rows]
    return {
        "title": "Notebooks",
        "is_live": True,
        "section": "notebooks",
        "state": "bad" if "Failed" in phases else "busy" if "Running" in phases else "ok" if rows else "",
        "rows": matching_rows,
        "total": len(rows),
        "q": request.query.get_text("q"),
        "phases": [(entry, phases.count(entry)) for entry in PHASES if entry in phases],
        "chosen_phase": phase if phase in PHASES else "",
        "commands": COMMANDS,
    }


def _build_search_text(entry: JobListEntry) -> str:
    row = entry.row
    return f"{row.namespace}/{row.name} {row.notebook} {row.message} {entry.app}".lower()


ROUTES = (Route("GET", "/notebooks", FilteredList("applications", "get"), page, "Notebook jobs, as a page."),)


async def build_updates(request: RequestContext) -> dict[str, str]:
    page_values = build_values(request)
    rows = {entry.row.id: render_macro("notebooks/parts.html", "job_row", entry) for entry in page_values["rows"]}
    return rows | render_page_state(page_values)


TOUCHES_JOBS: Final = build_kind_predicate(NOTEBOOK_JOB, GroupKind(*APPLICATION))
LIVE = (LivePage("/notebooks", FilteredList("applications", "get"), build_updates, TOUCHES_JOBS),)
