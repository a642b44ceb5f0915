"""API to watch the resource tree of an Application.

In: a request. Out: a frame with the whole tree at each change. Never: more than four frames a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.features.applications.read.manifests_tree_api import (
    OBJECT_FILTER_PARAMETERS,
    build_tree_response,
)
from argosy.gitops.application_client.status_summary import list_rows
from argosy.gitops.redaction.secret_object_redaction import list_sensitive_annotations
from argosy.web import authorization
from argosy.web.api.stream_frames import (
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
from argosy.web.request import NotFoundOrForbidden, ObjectNotFound, RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import StreamResponse
from argosy.web.route import QueryParameter, RequiresPermission, ResolvedObject, Route

MIN_INTERVAL_SECONDS: Final = 0.25  # between frames


async def find_application(request: RequestContext) -> ResolvedObject | None:
    return await resolve_application(
        replace(request, path_parameters={"name": request.path_parameters["applicationName"]})
    )


async def stream_tree(request: RequestContext) -> StreamResponse:
    return build_stream(request, _stream_trees(request))


async def _build_tree(request: RequestContext) -> dict[str, Any]:
    return await build_tree_response(build_reader(request), request.subject)


async def _stream_trees(request: RequestContext) -> AsyncIterator[bytes]:
    events, part, last_frame = accepts_events(request), TreeScope(), b""
    with ChangeFeed(request.cluster_view, part.affects_tree, is_merged=True) as changes:
        while True:
            try:
                tree_wire = await _load_tree(request, part)
            except (ArgosyError, NotFoundOrForbidden, ObjectNotFound, authorization.NotAuthenticated) as error:
                yield encode_error_frame(error, events=events)
                return
            names = list_sensitive_annotations(request.cluster_view.cache, request.service.control_namespace)
            frame = encode_frame(tree_wire, events=events, annotations=names)
            if frame != last_frame:
                last_frame = frame
                yield frame
            await asyncio.sleep(MIN_INTERVAL_SECONDS)
            while (await changes.next(HEARTBEAT_SECONDS)) is None:
                if events:
                    yield HEARTBEAT_FRAME


async def _load_tree(request: RequestContext, part: TreeScope) -> dict[str, Any]:
    """Return the current tree; raise NotFoundOrForbidden if the Application was deleted or the caller lost access."""
    authorized = await authorization.authorize(TREE_ROUTE, replace(request, subject=None, rbac_object=""))
    tree_wire = await _build_tree(authorized)
    part.set_tree_objects(authorized, tree_wire)
    return tree_wire


class TreeScope:
    """Decides which changes affect a tree: objects in it, managed objects, and objects owned by one in it."""

    def __init__(self) -> None:
        self._objects: set[tuple[str, str, str]] | None = None  # unknown: every change may affect the tree
        self._uids: set[str] = set()

    def set_tree_objects(self, request: RequestContext, tree: dict[str, Any]) -> None:
        nodes = [*tree["nodes"], *tree["orphanedNodes"]]
        keys = [request.subject.key, *(row.key for row in list_rows(request.subject))]
        self._objects = {(node["kind"], node.get("namespace", ""), node["name"]) for node in nodes}
        self._objects |= {(key.kind, key.namespace, key.name) for key in keys}
        self._uids = {node.get("uid", "") for node in nodes} - {""}

    def affects_tree(self, change: CacheChange) -> bool:
        metadata = change.manifest["metadata"]
        changed_object = (str(change.manifest.get("kind")), metadata.get("namespace") or "", metadata["name"])
        if self._objects is None or changed_object in self._objects:
            return True
        return any(reference.get("uid") in self._uids for reference in metadata.get("ownerReferences") or ())


TREE_ROUTE: Final = Route(
    "GET", "/api/v1/stream/applications/{applicationName}/resource-tree",
    RequiresPermission("applications", "get", find_application), stream_tree,
    "Watch the managed objects of an Application and their children.",
    query=(*OBJECT_FILTER_PARAMETERS, QueryParameter("appNamespace", "The namespace of the Application."),
           QueryParameter("project", "The project of the Application.")),
    tag="applications", operation_id="ApplicationService_WatchResourceTree", response_media_types=STREAM_MEDIA_TYPES,
)  # fmt: skip
ROUTES = (TREE_ROUTE,)
