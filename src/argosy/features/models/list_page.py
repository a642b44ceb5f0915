"""`/models`: the list of served models.

In: a request. Out: rows. Never: shows a model of an Application that the caller may not see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from argosy.features.models import board
from argosy.features.models.board import ModelRow
from argosy.gitops.application import APPLICATION
from argosy.gitops.live.inference_service import INFERENCE_SERVICE
from argosy.kube.names import GroupKind
from argosy.web.live_updates.live_parts import Live, touches_kinds
from argosy.web.owned_objects import JOB, application_path, visible
from argosy.web.page_templates import part, render_page_state
from argosy.web.request import Asked
from argosy.web.responses import Page
from argosy.web.route import Filtered, Route

WORDS: Final = {"ready": "Healthy", "failing": "Degraded", "starting": "Progressing"}
COMMANDS: Final = ("argosy app list", "argosy demo", "argosy model list")


@dataclass(frozen=True)
class Listed:
    """A row and the page of its Application."""

    row: ModelRow
    app_path: str


async def page(asked: Asked) -> Page:
    return Page("models/models.html", values(asked))


def values(asked: Asked) -> dict[str, Any]:
    cache = asked.site.lookout.cache
    rows = [Listed(board.row(each, cache), application_path(asked, each)) for each in visible(asked, INFERENCE_SERVICE)]
    wanted, words = (
        asked.query.text("q").lower(),
        {"ready": "Healthy", "failing": "Degraded", "starting": "Progressing"},
    )
    state = asked.query.text("state")
    shown = [each for each in rows if wanted in _text(each.row) and (not state or each.row.health == words.get(state))]
    bad = any(each.row.health == "Degraded" for each in rows)
    busy = any(each.row.health == "Progressing" for each in rows)
    return {
        "title": "Models",
        "is_live": True,
        "section": "models",
        "state": "bad" if bad else "busy" if busy else "ok" if rows else "",
        "rows": shown,
        "total": len(rows),
        "q": asked.query.text("q"),
        "commands": COMMANDS,
        "is_simulated": any(each.row.is_simulated for each in rows),
        "states": [(name, sum(each.row.health == word for each in rows)) for name, word in WORDS.items()],
        "chosen_state": state if state in WORDS else "",
    }


def _text(row: ModelRow) -> str:
    model = row.model
    return f"{model.namespace}/{model.name} {model.runtime} {model.format} {model.source} {model.app}".lower()


ROUTES = (Route("GET", "/models", Filtered("applications", "get"), page, "Served models, as a page."),)


async def build_updates(asked: Asked) -> dict[str, str]:
    shown = values(asked)
    rows = {listed.row.id: part("models/parts.html", "model_row", listed) for listed in shown["rows"]}
    return rows | render_page_state(shown)


SERVING: Final = touches_kinds(
    INFERENCE_SERVICE, GroupKind("", "Pod"), GroupKind("apps", "Deployment"), JOB, GroupKind(*APPLICATION)
)
LIVE = (Live("/models", Filtered("applications", "get"), build_updates, SERVING),)
