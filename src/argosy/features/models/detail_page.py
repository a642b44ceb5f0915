"""`/models/{ns}/{name}`: the page of one served model: readiness, lineage, and a form that queries it.

In: a request. Out: a page; for `try`, the same page with the answer. Never: sends a request to a URL that is not in
the InferenceService; stores questions or answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from argosy.errors import ArgosyError, UserError
from argosy.features.models import board
from argosy.features.models.list_page import SERVING
from argosy.features.models.requests import curl, gist, refusal
from argosy.features.models.server_requests import ask_warily
from argosy.features.models.service import ModelDesk
from argosy.gitops.live.inference_service import ServedModel, read_model
from argosy.kube.objects import key_of
from argosy.web.caller_clients import desk_of
from argosy.web.live_updates.live_parts import Live, is_in_namespace
from argosy.web.owned_objects import RESTART, TRY, application_path, cluster_to_change, model
from argosy.web.page_templates import part, render_page_state
from argosy.web.request import Asked
from argosy.web.responses import Page, Redirect
from argosy.web.route import May, Route

SECONDS: Final = 30.0  # timeout of one model request; the web server's own timeout is a minute
MOST_TYPED: Final = 100_000
MOST_SHOWN: Final = 20_000  # characters of an answer
LINKS: Final = {"ok": "ok", "bad": "failed", "busy": "running", "waits": "waiting"}


@dataclass(frozen=True)
class Said:
    """The result of a `try` request."""

    typed: str
    code: int = 0
    milliseconds: int = 0
    gist: str = ""
    whole: str = ""
    problem: str = ""
    curl: str = ""
    python: str = ""


async def page(asked: Asked) -> Page:
    return Page("models/model.html", values(asked))


def values(asked: Asked, said: Said | None = None) -> dict[str, Any]:
    view = board.view(asked.subject, asked.site.lookout.cache)
    row = view.row
    served = row.model
    return {
        "title": served.name,
        "is_live": said is None,  # live updates would overwrite the answer
        "section": "models",
        "state": {"Healthy": "ok", "Degraded": "bad"}.get(row.health, "busy"),
        "crumbs": [("Models", "/models"), (served.namespace, f"/models?q={served.namespace}")],
        "view": view,
        "row": row,
        "model": served,
        "path": row.path,
        "app_path": application_path(asked, asked.subject),
        "chain": [{"name": each.name, "state": LINKS[each.state], "text": each.about} for each in view.links],
        "open": [each for each in view.links if each.is_open],
        "probes": [],
        "is_probed": False,
        "may_try": asked.may("applications", TRY, asked.thing),
        "may_restart": asked.may("applications", RESTART, asked.thing),
        "said": said,
        "typed": said.typed if said else view.example,
    }


async def tried(asked: Asked) -> Page:
    typed = (await asked.form()).text("question").replace("\r\n", "\n")[:MOST_TYPED]
    return Page("models/model.html", values(asked, await _asked(asked, read_model(asked.subject), typed)))


async def _asked(asked: Asked, served: ServedModel, typed: str) -> Said:
    if not typed.strip():
        return Said(typed, problem="the question is empty; enter a text, instances, or a complete request")
    if not served.url:
        return Said(typed, problem=f"{served.name} has no URL: {served.why or 'it is not ready yet'}")
    asker = partial(ask_warily, is_local=asked.site.options.is_loopback)
    desk = ModelDesk(asked.site.desk.cluster, asked.site.desk.where, asker)
    try:
        found = await desk.ask(served, typed, seconds=SECONDS, insecure=False)
    except ArgosyError as error:
        return Said(typed, problem=str(error))
    answered, document = found.answered, found.answered.document()
    is_good = answered.code == 200 and document is not None
    address = served.url.rstrip("/")
    whole = json.dumps(document, ensure_ascii=False, indent=2) if document is not None else ""
    return Said(
        typed,
        answered.code,
        round(answered.seconds * 1000),
        gist(document)[:MOST_SHOWN] if is_good else "",
        whole[:MOST_SHOWN],
        "" if is_good else f"HTTP {answered.code}: {refusal(document, answered.body)}",
        curl(address, found.question),
        board.python(address + found.question.path, found.question.document),
    )


async def probed(asked: Asked) -> Page:
    """Request the health paths of the model and show the results."""
    served = read_model(asked.subject)
    asker = partial(ask_warily, is_local=asked.site.options.is_loopback)
    desk = ModelDesk(asked.site.desk.cluster, asked.site.desk.where, asker)
    found = await desk.probe(served, insecure=False) if served.url else []
    return Page("models/model.html", {**values(asked), "is_live": False, "probes": found, "is_probed": True})


async def restarted(asked: Asked) -> Redirect:
    desk = desk_of(asked)
    live = await desk.cluster.get(key_of(asked.subject))
    if live is None:
        raise UserError(f"InferenceService {asked.values['name']!r} not found; list them: /models")
    await ModelDesk(cluster_to_change(asked, asked.subject), desk.where).restart(live)
    return Redirect(f"/models/{asked.values['ns']}/{asked.values['name']}?said=restarted")


ROUTES = (
    Route("GET", "/models/{ns}/{name}", May("applications", "get", model), page, "A served model, as a page."),
    Route(
        "POST", "/models/{ns}/{name}/try", May("applications", TRY, model), tried, "Send a request to a served model."
    ),
    Route(
        "POST",
        "/models/{ns}/{name}/probe",
        May("applications", TRY, model),
        probed,
        "Check whether a served model is ready.",
    ),
    Route(
        "POST", "/models/{ns}/{name}/restart", May("applications", RESTART, model), restarted, "Restart a served model."
    ),
)


async def build_updates(asked: Asked) -> dict[str, str]:
    shown = values(asked)
    return {
        "readiness": part("models/parts.html", "readiness", shown["chain"], shown["open"]),
        "model-state": part("models/parts.html", "model_state", shown["row"]),
        "copies": part("models/parts.html", "copies", shown["row"], shown["view"].pods),
        **render_page_state(shown),
    }


LIVE = (Live("/models/{ns}/{name}", May("applications", "get", model), build_updates, SERVING, is_in_namespace),)
