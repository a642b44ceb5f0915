"""`/apps`: the list of visible Applications, filtered, sorted and paged, with a summary of those that need attention.

In: a request. Out: a page, its live parts. Never: counts Applications that the caller may not see; sends all rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.applications.list.sync_delay_reasons import add_delay_reason
from argosy.features.applications.page_parts.header import find_window_notice
from argosy.features.applications.page_parts.url_paths import application_element_id, application_path, resource_path
from argosy.features.doctor.error_finding_cache import (
    DoctorError,
    ExaminationCache,
    can_see_doctor,
    load_visible_errors,
)
from argosy.gitops.application import Application
from argosy.gitops.application_client import status_summary
from argosy.gitops.application_client.application_service import utc_now
from argosy.gitops.application_client.filtered_app_list import (
    AppListPage,
    AppListQuery,
    AppRow,
    Facet,
    build_app_list_page,
    read_query,
)
from argosy.gitops.application_client.list_query import HEALTH_WORDS, SYNC_WORDS
from argosy.gitops.cluster_view.cluster_view import ClusterView
from argosy.gitops.cluster_view.health_message_of_causing_object import explain_health_message
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION
from argosy.web import page_templates
from argosy.web.preference_cookies import MAX_FAVOURITES, read_preferences
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import is_in_allowed_namespace
from argosy.web.responses import PageResponse, WebResponse
from argosy.web.route import FilteredList, Route
from argosy.web.status_styles import find_style, find_worst_tone, get_page_state

TITLE: Final = "Applications"
MAX_OBJECTS_PER_ROW: Final = 5  # of an expanded row
MAX_ATTENTION_ROWS: Final = 200
PAGE_SIZE_BY_VIEW: Final = {"list": 50, "tiles": 48, "summary": 8}
FACETS: Final = (
    ("sync", "Sync", "sync"),
    ("health", "Health", "health"),
    ("env", "Environment", ""),
    ("project", "Project", ""),
    ("ns", "Namespace", ""),
    ("cluster", "Cluster", ""),
    ("label", "Labels", ""),
    ("repo", "Repository", ""),
    ("rev", "Target revision", ""),
    ("autosync", "Auto-sync", ""),
    ("op", "Operation", "phase"),
)


@dataclass(frozen=True, slots=True)
class ObjectProblem:
    text: str
    status: str
    url: str


@dataclass(frozen=True, slots=True)
class ApplicationListRow:
    """A row with values that depend on the caller and the time."""

    row: AppRow
    id: str
    url: str
    hold: str
    window: str
    is_favourite: bool
    may_sync: bool
    problems: tuple[ObjectProblem, ...]
    more: int
    done: int
    total: int
    errors: tuple[DoctorError, ...] = ()  # reported by the doctor

    @property
    def tone(self) -> str:
        """The tone of the worst of its states."""
        row = self.row
        operation = "bad" if row.has_error else "busy" if row.is_busy else "ok"
        return find_worst_tone(find_style("health", row.health)[0], find_style("sync", row.sync)[0], operation)


@dataclass(frozen=True)
class AttentionList:
    """Applications that need attention: the rows shown, their total number, and errors of the installation."""

    rows: tuple[ApplicationListRow, ...] = ()
    total: int = 0
    installation: tuple[DoctorError, ...] = ()
    note: str = ""  # why the doctor's errors are missing or old
    may_see_doctor: bool = False

    @property
    def more(self) -> int:
        return self.total - len(self.rows)

    @property
    def ids(self) -> list[str]:
        return [*(row.id for row in self.rows), *(error.id for error in self.installation), str(self.total)]


def read_favourites(request: RequestContext) -> frozenset[ResourceKey]:
    """argo: Favourites are stored in the browser."""
    parts = (
        favourite.partition("/")
        for favourite in read_preferences(request).get("favourites", "").split("~")[:MAX_FAVOURITES]
    )
    return frozenset(ResourceKey(*APPLICATION, namespace, app) for namespace, slash, app in parts if slash)


def select_applications(request: RequestContext, query: AppListQuery) -> AppListPage:
    cluster_view, control_namespace, decide = (
        request.cluster_view,
        request.service.control_namespace,
        request.permission_check,
    )

    def is_visible(row: AppRow) -> bool:
        if not decide("applications", "get", row.rbac_object(control_namespace)):
            return False
        return row.namespace == control_namespace or is_in_allowed_namespace(
            request, cluster_view.cache.get(row.key) or _minimal_manifest(row)
        )

    rows = request.masks.mask_rows(cluster_view.list_rows())
    return build_app_list_page(
        rows, query, is_visible, read_favourites(request), page_size=PAGE_SIZE_BY_VIEW[query.view]
    )


def _minimal_manifest(row: AppRow) -> dict[str, Any]:
    return {"metadata": {"name": row.name, "namespace": row.namespace}, "spec": {"project": row.project}}


def read_list_query(request: RequestContext) -> AppListQuery:
    return read_query([(name, value) for name in request.query for value in request.query.get_all(name)])


def build_list_row(
    request: RequestContext, row: AppRow, favourites: frozenset[ResourceKey], caches: ListCaches
) -> ApplicationListRow:
    cluster_view = request.cluster_view
    problems: tuple[ObjectProblem, ...] = ()
    more, done, total, window = 0, 0, 0, ""
    if row.sync != "Synced" or row.health != "Healthy" or row.is_busy:
        problems, more, done, total = caches.problems.find(cluster_view, row)
    project = cluster_view.rules.projects.get(row.project)
    if project is not None and project.windows and (app := _find_application(cluster_view, row)) is not None:
        notice = find_window_notice(cluster_view.rules.clusters.resolve_destination(app), project, utc_now())
        window = notice.text if notice else ""
    if row.sync == "OutOfSync":
        cached_row = row
        row = request.drift_texts.add_drift_text(
            cached_row, lambda: _find_application(cluster_view, cached_row), cluster_view.cache.get
        )
    if (reason := explain_health_message(cluster_view.cache.get, row.why)) != row.why:
        row = replace(row, why=reason)
    row = add_delay_reason(cluster_view, row)
    return ApplicationListRow(
        request.masks.mask_row(row),
        application_element_id(row.namespace, row.name),
        application_path(row.namespace, row.name),
        f"held{f' by {row.hold.by}' if row.hold.by else ''}{f': {row.hold.reason}' if row.hold.reason else ''}"
        if row.hold
        else "",
        window,
        row.key in favourites,
        request.is_allowed("applications", "sync", row.rbac_object(request.service.control_namespace)),
        problems,
        more,
        done,
        total,
    )


def _find_application(cluster_view: ClusterView, row: AppRow) -> Application | None:
    try:
        return cluster_view.find_application(row.namespace, row.name)
    except UserError:
        return None  # the row already shows the error


class ObjectProblemCache:
    """Cache of the problems per row. A changed Application has a new row, so entries never become stale."""

    def __init__(self) -> None:
        self.find = lru_cache(maxsize=2048)(_find_problems)


@dataclass(frozen=True)
class ListCaches:
    """What the list keeps between requests."""

    examinations: ExaminationCache  # of the doctor
    problems: ObjectProblemCache = field(default_factory=ObjectProblemCache)


def _find_problems(cluster_view: ClusterView, row: AppRow) -> tuple[tuple[ObjectProblem, ...], int, int, int]:
    app = _find_application(cluster_view, row)
    if app is None:
        return (), 0, 0, 0
    rows = status_summary.list_rows(app)
    problem_rows = [
        problem_row for problem_row in rows if problem_row.status not in ("Synced", "Succeeded", "Pruned", "")
    ]
    problems = [
        ObjectProblem(
            f"{problem_row.key.kind}/{problem_row.key.name}",
            problem_row.status,
            resource_path(row.namespace, row.name, problem_row.key),
        )
        for problem_row in problem_rows[:MAX_OBJECTS_PER_ROW]
    ]
    done = len(app.state.results) if row.is_busy and app.state else 0
    return tuple(problems), len(problem_rows) - len(problems), done, len(rows) if row.is_busy else 0


def build_status_matrix(selection: AppListPage) -> list[dict[str, Any]]:
    """Build rows by sync status and columns by health; each cell has its count and the URL of that filter."""
    columns = [health for health in HEALTH_WORDS if selection.count(health=health)] or ["Healthy"]
    return [
        {
            "sync": sync,
            "cells": [
                {
                    "health": health,
                    "count": selection.count(sync, health),
                    "url": "/apps?" + selection.query.text(view="list", sync=(sync,), health=(health,)),
                }
                for health in columns
            ],
        }
        for sync in SYNC_WORDS
        if selection.count(sync=sync)
    ]


def build_health_bar(selection: AppListPage) -> list[dict[str, Any]]:
    """Build the segments of the health bar, with counts and links."""
    segments, x = [], 0.0
    for health in HEALTH_WORDS:
        number = selection.count(health=health)
        if number:
            width = 100.0 * number / max(selection.matching, 1)
            url = "/apps?" + selection.query.text(view="list", health=(health,))
            segments.append({"health": health, "count": number, "x": round(x, 2), "width": round(width, 2), "url": url})
            x += width
    return segments


async def render_list_page(caches: ListCaches, request: RequestContext) -> WebResponse:
    query = read_list_query(request)
    selection = select_applications(request, query)
    favourites = read_favourites(request)
    rows = [build_list_row(request, row, favourites, caches) for row in selection.rows]
    needs = (
        await build_attention_list(request, query, favourites, caches) if query.view == "summary" else AttentionList()
    )
    values: dict[str, Any] = {
        "title": TITLE,
        "is_live": True,
        "section": "apps",
        "state": worst_page_state(selection),
        "crumbs": [],
        "chosen": selection,
        "query": query,
        "rows": rows,
        "digest": digest_ids(needs.ids if query.view == "summary" else (list_row.id for list_row in rows)),
        "facets": [
            (name, word, kind, list_facet_counts(selection.facets, name), getattr(query, name))
            for name, word, kind in FACETS
        ],
        "chips": query.chips,
        "needs": needs,
        "matrix": build_status_matrix(selection),
        "bars": build_health_bar(selection),
        "trouble": request.cluster_view.as_of.reason,
        "last": selection.first + len(selection.rows) - 1 if selection.rows else 0,
    }
    return PageResponse("applications/list.html", values)


def list_facet_counts(facets: Mapping[str, tuple[Facet, ...]], name: str) -> list[tuple[str, int]]:
    return [(facet.value, facet.number) for facet in facets.get(name, ()) if facet.number or facet.is_chosen]


async def build_attention_list(
    request: RequestContext, query: AppListQuery, favourites: frozenset[ResourceKey], caches: ListCaches
) -> AttentionList:
    """List Applications with errors first, then unhealthy ones, then OutOfSync ones without automated sync."""
    selection = select_applications(request, read_query(query.text(view="tiles", sort="health", page=1)))
    errors = await load_visible_errors(request, caches.examinations)

    def is_error(row: AppRow) -> bool:
        return row.has_error or row.key in errors.by_application

    needing_rows = [
        row
        for row in selection.matching_rows
        if is_error(row) or row.health in ("Degraded", "Missing", "Unknown") or _needs_manual_sync(row)
    ]
    needing_rows.sort(key=lambda row: not is_error(row))
    rows = tuple(
        replace(
            build_list_row(request, row, favourites, caches),
            errors=_with_health_causes(request, errors.by_application.get(row.key, ())),
        )
        for row in needing_rows[:MAX_ATTENTION_ROWS]
    )
    installation = () if query.is_filtered else _with_health_causes(request, errors.installation)
    return AttentionList(rows, len(needing_rows), installation, errors.note, can_see_doctor(request))


def _with_health_causes(request: RequestContext, errors: Iterable[DoctorError]) -> tuple[DoctorError, ...]:
    return tuple(
        replace(error, cause=explain_health_message(request.cluster_view.cache.get, error.cause)) for error in errors
    )


def _needs_manual_sync(row: AppRow) -> bool:
    return row.sync == "OutOfSync" and not row.is_busy and (not row.is_auto or row.hold is not None)


async def render_list_parts(caches: ListCaches, request: RequestContext) -> dict[str, str]:
    """Render the rows of this page in their current order, so that rows do not move while they are used."""
    query = read_list_query(request)
    selection = select_applications(request, query)
    macro = {"tiles": "tile", "summary": "needs_row"}.get(query.view, "row")
    favourites = read_favourites(request)
    if query.view == "summary":
        needs = await build_attention_list(request, query, favourites, caches)
        list_rows, ids = list(needs.rows), needs.ids
    else:
        list_rows = [build_list_row(request, app_row, favourites, caches) for app_row in selection.rows]
        ids = [list_row.id for list_row in list_rows]
    parts = {list_row.id: _render_row(macro, list_row) for list_row in list_rows}
    parts["shape"] = page_templates.render_macro("applications/parts_list.html", "shape", digest_ids(ids))
    parts["page-state"] = page_templates.render_macro(
        "parts/page.html", "page_mark", worst_page_state(selection), TITLE
    )
    parts["apps-count"] = page_templates.render_macro("applications/parts_list.html", "count", selection)
    if query.view == "summary":
        parts["apps-summary"] = page_templates.render_macro(
            "applications/parts_list.html",
            "summary",
            selection,
            build_status_matrix(selection),
            build_health_bar(selection),
        )
    return parts


def worst_page_state(selection: AppListPage) -> str:
    """Return the worst state of all matching Applications, for title and favicon."""
    if any(row.has_error for row in selection.matching_rows):
        return "bad"
    states = {get_page_state(health, sync) for (sync, health), number in selection.matrix.items() if number}
    return next((state for state in ("bad", "warn", "busy") if state in states), "ok" if "ok" in states else "")


def digest_ids(ids: Iterable[str]) -> str:
    """Return a digest that changes with the ids or their order."""
    return hashlib.blake2b("\n".join(ids).encode(), digest_size=8).hexdigest()


@lru_cache(maxsize=4096)
def _render_row(macro: str, list_row: ApplicationListRow) -> str:
    """Render a row; cached, because many viewers see the same row."""
    return page_templates.render_macro("applications/parts_list.html", macro, list_row)


def build_routes(caches: ListCaches) -> tuple[Route, ...]:
    handler = partial(render_list_page, caches)
    return (Route("GET", "/apps", FilteredList("applications", "get"), handler, "All applications"),)
