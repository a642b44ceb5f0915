"""API to create, update, patch and delete Applications.

In: a request. Out: the updated Application. Never: writes a project, source or destination that is not permitted;
takes status, owners or the initiator of an operation from a body.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from argosy.errors import UserError
from argosy.features.applications.read.api import PLACE
from argosy.features.applications.request_target import of_body, of_manifest
from argosy.features.applications.sync.request import refuse_manifests
from argosy.gitops.application import Application, SyncRequest, read_application
from argosy.gitops.application_client.small_changes import BACKGROUND, FOREGROUND, delete
from argosy.gitops.application_client.spec_patches import KINDS, patched
from argosy.gitops.application_client.sync_checks import needs_override
from argosy.gitops.application_client.writes import create, rewritten
from argosy.gitops.reconciler.unknown_state import invalid
from argosy.kube.objects import Manifest
from argosy.web.api import json_schemas as schema
from argosy.web.api.body_fields import Body, as_fields
from argosy.web.caller_clients import desk_of, reader_of, until_seen
from argosy.web.object_lookup import application, application_name, project_of
from argosy.web.request import Asked, Refused
from argosy.web.responses import Json
from argosy.web.route import Found, May, Parameter, Route

MARKS: Final = ("labels", "annotations", "finalizers")  # the only metadata taken from a body
HEAD: Final = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Application"}
Make = Callable[[Mapping[str, Any]], Mapping[str, Any]]


# -- create --------------------------------------------------------------------------------------------------------


async def to_create(asked: Asked) -> Found:
    """Return the Application in the body, with the RBAC name that it will have."""
    body = Body(await asked.mapping())
    metadata = body.body("metadata") or Body({})
    name, namespace = metadata.text("name"), metadata.text("namespace") or asked.site.desk.control
    if not name:
        raise UserError("missing name of the Application; send it", where="metadata.name")
    spec = _spec(body.values.get("spec"))
    marks = {mark: metadata.values[mark] for mark in MARKS if metadata.values.get(mark) is not None}
    made: Manifest = {**HEAD, "metadata": {"name": name, "namespace": namespace, **marks}, "spec": spec}
    if (operation := body.body("operation")) is not None:
        made["operation"] = dict(operation.values)
    return Found(made, application_name(asked, project_of(made), namespace, name))


async def created(asked: Asked) -> Json:
    made: Manifest = asked.subject
    desk, app = desk_of(asked), _read(made)
    _check_operation(asked, made, app)
    before = await desk.get(app.key)
    if before is None:
        _check(asked, app)
        await create(desk, _signed(made, asked.caller.shown_name), replaces=False)
        after = await desk.get(app.key) or made
        await until_seen(asked, after)
        return Json(dict(after))
    existing = _read(before)
    old = application_name(asked, existing.project, existing.namespace, existing.name)
    if not asked.may("applications", "get", old):
        raise Refused
    if _are_same(before, made) and "operation" not in made:
        return Json(dict(before))
    if not asked.query.flag("upsert"):
        told = "existing application spec is different, use upsert flag to force update"  # argo: its words
        raise UserError(f"{told}; send ?upsert=true", where=app.name)
    asked.require("applications", "update", old)
    return Json(dict((await _write(asked, existing, lambda now: _overwritten(now, _merged(now, made)))).wire))


def _are_same(before: Mapping[str, Any], made: Mapping[str, Any]) -> bool:
    """argo: Compare the spec and the writable metadata."""
    marks = all((before["metadata"].get(name) or None) == (made["metadata"].get(name) or None) for name in MARKS)
    return marks and before.get("spec") == made["spec"]


def _merged(now: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """argo: Merge labels and annotations; replace finalizers."""
    metadata = dict(made["metadata"])
    for name in ("labels", "annotations"):
        metadata[name] = {**(now["metadata"].get(name) or {}), **(metadata.get(name) or {})}
    return {**made, "metadata": metadata}


def _check_operation(asked: Asked, made: Manifest, app: Application) -> None:
    """argo: An operation in a new Application needs the permission to sync, and permitted sources from Git."""
    operation = made.get("operation")
    if operation is None:
        return
    asked.require("applications", "sync", asked.thing)
    sync = app.operation.sync if app.operation is not None else SyncRequest()
    refs = sync.revisions or ((sync.revision,) if sync.revision else ())
    if sync.manifests or needs_override(reader_of(asked), app, refs):
        asked.require("applications", "override", asked.thing)
    if sync.manifests:
        refuse_manifests("operation.sync.manifests")
    if sync.sources:
        _check(asked, replace(app, sources=sync.sources))


def _signed(made: Manifest, by: str) -> Manifest:
    if "operation" not in made:
        return made
    return {**made, "operation": {**made["operation"], "initiatedBy": {"username": by}}}


# -- change --------------------------------------------------------------------------------------------------------


async def updated(asked: Asked) -> Json:
    body = await asked.mapping()
    wanted = {"metadata": body.get("metadata") or {}, "spec": _spec(body.get("spec"))}
    return Json(dict((await _write(asked, asked.subject, lambda now: _overwritten(now, wanted))).wire))


async def respecified(asked: Asked) -> Json:
    spec = _spec(await asked.mapping())
    after = await _write(asked, asked.subject, lambda now: {**now, "spec": spec})
    return Json(dict(after.wire["spec"]))


async def patched_by(asked: Asked) -> Json:
    body = Body(await asked.mapping())
    text, kind = body.text("patch"), body.text("patchType") or "json"
    if kind not in KINDS:
        raise UserError(f"unknown patch type {kind[:40]!r}; send json or merge", where="patchType")

    def make(now: Mapping[str, Any]) -> Mapping[str, Any]:
        with as_fields():
            wanted = patched(now, text, kind)
        return _overwritten(now, {"metadata": wanted["metadata"], "spec": _spec(wanted.get("spec"))})

    return Json(dict((await _write(asked, asked.subject, make)).wire))


def _overwritten(now: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """argo: Take only spec, labels, annotations and finalizers from the request."""
    kept = {name: value for name, value in now["metadata"].items() if name not in MARKS}
    marks = {name: wanted["metadata"][name] for name in MARKS if wanted["metadata"].get(name)}
    return {**now, "spec": wanted["spec"], "metadata": {**kept, **marks}}


async def _write(asked: Asked, app: Application, make: Make) -> Application:
    """Check permissions on the exact version that is written, even if it changes concurrently."""
    desk = desk_of(asked)

    def checked(now: Mapping[str, Any]) -> Mapping[str, Any]:
        before, wanted = _read(now), make(now)
        after = _read(wanted)
        if before.project != app.project:
            raise Refused  # it was moved to another project after authorization
        if after.project != before.project:
            new = application_name(asked, after.project, after.namespace, after.name)
            asked.require("applications", "create", new)  # argo: both, in the new project
            asked.require("applications", "update", new)
        _check(asked, after)
        return wanted

    after, _ = await rewritten(desk, app, checked)
    await until_seen(asked, after.wire)
    return after


def _check(asked: Asked, app: Application) -> None:
    """argo: The project must permit the Application, regardless of `validate`."""
    rules = reader_of(asked).rules
    project = rules.projects.get(app.project)
    found = [each.message for each in invalid(app, project, rules)]
    if project is None and app.project == "default":
        found = [each for each in found if "which does not exist" not in each]  # the controller creates it
    if found:
        raise UserError(f"application spec for {app.name} is invalid: InvalidSpecError: {'; '.join(found)}")


def _read(manifest: Mapping[str, Any]) -> Application:
    return read_application(manifest, f"Application {manifest['metadata'].get('name')}")


def _spec(spec: Any) -> dict[str, Any]:
    """Read the spec; raise UserError if repository or destination is missing."""
    given = Body(spec if spec is not None else {}, "spec")
    sources = given.bodies("sources") or [each for each in (given.body("source"),) if each is not None]
    for source in sources:
        for name in ("repoURL", "path", "chart", "ref"):
            source.text(name)
    if not sources or not all(each.text("repoURL") for each in sources):
        raise UserError("missing repository; send spec.source.repoURL and path, or chart", where="spec.source")
    destination = given.body("destination") or Body({})
    if not destination.text("server") and not destination.text("name"):
        told = "missing cluster; send spec.destination.server, such as https://kubernetes.default.svc"
        raise UserError(told, where="spec.destination")
    return dict(given.values)


# -- delete --------------------------------------------------------------------------------------------------------


async def deleted(asked: Asked) -> Json:
    cascades, policy = asked.query.flag("cascade", True), asked.query.text("propagationPolicy")
    if not cascades and policy:
        raise UserError("cannot set propagation policy when cascading is disabled; leave one out")  # argo: its words
    if policy not in ("", FOREGROUND, BACKGROUND):
        raise UserError(f"invalid propagation policy: {policy[:40]!r}; send foreground or background")
    await delete(desk_of(asked), asked.subject, cascades=cascades, policy=policy or FOREGROUND)
    return Json({})


VALIDATE: Final = Parameter("validate", "Ignored: the project must always permit the Application.", "boolean")
ROUTES = (
    Route(
        "POST", "/api/v1/applications", May("applications", "create", to_create), created, "Create an Application.",
        query=(Parameter("upsert", "Overwrite an existing Application.", "boolean"), VALIDATE),
        takes=schema.TO_WRITE, gives=schema.APPLICATION, tag="applications", operation="ApplicationService_Create",
    ),
    Route(
        "PUT", "/api/v1/applications/{name}", May("applications", "update", of_manifest), updated,
        "Update an Application.", query=(VALIDATE, *PLACE),
        takes=schema.TO_WRITE, gives=schema.APPLICATION, tag="applications", operation="ApplicationService_Update",
    ),
    Route(
        "PUT", "/api/v1/applications/{name}/spec", May("applications", "update", application), respecified,
        "Update the spec of an Application.", query=(VALIDATE, *PLACE),
        takes=schema.SPEC, gives=schema.SPEC, tag="applications", operation="ApplicationService_UpdateSpec",
    ),
    Route(
        "PATCH", "/api/v1/applications/{name}", May("applications", "update", of_body), patched_by,
        "Patch an Application.",
        takes=schema.PATCH, gives=schema.APPLICATION, tag="applications", operation="ApplicationService_Patch",
    ),
    Route(
        "DELETE", "/api/v1/applications/{name}", May("applications", "delete", application), deleted,
        "Delete an Application.",
        query=(
            Parameter("cascade", "Also delete its objects (default: true).", "boolean"),
            Parameter("propagationPolicy", "foreground (default) or background."), *PLACE,
        ),
        gives=schema.NOTHING, tag="applications", operation="ApplicationService_Delete",
    ),
)  # fmt: skip
