"""API documentation page: each operation with its permission, parameters and an example command.

In: the OpenAPI document. Out: a page. Never: anything that the document does not contain.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import orjson

from argosy.web.api.openapi import JSON, OpenApiDocument
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse
from argosy.web.route import Route, SignedIn

MAX_FIELD_DEPTH: Final = 5  # nested fields
STREAM: Final = "text/event-stream"
Document = Mapping[str, Any]


async def render_api_page(openapi: OpenApiDocument, request: RequestContext) -> PageResponse:
    document: Document = orjson.loads(openapi.load(request.options))
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append(
                _build_operation(document, path, method.upper(), operation)
            )
    options = request.options
    origin = options.origin or f"{'https' if options.is_tls else 'http'}://{request.headers.get('host', '')}"
    tag_groups = [{"tag": tag, "operations": groups[tag]} for tag in sorted(groups, key=str.lower)]
    return PageResponse("api_docs.html", {"title": "API", "groups": tag_groups, "origin": origin})


def _build_operation(document: Document, path: str, method: str, operation: Document) -> dict[str, Any]:
    request_body = operation.get("requestBody", {}).get("content", {}).get(JSON, {})
    media = operation["responses"]["200"]["content"]
    return {
        "method": method,
        "path": path,
        "about": operation["summary"],
        "needs": operation["description"].replace("`", ""),
        "query": [_build_parameter(parameter) for parameter in operation["parameters"] if parameter["in"] == "query"],
        "body": [*_list_fields(document, request_body.get("schema", {}))],
        "example": _format_example(request_body["example"]) if "example" in request_body else "",
        "try": _build_curl_command(path, method, request_body, is_stream=STREAM in media),
    }


def _build_parameter(parameter: Document) -> dict[str, Any]:
    kind = _get_type_name(parameter["schema"])
    return {"name": parameter["name"], "kind": kind, "about": parameter.get("description", "")}


def _format_example(example: Any) -> str:
    return orjson.dumps(example, option=orjson.OPT_INDENT_2).decode()


def _build_curl_command(path: str, method: str, request_body: Document, *, is_stream: bool) -> str:
    parts = ["curl", *(["-N"] if is_stream else []), '-H "Authorization: Bearer $TOKEN"']
    if method != "GET":
        parts.append(f"-X {method}")
    if request_body:
        parts.append(
            f"-H 'Content-Type: {JSON}' -d {shlex.quote(orjson.dumps(request_body.get('example', {})).decode())}"
        )
    return " ".join([*parts, f'"$ARGOSY{path}"'])


def _list_fields(document: Document, schema: Document, prefix: str = "", depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield fields with their jq paths: `strategy.hook.force`, `resources[].kind`."""
    schema = _resolve_reference(document, schema)
    required = schema.get("required", ())
    for name, property_schema in schema.get("properties", {}).items():
        path, resolved = f"{prefix}{name}", _resolve_reference(document, property_schema)
        yield {"name": path, "kind": _get_type_name(resolved), "is_required": name in required}
        if depth < MAX_FIELD_DEPTH:
            items = _resolve_reference(document, resolved.get("items", {}))
            yield from _list_fields(document, items, f"{path}[].", depth + 1)
            yield from _list_fields(document, resolved, f"{path}.", depth + 1)


def _resolve_reference(document: Document, schema: Document) -> Document:
    if "$ref" not in schema:
        return schema
    resolved: Document = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return resolved


def _get_type_name(schema: Document) -> str:
    kinds = schema.get("type", "any")
    words = [kinds] if isinstance(kinds, str) else [kind for kind in kinds if kind != "null"]
    return " or ".join(words)


def build_routes(openapi: OpenApiDocument) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            "/api/docs",
            SignedIn(),
            partial(render_api_page, openapi),
            "API documentation page.",
            tag="about",
            response_media_types=("text/html",),
            operation_id="about_shown",
        ),
    )
