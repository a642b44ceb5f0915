"""Applications of a file.

In: its text. Out: Applications in order. Never: anything else that the file holds.
"""

from __future__ import annotations

from argosy.model.application import Application, read_application
from argosy.model.errors import UserError
from argosy.model.manifest import load_all

_GROUP = "argoproj.io/"


def read_applications(content: bytes, where: str) -> list[Application]:
    documents = load_all(content, where=where)
    flat = [
        each
        for document in documents
        for each in (document.get("items") or [] if _is(document, "List", "v1") else [document])
    ]
    found = [each for each in flat if _is(each, "Application", _GROUP)]
    if not found:
        raise UserError("holds no Application; name a file that does, or a folder without -f", where=where)
    return [_checked(read_application(each, where), where) for each in found]


def _is(document: object, kind: str, api: str) -> bool:
    if not isinstance(document, dict):
        return False
    return document.get("kind") == kind and str(document.get("apiVersion") or "").startswith(api)


def _checked(app: Application, where: str) -> Application:
    if not app.sources:
        raise UserError(f"the Application {app.name!r} has no source; add spec.source", where=where)
    return app
