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

from argosy.errors import TransientError, UserError
from argosy.features.applications.read.status_health_enrichment import add_health, lacks_health
from argosy.gitops.application import read_application
from argosy.gitops.redaction.secret_object_redaction import list_sensitive_annotations
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.selectors import parse_label_selector as read_labels
from argosy.kube.well_known_kinds import APPLICATION, APPLICATION_SET
from argosy.web.api.field_selection import parse_field_selection
from argosy.web.api.stream_frames import (
    FRAME_CACHE,
    HEARTBEAT_FRAME,
    HEARTBEAT_SECONDS,
    STREAM_MEDIA_TYPES,
    accepts_events,
    build_stream,
    encode_error_frame,
    encode_frame,
)
from argosy.web.caller_application_service import build_reader
from argosy.web.live_updates.cluster_view_change_feed import CacheChange, ChangeFeed
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import (
    get_application_rbac_name,
    is_in_allowed_namespace,
    read_project_name,
)
from argosy.web.responses import StreamResponse
from argosy.web.route import FilteredList, QueryParameter, Route


@dataclass(frozen=True)
class StreamedKind:
    """A kind to stream: its field name in frames, and its RBAC resource."""

    kind: GroupKind
    word: str
    resource: str


APPLICATION_STREAM: Final = StreamedKind(GroupKind(*APPLICATION), "application", "applications")
APPLICATION_SET_STREAM: Final = StreamedKind(APPLICATION_SET, "applicationSet", "applicationsets")


def build_filter(request: RequestContext, kind: StreamedKind) -> Callable[[Manifest], bool]:
    """Build a filter from the query; permissions are checked separately."""
    query = request.query
    name, namespace = query.get_text("name"), query.get_text("appNamespace") or query.get_text("appsetNamespace")
    projects = {*query.get_all("projects"), *query.get_all("project")} - {""}
    selector = read_labels(query.get_text("selector"))

    def matches(manifest: Manifest) -> bool:
        if manifest.get("kind") != kind.kind.kind or key_of(manifest).group_kind != kind.kind:
            return False
        metadata = manifest["metadata"]
        return (
            (not name or metadata["name"] == name)
            and (not namespace or metadata.get("namespace") == namespace)
            and (not projects or get_project(manifest) in projects)
            and selector.matches(metadata.get("labels"))
        )

    return matches


def get_project(manifest: Manifest) -> str:
    """argo: The project of an ApplicationSet is that of its template."""
    if manifest.get("kind") != APPLICATION_SET.kind:
        return read_project_name(manifest)
    spec = manifest.get("spec")
    template = spec.get("template") if isinstance(spec, dict) else None
    return read_project_name(template) if isinstance(template, dict) else "default"


def is_visible(request: RequestContext, kind: StreamedKind, manifest: Manifest) -> bool:
    metadata = manifest["metadata"]
    thing = get_application_rbac_name(request, get_project(manifest), metadata["namespace"], metadata["name"])
    if not request.is_allowed(kind.resource, "get", thing):
        return False
    return kind is not APPLICATION_STREAM or is_in_allowed_namespace(request, manifest)


async def stream_changes(kind: StreamedKind, request: RequestContext) -> StreamResponse:
    matches = build_filter(request, kind)  # report invalid query parameters before the response starts
    parse_field_selection(request.query.get_text("fields"))
    since = request.query.get_int("resourceVersion", 0) if request.query.get_text("resourceVersion") else None
    return build_stream(request, _stream_frames(kind, request, matches, since))


async def _stream_frames(
    kind: StreamedKind, request: RequestContext, matches: Callable[[Manifest], bool], since: int | None
) -> AsyncIterator[bytes]:
    cluster_view, events = request.cluster_view, accepts_events(request)

    def is_outdated(manifest: Manifest) -> bool:
        """argo: a caller that knows a version, such as that of its own write, gets no older one."""
        return since is not None and _get_version(manifest, default=since) < since

    def is_wanted(change: CacheChange) -> bool:
        return matches(change.manifest) and (change.event_type == "DELETED" or not is_outdated(change.manifest))

    with ChangeFeed(cluster_view, is_wanted) as changes:
        for manifest in cluster_view.cache.list(kind.kind):
            event_type = _initial_event_type(manifest, since, is_single=bool(request.query.get_text("name")))
            is_sent = event_type and matches(manifest) and not is_outdated(manifest)
            if is_sent and is_visible(request, kind, manifest):
                yield await _build_frame(request, kind, manifest, event_type)
        while not changes.is_late:
            change = await changes.next(HEARTBEAT_SECONDS)
            if change is None:
                if events and not changes.is_late:
                    # heartbeat only for event streams: some readers of JSON lines fail on an empty line
                    yield HEARTBEAT_FRAME
            elif is_visible(request, kind, change.manifest):
                yield await _build_frame(request, kind, change.manifest, change.event_type)
    late = TransientError("the client reads more slowly than objects change; start the watch again")
    yield encode_error_frame(late, events=events)


async def _build_frame(request: RequestContext, kind: StreamedKind, manifest: Manifest, event_type: str) -> bytes:
    """argo: Adds the health of each object; only for a watch of one Application, to save work for lists."""
    events, fields = accepts_events(request), parse_field_selection(request.query.get_text("fields"))
    names = list_sensitive_annotations(request.cluster_view.cache, request.service.control_namespace)
    mask_application = request.masks.mask_application
    manifest = mask_application(manifest) if kind is APPLICATION_STREAM else manifest
    adds_health = kind is APPLICATION_STREAM and bool(request.query.get_text("name")) and lacks_health(manifest)
    if not adds_health and not fields:
        return FRAME_CACHE.get_frame(manifest, event_type, kind.word, events=events, annotations=names)
    if adds_health:
        with suppress(UserError):  # an invalid Application is sent unchanged
            manifest = mask_application(
                await add_health(build_reader(request), read_application(manifest, "Application"))
            )
    document = {"type": event_type, kind.word: manifest}
    selected = fields.apply({"result": document}).get("result", {}) if fields else document
    return encode_frame(selected, events=events, annotations=names)


def _initial_event_type(manifest: Manifest, since: int | None, *, is_single: bool) -> str:
    """argo: ADDED without a resourceVersion and for a single object; else MODIFIED if it is newer."""
    if since is None or is_single:
        return "ADDED"
    return "MODIFIED" if _get_version(manifest, default=0) > since else ""


def _get_version(manifest: Manifest, default: int) -> int:
    """Return the resource version; the default if it is not a number."""
    version = str(manifest["metadata"].get("resourceVersion") or "")
    return int(version) if version.isdecimal() else default


FILTER_PARAMETERS: Final = (
    QueryParameter("name", "Only the object with this name."),
    QueryParameter("projects", "Only objects of these projects.", "array"),
    QueryParameter("project", "Only objects of these projects.", "array"),
    QueryParameter("selector", "Only objects that match this label selector."),
    QueryParameter("resourceVersion", "Only changes after this version.", "integer"),
    QueryParameter("fields", "Only these fields, such as result.application.metadata.name."),
)
ROUTES = (
    Route(
        "GET",
        "/api/v1/stream/applications",
        FilteredList("applications", "get"),
        partial(stream_changes, APPLICATION_STREAM),
        "Watch Applications: a JSON document for each change.",
        query=(
            *FILTER_PARAMETERS,
            QueryParameter("appNamespace", "Only Applications in this namespace."),
            QueryParameter("repo", "Accepted and ignored."),
            QueryParameter("refresh", "Accepted and ignored."),
        ),
        tag="applications",
        operation_id="ApplicationService_Watch",
        response_media_types=STREAM_MEDIA_TYPES,
    ),
    Route(
        "GET",
        "/api/v1/stream/applicationsets",
        FilteredList("applicationsets", "get"),
        partial(stream_changes, APPLICATION_SET_STREAM),
        "Watch ApplicationSets: a JSON document for each change.",
        query=(*FILTER_PARAMETERS, QueryParameter("appsetNamespace", "Only ApplicationSets in this namespace.")),
        tag="applicationsets",
        operation_id="ApplicationSetService_Watch",
        response_media_types=STREAM_MEDIA_TYPES,
    ),
)
