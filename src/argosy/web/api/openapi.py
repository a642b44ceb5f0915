"""OpenAPI document, generated from the route table.

In: routes. Out: an OpenAPI 3.1 document. Never: leaves out an API route.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary

import orjson

from argosy.web.api.examples import example_of
from argosy.web.api.schemas import reference, schema_of, schemas
from argosy.web.request import Asked
from argosy.web.responses import Bytes
from argosy.web.route import Filtered, May, Parameter, Public, Route, SignedIn

JSON: Final = "application/json"
ERRORS: Final = {
    "400": "Bad request; the message says how to correct it.",
    "401": "Not authenticated.",
    "403": "Forbidden, or not found.",
    "default": "Any other error, in the same format.",
}


def document(routes: Sequence[Route], title: str, version: str) -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    shown = [route for route in routes if route.is_api]
    names = Counter(_plain_name(route) for route in shown)
    for route in sorted(shown, key=lambda each: (each.path, each.method)):
        name = _plain_name(route)
        operation = name if names[name] == 1 else f"{name}_{route.method.lower()}_{_words(route.path)}"
        paths.setdefault(_path(route), {})[route.method.lower()] = _operation(route, operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version or "0", "description": ABOUT},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
    }


ABOUT: Final = (
    "Argo CD's REST API, and argosy's own under /api/argosy/v1. Send a token as `Authorization: Bearer`; permissions "
    "come from argocd-rbac-cm and project roles."
)


def tag_of(route: Route) -> str:
    if route.tag:
        return route.tag
    parts = [part for part in route.path.split("/") if part and not part.startswith("{")]
    named = [part for part in parts if part not in ("api", "v1", "argosy", "stream")]
    return named[0] if named else "about"


def _plain_name(route: Route) -> str:
    return route.operation or f"{tag_of(route)}_{route.answer.__name__}".replace("-", "_")


def _words(path: str) -> str:
    return "_".join(part.strip("{}*") for part in path.split("/") if part).replace("-", "_").replace(".", "_")


def _path(route: Route) -> str:
    return route.path.replace("*}", "}")


def _operation(route: Route, name: str) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": name,
        "tags": [tag_of(route)],
        "summary": route.about or name.replace("_", " "),
        "description": needs_of(route),
        "parameters": [*map(_in_path, route.names), *map(_in_query, route.query)],
        "responses": _responses(route),
    }
    if isinstance(route.needs, Public):
        made["security"] = []
    if route.takes is not None:
        sent: dict[str, Any] = {"schema": schema_of(route.takes)}
        if (example := example_of(route.method, route.path)) is not None:
            sent["example"] = example
        made["requestBody"] = {"content": {JSON: sent}}
    return made


def _responses(route: Route) -> dict[str, Any]:
    made: dict[str, Any] = {"200": {"description": "OK", "content": _content(route)}}
    for code, about in ERRORS.items():
        made[code] = {"description": about, "content": {JSON: {"schema": reference("Error")}}}
    return made


def _content(route: Route) -> dict[str, Any]:
    given = schema_of(route.gives)
    if any((each if isinstance(each, str) else each.name) == "fields" for each in route.query):
        given = _without_required(given)  # a selection of fields may omit required ones
    return {media: {"schema": given if media == JSON else {}} for media in route.makes}


def _without_required(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_required(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    is_list = isinstance(schema.get("required"), list)  # a property may have that name, too
    return {name: _without_required(each) for name, each in schema.items() if name != "required" or not is_list}


def needs_of(route: Route) -> str:
    match route.needs:
        case Public(why):
            return f"Public: {why}."
        case SignedIn():
            return "Requires a session."
        case May(resource, action):
            return f"Requires `{resource}`, `{action}`."
        case Filtered(resource, action):
            return f"Returns the `{resource}` that the caller may `{action}`."


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}


def _in_query(given: Parameter | str) -> dict[str, Any]:
    parameter = Parameter(given) if isinstance(given, str) else given
    schema: dict[str, Any] = {"type": parameter.kind}
    if parameter.kind == "array":
        schema["items"] = {"type": "string"}
    made: dict[str, Any] = {"name": parameter.name, "in": "query", "schema": schema}
    if parameter.about:
        made["description"] = parameter.about
    if parameter.is_required:
        made["required"] = True
    return made


# -- endpoints -------------------------------------------------------------------------------------------------------

_MADE: WeakKeyDictionary[Any, bytes] = WeakKeyDictionary()  # per application: its route table does not change


def served(asked: Asked) -> bytes:
    if asked.entry not in _MADE:
        options = asked.site.options
        _MADE[asked.entry] = orjson.dumps(document(asked.entry.routes, options.title, options.version))
    return _MADE[asked.entry]


async def described(asked: Asked) -> Bytes:
    return Bytes(served(asked), JSON)


ROUTES = (
    Route("GET", "/api/openapi.json", SignedIn(), described, "OpenAPI document.", tag="about"),
    Route("GET", "/swagger.json", SignedIn(), described, "OpenAPI document, at Argo CD's path.", tag="about"),
)
