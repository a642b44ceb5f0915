"""`/settings/repositories`: list, add and remove repositories.

In: a request. Out: repositories that the caller may see. Never: shows a credential.
"""

from __future__ import annotations

import base64
from functools import partial
from typing import Any, Final

from argosy.annotations import SECRET_TYPE
from argosy.errors import UserError
from argosy.features.repositories import service
from argosy.features.repositories.connection_test import FAILED, RepositoryStateCache, test_connection
from argosy.features.repositories.service import REPOSITORIES
from argosy.gitops.application_client.argocd_secrets_and_config_maps import DeclaredSecret
from argosy.web.caller_application_service import build_service
from argosy.web.request import RequestContext
from argosy.web.responses import PageResponse, RedirectResponse
from argosy.web.route import FilteredList, RequiresPermission, ResolvedObject, Route
from argosy.web.settings_overview_page import SETTINGS_BREADCRUMB

FORM_FIELDS: Final = ("username", "password", "sshPrivateKey", "bearerToken", "project", "name")
PAGE_PATH: Final = "/settings/repositories"


async def render_repositories_page(states: RepositoryStateCache, request: RequestContext) -> PageResponse:
    return PageResponse("repositories/repositories.html", await build_page_values(request, states))


async def build_page_values(
    request: RequestContext, states: RepositoryStateCache, fault: str = "", typed_url: str = ""
) -> dict[str, Any]:
    repositories = [
        item
        for item in await service.list_declared(build_service(request), REPOSITORIES)
        if request.is_allowed("repositories", "get", service.rbac_name(item))
    ]
    rows = [await _build_row(request, item, states) for item in repositories]
    return {
        "title": "Repositories",
        "section": "settings",
        "state": "bad" if any(item["state"] == FAILED for item in rows) else "",
        "crumbs": [SETTINGS_BREADCRUMB],
        "rows": rows,
        "fault": fault,
        "typed": typed_url,
        "commands": ["argocd repo add URL --username NAME --password TOKEN", "argocd repo list"],
    }


async def _build_row(request: RequestContext, declared: DeclaredSecret, states: RepositoryStateCache) -> dict[str, Any]:
    document, rbac_name = service.repository_to_wire(declared, REPOSITORIES), service.rbac_name(declared)
    version = str(declared.manifest["metadata"].get("resourceVersion"))
    state = await states.get_state(declared.values, version, request.cluster_view.rules.repositories)
    return {
        "url": document.get("repo", ""),
        "name": document.get("name", ""),
        "type": document.get("type") or "git",
        "project": document.get("project", ""),
        "state": state.status,
        "message": state.message,
        "has_credentials": any(declared.get_stripped(field) for field in ("password", "sshPrivateKey", "bearerToken")),
        "may_remove": request.is_allowed("repositories", "delete", rbac_name),
    }


async def read_new_repository(request: RequestContext) -> ResolvedObject | None:
    form = await request.read_form()
    fields = {"repo": form.get_text("url").strip()}
    fields |= {name: form.get_text(name).replace("\r\n", "\n") for name in FORM_FIELDS if form.get_text(name).strip()}
    try:
        repository_values = service.read_values(fields, REPOSITORIES)
    except UserError as error:
        return ResolvedObject(None, fields["repo"], error)
    project = repository_values.get("project")
    return ResolvedObject(
        repository_values, f"{project}/{repository_values['url']}" if project else repository_values["url"]
    )


async def add_repository(states: RepositoryStateCache, request: RequestContext) -> PageResponse | RedirectResponse:
    """argo: reject a repository that cannot be reached."""
    repository_values = request.subject
    data = {key: base64.b64encode(text.encode()).decode() for key, text in repository_values.items()}
    secret = {"metadata": {"name": "new", "labels": {SECRET_TYPE: "repository"}}, "data": data}
    state = await test_connection(repository_values, request.cluster_view.rules.repositories, [secret])
    if state.status == FAILED:
        return PageResponse(
            "repositories/repositories.html",
            await build_page_values(request, states, state.message, repository_values["url"]),
            code=400,
        )
    await service.add_declared(build_service(request), REPOSITORIES, repository_values, is_upsert=False)
    return RedirectResponse(f"{PAGE_PATH}?said=connected")


async def find_repository(request: RequestContext) -> ResolvedObject | None:
    form = await request.read_form()
    declared = await service.find_declared(
        build_service(request), REPOSITORIES, form.get_text("url"), form.get_text("project")
    )
    return ResolvedObject(declared, service.rbac_name(declared)) if declared else None


async def remove_repository(request: RequestContext) -> RedirectResponse:
    await service.remove_declared(build_service(request), request.subject)
    return RedirectResponse(f"{PAGE_PATH}?said=removed")


def build_routes(states: RepositoryStateCache) -> tuple[Route, ...]:
    return (
        Route(
            "GET",
            PAGE_PATH,
            FilteredList("repositories", "get"),
            partial(render_repositories_page, states),
            "Repositories, as a page.",
        ),
        Route(
            "POST",
            PAGE_PATH,
            RequiresPermission("repositories", "create", read_new_repository),
            partial(add_repository, states),
            "Add a repository.",
        ),
        Route(
            "POST",
            f"{PAGE_PATH}/remove",
            RequiresPermission("repositories", "delete", find_repository),
            remove_repository,
            "Remove a repository.",
        ),
    )
