"""`/apps/{ns}/{name}/logs`: show, stream and download logs of the Pods of an Application.

In: a request with the permission to read logs. Out: a page, a stream, a file. Never: more than MAX_LINES at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

import orjson

from argosy.errors import ArgosyError, UserError
from argosy.features.applications.logs.log_line_merge import (
    LogLine,
    build_labels,
    describe_silent_pods,
    find_start_time,
    merge_by_time,
)
from argosy.features.applications.page_parts.project_filtered_application_objects import list_permitted_nodes
from argosy.features.applications.page_parts.shared_page_values import build_page_values, get_application
from argosy.features.applications.page_parts.url_paths import application_path
from argosy.gitops.application_client.app_state_reader import ApplicationReader
from argosy.gitops.application_client.merged_streams import merge_streams
from argosy.gitops.application_client.resource_actions_and_logs import (
    ContainerLog,
    LogOptions,
    ObjectSelector,
    list_log_containers,
    read_log_lines,
)
from argosy.kube.resource_key import ResourceKey
from argosy.web import page_templates
from argosy.web.caller_application_service import build_reader
from argosy.web.request import RequestContext
from argosy.web.requested_application_lookup import resolve_application_for_logs
from argosy.web.responses import PageResponse, StreamResponse, TextResponse, WebResponse
from argosy.web.route import RequiresPermission, Route
from argosy.web.secret_mask_by_request_scope import build_text_mask

TAIL_CHOICES: Final = (100, 500, 1000, 5000)
SINCE_CHOICES: Final = ((60, "1 minute"), (900, "15 minutes"), (3600, "1 hour"), (86400, "1 day"))
MAX_SINCE_SECONDS: Final = 31 * 86400
MAX_LINES: Final = 5000  # per page
MAX_LOGS: Final = 20  # containers read at once
MAX_LINE_LENGTH: Final = 8192  # characters of a line
BATCH_SECONDS: Final = 0.1  # lines are collected for this long before they are sent
READ_TIMEOUT_SECONDS: Final = 10.0  # per container


class LogPage(NamedTuple):
    """Lines, and notes about logs that failed, are incomplete or are empty."""

    lines: list[LogLine]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class LogPageRequest:
    hide_secrets: Callable[[str], str]
    pod: str = ""
    container: str = ""
    tail: int = TAIL_CHOICES[1]
    previous: bool = False
    q: str = ""
    choice: ObjectSelector = field(default_factory=ObjectSelector)
    since: int = 0  # seconds ago; 0: from the start
    wraps: bool = True

    @property
    def excerpt(self) -> LogOptions:
        return LogOptions(tail=self.tail, since_seconds=self.since or None, previous=self.previous)

    def mask_and_filter_line(self, line: str) -> str | None:
        """Mask a line; return None if it does not match. A search in unmasked lines could guess a secret."""
        text = self.hide_secrets(line.rstrip("\n"))[:MAX_LINE_LENGTH]
        return text if self.q.lower() in text.lower() else None


def read_log_request(request: RequestContext) -> LogPageRequest:
    query = request.query
    parts = (query.get_text(name) for name in ("group", "kind", "namespace", "res"))
    return LogPageRequest(
        build_text_mask(request),
        query.get_text("pod"),
        query.get_text("container"),
        query.get_int("tail", TAIL_CHOICES[1], minimum=1, maximum=TAIL_CHOICES[-1]),
        query.get_text("previous") in ("1", "true", "on"),
        query.get_text("q"),
        ObjectSelector(*parts),
        query.get_int("since", 0, minimum=0, maximum=MAX_SINCE_SECONDS),
        query.get_text("wrap") != "no",
    )


async def list_and_select_logs(
    reader: ApplicationReader, request: RequestContext, log_request: LogPageRequest
) -> tuple[list[ContainerLog], list[ContainerLog]]:
    """Return all logs of the Application, and the selected ones."""
    try:
        all_logs = await list_log_containers(reader, get_application(request), log_request.choice, "")
    except UserError:
        return [], []
    owned = {node.key for node in await list_permitted_nodes(request)}
    all_logs = [log for log in all_logs if log.pod in owned]
    selected = [
        log
        for log in all_logs
        if log_request.pod in ("", log.pod.name)
        and (not log_request.container or log_request.container == log.container)
    ]
    return all_logs, selected[:MAX_LOGS]


async def read_logs(reader: ApplicationReader, logs: Sequence[ContainerLog], log_request: LogPageRequest) -> LogPage:
    """Read several logs and merge their lines by time."""
    log_labels = build_labels(logs)

    async def read_log(log: ContainerLog) -> tuple[list[LogLine], str]:
        log_lines = list[LogLine]()
        try:
            async with asyncio.timeout(READ_TIMEOUT_SECONDS):
                async for line in read_log_lines(reader, log, log_request.excerpt):
                    if (text := log_request.mask_and_filter_line(line)) is not None:
                        log_lines.append(LogLine(text, *log_labels[log]))
        except TimeoutError:
            return (
                log_lines,
                f"{log.pod.name}/{log.container}: incomplete: the node did not send it within "
                f"{READ_TIMEOUT_SECONDS:.0f} s",
            )
        except ArgosyError as error:
            return log_lines, f"{log.pod.name}/{log.container}: {error}"
        return log_lines, ""

    results = await asyncio.gather(*map(read_log, logs))
    start_times = [find_start_time(reader.cache.get(log.pod), log.container) for log in logs]
    merged_lines = merge_by_time(
        [(started_at, log_lines) for started_at, (log_lines, _) in zip(start_times, results, strict=True)]
    )
    silent_pods = [
        log.pod for log, (log_lines, fault) in zip(logs, results, strict=True) if not log_lines and not fault
    ]
    pods = {key.name: pod for key in silent_pods if (pod := reader.cache.get(key)) is not None}
    return LogPage(merged_lines[-MAX_LINES:], [*(fault for _, fault in results if fault), *describe_silent_pods(pods)])


async def render_logs_page(request: RequestContext) -> WebResponse:
    reader, log_request = build_reader(request), read_log_request(request)
    all_logs, selected = await list_and_select_logs(reader, request, log_request)
    log_page = await read_logs(reader, selected, log_request)
    is_following = request.query.get_text("follow") in ("1", "true", "on")
    values = await build_page_values(
        request,
        "logs",
        lines=log_page.lines,
        faults=log_page.notes,
        wish=log_request,
        follows=is_following,
        tails=TAIL_CHOICES,
        ages=SINCE_CHOICES,
        pods=sorted({log.pod.name for log in all_logs}),
        containers=sorted({log.container for log in all_logs if log_request.pod in ("", log.pod.name)}),
        stream=_build_url(request, "logs/stream"),
        download=_build_url(request, "logs/text"),
    )
    return PageResponse("applications/logs.html", values)


def _build_url(request: RequestContext, tab: str) -> str:
    app = get_application(request)
    query = urlencode([(name, value) for name in request.query for value in request.query.get_all(name)])
    return f"{application_path(app.namespace, app.name, tab)}{f'?{query}' if query else ''}"


async def download_logs(request: RequestContext) -> WebResponse:
    """Return the selected logs as a file."""
    reader, log_request = build_reader(request), read_log_request(request)
    _, selected = await list_and_select_logs(reader, request, log_request)
    log_lines = (await read_logs(reader, selected, log_request)).lines
    text = "".join(f"{log_line.whole + ': ' if log_line.whole else ''}{log_line.text}\n" for log_line in log_lines)
    name = "".join(
        character if character.isalnum() or character in "-." else "-" for character in get_application(request).name
    )
    return TextResponse(text=text, headers=(("content-disposition", f'attachment; filename="{name}.log"'),))


async def stream_logs(request: RequestContext) -> WebResponse:
    reader, log_request = build_reader(request), read_log_request(request)
    _, selected = await list_and_select_logs(reader, request, log_request)
    return StreamResponse(chunks=_follow_logs(reader, selected, log_request), media_type="text/event-stream")


async def _follow_logs(
    reader: ApplicationReader, logs: Sequence[ContainerLog], log_request: LogPageRequest
) -> AsyncIterator[bytes]:
    """Stream new lines in batches."""
    log_labels = build_labels(logs)

    async def follow_log(log: ContainerLog) -> AsyncGenerator[LogLine, None]:
        try:
            async for line in read_log_lines(reader, log, LogOptions(follow=True, tail=0)):
                if (text := log_request.mask_and_filter_line(line)) is not None:
                    yield LogLine(text, *log_labels[log])
        except ArgosyError as error:
            yield LogLine(f"the log ended: {error}", *log_labels[log])

    yield _encode_event("lines", {"html": ""})
    async with aclosing(merge_streams([follow_log(log) for log in logs], gather_seconds=BATCH_SECONDS)) as batches:
        async for batch in batches:
            html = "".join(
                page_templates.render_macro("applications/parts_logs.html", "log_item", log_line) for log_line in batch
            )
            yield _encode_event("lines", {"html": html})
    yield _encode_event("end", {"why": "every container has ended"})


def _encode_event(name: str, document: Any) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(document) + b"\n\n"


def build_log_query(key: ResourceKey) -> dict[str, str]:
    """Build the query parameters that select the Pods owned by an object."""
    return {"group": key.group, "kind": key.kind, "namespace": key.namespace, "res": key.name}


LOG_PERMISSION = RequiresPermission("logs", "get", resolve_application_for_logs)
ROUTES = (
    Route("GET", "/apps/{ns}/{name}/logs", LOG_PERMISSION, render_logs_page, "Logs"),
    Route("GET", "/apps/{ns}/{name}/logs/stream", LOG_PERMISSION, stream_logs, "Stream logs"),
    Route("GET", "/apps/{ns}/{name}/logs/text", LOG_PERMISSION, download_logs, "Download logs"),
)
