"""API to get, patch and delete single objects of an Application, and to run actions.

In: a request. Out: Argo CD's format. Never: an object outside the Application's tree, or one that its project does
not permit.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import orjson

from argosy.errors import UserError
from argosy.features.applications.read.api import PLACE
from argosy.features.applications.read.content_api import choice_of
from argosy.features.applications.read.tree_response import text_of
from argosy.features.applications.request_target import finer, of_body
from argosy.gitops.application_client.objects import delete_object, patch_object
from argosy.gitops.application_client.owned_objects import belonging
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.application_client.resource_actions import Choice, actions_in_force, run_action
from argosy.gitops.diff import masked
from argosy.gitops.health.actions import Action
from argosy.gitops.status.wire_format import given
from argosy.kube.client import PatchKind
from argosy.kube.objects import Manifest, key_of
from argosy.web.api import json_schemas as schema
from argosy.web.api.body_fields import Body, as_fields
from argosy.web.caller_clients import reader_of, writer_of
from argosy.web.object_lookup import application
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Found, May, Parameter, Route

MERGE: Final = PatchKind.MERGE
PATCHES: Final = {"": MERGE, "merge": MERGE, "json": PatchKind.JSON, "strategic": PatchKind.STRATEGIC}


async def _object(asked: Asked, reader: Reader) -> Manifest:
    return await belonging(reader, asked.subject, choice_of(asked.query, "resourceName"))


def _shown(reader: Reader, manifest: Manifest) -> Json:
    (found,) = masked([manifest], reader.rules.compare.masked_annotations)
    return Json({"manifest": text_of(found)})


async def got(asked: Asked) -> Json:
    reader = reader_of(asked)
    return _shown(reader, await _object(asked, reader))


async def patched(asked: Asked) -> Json:
    """argo: The body is the patch as a string; a JSON object is accepted, too."""
    reader, sent = reader_of(asked), await asked.document()
    typed = asked.query.text("patchType")
    kind = PATCHES.get(typed, typed)
    if kind not in tuple(PatchKind):
        raise UserError(f"unknown patch type; send one of {', '.join(PatchKind)}", where="patchType")
    if not sent:
        raise UserError("missing patch; send it as the body", where="body")
    manifest, patch = await _object(asked, reader), sent if isinstance(sent, str) else _text(sent)
    with as_fields():
        await patch_object(writer_of(asked, asked.subject), asked.subject, manifest, patch, kind)
    after = await (asked.site.desk if reader.is_here else reader).cluster.get(key_of(manifest))
    return _shown(reader, after or manifest)


def _text(sent: Any) -> str:
    return orjson.dumps(sent).decode()


async def deleted(asked: Asked) -> Json:
    reader = reader_of(asked)
    manifest = await _object(asked, reader)
    orphan, force = asked.query.flag("orphan"), asked.query.flag("force")
    await delete_object(writer_of(asked, asked.subject), asked.subject, manifest, orphan=orphan, force=force)
    return Json({})


# -- actions -------------------------------------------------------------------------------------------------------


async def actions(asked: Asked) -> Json:
    reader = reader_of(asked)
    found = await actions_in_force(reader).discover(await _object(asked, reader))
    return Json({"actions": [_action(each) for each in found]})


def _action(action: Action) -> dict[str, Any]:
    told = given(disabled=action.disabled, iconClass=action.icon, displayName=action.display_name)
    params = [{"name": each} for each in action.parameters]
    return {"name": action.name, **told, **given(params=params)}


async def of_action(asked: Asked) -> Found | None:
    """argo: RBAC action `action/<group>/<kind>/<action>`. The body is the name of the action, as a string."""
    name = await asked.document()
    if not isinstance(name, str) or not name:
        raise UserError("missing action; send its name as a JSON string", where="body")
    found = await application(asked)
    query = asked.query
    return _acting(found, Choice(query.text("group"), query.text("kind")), name)


async def of_second(asked: Asked) -> Found | None:
    body = Body(await asked.mapping())
    found = await of_body(asked)
    return _acting(found, Choice(body.text("group"), body.text("kind")), body.text("action"))


def _acting(found: Found | None, choice: Choice, name: str) -> Found | None:
    return None if found is None else replace(found, action=f"action/{choice.group}/{choice.kind}/{name}")


async def acted(asked: Asked) -> Json:
    reader, name = reader_of(asked), await asked.document()
    manifest = await _object(asked, reader)
    await run_action(writer_of(asked, asked.subject), asked.subject, actions_in_force(reader), manifest, name, {})
    return Json({})


async def acted_again(asked: Asked) -> Json:
    reader, body = reader_of(asked), Body(await asked.mapping())
    choice = Choice(*(body.text(part) for part in ("group", "kind", "namespace", "resourceName")))
    manifest = await belonging(reader, asked.subject, choice)
    parameters = {each.text("name"): each.text("value") for each in body.bodies("resourceActionParameters")}
    writer, name = writer_of(asked, asked.subject), body.text("action")
    await run_action(writer, asked.subject, actions_in_force(reader), manifest, name, parameters)
    return Json({})


NAMED: Final = (
    Parameter("resourceName", "The name of the object.", is_required=True),
    Parameter("kind", "Its kind.", is_required=True),
    Parameter("group", "Its API group; empty for the core group."),
    Parameter("namespace", "Its namespace."),
    Parameter("version", "Its version; ignored."),
    *PLACE,
)
AT: Final = "/api/v1/applications/{name}/resource"
ROUTES = (
    Route(
        "GET", AT, May("applications", "get", application), got, "Get an object of an Application.",
        query=NAMED, gives=schema.RESOURCE, tag="applications", operation="ApplicationService_GetResource",
    ),
    Route(
        "POST", AT, May("applications", "update", finer("update")), patched,
        "Patch an object. Its action is `update/GROUP/KIND/NAMESPACE/NAME`.",
        query=(*NAMED, Parameter("patchType", f"Such as {MERGE} (default).")), takes=schema.TEXT,
        gives=schema.RESOURCE, tag="applications", operation="ApplicationService_PatchResource",
    ),
    Route(
        "DELETE", AT, May("applications", "delete", finer("delete")), deleted,
        "Delete an object. Its action is `delete/GROUP/KIND/NAMESPACE/NAME`.",
        query=(
            *NAMED, Parameter("force", "Without grace period.", "boolean"),
            Parameter("orphan", "Keep its children.", "boolean"),
        ),
        gives=schema.NOTHING, tag="applications", operation="ApplicationService_DeleteResource",
    ),
    Route(
        "GET", f"{AT}/actions", May("applications", "get", application), actions, "List the actions of an object.",
        query=NAMED, gives=schema.ACTIONS, tag="applications", operation="ApplicationService_ListResourceActions",
    ),
    Route(
        "POST", f"{AT}/actions", May("applications", "action", of_action), acted,
        "Run an action on an object. Its action is `action/GROUP/KIND/NAME`.",
        query=NAMED, takes=schema.TEXT, gives=schema.NOTHING, tag="applications",
        operation="ApplicationService_RunResourceAction",
    ),
    Route(
        "POST", f"{AT}/actions/v2", May("applications", "action", of_second), acted_again,
        "Run an action on an object, with parameters.",
        query=PLACE, takes=schema.ACTION, gives=schema.NOTHING, tag="applications",
        operation="ApplicationService_RunResourceActionV2",
    ),
)  # fmt: skip
