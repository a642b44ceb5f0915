"""Rejects writes that contain redaction placeholders. A client that reads an object, changes one field and sends it
back would overwrite redacted values with placeholders.

In: a request body. Out: –. Never: lets a placeholder overwrite a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import orjson

from argosy.errors import UserError
from argosy.gitops.application import Application
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.observability.redaction import MASK
from argosy.web.request import RequestContext
from argosy.web.route import FilteredList, RequiresPermission, Route

MARK: Final = MASK.encode()
PLACEHOLDER_MESSAGE: Final = (
    f"{MASK} is a placeholder for a redacted value and would overwrite it; "
    "send only the fields that change, or the value itself"
)


def writes_object(route: Route) -> bool:
    """True if the body may become part of an object; a prediction request to a model does not."""
    needs = route.access
    return (
        route.is_mutating
        and isinstance(needs, RequiresPermission | FilteredList)
        and not needs.action.startswith("action/")
    )


def writes_application_text(route: Route) -> bool:
    """True if the body may be shown again by an Application: its spec, operation, objects, models."""
    needs = route.access
    if (
        not route.is_mutating
        or not isinstance(needs, RequiresPermission)
        or needs.resource not in ("applications", "applicationsets")
    ):
        return False
    return needs.action.partition("/")[0] in ("create", "update", "sync", "override", "action")


def renders_sent_text(route: Route) -> bool:
    """True if a read renders the body: a user could send guesses there, and see which of them are redacted."""
    needs = route.access
    return (
        not route.is_mutating
        and route.method == "POST"
        and isinstance(needs, RequiresPermission)
        and needs.resource == "applications"
    )


def reads_other_revision(route: Route, request: RequestContext) -> bool:
    """True if a read is about a revision that is neither tracked by the Application nor was compared or deployed.

    A user who can push a branch could write guesses there and see which of them are redacted.
    """
    needs = route.access
    if route.is_mutating or not isinstance(needs, RequiresPermission) or needs.resource != "applications":
        return False
    revisions = [
        request.path_parameters.get("revision", ""),
        *request.query.get_all("revision"),
        *request.query.get_all("revisions"),
    ]
    own_revisions = {"", *_list_own_revisions(request.subject)} if isinstance(request.subject, Application) else {""}
    return any(revision.strip() not in own_revisions for revision in revisions)


def _list_own_revisions(app: Application) -> Iterator[str]:
    yield from (source.ref or "HEAD" for source in app.sources)
    for fields in (as_mapping(app.status.get("sync")), *as_mappings(app.status.get("history"))):
        revisions = fields.get("revisions")
        yield str(fields.get("revision") or "")
        yield from map(str, revisions if isinstance(revisions, list) else ())


def is_limited(route: Route, request: RequestContext) -> bool:
    """True if the request counts as a write of text: its response may confirm a guessed secret."""
    return writes_application_text(route) or renders_sent_text(route) or reads_other_revision(route, request)


def stores_document(route: Route) -> bool:
    """True if the body becomes an object, and the response is that object."""
    needs = route.access
    return (
        route.is_api
        and writes_object(route)
        and isinstance(needs, RequiresPermission)
        and needs.action in ("create", "update")
    )


async def check_placeholders(request: RequestContext, *, is_form: bool) -> None:
    """Reject a body that contains a placeholder anywhere, also inside a patch string."""
    raw = await request.read_raw_body()
    if is_form:
        form = await request.read_form()
        marked_fields: Iterator[str] = (name for name in form if any(MASK in value for value in form.get_all(name)))
    elif MARK in raw or b"\\u002" in raw:
        marked_fields = _find_placeholders("", await request.read_json())
    else:
        return
    if (field := next(marked_fields, None)) is not None:
        raise UserError(PLACEHOLDER_MESSAGE, where=field or "body")


def _find_placeholders(path: str, value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if MASK in value or ("\\u002" in value and MASK in _normalize_json(value)):
            yield path
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _find_placeholders(f"{path}.{name}", item)
            if MASK in str(name):
                yield path
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_placeholders(f"{path}[{index}]", item)


def _normalize_json(text: str) -> str:
    """Normalize JSON in a string, where a plus sign may be escaped."""
    try:
        return orjson.dumps(orjson.loads(text)).decode()
    except orjson.JSONDecodeError:
        return text
