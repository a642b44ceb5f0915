"""API for the Events, links and sync windows of an Application.

In: a request. Out: Argo CD's format. Never: Events of objects outside the Application.
"""

from __future__ import annotations

from typing import Any, Final

from argosy.errors import UserError
from argosy.features.applications.objects.api import NAMED
from argosy.features.applications.read.api import PLACE
from argosy.features.applications.read.content_api import AT, OF, choice_of
from argosy.gitops.application import Application
from argosy.gitops.application.project import SyncWindow
from argosy.gitops.application_client.client import clock
from argosy.gitops.application_client.events import EVENT, events_of
from argosy.gitops.application_client.links import Link, links_of
from argosy.gitops.application_client.owned_objects import belonging, belongings
from argosy.gitops.application_client.reader import Reader
from argosy.gitops.diff import masked
from argosy.gitops.policy.sync_windows import WindowError, is_active, is_for, verdict
from argosy.gitops.status.wire_format import given, mapping
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest
from argosy.web.api import json_schemas as schema
from argosy.web.api.paging import ARGO_PAGING, part
from argosy.web.caller_clients import desk_of, reader_of
from argosy.web.request import Asked
from argosy.web.responses import Json
from argosy.web.route import Parameter, Route

LINKS: Final = ("application.links", "resource.links")


async def events(asked: Asked) -> Json:
    query, desk = asked.query, desk_of(asked)
    name, namespace, uid = (query.text(f"resource{part}") for part in ("Name", "Namespace", "UID"))
    if not name and not uid:
        return part(asked, await events_of(desk, asked.subject))
    reader = reader_of(asked)
    its = await _its_object(reader, asked.subject, name, namespace, uid)
    where = (desk if reader.is_here else reader).cluster
    found = await where.list(EVENT, namespace=its["metadata"].get("namespace") or "")
    return part(asked, [each for each in found.items if _is_about(each, its)])


async def _its_object(reader: Reader, app: Application, name: str, namespace: str, uid: str) -> Manifest:
    for manifest in await belongings(reader, app):
        metadata = manifest["metadata"]
        if (uid and metadata.get("uid") != uid) or (name and metadata.get("name") != name):
            continue
        if (metadata.get("namespace") or "") == namespace:
            return manifest
    raise UserError("object not found as part of the application; list its objects: argosy app tree", where=app.name)


def _is_about(event: Manifest, manifest: Manifest) -> bool:
    about = mapping(event.get("involvedObject"))
    uid = manifest["metadata"].get("uid")
    if uid and about.get("uid"):
        return bool(about["uid"] == uid)
    return bool(about.get("kind") == manifest["kind"] and about.get("name") == manifest["metadata"]["name"])


# -- links ---------------------------------------------------------------------------------------------------------


async def links(asked: Asked) -> Json:
    return Json(_links(reader_of(asked), asked.subject, LINKS[0], {}))


async def object_links(asked: Asked) -> Json:
    reader = reader_of(asked)
    manifest = await belonging(reader, asked.subject, choice_of(asked.query, "resourceName"))
    (shown,) = masked([manifest], reader.rules.compare.masked_annotations)
    return Json(_links(reader, asked.subject, LINKS[1], {"resource": shown}))


def _links(reader: Reader, app: Application, setting: str, more: dict[str, Any]) -> dict[str, Any]:
    found = reader.cache.get(ResourceKey("", "ConfigMap", reader.desk.control, "argocd-cm")) or {}
    text = mapping(found.get("data")).get(setting)
    project = reader.rules.projects.get(app.project)
    values = {
        "app": dict(app.wire),
        "application": dict(app.wire),
        "project": dict(project.wire) if project else {},
        "cluster": {"server": app.destination.known.server, "name": app.destination.known.name},
        **more,
    }
    told, _ = links_of(text if isinstance(text, str) else "", values, f"argocd-cm: {setting}")
    return {"items": [_link(each) for each in told]}


def _link(link: Link) -> dict[str, str]:
    return {"url": link.url, "title": link.title, **given(description=link.description, iconClass=link.icon)}


# -- windows -------------------------------------------------------------------------------------------------------


async def windows(asked: Asked) -> Json:
    reader, now = reader_of(asked), clock()
    app = reader.rules.clusters.placed(asked.subject)
    mine = [each for each in reader.project(app).windows if is_for(each, app)]
    active = [each for each in mine if _is_active(each)]
    can_sync = verdict(mine, app, now, is_manual=True).is_allowed
    told = given(activeWindows=[_window(each) for each in active], assignedWindows=[_window(each) for each in mine])
    return Json({**told, "canSync": can_sync})


def _is_active(window: SyncWindow) -> bool:
    try:
        return is_active(window, clock())
    except WindowError:
        return False


def _window(window: SyncWindow) -> dict[str, Any]:
    told = {"kind": window.kind, "schedule": window.schedule, "duration": window.duration}
    return {**told, "manualSync": window.manual_sync}


ROUTES = (
    Route(
        "GET", f"{AT}/events", OF, events, "List Events of an Application or of one of its objects.",
        query=(
            Parameter("resourceNamespace", "The namespace of the object."),
            Parameter("resourceName", "The name of the object."),
            Parameter("resourceUID", "The uid of the object."), *PLACE, *ARGO_PAGING,
        ),
        gives=schema.EVENTS, tag="applications", operation="ApplicationService_ListResourceEvents",
    ),
    Route(
        "GET", f"{AT}/links", OF, links, "List the links of an Application (application.links in argocd-cm).",
        query=(Parameter("namespace", "Ignored: use appNamespace."), *PLACE), gives=schema.LINKS,
        tag="applications", operation="ApplicationService_ListLinks",
    ),
    Route(
        "GET", f"{AT}/resource/links", OF, object_links, "List the links of an object (resource.links in argocd-cm).",
        query=NAMED, gives=schema.LINKS, tag="applications", operation="ApplicationService_ListResourceLinks",
    ),
    Route(
        "GET", f"{AT}/syncwindows", OF, windows, "List the sync windows of an Application.", query=PLACE,
        gives=schema.WINDOWS, tag="applications", operation="ApplicationService_GetApplicationSyncWindows",
    ),
)  # fmt: skip
