"""Lists why an Application is not Synced and Healthy, object by object.

In: an ApplicationService, an Application. Out: sentences, most important first. Never: more than MAX_REASONS.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from argosy.errors import ArgosyError
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import HealthStatus
from argosy.gitops.application_client.app_state_reader import ApplicationReader, open_reader
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.object_health_sentence import summarize_health_reason
from argosy.gitops.application_client.status_summary import ManagedObjectRow, list_rows
from argosy.gitops.application_client.stuck_pods import list_waiting_reasons
from argosy.gitops.application_client.tree_order import TreeLine, list_tree_lines
from argosy.gitops.status.status_json_conversions import as_mappings
from argosy.kube.resource_key import ResourceKey

MAX_REASONS: Final = 12
HEALTHY_STATES: Final = (None, HealthStatus.HEALTHY)
FAILED_STATUSES: Final = ("OutOfSync", "SyncFailed", "Failed", "Error")
CRASH_LOOP: Final = "CrashLoopBackOff"
LOG_TIMEOUT_SECONDS: Final = 3.0


async def list_unsynced_unhealthy_reasons(service: ApplicationService, app: Application) -> list[str]:
    """List conditions, then objects by wave, each with its unhealthy children."""
    if not app.status:
        return ["not reconciled yet; is a controller running? argosy controller"]
    lines = [
        f"{condition.get('type')}: {condition.get('message')}"
        for condition in as_mappings(app.status.get("conditions"))
    ]
    rows_by_key = {row.key: row for row in list_rows(app)}
    lines += [_format_row(row) for row in sorted(rows_by_key.values(), key=_sort_key) if row.status in FAILED_STATUSES]
    with contextlib.suppress(ArgosyError):  # show what the status says anyway
        async with open_reader(service, app=app) as reader:
            lines += await list_unhealthy_objects(reader, app)
    unique_lines = list(dict.fromkeys(lines))
    return unique_lines[:MAX_REASONS] + (
        [f"… and {len(unique_lines) - MAX_REASONS} more"] if len(unique_lines) > MAX_REASONS else []
    )


def _sort_key(row: ManagedObjectRow) -> tuple[int, ResourceKey]:
    return row.wave, row.key


def _format_row(row: ManagedObjectRow) -> str:
    return f"wave {row.wave}: {_format_key(row.key)}  {row.status}{f': {row.message}' if row.message else ''}"


def _format_key(key: ResourceKey) -> str:
    return f"{key.kind}/{key.name}{f' -n {key.namespace}' if key.namespace else ''}"


async def list_unhealthy_objects(reader: ApplicationReader, app: Application) -> list[str]:
    """List unhealthy objects by wave, each with its children down to the container."""
    rows_by_key = {row.key: row for row in list_rows(app)}
    groups: list[tuple[int, list[str]]] = []
    seen_messages: set[str] = set()
    for tree_line in list_tree_lines(await reader.build_tree(app)):
        if not tree_line.is_last:
            groups.append((rows_by_key[tree_line.node.key].wave if tree_line.node.key in rows_by_key else 0, []))
        wave, lines = groups[-1]
        lines += await _format_tree_line(reader, tree_line, wave, seen_messages)
    return [line for _, lines in sorted(groups, key=lambda group: group[0]) for line in lines]


async def _format_tree_line(
    reader: ApplicationReader, tree_line: TreeLine, wave: int, seen_messages: set[str]
) -> list[str]:
    node, lines = tree_line.node, []
    indent = "  " * len(tree_line.is_last)
    prefix = f"{indent}└ " if tree_line.is_last else f"wave {wave}: "
    if node.health is not None and node.health.health not in HEALTHY_STATES:
        reason_text = summarize_health_reason(reader.cache.get(node.key) or {}, node.health.message)
        message = (
            f": {reason_text}" if reason_text and reason_text not in seen_messages else ""
        )  # owner and child often have the same message
        seen_messages.add(reason_text)
        lines.append(
            f"{prefix}{_format_key(node.key)}  {node.health.health.value if node.health.health else ''}{message}"
        )
    for waiting_reason in list_waiting_reasons(reader.cache.get(node.key) or {}):
        if waiting_reason in seen_messages:
            continue
        lines.append(f"{indent}  {waiting_reason}")
        if waiting_reason.reason == CRASH_LOOP and (
            line := await _read_last_log_line(reader, node.key, waiting_reason.split()[1])
        ):
            lines.append(f"{indent}    {line}  ← last log line")
    return lines


async def _read_last_log_line(reader: ApplicationReader, pod: ResourceKey, container: str) -> str:
    """Return the last log line of a crashed container."""
    last = ""
    with contextlib.suppress(ArgosyError, TimeoutError):
        async with asyncio.timeout(LOG_TIMEOUT_SECONDS):
            async for line in reader.cluster.logs(pod, container=container, tail=1):
                last = line.strip() or last
    return last


__all__ = ["list_unhealthy_objects", "list_unsynced_unhealthy_reasons"]
