"""argosy API routes for served models: list, get, try, restart.

In: a request. Out: JSON in argosy's own format. Never: shows a model of an Application that the caller may not see;
sends a request to a URL that is not in the InferenceService.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.models import board
from argosy.features.models.board import ModelRow
from argosy.features.models.requests import gist, refusal
from argosy.features.models.server_requests import ask_warily
from argosy.features.models.service import ModelDesk
from argosy.gitops.live.inference_service import INFERENCE_SERVICE, read_model
from argosy.kube.objects import Manifest, key_of
from argosy.web.api import json_schemas as schema
from argosy.web.api.paging import FIELDS, PAGING, chosen, page
from argosy.web.caller_clients import desk_of
from argosy.web.owned_objects import RESTART, TRY, application_of, cluster_to_change, model, visible
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Filtered, May, Parameter, Route

TAG: Final = "models"
SECONDS: Final = 30.0
MOST_ASKED: Final = 100_000  # characters
WHOSE: Final = "Needs get on its Application; a model without an Application needs get on all Applications."
MODEL: Final = schema.fields(
    name=schema.TEXT, namespace=schema.TEXT, application=schema.TEXT, health=schema.TEXT,
    message=schema.TEXT, url=schema.TEXT, runtime=schema.TEXT, format=schema.TEXT, source=schema.TEXT,
    protocol=schema.TEXT, since=schema.TEXT, isSimulated=schema.FLAG, isCurrent=schema.FLAG, gpus=schema.TEXT,
    pods=schema.fields(ready=schema.COUNT, wanted=schema.COUNT), traffic=schema.many(schema.ANY),
    trainedBy={"type": ["object", "null"]},
)  # fmt: skip


def document(asked: Asked, service: Manifest) -> dict[str, Any]:
    row: ModelRow = board.row(service, asked.site.lookout.cache)
    served, app = row.model, application_of(asked, service)
    trained = row.trained
    return {
        "name": served.name,
        "namespace": served.namespace,
        "application": f"{app['metadata']['namespace']}/{app['metadata']['name']}" if app else "",
        "health": row.health,
        "message": served.why,
        "url": served.url,
        "runtime": served.runtime,
        "format": served.format,
        "source": served.source,
        "protocol": board.protocol(served),
        "since": row.since,
        "isSimulated": row.is_simulated,
        "isCurrent": row.is_current,
        "gpus": row.gpus,
        "pods": {"ready": row.ready_pods, "wanted": row.wanted_pods},
        "traffic": [
            {"revision": each.revision, "percent": each.percent, "isLatest": each.is_latest} for each in row.shares
        ],
        "trainedBy": {"notebook": trained.notebook, "commit": trained.commit} if trained else None,
    }


async def listed(asked: Asked) -> Json:
    query, namespace = asked.query.text("q").lower(), asked.query.text("namespace")
    health = asked.query.text("health")
    every = [document(asked, each) for each in visible(asked, INFERENCE_SERVICE)]
    found = [
        each
        for each in every
        if namespace in ("", each["namespace"])
        and health in ("", each["health"])
        and query in f"{each['namespace']}/{each['name']} {each['runtime']} {each['format']} {each['source']}".lower()
    ]
    return page(asked, found, lambda each: f"{each['namespace']}/{each['name']}")


async def got(asked: Asked) -> Json:
    view = board.view(asked.subject, asked.site.lookout.cache)
    more = {
        "example": view.example,
        "curl": view.curl,
        "steps": [{"name": each.name, "state": each.state, "message": each.about} for each in view.links],
        "podsSeen": [{"name": name, "phase": phase, "started": at} for name, phase, at in view.pods],
    }
    return chosen(asked, {**document(asked, asked.subject), **more})


async def tried(asked: Asked) -> Json:
    """Send the question (a string, or a complete request as JSON) to the model and return its answer."""
    question = (await asked.mapping()).get("question")
    typed = question if isinstance(question, str) else json.dumps(question) if question is not None else ""
    served = read_model(asked.subject)
    if not typed.strip() or len(typed) > MOST_ASKED:
        told = f"is missing or longer than {MOST_ASKED} characters; send a string or a request object"
        raise UserError(told, where="question")
    if not served.url:
        raise UserError(f"{served.name} has no URL: {served.why or 'it is not ready yet'}; see its steps")
    asker = partial(ask_warily, is_local=asked.site.options.is_loopback)
    desk = ModelDesk(asked.site.desk.cluster, asked.site.desk.where, asker)
    found = await desk.ask(served, typed, seconds=SECONDS, insecure=False)
    answered, said = found.answered, found.answered.document()
    is_good = answered.code == 200 and said is not None
    return Json(
        {
            "code": answered.code,
            "milliseconds": round(answered.seconds * 1000),
            "gist": gist(said) if is_good else "",
            "answer": said,
            "problem": "" if is_good else refusal(said, answered.body),
        }
    )


async def restarted(asked: Asked) -> Json:
    desk = desk_of(asked)
    live = await desk.cluster.get(key_of(asked.subject))
    if live is None:
        raise UserError(f"InferenceService {asked.values['name']!r} not found; list them: /api/argosy/v1/models")
    cluster = cluster_to_change(asked, asked.subject)
    return Json({"message": await ModelDesk(cluster, desk.where).restart(live)})


_PATH: Final = "/api/argosy/v1/models"
ROUTES = (
    Route(
        "GET", _PATH, Filtered("applications", "get"), listed, f"List served models. {WHOSE}",
        query=(
            Parameter("q", "Only models whose name, runtime, format or source contains this text."),
            Parameter("namespace", "Only models in this namespace."),
            Parameter("health", "Only models with this health: Healthy, Degraded or Progressing."), *PAGING,
        ),
        gives=schema.fields(metadata=schema.ANY, items=schema.many(MODEL)), tag=TAG, operation="ListModels",
    ),
    Route(
        "GET", f"{_PATH}/{{ns}}/{{name}}", May("applications", "get", model), got, f"Read a served model. {WHOSE}",
        query=(FIELDS,), gives=MODEL, tag=TAG, operation="GetModel",
    ),
    Route(
        "POST", f"{_PATH}/{{ns}}/{{name}}/try", May("applications", TRY, model), tried,
        "Send a request to a served model. Needs the action try on its Application.",
        takes=schema.fields("question", question={}),
        gives=schema.fields(
            "code", code=schema.COUNT, milliseconds=schema.COUNT, gist=schema.TEXT, answer={}, problem=schema.TEXT
        ),
        tag=TAG, operation="TryModel",
    ),
    Route(
        "POST", f"{_PATH}/{{ns}}/{{name}}/restart", May("applications", RESTART, model), restarted,
        "Replace the Pods of a served model. Needs the action restart on its Application.",
        gives=schema.fields("message", message=schema.TEXT), tag=TAG, operation="RestartModel",
    ),
)  # fmt: skip
