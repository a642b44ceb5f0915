"""API to stream the logs of the Pods of an Application.

In: a request. Out: a JSON line for each log line. Never: logs of a Pod outside the Application; logs without the
permissions to read logs and to get the Application.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Final

from argosy.errors import ClusterError, TransientError, UserError
from argosy.features.applications.logs.argocd_stream_format import LogRequest, build_log_entry, read_log_request
from argosy.features.applications.read.api import APPLICATION_PARAMETERS
from argosy.gitops.application import Application
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.application_service import current_timestamp, utc_now
from argosy.gitops.application_client.merged_streams import merge_streams
from argosy.gitops.application_client.owned_objects import walk_owned_objects
from argosy.gitops.application_client.resource_actions_and_logs import (
    ContainerLog,
    LogOptions,
    ObjectSelector,
    read_log_lines,
)
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest, key_of
from argosy.kube.well_known_kinds import POD
from argosy.web.api.stream_frames import (
    STREAM_MEDIA_TYPES,
    accepts_events,
    build_stream,
    encode_error_frame,
    encode_frame,
)
from argosy.web.caller_application_service import build_reader
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application_for_logs
from argosy.web.responses import StreamResponse
from argosy.web.route import QueryParameter, RequiresPermission, Route
from argosy.web.secret_mask_by_request_scope import build_text_mask

MAX_LOGS: Final = 40  # logs read at once; argo: its limit is 20
MAX_BUFFERED_LINES: Final = 200  # for a slow reader


async def stream_logs(request: RequestContext) -> StreamResponse:
    reader, query = build_reader(request), request.query
    log_request = read_log_request(query, utc_now())
    pod = request.path_parameters.get("podName") or query.get_text("podName")
    if pod:
        choice = ObjectSelector("", "Pod", query.get_text("namespace"), pod)
    else:
        choice = ObjectSelector(
            query.get_text("group"), query.get_text("kind"), query.get_text("namespace"), query.get_text("resourceName")
        )
    selected_logs = await _list_logs(reader, request.subject, choice, query.get_text("container"))
    if len(selected_logs) > MAX_LOGS:
        raise UserError(
            f"{len(selected_logs)} logs match, but at most {MAX_LOGS} are read at once; choose a Pod or a container"
        )
    await _check_single_log_readable(reader, selected_logs, log_request)
    hide_secrets = build_text_mask(request)
    return build_stream(
        request, _stream_frames(reader, selected_logs, log_request, hide_secrets, events=accepts_events(request))
    )


async def _list_logs(
    reader: ApplicationReader, app: Application, choice: ObjectSelector, container: str
) -> list[ContainerLog]:
    """List the containers of selected Pods and of Pods owned by selected objects.

    argo: objects without Pods have no logs. Raises UserError if a Pod or a container that was named is missing.
    """
    selected_uids: set[str] = set()
    selected_logs: list[ContainerLog] = []
    for manifest in await walk_owned_objects(reader, app):
        owners = {str(item.get("uid")) for item in as_mappings(manifest["metadata"].get("ownerReferences"))}
        if not choice.matches(key_of(manifest)) and not owners & selected_uids:
            continue
        selected_uids.add(str(manifest["metadata"].get("uid") or ""))
        if key_of(manifest).group_kind == POD:
            selected_logs += [ContainerLog(key_of(manifest), item) for item in _list_containers(manifest, container)]
    if not selected_logs and (choice.kind == POD.kind or container):
        message = "no matching Pods or containers"
        raise UserError(f"{message}; list the objects: argosy app tree {app.name}", where=app.name)
    return selected_logs


def _list_containers(pod: Manifest, container: str) -> list[str]:
    """argo: Init containers are included only by name."""
    spec = as_mapping(pod.get("spec"))
    names = [str(item.get("name")) for item in as_mappings(spec.get("containers"))]
    if not container:
        return names
    names += [str(item.get("name")) for item in as_mappings(spec.get("initContainers"))]
    return [item for item in names if item == container]


async def _check_single_log_readable(
    reader: ApplicationReader, selected_logs: list[ContainerLog], log_request: LogRequest
) -> None:
    """Raise the error of a single unreadable log before the response starts."""
    if len(selected_logs) != 1:
        return
    last_line = LogOptions(
        tail=1, since_seconds=log_request.excerpt.since_seconds, previous=log_request.excerpt.previous
    )
    async for _ in read_log_lines(reader, selected_logs[0], last_line):
        break


async def _stream_frames(
    reader: ApplicationReader,
    selected_logs: list[ContainerLog],
    log_request: LogRequest,
    hide_secrets: Callable[[str], str],
    *,
    events: bool,
) -> AsyncIterator[bytes]:
    """Mask each line before filtering, because a filter on unmasked lines could guess a secret letter by letter."""

    async def read_log(log: ContainerLog) -> AsyncGenerator[bytes, None]:
        try:
            async for line in read_log_lines(reader, log, log_request.excerpt):
                if log_request.matches(masked_line := hide_secrets(line.rstrip("\n"))):
                    yield encode_frame(build_log_entry(masked_line, log.pod.name, current_timestamp()), events=events)
        except (ClusterError, TransientError, UserError) as error:
            if len(selected_logs) == 1:
                yield encode_error_frame(error, events=events)

    async with aclosing(
        merge_streams([read_log(log) for log in selected_logs], max_queued=MAX_BUFFERED_LINES)
    ) as batches:
        async for batch in batches:
            for frame_bytes in batch:
                yield frame_bytes
    if not selected_logs:
        return  # argo: without a last frame
    last = build_log_entry(
        "", selected_logs[0].pod.name if len(selected_logs) == 1 else "", current_timestamp(), is_last=True
    )
    yield encode_frame(last, events=events)


LOG_PARAMETERS: Final = (
    QueryParameter("podName", "Only logs of this Pod."),
    QueryParameter("namespace", "Only logs of Pods in this namespace."),
    QueryParameter("container", "Only logs of this container."),
    QueryParameter("group", "Only Pods owned by objects of this API group."),
    QueryParameter("kind", "Only Pods owned by objects of this kind."),
    QueryParameter("resourceName", "Only Pods owned by the object with this name."),
    QueryParameter("follow", "Stream new lines.", "boolean"),
    QueryParameter("tailLines", "Only this many lines from the end.", "integer"),
    QueryParameter("sinceSeconds", "Only lines of the last seconds.", "integer"),
    QueryParameter("sinceTime", "Only lines since this time; RFC 3339."),
    QueryParameter("untilTime", "Refused: not supported."),
    QueryParameter("previous", "Logs of the previous container instance.", "boolean"),
    QueryParameter("filter", "Only lines with this text; a leading ! inverts the filter."),
    QueryParameter("matchCase", "Match upper and lower case in the filter.", "boolean"),
    *APPLICATION_PARAMETERS,
)
LOG_PERMISSION: Final = RequiresPermission("logs", "get", resolve_application_for_logs)
APPLICATION_PATH: Final = "/api/v1/applications/{name}"
ROUTES = (
    Route(
        "GET",
        f"{APPLICATION_PATH}/logs",
        LOG_PERMISSION,
        stream_logs,
        "Stream logs of the Pods of an Application, one JSON object per line.",
        query=LOG_PARAMETERS,
        response_media_types=STREAM_MEDIA_TYPES,
        tag="applications",
        operation_id="ApplicationService_PodLogs2",
    ),
    Route(
        "GET",
        f"{APPLICATION_PATH}/pods/{{podName}}/logs",
        LOG_PERMISSION,
        stream_logs,
        "Stream logs of a Pod, one JSON object per line.",
        query=LOG_PARAMETERS,
        response_media_types=STREAM_MEDIA_TYPES,
        tag="applications",
        operation_id="ApplicationService_PodLogs",
    ),
)
