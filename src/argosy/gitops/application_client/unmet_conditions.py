"""Lists why an Application is not Synced and Healthy, object by object.

In: an ApplicationService, an Application. Out: sentences, most important first. Never: more than MAX_REASONS.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from argosy.errors import ArgosyError
from argosy.gitops.application import Application
from argosy.gitops.application.step_results import Health
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.health_reasons import reason
from argosy.gitops.application_client.reader import Reader, open_reader
from argosy.gitops.application_client.stuck_pods import waiting
from argosy.gitops.application_client.summary import Row, rows
from argosy.gitops.application_client.tree_order import Branch, branches
from argosy.gitops.status.wire_format import mappings
from argosy.kube.names import ResourceKey

MOST: Final = 12
WELL: Final = (None, Health.HEALTHY)
WRONG: Final = ("OutOfSync", "SyncFailed", "Failed", "Error")
CRASHED: Final = "CrashLoopBackOff"
LOG_SECONDS: Final = 3.0


async def causes(desk: Desk, app: Application) -> list[str]:
    """List conditions, then objects by wave, each with its unhealthy children."""
    if not app.status:
        return ["not reconciled yet; is a controller running? argosy controller"]
    found = [f"{each.get('type')}: {each.get('message')}" for each in mappings(app.status.get("conditions"))]
    of = {row.key: row for row in rows(app)}
    found += [_row_line(row) for row in sorted(of.values(), key=_order) if row.status in WRONG]
    with contextlib.suppress(ArgosyError):  # show what the status says anyway
        async with open_reader(desk, app=app) as reader:
            found += await unwell(reader, app)
    shown = list(dict.fromkeys(found))
    return shown[:MOST] + ([f"… and {len(shown) - MOST} more"] if len(shown) > MOST else [])


def _order(row: Row) -> tuple[int, ResourceKey]:
    return row.wave, row.key


def _row_line(row: Row) -> str:
    return f"wave {row.wave}: {_named(row.key)}  {row.status}{f': {row.message}' if row.message else ''}"


def _named(key: ResourceKey) -> str:
    return f"{key.kind}/{key.name}{f' -n {key.namespace}' if key.namespace else ''}"


async def unwell(reader: Reader, app: Application) -> list[str]:
    """List unhealthy objects by wave, each with its children down to the container."""
    of = {row.key: row for row in rows(app)}
    groups: list[tuple[int, list[str]]] = []
    told: set[str] = set()
    for branch in branches(await reader.tree(app)):
        if not branch.is_last:
            groups.append((of[branch.node.key].wave if branch.node.key in of else 0, []))
        wave, lines = groups[-1]
        lines += await _branch_lines(reader, branch, wave, told)
    return [line for _, lines in sorted(groups, key=lambda group: group[0]) for line in lines]


async def _branch_lines(reader: Reader, branch: Branch, wave: int, told: set[str]) -> list[str]:
    node, found = branch.node, []
    indent = "  " * len(branch.is_last)
    lead = f"{indent}└ " if branch.is_last else f"wave {wave}: "
    if node.health is not None and node.health.health not in WELL:
        why = reason(reader.cache.get(node.key) or {}, node.health.message)
        message = f": {why}" if why and why not in told else ""  # owner and child often have the same message
        told.add(why)
        found.append(f"{lead}{_named(node.key)}  {node.health.health.value if node.health.health else ''}{message}")
    for each in waiting(reader.cache.get(node.key) or {}):
        if each in told:
            continue
        found.append(f"{indent}  {each}")
        if each.reason == CRASHED and (line := await _last_words(reader, node.key, each.split()[1])):
            found.append(f"{indent}    {line}  ← last log line")
    return found


async def _last_words(reader: Reader, pod: ResourceKey, container: str) -> str:
    """Return the last log line of a crashed container."""
    last = ""
    with contextlib.suppress(ArgosyError, TimeoutError):
        async with asyncio.timeout(LOG_SECONDS):
            async for line in reader.cluster.logs(pod, container=container, tail=1):
                last = line.strip() or last
    return last


__all__ = ["causes", "unwell"]
