"""Run an action on an object of an Application, or delete the object.

In: forms. Out: a redirect. Never: acts on an object outside the Application or without permission.
"""

from __future__ import annotations

from argosy.errors import UserError
from argosy.features.applications.objects.page import found, key_of_request, may_act, may_delete
from argosy.features.applications.page_parts.addresses import of_resource
from argosy.features.applications.page_parts.frame import app_of, back_to, framed
from argosy.gitops.application_client.objects import delete_object
from argosy.gitops.application_client.resource_actions import actions_in_force
from argosy.gitops.application_client.resource_actions import run_action as run
from argosy.web.caller_clients import reader_of, writer_of
from argosy.web.object_lookup import application
from argosy.web.request import Asked, Refused
from argosy.web.responses import Answer, Page, Redirect
from argosy.web.route import May, Route

WHERE = "/apps/{ns}/{name}/r/{group}/{kind}/{rns}/{rname}"


async def run_action(asked: Asked) -> Answer:
    app, key, form = app_of(asked), key_of_request(asked), await asked.form()
    name = form.text("action")
    if not name or not may_act(asked, key, name):
        raise Refused
    _, live, _ = await found(asked)
    if live is None:
        raise UserError(f"{key.kind}/{key.name} does not exist any more; no action was run")
    reader = reader_of(asked)
    await run(writer_of(asked, app), app, actions_in_force(reader), live, name, {})
    return Redirect(where=f"{of_resource(app.namespace, app.name, key)}?said=acted")


async def delete_page(asked: Asked) -> Answer:
    return await _delete_page(asked, "")


async def _delete_page(asked: Asked, fault: str, code: int = 200) -> Answer:
    app, key = app_of(asked), key_of_request(asked)
    leaf, live, _ = await found(asked)
    if live is None or not may_delete(asked, key):
        raise Refused
    url = of_resource(app.namespace, app.name, key)
    values = await framed(asked, "", leaf=leaf, here_url=url, fault=fault)
    return Page("applications/resource_delete.html", values, code=code)


async def delete(asked: Asked) -> Answer:
    app, key, form = app_of(asked), key_of_request(asked), await asked.form()
    if not may_delete(asked, key):
        raise Refused
    _, live, _ = await found(asked)
    if live is None:
        raise UserError(f"{key.kind}/{key.name} does not exist any more; nothing was deleted")
    if form.text("sure").strip() != key.name:
        return await _delete_page(asked, f"Nothing was deleted: type the name {key.name} to confirm.", 400)
    how = form.text("how")
    await delete_object(writer_of(asked, app), app, live, orphan=how == "orphan", force=how == "force")
    return back_to(asked, "deleted")


NEEDS = May("applications", "get", application)
ROUTES = (
    Route("POST", f"{WHERE}/action", NEEDS, run_action, "Run an action of an object"),
    Route("GET", f"{WHERE}/delete", NEEDS, delete_page, "Confirm the deletion of an object"),
    Route("POST", f"{WHERE}/delete", NEEDS, delete, "Delete an object"),
)
