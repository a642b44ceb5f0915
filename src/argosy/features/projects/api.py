"""Argo CD API routes for projects: list, get, create, update, delete.

In: a request. Out: AppProjects in Argo CD's shapes. Never: shows a project that the caller may not see, or a secret
field of a repository or cluster; grants a permission that the caller does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from argosy.errors import PolicyError, UserError
from argosy.features.clusters import service
from argosy.features.repositories import service as repositories
from argosy.gitops.application.project import read_project
from argosy.gitops.application_client.client import Desk, clock
from argosy.gitops.application_client.declared_objects import map_data
from argosy.gitops.application_client.links import links_of
from argosy.gitops.application_client.project_events import tell
from argosy.gitops.application_client.project_updates import (
    check_applications,
    check_roles,
    clusters_given,
    repositories_given,
)
from argosy.gitops.application_client.projects import HEAD, create_project, delete_project, projects_of
from argosy.gitops.policy.global_projects import givers
from argosy.gitops.policy.sync_windows import WindowError, is_active
from argosy.gitops.status.events import Reason
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.web.api import json_schemas as schema
from argosy.web.api.body_fields import Body, same_name
from argosy.web.api.paging import ARGO_PAGING, FIELDS, chosen, part
from argosy.web.caller_clients import desk_of
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Filtered, Found, May, Parameter, Route

EVENT: Final = GroupKind("", "Event")
MARKS: Final = ("labels", "annotations", "finalizers")
TAG: Final = "projects"
PROJECT: Final = schema.fields(metadata=schema.METADATA, spec=schema.ANY, status=schema.ANY)
TO_CREATE: Final = schema.fields("project", project=PROJECT, upsert=schema.FLAG)
TO_UPDATE: Final = schema.fields("project", project=PROJECT)


def desk(asked: Asked) -> Desk:
    """The caller's ApplicationService, in the control namespace, where projects are."""
    found = desk_of(asked)
    return replace(found, namespace=found.control)


async def project(asked: Asked) -> Found | None:
    """Load the project named by `{name}` or `{project}` from the cluster."""
    name = asked.values.get("project") or asked.values["name"]
    for each in await projects_of(desk(asked)):
        if each["metadata"]["name"] == name:
            return Found(each, name)
    return None


async def new_project(asked: Asked) -> Found | None:
    """The project in the request body, under its name."""
    manifest = _sent(Body(await asked.mapping()), asked)
    return Found(manifest, manifest["metadata"]["name"])


def _sent(body: Body, asked: Asked) -> dict[str, Any]:
    given = body.body("project")
    if given is None:
        raise UserError("is required; send the AppProject in it", where="project")
    metadata = given.body("metadata") or Body({}, "project.metadata")
    name, namespace = metadata.text("name"), metadata.text("namespace")
    control = asked.site.desk.control
    if not name:
        raise UserError("is required; send the name of the project", where="project.metadata.name")
    if namespace not in ("", control):
        raise UserError(f"projects must be in namespace {control}; omit this field", where="project.metadata.namespace")
    spec = given.body("spec")
    marks = {each: metadata.values[each] for each in MARKS if metadata.values.get(each) is not None}
    return {
        **HEAD,
        "metadata": {"name": name, "namespace": control, **marks},
        "spec": dict(spec.values) if spec else {},
    }


async def listed(asked: Asked) -> Json:
    name = asked.query.text("name")
    found = [
        each
        for each in await projects_of(desk(asked))
        if name in ("", each["metadata"]["name"]) and asked.may("projects", "get", each["metadata"]["name"])
    ]
    return part(asked, found)


async def got(asked: Asked) -> Json:
    return chosen(asked, asked.subject)


async def created(asked: Asked) -> Json:
    manifest, body = asked.subject, Body(await asked.mapping())
    name = manifest["metadata"]["name"]
    check_roles(name, manifest["spec"])
    there = await project(replace(asked, values={"name": name}))
    if there is not None:  # an error must not reveal a project that the caller may not see
        asked.require("projects", "update" if body.flag("upsert") else "get", name)
        if body.flag("upsert") and "resourceVersion" in there.subject["metadata"]:
            await _check(asked, there.subject, manifest)
    try:
        await create_project(desk(asked), manifest, replaces=body.flag("upsert"))
    except UserError as error:
        if error.message.startswith("existing project spec"):
            raise UserError("existing project spec is different; use upsert flag to force update") from None
        raise
    await tell(desk(asked), name, Reason.RESOURCE_CREATED, "created project")
    return await _read_again(asked, name)


async def updated(asked: Asked) -> Json:
    manifest = _sent(Body(await asked.mapping()), asked)
    name = asked.thing
    same_name(name, manifest["metadata"]["name"])
    check_roles(name, manifest["spec"])
    before = asked.subject
    await _check(asked, before, manifest)
    cluster = asked.site.desk.cluster
    if "resourceVersion" not in before["metadata"]:  # the built-in default project, which is not stored yet
        await cluster.create(manifest)
    else:
        marks = {each: manifest["metadata"][each] for each in MARKS if each in manifest["metadata"]}
        sent = Body(await asked.mapping()).body("project")
        version = (sent.body("metadata") or Body({})).text("resourceVersion") if sent else ""
        metadata = {**before["metadata"], **marks, **({"resourceVersion": version} if version else {})}
        read_project(manifest, f"AppProject {name}")
        await cluster.replace({**before, "metadata": metadata, "spec": manifest["spec"]})
    await tell(desk(asked), name, Reason.RESOURCE_UPDATED, "updated project")
    return await _read_again(asked, name)


async def _check(asked: Asked, before: Manifest, after: Manifest) -> None:
    """argo: adding a destination or source needs the permission to update that cluster or repository."""
    old, new = before.get("spec") or {}, after["spec"]
    for server in clusters_given(old, new):
        asked.require("clusters", "update", server)
    for url in repositories_given(old, new):
        asked.require("repositories", "update", url)
    check_applications(before, after, await desk(asked).all(everywhere=True))


async def _read_again(asked: Asked, name: str) -> Json:
    found = await project(replace(asked, values={"name": name}))
    return Json(found.subject if found else {})


async def deleted(asked: Asked) -> Json:
    try:
        await delete_project(desk(asked), asked.thing)
    except PolicyError as error:  # argo: not a permission error
        raise UserError(error.message, where=error.where) from None
    await tell(desk(asked), asked.thing, Reason.RESOURCE_DELETED, "deleted project")
    return Json({})


async def detailed(asked: Asked) -> Json:
    """argo: the project with its scoped repositories and clusters, of which only the addresses are returned."""
    name, here = asked.thing, desk(asked)
    known = await repositories.all_on(here, repositories.REPOSITORIES)
    scoped = [each for each in known if each.text("project") == name]
    own = [each for each in await service.all_clusters(here) if each.text("project") == name]
    return Json(
        {
            "project": asked.subject,
            "globalProjects": await _givers(asked),
            "repositories": [{"repo": each.text("url"), "type": each.text("type") or "git"} for each in scoped],
            "clusters": [{"server": service.server_of(each), "name": each.text("name")} for each in own],
        }
    )


async def _givers(asked: Asked) -> list[Mapping[str, Any]]:
    data = await map_data(desk(asked), "argocd-cm")
    names = givers(read_project(asked.subject), data)
    every = {each["metadata"]["name"]: each for each in await projects_of(desk(asked))}
    return [every[name] for name in names if name in every]


async def global_projects(asked: Asked) -> Json:
    return Json({"items": await _givers(asked)})


async def events(asked: Asked) -> Json:
    control = asked.site.desk.control
    found = (await asked.site.desk.cluster.list(EVENT, namespace=control)).items
    about = [
        each
        for each in found
        if (each.get("involvedObject") or {}).get("kind") == "AppProject"
        and each["involvedObject"].get("name") == asked.thing
    ]
    return part(asked, about)


async def links(asked: Asked) -> Json:
    """argo: deep links from argocd-cm."""
    text = (await map_data(desk(asked), "argocd-cm")).get("project.links", "")
    found, _ = links_of(text, {"project": dict(asked.subject)}, "argocd-cm: project.links")
    names = ("url", "title", "description", "iconClass")
    return Json({"items": [{name: value for name, value in zip(names, each) if value} for each in found]})


async def windows(asked: Asked) -> Json:
    """argo: the active sync windows."""
    found = read_project(asked.subject, f"AppProject {asked.thing}")
    wires = (asked.subject.get("spec") or {}).get("syncWindows") or []
    return Json({"windows": [wire for wire, window in zip(wires, found.windows, strict=True) if _is_open(window)]})


def _is_open(window: Any) -> bool:
    try:
        return is_active(window, clock())
    except WindowError:
        return False


_PATH: Final = "/api/v1/projects"
GET: Final = May("projects", "get", project)
ROUTES = (
    Route(
        "GET", _PATH, Filtered("projects", "get"), listed, "List projects.",
        query=(Parameter("name", "Only the project with this name."), *ARGO_PAGING),
        gives=schema.fields(metadata=schema.ANY, items=schema.many(PROJECT)), tag=TAG, operation="ProjectService_List",
    ),
    Route(
        "POST", _PATH, May("projects", "create", new_project), created,
        "Create a project. With `upsert`, an existing project is updated, which needs the permission to update it.",
        takes=TO_CREATE, gives=PROJECT, tag=TAG, operation="ProjectService_Create",
    ),
    Route(
        "GET", f"{_PATH}/{{name}}", GET, got, "Read a project.", query=(FIELDS,),
        gives=PROJECT, tag=TAG, operation="ProjectService_Get",
    ),
    Route(
        "PUT", f"{_PATH}/{{name}}", May("projects", "update", project), updated,
        "Update a project. New destinations need the permission to update the cluster, new sources the repository.",
        takes=TO_UPDATE, gives=PROJECT, tag=TAG, operation="ProjectService_Update",
    ),
    Route(
        "DELETE", f"{_PATH}/{{name}}", May("projects", "delete", project), deleted,
        "Delete a project without Applications.", gives=schema.NOTHING, tag=TAG, operation="ProjectService_Delete",
    ),
    Route(
        "GET", f"{_PATH}/{{name}}/detailed", GET, detailed,
        "Get a project with its global projects, scoped repositories and scoped clusters.",
        gives=schema.fields(
            project=PROJECT, globalProjects=schema.many(PROJECT),
            repositories=schema.many(schema.fields(repo=schema.TEXT, type=schema.TEXT)),
            clusters=schema.many(schema.fields(server=schema.TEXT, name=schema.TEXT)),
        ),
        tag=TAG, operation="ProjectService_GetDetailedProject",
    ),
    Route(
        "GET", f"{_PATH}/{{name}}/events", GET, events, "List the events of a project.",
        gives=schema.EVENTS, tag=TAG, operation="ProjectService_ListEvents",
    ),
    Route(
        "GET", f"{_PATH}/{{name}}/globalprojects", GET, global_projects,
        "List the global projects that a project inherits from.",
        gives=schema.fields(items=schema.many(PROJECT)), tag=TAG, operation="ProjectService_GetGlobalProjects",
    ),
    Route(
        "GET", f"{_PATH}/{{name}}/links", GET, links, "List the deep links of a project.",
        gives=schema.LINKS, tag=TAG, operation="ProjectService_ListLinks",
    ),
    Route(
        "GET", f"{_PATH}/{{name}}/syncwindows", GET, windows, "List the active sync windows of a project.",
        gives=schema.fields(windows=schema.many(schema.ANY)), tag=TAG, operation="ProjectService_GetSyncWindowsState",
    ),
)  # fmt: skip
