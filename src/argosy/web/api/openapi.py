"""OpenAPI document, generated from the route table.

In: routes. Out: an OpenAPI 3.1 document. Never: leaves out an API route.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import orjson

from argosy.web.api.component_schemas import build_reference, get_schema, load_schemas
from argosy.web.api.request_examples import find_example
from argosy.web.request import RequestContext
from argosy.web.responses import BytesResponse
from argosy.web.route import FilteredList, Public, QueryParameter, RequiresPermission, Route, SignedIn
from argosy.web.serve_options import ServeOptions

JSON: Final = "application/json"
ERROR_DESCRIPTIONS: Final = {
    "400": "Bad request; the message says how to correct it.",
    "401": "Not authenticated.",
    "403": "Forbidden, or not found.",
    "default": "Any other error, in the same format.",
}


def build_openapi_document(routes: Sequence[Route], title: str, version: str) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    api_routes = [route for route in routes if route.is_api]
    names = Counter(_build_operation_name(route) for route in api_routes)
    for route in sorted(api_routes, key=lambda api_route: (api_route.path, api_route.method)):
        name = _build_operation_name(route)
        operation = name if names[name] == 1 else f"{name}_{route.method.lower()}_{_join_path_words(route.path)}"
        paths.setdefault(_format_path(route), {})[route.method.lower()] = _build_operation(route, operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version or "0", "description": API_DESCRIPTION},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": load_schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


API_DESCRIPTION: Final = (
    "Argo CD's REST API, and argosy's own under /api/argosy/v1. Send a token as `Authorization: Bearer`; permissions "
    "come from argocd-rbac-cm and project roles."
)


def get_tag(route: Route) -> str:
    if route.tag:
        return route.tag
    parts = [part for part in route.path.split("/") if part and not part.startswith("{")]
    named = [part for part in parts if part not in ("api", "v1", "argosy", "stream")]
    return named[0] if named else "about"


def _build_operation_name(route: Route) -> str:
    handler = getattr(route.handler, "func", route.handler)  # the function of a partial
    return route.operation_id or f"{get_tag(route)}_{handler.__name__}".replace("-", "_")


def _join_path_words(path: str) -> str:
    return "_".join(part.strip("{}*") for part in path.split("/") if part).replace("-", "_").replace(".", "_")


def _format_path(route: Route) -> str:
    return route.path.replace("*}", "}")


def _build_operation(route: Route, name: str) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": name,
        "tags": [get_tag(route)],
        "summary": route.summary or name.replace("_", " "),
        "description": describe_access(route),
        "parameters": [*map(_build_path_parameter, route.parameter_names), *map(_build_query_parameter, route.query)],
        "responses": _build_responses(route),
    }
    if isinstance(route.access, Public):
        operation["security"] = []
    if route.request_schema is not None:
        content: dict[str, Any] = {"schema": get_schema(route.request_schema)}
        if (example := find_example(route.method, route.path)) is not None:
            content["example"] = example
        operation["requestBody"] = {"content": {JSON: content}}
    return operation


def _build_responses(route: Route) -> dict[str, Any]:
    responses: dict[str, Any] = {"200": {"description": "OK", "content": _build_content(route)}}
    for code, about in ERROR_DESCRIPTIONS.items():
        responses[code] = {"description": about, "content": {JSON: {"schema": build_reference("Error")}}}
    return responses


def _build_content(route: Route) -> dict[str, Any]:
    schema = get_schema(route.response_schema)
    if any((parameter if isinstance(parameter, str) else parameter.name) == "fields" for parameter in route.query):
        schema = _drop_required(schema)  # a selection of fields may omit required ones
    return {media: {"schema": schema if media == JSON else {}} for media in route.response_media_types}


def _drop_required(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_drop_required(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    is_list = isinstance(schema.get("required"), list)  # a property may have that name, too
    return {name: _drop_required(item) for name, item in schema.items() if name != "required" or not is_list}


def describe_access(route: Route) -> str:
    match route.access:
        case Public(why):
            return f"Public: {why}."
        case SignedIn():
            return "Requires a session."
        case RequiresPermission(resource, action):
            return f"Requires `{resource}`, `{action}`."
        case FilteredList(resource, action):
            return f"Returns the `{resource}` that the caller may `{action}`."


def _build_path_parameter(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _build_query_parameter(query_parameter: QueryParameter | str) -> dict[str, Any]:
    parameter = QueryParameter(query_parameter) if isinstance(query_parameter, str) else query_parameter
    schema: dict[str, Any] = {"type": parameter.kind}
    if parameter.kind == "array":
        schema["items"] = {"type": "string"}
    document: dict[str, Any] = {"name": parameter.name, "in": "query", "schema": schema}
    if parameter.description:
        document["description"] = parameter.description
    if parameter.is_required:
        document["required"] = True
    return document


# -- endpoints -------------------------------------------------------------------------------------------------------


class OpenApiDocument:
    """The document of one server, built on first use: its routes and options do not change."""

    def __init__(self, list_routes: Callable[[], Sequence[Route]]) -> None:
        self._list_routes = list_routes
        self._data = b""

    def load(self, options: ServeOptions) -> bytes:
        if not self._data:
            self._data = orjson.dumps(build_openapi_document(self._list_routes(), options.title, options.version))
        return self._data


async def get_openapi_document(document: OpenApiDocument, request: RequestContext) -> BytesResponse:
    return BytesResponse(document.load(request.options), JSON)


def build_routes(document: OpenApiDocument) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            "/api/openapi.json",
            SignedIn(),
            partial(get_openapi_document, document),
            "OpenAPI document.",
            tag="about",
            operation_id="about_described_get_api_openapi_json",
        ),
        Route(
            "GET",
            "/swagger.json",
            SignedIn(),
            partial(get_openapi_document, document),
            "OpenAPI document, at Argo CD's path.",
            tag="about",
            operation_id="about_described_get_swagger_json",
        ),
    )
