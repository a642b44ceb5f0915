"""API documentation page: each operation with its permission, parameters and an example command.

In: the OpenAPI document. Out: a page. Never: anything that the document does not contain.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from argosy.web.api.openapi import JSON, served
from argosy.web.request import Asked
from argosy.web.responses import Page
from argosy.web.route import Route, SignedIn

DEEPEST: Final = 5  # nested fields
STREAM: Final = "text/event-stream"
Document = Mapping[str, Any]


async def shown(asked: Asked) -> Page:
    made: Document = orjson.loads(served(asked))
    groups: dict[str, list[dict[str, Any]]] = {}
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append(_operation(made, path, method.upper(), operation))
    options = asked.site.options
    origin = options.origin or f"{'https' if options.is_tls else 'http'}://{asked.headers.get('host', '')}"
    listed = [{"tag": tag, "operations": groups[tag]} for tag in sorted(groups, key=str.lower)]
    return Page("api_docs.html", {"title": "API", "groups": listed, "origin": origin})


def _operation(made: Document, path: str, method: str, operation: Document) -> dict[str, Any]:
    sent = operation.get("requestBody", {}).get("content", {}).get(JSON, {})
    media = operation["responses"]["200"]["content"]
    return {
        "method": method,
        "path": path,
        "about": operation["summary"],
        "needs": operation["description"].replace("`", ""),
        "query": [_parameter(each) for each in operation["parameters"] if each["in"] == "query"],
        "body": [*_fields(made, sent.get("schema", {}))],
        "example": _text(sent["example"]) if "example" in sent else "",
        "try": _command(path, method, sent, is_stream=STREAM in media),
    }


def _parameter(given: Document) -> dict[str, Any]:
    kind = _kind(given["schema"])
    return {"name": given["name"], "kind": kind, "about": given.get("description", "")}


def _text(example: Any) -> str:
    return orjson.dumps(example, option=orjson.OPT_INDENT_2).decode()


def _command(path: str, method: str, sent: Document, *, is_stream: bool) -> str:
    parts = ["curl", *(["-N"] if is_stream else []), '-H "Authorization: Bearer $TOKEN"']
    if method != "GET":
        parts.append(f"-X {method}")
    if sent:
        parts.append(f"-H 'Content-Type: {JSON}' -d {shlex.quote(orjson.dumps(sent.get('example', {})).decode())}")
    return " ".join([*parts, f'"$ARGOSY{path}"'])


def _fields(made: Document, schema: Document, within: str = "", depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield fields with their jq paths: `strategy.hook.force`, `resources[].kind`."""
    schema = _found(made, schema)
    required = schema.get("required", ())
    for name, each in schema.get("properties", {}).items():
        place, inner = f"{within}{name}", _found(made, each)
        yield {"name": place, "kind": _kind(inner), "is_required": name in required}
        if depth < DEEPEST:
            items = _found(made, inner.get("items", {}))
            yield from _fields(made, items, f"{place}[].", depth + 1)
            yield from _fields(made, inner, f"{place}.", depth + 1)


def _found(made: Document, schema: Document) -> Document:
    if "$ref" not in schema:
        return schema
    found: Document = made["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return found


def _kind(schema: Document) -> str:
    kinds = schema.get("type", "any")
    words = [kinds] if isinstance(kinds, str) else [each for each in kinds if each != "null"]
    return " or ".join(words)


ROUTES = (Route("GET", "/api/docs", SignedIn(), shown, "API documentation page.", tag="about", makes=("text/html",)),)
