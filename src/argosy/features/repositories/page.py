"""`/settings/repositories`: list, add and remove repositories.

In: a request. Out: repositories that the caller may see. Never: shows a credential.
"""

from __future__ import annotations

import base64
from typing import Any, Final

from argosy.annotations import SECRET_TYPE
from argosy.errors import UserError
from argosy.features.repositories import service
from argosy.features.repositories.connection_test import BAD, States, state_of
from argosy.features.repositories.service import REPOSITORIES
from argosy.gitops.application_client.declared_objects import Declared
from argosy.web.caller_clients import desk_of
from argosy.web.request import Asked
from argosy.web.responses import Page, Redirect
from argosy.web.route import Filtered, Found, May, Route
from argosy.web.settings_page import CRUMB

FIELDS: Final = ("username", "password", "sshPrivateKey", "bearerToken", "project", "name")
HERE: Final = "/settings/repositories"


async def page(asked: Asked) -> Page:
    return Page("repositories/repositories.html", await values(asked))


async def values(asked: Asked, fault: str = "", typed: str = "") -> dict[str, Any]:
    found = [
        each
        for each in await service.all_on(desk_of(asked), REPOSITORIES)
        if asked.may("repositories", "get", service.thing_of(each))
    ]
    rows = [await _row(asked, each) for each in found]
    return {
        "title": "Repositories",
        "section": "settings",
        "state": "bad" if any(each["state"] == BAD for each in rows) else "",
        "crumbs": [CRUMB],
        "rows": rows,
        "fault": fault,
        "typed": typed,
        "commands": ["argocd repo add URL --username NAME --password TOKEN", "argocd repo list"],
    }


async def _row(asked: Asked, declared: Declared) -> dict[str, Any]:
    told, thing = service.document(declared, REPOSITORIES), service.thing_of(declared)
    mark = str(declared.manifest["metadata"].get("resourceVersion"))
    state = await asked.site.part(States).of(declared.values, mark, asked.site.lookout.rules.repositories)
    return {
        "url": told.get("repo", ""),
        "name": told.get("name", ""),
        "type": told.get("type") or "git",
        "project": told.get("project", ""),
        "state": state.status,
        "message": state.message,
        "has_credentials": any(declared.text(field) for field in ("password", "sshPrivateKey", "bearerToken")),
        "may_remove": asked.may("repositories", "delete", thing),
    }


async def to_come(asked: Asked) -> Found | None:
    form = await asked.form()
    given = {"repo": form.text("url").strip()}
    given |= {name: form.text(name).replace("\r\n", "\n") for name in FIELDS if form.text(name).strip()}
    try:
        found = service.read_values(given, REPOSITORIES)
    except UserError as error:
        return Found(None, given["repo"], error)
    project = found.get("project")
    return Found(found, f"{project}/{found['url']}" if project else found["url"])


async def added(asked: Asked) -> Page | Redirect:
    """argo: reject a repository that cannot be reached."""
    found = asked.subject
    data = {key: base64.b64encode(text.encode()).decode() for key, text in found.items()}
    secret = {"metadata": {"name": "new", "labels": {SECRET_TYPE: "repository"}}, "data": data}
    state = await state_of(found, asked.site.lookout.rules.repositories, [secret])
    if state.status == BAD:
        return Page("repositories/repositories.html", await values(asked, state.message, found["url"]), code=400)
    await service.add(desk_of(asked), REPOSITORIES, found, replaces=False)
    return Redirect(f"{HERE}?said=connected")


async def there(asked: Asked) -> Found | None:
    form = await asked.form()
    found = await service.find(desk_of(asked), REPOSITORIES, form.text("url"), form.text("project"))
    return Found(found, service.thing_of(found)) if found else None


async def removed(asked: Asked) -> Redirect:
    await service.remove(desk_of(asked), asked.subject)
    return Redirect(f"{HERE}?said=removed")


ROUTES = (
    Route("GET", HERE, Filtered("repositories", "get"), page, "Repositories, as a page."),
    Route("POST", HERE, May("repositories", "create", to_come), added, "Add a repository."),
    Route("POST", f"{HERE}/remove", May("repositories", "delete", there), removed, "Remove a repository."),
)
