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
from argosy.features.models import model_views
from argosy.features.models.inference_payloads import describe_error_response, render_curl_command, summarize_answer
from argosy.features.models.list_page import AFFECTED_KINDS
from argosy.features.models.service import ModelService
from argosy.features.models.ssrf_guarded_requests import send_guarded_request
from argosy.gitops.live.inference_service import ServedModel, read_served_model
from argosy.kube.objects import key_of
from argosy.web.caller_application_service import build_service
from argosy.web.live_updates.live_page_definitions import LivePage, is_in_page_namespace
from argosy.web.objects_of_visible_applications import (
    RESTART_ACTION,
    TRY_ACTION,
    build_impersonating_cluster,
    get_owner_page_path,
    resolve_model,
)
from argosy.web.page_templates import render_macro, render_page_state
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse, RedirectResponse
from argosy.web.route import RequiresPermission, Route

MODEL_REQUEST_TIMEOUT_SECONDS: Final = 30.0  # timeout of one model request; the web server's own timeout is a minute
MAX_QUESTION_CHARACTERS: Final = 100_000
MAX_ANSWER_CHARACTERS: Final = 20_000  # characters of an answer
STEP_STATES: Final = {"ok": "ok", "bad": "failed", "busy": "running", "waits": "waiting"}


@dataclass(frozen=True)
class TryResult:
    """The result of a `try` request."""

    typed: str
    code: int = 0
    milliseconds: int = 0
    gist: str = ""
    whole: str = ""
    problem: str = ""
    curl: str = ""
    python: str = ""


async def render_model_page(request: RequestContext) -> PageResponse:
    return PageResponse("models/model.html", build_page_values(request))


def build_page_values(request: RequestContext, try_result: TryResult | None = None) -> dict[str, Any]:
    view = model_views.build_model_view(request.subject, request.cluster_view.cache)
    row = view.row
    model_info = row.model
    return {
        "title": model_info.name,
        "is_live": try_result is None,  # live updates would overwrite the answer
        "section": "models",
        "state": {"Healthy": "ok", "Degraded": "bad"}.get(row.health, "busy"),
        "crumbs": [("Models", "/models"), (model_info.namespace, f"/models?q={model_info.namespace}")],
        "view": view,
        "row": row,
        "model": model_info,
        "path": row.path,
        "app_path": get_owner_page_path(request, request.subject),
        "chain": [{"name": step.name, "state": STEP_STATES[step.state], "text": step.about} for step in view.links],
        "open": [step for step in view.links if step.is_open],
        "probes": [],
        "is_probed": False,
        "may_try": request.is_allowed("applications", TRY_ACTION, request.rbac_object),
        "may_restart": request.is_allowed("applications", RESTART_ACTION, request.rbac_object),
        "said": try_result,
        "typed": try_result.typed if try_result else view.example,
    }


async def try_model(request: RequestContext) -> PageResponse:
    question = (await request.read_form()).get_text("question").replace("\r\n", "\n")[:MAX_QUESTION_CHARACTERS]
    return PageResponse(
        "models/model.html",
        build_page_values(request, await _send_question(request, read_served_model(request.subject), question)),
    )


async def _send_question(request: RequestContext, model_info: ServedModel, question: str) -> TryResult:
    if not question.strip():
        return TryResult(question, problem="the question is empty; enter a text, instances, or a complete request")
    if not model_info.url:
        return TryResult(question, problem=f"{model_info.name} has no URL: {model_info.why or 'it is not ready yet'}")
    send_request = partial(send_guarded_request, is_local=request.options.is_loopback)
    model_service = ModelService(request.service.cluster, request.service.cluster_name, send_request)
    try:
        result = await model_service.query_model(
            model_info, question, seconds=MODEL_REQUEST_TIMEOUT_SECONDS, insecure=False
        )
    except ArgosyError as error:
        return TryResult(question, problem=str(error))
    response, document = result.response, result.response.read_json()
    is_ok = response.code == 200 and document is not None
    address = model_info.url.rstrip("/")
    full_answer = json.dumps(document, ensure_ascii=False, indent=2) if document is not None else ""
    return TryResult(
        question,
        response.code,
        round(response.seconds * 1000),
        summarize_answer(document)[:MAX_ANSWER_CHARACTERS] if is_ok else "",
        full_answer[:MAX_ANSWER_CHARACTERS],
        "" if is_ok else f"HTTP {response.code}: {describe_error_response(document, response.body)}",
        render_curl_command(address, result.inference_request),
        model_views.render_python_request(address + result.inference_request.path, result.inference_request.body),
    )


async def probe_model(request: RequestContext) -> PageResponse:
    """Request the health paths of the model and show the results."""
    model_info = read_served_model(request.subject)
    send_request = partial(send_guarded_request, is_local=request.options.is_loopback)
    model_service = ModelService(request.service.cluster, request.service.cluster_name, send_request)
    probes = await model_service.probe_health(model_info, insecure=False) if model_info.url else []
    return PageResponse(
        "models/model.html", {**build_page_values(request), "is_live": False, "probes": probes, "is_probed": True}
    )


async def restart_model(request: RequestContext) -> RedirectResponse:
    service = build_service(request)
    inference_service = await service.cluster.get(key_of(request.subject))
    if inference_service is None:
        raise UserError(f"InferenceService {request.path_parameters['name']!r} not found; list them: /models")
    await ModelService(build_impersonating_cluster(request, request.subject), service.cluster_name).restart_model(
        inference_service
    )
    return RedirectResponse(f"/models/{request.path_parameters['ns']}/{request.path_parameters['name']}?said=restarted")


ROUTES = (
    Route(
        "GET",
        "/models/{ns}/{name}",
        RequiresPermission("applications", "get", resolve_model),
        render_model_page,
        "A served model, as a page.",
    ),
    Route(
        "POST",
        "/models/{ns}/{name}/try",
        RequiresPermission("applications", TRY_ACTION, resolve_model),
        try_model,
        "Send a request to a served model.",
    ),
    Route(
        "POST",
        "/models/{ns}/{name}/probe",
        RequiresPermission("applications", TRY_ACTION, resolve_model),
        probe_model,
        "Check whether a served model is ready.",
    ),
    Route(
        "POST",
        "/models/{ns}/{name}/restart",
        RequiresPermission("applications", RESTART_ACTION, resolve_model),
        restart_model,
        "Restart a served model.",
    ),
)


async def build_updates(request: RequestContext) -> dict[str, str]:
    page_values = build_page_values(request)
    return {
        "readiness": render_macro("models/parts.html", "readiness", page_values["chain"], page_values["open"]),
        "model-state": render_macro("models/parts.html", "model_state", page_values["row"]),
        "copies": render_macro("models/parts.html", "copies", page_values["row"], page_values["view"].pods),
        **render_page_state(page_values),
    }


LIVE = (
    LivePage(
        "/models/{ns}/{name}",
        RequiresPermission("applications", "get", resolve_model),
        build_updates,
        AFFECTED_KINDS,
        is_in_page_namespace,
    ),
)
