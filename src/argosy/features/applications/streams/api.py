"""API to watch Applications and ApplicationSets.

In: a request. Out: a frame for each existing object, then for each change. Never: an object that the caller may not see
at that moment; waits for a slow reader.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from argosy.errors import UserError
from argosy.features.applications.read.health_in_status import lacks_health, with_health
from argosy.gitops.application import APPLICATION, read_application
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.selectors import labels as read_labels
from argosy.web.api.field_selection import read_fields
from argosy.web.api.stream_frames import BEAT, FRAMES, MAKES, SIGN, frame, is_events, stream
from argosy.web.caller_clients import reader_of
from argosy.web.live_updates.change_feed import Changes
from argosy.web.middleware.application_masks import masks_of
from argosy.web.middleware.secret_masking import sensitive
from argosy.web.object_lookup import application_name, is_at_home, project_of
from argosy.web.request import Asked
from argosy.web.responses import Stream
from argosy.web.route import Filtered, Parameter, Route

SETS: Final = GroupKind("argoproj.io", "ApplicationSet")


@dataclass(frozen=True)
class Kind:
    """A kind to stream: its field name in frames, and its RBAC resource."""

    kind: GroupKind
    word: str
    resource: str


APPS: Final = Kind(GroupKind(*APPLICATION), "application", "applications")
APP_SETS: Final = Kind(SETS, "applicationSet", "applicationsets")


def wanted(asked: Asked, kind: Kind) -> Callable[[Manifest], bool]:
    """Build a filter from the query; permissions are checked separately."""
    query = asked.query
    name, namespace = query.text("name"), query.text("appNamespace") or query.text("appsetNamespace")
    projects = {*query.all("projects"), *query.all("project")} - {""}
    selector = read_labels(query.text("selector"))

    def fits(manifest: Manifest) -> bool:
        if manifest.get("kind") != kind.kind.kind or key_of(manifest).group_kind != kind.kind:
            return False
        metadata = manifest["metadata"]
        return (
            (not name or metadata["name"] == name)
            and (not namespace or metadata.get("namespace") == namespace)
            and (not projects or owner(manifest) in projects)
            and selector.matches(metadata.get("labels"))
        )

    return fits


def owner(manifest: Manifest) -> str:
    """argo: The project of an ApplicationSet is that of its template."""
    if manifest.get("kind") != SETS.kind:
        return project_of(manifest)
    spec = manifest.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    return project_of(template) if isinstance(template, dict) else "default"


def is_seen(asked: Asked, kind: Kind, manifest: Manifest) -> bool:
    metadata = manifest["metadata"]
    thing = application_name(asked, owner(manifest), metadata["namespace"], metadata["name"])
    if not asked.may(kind.resource, "get", thing):
        return False
    return kind is not APPS or is_at_home(asked, manifest)


async def followed(kind: Kind, asked: Asked) -> Stream:
    fits = wanted(asked, kind)  # report invalid query parameters before the response starts
    read_fields(asked.query.text("fields"))
    since = asked.query.number("resourceVersion", 0) if asked.query.text("resourceVersion") else None
    return stream(asked, _followed(kind, asked, fits, since))


async def _followed(
    kind: Kind, asked: Asked, fits: Callable[[Manifest], bool], since: int | None
) -> AsyncIterator[bytes]:
    lookout, events = asked.site.lookout, is_events(asked)
    with Changes(lookout, lambda change: fits(change.manifest)) as changes:
        for manifest in lookout.cache.list(kind.kind):
            word = _first_word(manifest, since, is_one=bool(asked.query.text("name")))
            if word and fits(manifest) and is_seen(asked, kind, manifest):
                yield await _frame(asked, kind, manifest, word)
        while not changes.is_late:
            change = await changes.next(BEAT)
            if change is None:
                if events and not changes.is_late:
                    yield SIGN  # heartbeat only for event streams: some readers of JSON lines fail on an empty line
            elif is_seen(asked, kind, change.manifest):
                yield await _frame(asked, kind, change.manifest, change.word)


async def _frame(asked: Asked, kind: Kind, manifest: Manifest, word: str) -> bytes:
    """argo: Adds the health of each object; only for a watch of one Application, to save work for lists."""
    events, fields = is_events(asked), read_fields(asked.query.text("fields"))
    names, told_application = sensitive(asked.site), masks_of(asked).application
    manifest = told_application(manifest) if kind is APPS else manifest
    is_one = kind is APPS and bool(asked.query.text("name")) and lacks_health(manifest)
    if not is_one and not fields:
        return FRAMES.of(manifest, word, kind.word, events=events, annotations=names)
    if is_one:
        with suppress(UserError):  # an invalid Application is sent unchanged
            manifest = told_application(await with_health(reader_of(asked), read_application(manifest, "Application")))
    document = {"type": word, kind.word: manifest}
    told = fields.of({"result": document}).get("result", {}) if fields else document
    return frame(told, events=events, annotations=names)


def _first_word(manifest: Manifest, since: int | None, *, is_one: bool) -> str:
    """argo: ADDED without a resourceVersion and for a single object; else MODIFIED if it is newer."""
    if since is None or is_one:
        return "ADDED"
    version = str(manifest["metadata"].get("resourceVersion") or "")
    return "MODIFIED" if version.isdecimal() and int(version) > since else ""


CHOSEN: Final = (
    Parameter("name", "Only the object with this name."),
    Parameter("projects", "Only objects of these projects.", "array"),
    Parameter("project", "Only objects of these projects.", "array"),
    Parameter("selector", "Only objects that match this label selector."),
    Parameter("resourceVersion", "Only changes after this version.", "integer"),
    Parameter("fields", "Only these fields, such as result.application.metadata.name."),
)
ROUTES = (
    Route(
        "GET", "/api/v1/stream/applications", Filtered("applications", "get"), partial(followed, APPS),
        "Watch Applications: a JSON document for each change.",
        query=(*CHOSEN, Parameter("appNamespace", "Only Applications in this namespace."),
               Parameter("repo", "Accepted and ignored."), Parameter("refresh", "Accepted and ignored.")),
        tag="applications", operation="ApplicationService_Watch", makes=MAKES,
    ),
    Route(
        "GET", "/api/v1/stream/applicationsets", Filtered("applicationsets", "get"), partial(followed, APP_SETS),
        "Watch ApplicationSets: a JSON document for each change.",
        query=(*CHOSEN, Parameter("appsetNamespace", "Only ApplicationSets in this namespace.")),
        tag="applicationsets", operation="ApplicationSetService_Watch", makes=MAKES,
    ),
)  # fmt: skip
