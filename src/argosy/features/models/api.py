"""argosy API routes for served models: list, get, try, restart.

In: a request. Out: JSON in argosy's own format. Never: shows a model of an Application that the caller may not see;
sends a request to a URL that is not in the InferenceService.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.models import model_views
from argosy.features.models.inference_payloads import describe_error_response, summarize_answer
from argosy.features.models.model_views import ModelRow
from argosy.features.models.service import ModelService
from argosy.features.models.ssrf_guarded_requests import send_guarded_request
from argosy.gitops.live.inference_service import read_served_model
from argosy.kube.objects import Manifest, key_of
from argosy.kube.well_known_kinds import INFERENCE_SERVICE
from argosy.web.api import request_response_schemas as schema
from argosy.web.api.paging import FIELDS, PAGING, build_page, select_fields
from argosy.web.caller_application_service import build_service
from argosy.web.objects_of_visible_applications import (
    RESTART_ACTION,
    TRY_ACTION,
    build_impersonating_cluster,
    find_owning_application,
    list_visible_objects,
    resolve_model,
)
from argosy.web.request import RequestContext
from argosy.web.responses import JsonResponse
from argosy.web.route import FilteredList, QueryParameter, RequiresPermission, Route

OPENAPI_TAG: Final = "models"
MODEL_REQUEST_TIMEOUT_SECONDS: Final = 30.0
MAX_QUESTION_CHARACTERS: Final = 100_000  # characters
PERMISSION_NOTE: Final = "Needs get on its Application; a model without an Application needs get on all Applications."
MODEL_SCHEMA: Final = schema.build_object_schema(
    name=schema.STRING_SCHEMA,
    namespace=schema.STRING_SCHEMA,
    application=schema.STRING_SCHEMA,
    health=schema.STRING_SCHEMA,
    message=schema.STRING_SCHEMA,
    url=schema.STRING_SCHEMA,
    runtime=schema.STRING_SCHEMA,
    format=schema.STRING_SCHEMA,
    source=schema.STRING_SCHEMA,
    protocol=schema.STRING_SCHEMA,
    since=schema.STRING_SCHEMA,
    isSimulated=schema.BOOLEAN_SCHEMA,
    isCurrent=schema.BOOLEAN_SCHEMA,
    gpus=schema.STRING_SCHEMA,
    pods=schema.build_object_schema(ready=schema.INTEGER_SCHEMA, wanted=schema.INTEGER_SCHEMA),
    traffic=schema.build_array_schema(schema.OBJECT_SCHEMA),
    trainedBy={"type": ["object", "null"]},
)


def model_to_wire(request: RequestContext, service: Manifest) -> dict[str, Any]:
    row: ModelRow = model_views.build_model_row(service, request.cluster_view.cache)
    model_info, app = row.model, find_owning_application(request, service)
    training_run = row.trained
    return {
        "name": model_info.name,
        "namespace": model_info.namespace,
        "application": f"{app['metadata']['namespace']}/{app['metadata']['name']}" if app else "",
        "health": row.health,
        "message": model_info.why,
        "url": model_info.url,
        "runtime": model_info.runtime,
        "format": model_info.format,
        "source": model_info.source,
        "protocol": model_views.protocol_label(model_info),
        "since": row.since,
        "isSimulated": row.is_simulated,
        "isCurrent": row.is_current,
        "gpus": row.gpus,
        "pods": {"ready": row.ready_pods, "wanted": row.wanted_pods},
        "traffic": [
            {"revision": share.revision, "percent": share.percent, "isLatest": share.is_latest} for share in row.shares
        ],
        "trainedBy": {"notebook": training_run.notebook, "commit": training_run.commit} if training_run else None,
    }


async def list_models(request: RequestContext) -> JsonResponse:
    query, namespace = request.query.get_text("q").lower(), request.query.get_text("namespace")
    health = request.query.get_text("health")
    items = [model_to_wire(request, item) for item in list_visible_objects(request, INFERENCE_SERVICE)]
    matching_items = [
        item
        for item in items
        if namespace in ("", item["namespace"])
        and health in ("", item["health"])
        and query in f"{item['namespace']}/{item['name']} {item['runtime']} {item['format']} {item['source']}".lower()
    ]
    return build_page(request, matching_items, lambda item: f"{item['namespace']}/{item['name']}")


async def get_model(request: RequestContext) -> JsonResponse:
    view = model_views.build_model_view(request.subject, request.cluster_view.cache)
    details = {
        "example": view.example,
        "curl": view.curl,
        "steps": [{"name": step.name, "state": step.state, "message": step.about} for step in view.links],
        "podsSeen": [{"name": name, "phase": phase, "started": started_at} for name, phase, started_at in view.pods],
    }
    return select_fields(request, {**model_to_wire(request, request.subject), **details})


async def try_model(request: RequestContext) -> JsonResponse:
    """Send the question (a string, or a complete request as JSON) to the model and return its answer."""
    question = (await request.read_json_object()).get("question")
    question_text = question if isinstance(question, str) else json.dumps(question) if question is not None else ""
    model_info = read_served_model(request.subject)
    if not question_text.strip() or len(question_text) > MAX_QUESTION_CHARACTERS:
        message = f"is missing or longer than {MAX_QUESTION_CHARACTERS} characters; send a string or a request object"
        raise UserError(message, where="question")
    if not model_info.url:
        raise UserError(f"{model_info.name} has no URL: {model_info.why or 'it is not ready yet'}; see its steps")
    send_request = partial(send_guarded_request, is_local=request.options.is_loopback)
    model_service = ModelService(request.service.cluster, request.service.cluster_name, send_request)
    result = await model_service.query_model(
        model_info, question_text, seconds=MODEL_REQUEST_TIMEOUT_SECONDS, insecure=False
    )
    response, answer = result.response, result.response.read_json()
    is_ok = response.code == 200 and answer is not None
    return JsonResponse(
        {
            "code": response.code,
            "milliseconds": round(response.seconds * 1000),
            "gist": summarize_answer(answer) if is_ok else "",
            "answer": answer,
            "problem": "" if is_ok else describe_error_response(answer, response.body),
        }
    )


async def restart_model(request: RequestContext) -> JsonResponse:
    service = build_service(request)
    inference_service = await service.cluster.get(key_of(request.subject))
    if inference_service is None:
        raise UserError(
            f"InferenceService {request.path_parameters['name']!r} not found; list them: /api/argosy/v1/models"
        )
    cluster = build_impersonating_cluster(request, request.subject)
    return JsonResponse({"message": await ModelService(cluster, service.cluster_name).restart_model(inference_service)})


_PATH: Final = "/api/argosy/v1/models"
ROUTES = (
    Route(
        "GET",
        _PATH,
        FilteredList("applications", "get"),
        list_models,
        f"List served models. {PERMISSION_NOTE}",
        query=(
            QueryParameter("q", "Only models whose name, runtime, format or source contains this text."),
            QueryParameter("namespace", "Only models in this namespace."),
            QueryParameter("health", "Only models with this health: Healthy, Degraded or Progressing."),
            *PAGING,
        ),
        response_schema=schema.build_object_schema(
            metadata=schema.OBJECT_SCHEMA, items=schema.build_array_schema(MODEL_SCHEMA)
        ),
        tag=OPENAPI_TAG,
        operation_id="ListModels",
    ),
    Route(
        "GET",
        f"{_PATH}/{{ns}}/{{name}}",
        RequiresPermission("applications", "get", resolve_model),
        get_model,
        f"Read a served model. {PERMISSION_NOTE}",
        query=(FIELDS,),
        response_schema=MODEL_SCHEMA,
        tag=OPENAPI_TAG,
        operation_id="GetModel",
    ),
    Route(
        "POST",
        f"{_PATH}/{{ns}}/{{name}}/try",
        RequiresPermission("applications", TRY_ACTION, resolve_model),
        try_model,
        "Send a request to a served model. Needs the action try on its Application.",
        request_schema=schema.build_object_schema("question", question={}),
        response_schema=schema.build_object_schema(
            "code",
            code=schema.INTEGER_SCHEMA,
            milliseconds=schema.INTEGER_SCHEMA,
            gist=schema.STRING_SCHEMA,
            answer={},
            problem=schema.STRING_SCHEMA,
        ),
        tag=OPENAPI_TAG,
        operation_id="TryModel",
    ),
    Route(
        "POST",
        f"{_PATH}/{{ns}}/{{name}}/restart",
        RequiresPermission("applications", RESTART_ACTION, resolve_model),
        restart_model,
        "Replace the Pods of a served model. Needs the action restart on its Application.",
        response_schema=schema.build_object_schema("message", message=schema.STRING_SCHEMA),
        tag=OPENAPI_TAG,
        operation_id="RestartModel",
    ),
)
