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
from argosy.gitops.diff.secret_masks import SHORTEST
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.web.request import Asked
from argosy.web.route import Filtered, May, Route

MARK: Final = SHORTEST.encode()
TOLD: Final = (
    f"{SHORTEST} is a placeholder for a redacted value and would overwrite it; "
    "send only the fields that change, or the value itself"
)


def writes(route: Route) -> bool:
    """True if the body may become part of an object; a prediction request to a model does not."""
    needs = route.needs
    return route.changes and isinstance(needs, May | Filtered) and not needs.action.startswith("action/")


def writes_text(route: Route) -> bool:
    """True if the body may be shown again by an Application: its spec, operation, objects, models."""
    needs = route.needs
    if not route.changes or not isinstance(needs, May) or needs.resource not in ("applications", "applicationsets"):
        return False
    return needs.action.partition("/")[0] in ("create", "update", "sync", "override", "action")


def reads_other_revision(route: Route, asked: Asked) -> bool:
    """True if a read is about a revision that is neither tracked by the Application nor was compared or deployed.

    A user who can push a branch could write guesses there and see which of them are redacted.
    """
    needs = route.needs
    if route.changes or not isinstance(needs, May) or needs.resource != "applications":
        return False
    revisions = [asked.values.get("revision", ""), *asked.query.all("revision"), *asked.query.all("revisions")]
    own = {"", *_own_revisions(asked.subject)} if isinstance(asked.subject, Application) else {""}
    return any(revision.strip() not in own for revision in revisions)


def _own_revisions(app: Application) -> Iterator[str]:
    yield from (source.ref or "HEAD" for source in app.sources)
    for place in (mapping(app.status.get("sync")), *mappings(app.status.get("history"))):
        several = place.get("revisions")
        yield str(place.get("revision") or "")
        yield from map(str, several if isinstance(several, list) else ())


def stores_document(route: Route) -> bool:
    """True if the body becomes an object, and the response is that object."""
    needs = route.needs
    return route.is_api and writes(route) and isinstance(needs, May) and needs.action in ("create", "update")


async def check(asked: Asked, *, is_form: bool) -> None:
    """Reject a body that contains a placeholder anywhere, also inside a patch string."""
    raw = await asked.raw()
    if is_form:
        form = await asked.form()
        marked: Iterator[str] = (name for name in form if any(SHORTEST in value for value in form.all(name)))
    elif MARK in raw or b"\\u002" in raw:
        marked = _marked("", await asked.document())
    else:
        return
    if (where := next(marked, None)) is not None:
        raise UserError(TOLD, where=where or "body")


def _marked(where: str, value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if SHORTEST in value or ("\\u002" in value and SHORTEST in _read(value)):
            yield where
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _marked(f"{where}.{name}", each)
            if SHORTEST in str(name):
                yield where
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from _marked(f"{where}[{number}]", each)


def _read(text: str) -> str:
    """Normalize JSON in a string, where a plus sign may be escaped."""
    try:
        return orjson.dumps(orjson.loads(text)).decode()
    except orjson.JSONDecodeError:
        return text
