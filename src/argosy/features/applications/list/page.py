"""`/apps`: the list of visible Applications, filtered, sorted and paged, with a summary of those that need attention.

In: a request. Out: a page, its live parts. Never: counts Applications that the caller may not see; sends all rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.applications.list.delayed_rows import add_delay
from argosy.features.applications.page_parts.addresses import element_of_app, of_app, of_resource
from argosy.features.applications.page_parts.header import window_mark
from argosy.features.doctor.known_errors import DoctorError, doctor_errors, may_see_doctor
from argosy.gitops.application import Application
from argosy.gitops.application_client import summary
from argosy.gitops.application_client.app_list import AppRow, Facet, Query, Selection, read_query, select
from argosy.gitops.application_client.client import APPLICATION, clock
from argosy.gitops.application_client.drift_attribution import Doings
from argosy.gitops.application_client.list_query import HEALTH_WORDS, SYNC_WORDS
from argosy.gitops.cluster_view.cluster_view import Lookout
from argosy.gitops.cluster_view.health_causes import told
from argosy.kube.names import ResourceKey
from argosy.web import page_templates
from argosy.web.middleware.application_masks import masks_of
from argosy.web.middleware.page_context import MOST_FAVOURITES, preferences
from argosy.web.object_lookup import is_at_home
from argosy.web.request import Asked
from argosy.web.responses import Answer, Page
from argosy.web.route import Filtered, Route
from argosy.web.status_styles import look, page_state, worst_tone

TITLE: Final = "Applications"
MOST_OBJECTS: Final = 5  # of an expanded row
MAX_NEEDS_ROWS: Final = 200
SIZES: Final = {"list": 50, "tiles": 48, "summary": 8}
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
class Problem:
    text: str
    status: str
    url: str


@dataclass(frozen=True, slots=True)
class Shown:
    """A row with values that depend on the caller and the time."""

    row: AppRow
    id: str
    url: str
    hold: str
    window: str
    is_favourite: bool
    may_sync: bool
    problems: tuple[Problem, ...]
    more: int
    done: int
    total: int
    errors: tuple[DoctorError, ...] = ()  # reported by the doctor

    @property
    def tone(self) -> str:
        """The tone of the worst of its states."""
        row = self.row
        operation = "bad" if row.has_error else "busy" if row.is_busy else "ok"
        return worst_tone(look("health", row.health)[0], look("sync", row.sync)[0], operation)


@dataclass(frozen=True)
class Needs:
    """Applications that need attention: the rows shown, their total number, and errors of the installation."""

    rows: tuple[Shown, ...] = ()
    total: int = 0
    installation: tuple[DoctorError, ...] = ()
    note: str = ""  # why the doctor's errors are missing or old
    may_see_doctor: bool = False

    @property
    def more(self) -> int:
        return self.total - len(self.rows)

    @property
    def ids(self) -> list[str]:
        return [*(each.id for each in self.rows), *(error.id for error in self.installation), str(self.total)]


def favourites_of(asked: Asked) -> frozenset[ResourceKey]:
    """argo: Favourites are stored in the browser."""
    found = (each.partition("/") for each in preferences(asked).get("favourites", "").split("~")[:MOST_FAVOURITES])
    return frozenset(ResourceKey(*APPLICATION, namespace, app) for namespace, slash, app in found if slash)


def selection_of(asked: Asked, query: Query) -> Selection:
    lookout, control, decide = asked.site.lookout, asked.site.desk.control, asked.deciding

    def may(row: AppRow) -> bool:
        if not decide("applications", "get", row.permitted_as(control)):
            return False
        return row.namespace == control or is_at_home(asked, lookout.cache.get(row.key) or _nothing(row))

    rows = masks_of(asked).rows(lookout.applications())
    return select(rows, query, may, favourites_of(asked), size=SIZES[query.view])


def _nothing(row: AppRow) -> dict[str, Any]:
    return {"metadata": {"name": row.name, "namespace": row.namespace}, "spec": {"project": row.project}}


def query_of(asked: Asked) -> Query:
    return read_query([(name, value) for name in asked.query for value in asked.query.all(name)])


def shown(asked: Asked, row: AppRow, favourites: frozenset[ResourceKey]) -> Shown:
    lookout = asked.site.lookout
    problems: tuple[Problem, ...] = ()
    more, done, total, window = 0, 0, 0, ""
    if row.sync != "Synced" or row.health != "Healthy" or row.is_busy:
        problems, more, done, total = asked.site.part(Problems).of(lookout, row)
    project = lookout.rules.projects.get(row.project)
    if project is not None and project.windows and (app := _application(lookout, row)) is not None:
        mark = window_mark(lookout.rules.clusters.placed(app), project, clock())
        window = mark.text if mark else ""
    if row.sync == "OutOfSync":
        known = row
        row = asked.site.part(Doings).shown(known, lambda: _application(lookout, known), lookout.cache.get)
    if (why := told(lookout.cache.get, row.why)) != row.why:
        row = replace(row, why=why)
    row = add_delay(lookout, row)
    return Shown(
        masks_of(asked).row(row),
        element_of_app(row.namespace, row.name),
        of_app(row.namespace, row.name),
        f"held{f' by {row.hold.by}' if row.hold.by else ''}{f': {row.hold.reason}' if row.hold.reason else ''}"
        if row.hold
        else "",
        window,
        row.key in favourites,
        asked.may("applications", "sync", row.permitted_as(asked.site.desk.control)),
        problems,
        more,
        done,
        total,
    )


def _application(lookout: Lookout, row: AppRow) -> Application | None:
    try:
        return lookout.application(row.namespace, row.name)
    except UserError:
        return None  # the row already shows the error


class Problems:
    """Cache of the problems per row. A changed Application has a new row, so entries never become stale."""

    def __init__(self) -> None:
        self.of = lru_cache(maxsize=2048)(_problems)


def _problems(lookout: Lookout, row: AppRow) -> tuple[tuple[Problem, ...], int, int, int]:
    app = _application(lookout, row)
    if app is None:
        return (), 0, 0, 0
    rows = summary.rows(app)
    wrong = [each for each in rows if each.status not in ("Synced", "Succeeded", "Pruned", "")]
    made = [
        Problem(f"{each.key.kind}/{each.key.name}", each.status, of_resource(row.namespace, row.name, each.key))
        for each in wrong[:MOST_OBJECTS]
    ]
    done = len(app.state.results) if row.is_busy and app.state else 0
    return tuple(made), len(wrong) - len(made), done, len(rows) if row.is_busy else 0


def matrix(chosen: Selection) -> list[dict[str, Any]]:
    """Build rows by sync status and columns by health; each cell has its count and the URL of that filter."""
    columns = [health for health in HEALTH_WORDS if chosen.count(health=health)] or ["Healthy"]
    return [
        {
            "sync": sync,
            "cells": [
                {
                    "health": health,
                    "count": chosen.count(sync, health),
                    "url": "/apps?" + chosen.query.text(view="list", sync=(sync,), health=(health,)),
                }
                for health in columns
            ],
        }
        for sync in SYNC_WORDS
        if chosen.count(sync=sync)
    ]


def bars(chosen: Selection) -> list[dict[str, Any]]:
    """Build the segments of the health bar, with counts and links."""
    found, x = [], 0.0
    for health in HEALTH_WORDS:
        number = chosen.count(health=health)
        if number:
            width = 100.0 * number / max(chosen.matching, 1)
            url = "/apps?" + chosen.query.text(view="list", health=(health,))
            found.append({"health": health, "count": number, "x": round(x, 2), "width": round(width, 2), "url": url})
            x += width
    return found


async def list_page(asked: Asked) -> Answer:
    query = query_of(asked)
    chosen = selection_of(asked, query)
    favourites = favourites_of(asked)
    rows = [shown(asked, row, favourites) for row in chosen.rows]
    needs = await needs_you(asked, query, favourites) if query.view == "summary" else Needs()
    values: dict[str, Any] = {
        "title": TITLE,
        "is_live": True,
        "section": "apps",
        "state": worst(chosen),
        "crumbs": [],
        "chosen": chosen,
        "query": query,
        "rows": rows,
        "digest": shape_of(needs.ids if query.view == "summary" else (one.id for one in rows)),
        "facets": [(name, word, kind, pairs(chosen.facets, name), getattr(query, name)) for name, word, kind in FACETS],
        "chips": query.chips,
        "needs": needs,
        "matrix": matrix(chosen),
        "bars": bars(chosen),
        "trouble": asked.site.lookout.as_of.why,
        "last": chosen.first + len(chosen.rows) - 1 if chosen.rows else 0,
    }
    return Page("applications/list.html", values)


def pairs(facets: Mapping[str, tuple[Facet, ...]], name: str) -> list[tuple[str, int]]:
    return [(each.value, each.number) for each in facets.get(name, ()) if each.number or each.is_chosen]


async def needs_you(asked: Asked, query: Query, favourites: frozenset[ResourceKey]) -> Needs:
    """List Applications with errors first, then unhealthy ones, then OutOfSync ones without automated sync."""
    chosen = selection_of(asked, read_query(query.text(view="tiles", sort="health", page=1)))
    known = await doctor_errors(asked)

    def is_error(row: AppRow) -> bool:
        return row.has_error or row.key in known.by_application

    wanted = [
        row for row in chosen.found if is_error(row) or row.health in ("Degraded", "Missing", "Unknown") or _waits(row)
    ]
    wanted.sort(key=lambda row: not is_error(row))
    rows = tuple(
        replace(shown(asked, row, favourites), errors=_told_errors(asked, known.by_application.get(row.key, ())))
        for row in wanted[:MAX_NEEDS_ROWS]
    )
    installation = () if query.is_filtered else _told_errors(asked, known.installation)
    return Needs(rows, len(wanted), installation, known.note, may_see_doctor(asked))


def _told_errors(asked: Asked, errors: Iterable[DoctorError]) -> tuple[DoctorError, ...]:
    return tuple(replace(each, cause=told(asked.site.lookout.cache.get, each.cause)) for each in errors)


def _waits(row: AppRow) -> bool:
    return row.sync == "OutOfSync" and not row.is_busy and (not row.is_auto or row.hold is not None)


async def list_parts(asked: Asked) -> dict[str, str]:
    """Render the rows of this page in their current order, so that rows do not move while they are used."""
    query = query_of(asked)
    chosen = selection_of(asked, query)
    macro = {"tiles": "tile", "summary": "needs_row"}.get(query.view, "row")
    favourites = favourites_of(asked)
    if query.view == "summary":
        needs = await needs_you(asked, query, favourites)
        found, ids = list(needs.rows), needs.ids
    else:
        found = [shown(asked, each, favourites) for each in chosen.rows]
        ids = [one.id for one in found]
    parts = {one.id: _rendered(macro, one) for one in found}
    parts["shape"] = page_templates.part("applications/parts_list.html", "shape", shape_of(ids))
    parts["page-state"] = page_templates.part("parts/page.html", "page_mark", worst(chosen), TITLE)
    parts["apps-count"] = page_templates.part("applications/parts_list.html", "count", chosen)
    if query.view == "summary":
        parts["apps-summary"] = page_templates.part(
            "applications/parts_list.html", "summary", chosen, matrix(chosen), bars(chosen)
        )
    return parts


def worst(chosen: Selection) -> str:
    """Return the worst state of all matching Applications, for title and favicon."""
    if any(row.has_error for row in chosen.found):
        return "bad"
    found = {page_state(health, sync) for (sync, health), number in chosen.matrix.items() if number}
    return next((each for each in ("bad", "warn", "busy") if each in found), "ok" if "ok" in found else "")


def shape_of(ids: Iterable[str]) -> str:
    """Return a digest that changes with the ids or their order."""
    return hashlib.blake2b("\n".join(ids).encode(), digest_size=8).hexdigest()


@lru_cache(maxsize=4096)
def _rendered(macro: str, one: Shown) -> str:
    """Render a row; cached, because many viewers see the same row."""
    return page_templates.part("applications/parts_list.html", macro, one)


ROUTES = (Route("GET", "/apps", Filtered("applications", "get"), list_page, "All applications"),)
