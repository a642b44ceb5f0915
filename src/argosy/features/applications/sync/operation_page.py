"""`/apps/{ns}/{name}/operation`: the current operation by waves, and the object that blocks it.

In: a request. Out: a page, its live parts. Never: writes; shows a log without the permission to read logs.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from argosy.errors import ArgosyError
from argosy.features.applications.page_parts.deployment_history_and_timeline import TimelineEvent, build_timeline_event
from argosy.features.applications.page_parts.project_filtered_application_objects import list_permitted_nodes
from argosy.features.applications.page_parts.shared_page_values import (
    build_page_values,
    get_application,
    render_head_parts,
)
from argosy.features.applications.page_parts.url_paths import application_path
from argosy.features.applications.sync.operation_waves import BlockingTask, build_operation_timeline
from argosy.gitops.application_client.application_service import utc_now
from argosy.gitops.application_client.object_health_sentence import summarize_health_reason
from argosy.gitops.application_client.resource_actions_and_logs import (
    LogOptions,
    ObjectSelector,
    list_log_containers,
    read_log_lines,
)
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.resource_key import ResourceKey
from argosy.web import page_templates
from argosy.web.caller_application_service import build_reader
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application
from argosy.web.responses import PageResponse, WebResponse
from argosy.web.route import RequiresPermission, Route

LOG_TIMEOUT_SECONDS = 0.7  # to read the last log line
MAX_LOG_LINE_LENGTH = 200  # characters of the last log line


@dataclass(frozen=True, slots=True)
class BlockerDetails:
    """Health, last Event and last log line of the object that blocks the operation."""

    health: str = ""
    why: str = ""
    event: TimelineEvent | None = None
    line: str = ""
    pod: str = ""


async def find_blocker_details(request: RequestContext, blocker: BlockingTask | None) -> BlockerDetails | None:
    if blocker is None:
        return None
    reader, key = build_reader(request), blocker.task.key
    manifest = reader.cache.get(key)
    if manifest is None:
        return BlockerDetails(event=await _find_last_warning_or_event(request, {key}))
    assessment = (await reader.reconciler_settings.assess_all([manifest]))[0]
    child_keys = {
        node.key for node in await list_permitted_nodes(request) if any(parent.key == key for parent in node.parents)
    }
    health = assessment.health.value if assessment and assessment.health else ""
    pod, line = (
        await _find_last_log_line(request, key) if request.is_allowed("logs", "get", request.rbac_object) else ("", "")
    )
    event = await _find_last_warning_or_event(request, {key, *child_keys})
    return BlockerDetails(
        health, summarize_health_reason(manifest, assessment.message) if assessment else "", event, line, pod
    )


async def _find_last_warning_or_event(request: RequestContext, keys: set[ResourceKey]) -> TimelineEvent | None:
    """Return the latest Warning, else the latest Event."""
    if not get_application(request).destination.is_in_cluster:
        return None  # Events of its objects are in the destination cluster
    kinds_and_names = {(key.kind, key.name) for key in keys}
    timeline_events = []
    for event in (await request.events.list_namespace_events({key.namespace for key in keys})).events:
        involved_object = as_mapping(event.get("involvedObject"))
        if (involved_object.get("kind"), involved_object.get("name")) in kinds_and_names:
            timeline_events.append(build_timeline_event(get_application(request), event))
    return max(
        timeline_events, key=lambda timeline_event: (timeline_event.kind == "Warning", timeline_event.at), default=None
    )


async def _find_last_log_line(request: RequestContext, key: ResourceKey) -> tuple[str, str]:
    reader = build_reader(request)
    try:
        async with asyncio.timeout(LOG_TIMEOUT_SECONDS):
            for log in await list_log_containers(reader, get_application(request), ObjectSelector(*key), ""):
                async for line in read_log_lines(reader, log, LogOptions(tail=1)):
                    if line.strip():
                        return f"{log.pod.name}/{log.container}", line.strip()[:MAX_LOG_LINE_LENGTH]
    except (ArgosyError, TimeoutError):
        pass
    return "", ""


async def render_operation_page(request: RequestContext) -> WebResponse:
    app = get_application(request)
    operation_timeline = build_operation_timeline(app, utc_now())
    blocker_details = await find_blocker_details(request, operation_timeline.blocker if operation_timeline else None)
    values = await build_page_values(request, "operation", line=operation_timeline, hint=blocker_details)
    if operation_timeline is not None and operation_timeline.is_running:
        values["reload_after"] = 5  # for browsers without JavaScript
    return PageResponse("applications/operation.html", values)


async def render_operation_parts(request: RequestContext) -> dict[str, str]:
    app = get_application(request)
    operation_timeline = build_operation_timeline(app, utc_now())
    blocker_details = await find_blocker_details(request, operation_timeline.blocker if operation_timeline else None)
    may_sync = request.is_allowed("applications", "sync", request.rbac_object)
    body = page_templates.render_macro(
        "applications/parts_operation.html",
        "operation",
        operation_timeline,
        blocker_details,
        application_path(app.namespace, app.name),
        may_sync,
    )
    return {**await render_head_parts(request), "operation": body}


ROUTES = (
    Route(
        "GET",
        "/apps/{ns}/{name}/operation",
        RequiresPermission("applications", "get", resolve_application),
        render_operation_page,
        "The operation",
    ),
)
