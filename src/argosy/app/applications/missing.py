"""Why an Application is not as it should be, object by object.

In: a desk, an Application. Out: sentences, the blockers first. Never: more of them than somebody reads.
"""

from __future__ import annotations

from typing import Final

from argosy.app.applications.desk import Desk
from argosy.app.applications.facts import rows
from argosy.app.applications.reader import open_reader
from argosy.live.tree import Node
from argosy.model.application import Application
from argosy.model.flow import Health
from argosy.report.wire import mapping, mappings

MOST: Final = 12
WELL: Final = (None, Health.HEALTHY)


async def causes(desk: Desk, app: Application) -> list[str]:
    found = [f"{each.get('type')}: {each.get('message')}" for each in mappings(app.status.get("conditions"))]
    found += [
        f"{row.key.kind}/{row.key.name}  {row.status}{f': {row.message}' if row.message else ''}"
        for row in rows(app)
        if row.status in ("OutOfSync", "SyncFailed", "Failed", "Error")
    ]
    async with open_reader(desk) as reader:
        nodes = await reader.tree(app)
        for node in nodes:
            if node.health is not None and node.health.health not in WELL:
                found.append(_line(node))
            found += [f"  {text}" for text in _pod_reasons(mapping((reader.cache.get(node.key) or {}).get("status")))]
    shown = list(dict.fromkeys(found))
    return shown[:MOST] + ([f"… and {len(shown) - MOST} more"] if len(shown) > MOST else [])


def _line(node: Node) -> str:
    health = node.health
    assert health is not None and health.health is not None
    return f"{node.key.kind}/{node.key.name}  {health.health.value}{f': {health.message}' if health.message else ''}"


def _pod_reasons(status: object) -> list[str]:
    """Of a Pod: why its containers do not run."""
    known = mapping(status)
    found = []
    for each in mappings(known.get("initContainerStatuses")) + mappings(known.get("containerStatuses")):
        waiting = mapping(mapping(each.get("state")).get("waiting"))
        if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            message = f": {waiting.get('message')}" if waiting.get("message") else ""
            found.append(f"container {each.get('name')}  {waiting.get('reason')}{message}")
    return found
