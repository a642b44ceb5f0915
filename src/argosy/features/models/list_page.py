"""`/models`: the list of served models.

In: a request. Out: rows. Never: shows a model of an Application that the caller may not see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from argosy.features.models import model_views
from argosy.features.models.model_views import ModelRow
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import APPLICATION, DEPLOYMENT, INFERENCE_SERVICE, NOTEBOOK_JOB, POD
from argosy.web.live_updates.live_page_definitions import LivePage, build_kind_predicate
from argosy.web.objects_of_visible_applications import get_owner_page_path, list_visible_objects
from argosy.web.page_templates import render_macro, render_page_state
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse
from argosy.web.route import FilteredList, Route

HEALTH_BY_STATE: Final = {"ready": "Healthy", "failing": "Degraded", "starting": "Progressing"}
EXAMPLE_COMMANDS: Final = ("argosy app list", "argosy demo", "argosy model list")


@dataclass(frozen=True)
class ModelListRow:
    """A row and the page of its Application."""

    row: ModelRow
    app_path: str


async def render_models_page(request: RequestContext) -> PageResponse:
    return PageResponse("models/models.html", build_page_values(request))


def build_page_values(request: RequestContext) -> dict[str, Any]:
    cache = request.cluster_view.cache
    rows = [
        ModelListRow(model_views.build_model_row(entry, cache), get_owner_page_path(request, entry))
        for entry in list_visible_objects(request, INFERENCE_SERVICE)
    ]
    search_text, health_by_state = (
        request.query.get_text("q").lower(),
        {"ready": "Healthy", "failing": "Degraded", "starting": "Progressing"},
    )
    state = request.query.get_text("state")
    visible_rows = [
        entry
        for entry in rows
        if search_text in _build_search_text(entry.row)
        and (not state or entry.row.health == health_by_state.get(state))
    ]
    has_degraded = any(entry.row.health == "Degraded" for entry in rows)
    has_progressing = any(entry.row.health == "Progressing" for entry in rows)
    return {
        "title": "Models",
        "is_live": True,
        "section": "models",
        "state": "bad" if has_degraded else "busy" if has_progressing else "ok" if rows else "",
        "rows": visible_rows,
        "total": len(rows),
        "q": request.query.get_text("q"),
        "commands": EXAMPLE_COMMANDS,
        "is_simulated": any(entry.row.is_simulated for entry in rows),
        "states": [(name, sum(entry.row.health == word for entry in rows)) for name, word in HEALTH_BY_STATE.items()],
        "chosen_state": state if state in HEALTH_BY_STATE else "",
    }


def _build_search_text(row: ModelRow) -> str:
    model = row.model
    return f"{model.namespace}/{model.name} {model.runtime} {model.format} {model.source} {model.app}".lower()


ROUTES = (
    Route("GET", "/models", FilteredList("applications", "get"), render_models_page, "Served models, as a page."),
)


async def build_updates(request: RequestContext) -> dict[str, str]:
    page_values = build_page_values(request)
    rows = {listed.row.id: render_macro("models/parts.html", "model_row", listed) for listed in page_values["rows"]}
    return rows | render_page_state(page_values)


AFFECTED_KINDS: Final = build_kind_predicate(INFERENCE_SERVICE, POD, DEPLOYMENT, NOTEBOOK_JOB, GroupKind(*APPLICATION))
LIVE = (LivePage("/models", FilteredList("applications", "get"), build_updates, AFFECTED_KINDS),)
