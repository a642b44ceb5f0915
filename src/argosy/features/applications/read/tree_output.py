"""Render resource trees and Events as text.

In: nodes, Events. Out: lines. Never: prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from argosy.cli.tables import Screen
from argosy.gitops.application import Application
from argosy.gitops.application_client import summary
from argosy.gitops.application_client.tree_order import Branch, branches
from argosy.gitops.live.resource_tree import Node
from argosy.gitops.status.wire_format import mapping
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest


def tree_lines(
    app: Application,
    nodes: Sequence[Node],
    screen: Screen,
    now: datetime,
    said: Mapping[ResourceKey, str] | None = None,
) -> list[str]:
    """`reasons` explain the health of each object."""
    statuses = {row.key: row for row in summary.rows(app)}
    rows = []
    for branch in branches(nodes):
        node, row = branch.node, statuses.get(branch.node.key)
        health = node.health.health.value if node.health and node.health.health else ""
        why = (said or {}).get(node.key) or (node.health.message if node.health else "")
        message = why or (row.message if row else "")
        rows.append(
            (
                f"{_lead(branch)}{node.key.kind}/{node.key.name}",
                screen.mark(row.status) if row else "",
                screen.mark(health),
                summary.age(node.created, now),
                str(row.wave) if row else "",
                message,
            )
        )
    there = {node.key for node in nodes}
    for row in statuses.values():
        if row.key not in there and not row.hook:
            missing = screen.mark("Missing")
            rows.append(
                (f"{row.key.kind}/{row.key.name}", screen.mark(row.status), missing, "", str(row.wave), row.message)
            )
    return screen.table(("KIND/NAME", "STATUS", "HEALTH", "AGE", "WAVE", "MESSAGE"), rows)


def _lead(branch: Branch) -> str:
    if not branch.is_last:
        return ""
    *above, last = branch.is_last
    return "".join("   " if each else "│  " for each in above) + ("└─ " if last else "├─ ")


def event_lines(events: Sequence[Manifest], screen: Screen, now: datetime) -> list[str]:
    rows = []
    for event in events:
        about = mapping(event.get("involvedObject"))
        seen = str(event.get("lastTimestamp") or event.get("eventTime") or "")
        rows.append(
            (
                summary.age(seen, now),
                str(event.get("type") or ""),
                str(event.get("reason") or ""),
                f"{about.get('kind')}/{about.get('name')}",
                str(event.get("message") or ""),
            )
        )
    return screen.table(("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"), rows)
