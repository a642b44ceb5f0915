"""Render resource trees and Events as text.

In: nodes, Events. Out: lines. Never: prints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from argosy.cli.tables import TerminalOutput
from argosy.gitops.application import Application
from argosy.gitops.application_client import status_summary
from argosy.gitops.application_client.tree_order import TreeLine, list_tree_lines
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey


def render_tree(
    app: Application,
    nodes: Sequence[ResourceNode],
    screen: TerminalOutput,
    now: datetime,
    reasons: Mapping[ResourceKey, str] | None = None,
) -> list[str]:
    """`reasons` explain the health of each object."""
    statuses = {row.key: row for row in status_summary.list_rows(app)}
    rows = []
    for branch in list_tree_lines(nodes):
        node, row = branch.node, statuses.get(branch.node.key)
        health = node.health.health.value if node.health and node.health.health else ""
        reason = (reasons or {}).get(node.key) or (node.health.message if node.health else "")
        message = reason or (row.message if row else "")
        rows.append(
            (
                f"{_render_branch_prefix(branch)}{node.key.kind}/{node.key.name}",
                screen.format_status(row.status) if row else "",
                screen.format_status(health),
                status_summary.format_age(node.created, now),
                str(row.wave) if row else "",
                message,
            )
        )
    live_keys = {node.key for node in nodes}
    for row in statuses.values():
        if row.key not in live_keys and not row.hook:
            missing = screen.format_status("Missing")
            rows.append(
                (
                    f"{row.key.kind}/{row.key.name}",
                    screen.format_status(row.status),
                    missing,
                    "",
                    str(row.wave),
                    row.message,
                )
            )
    return screen.format_table(("KIND/NAME", "STATUS", "HEALTH", "AGE", "WAVE", "MESSAGE"), rows)


def _render_branch_prefix(branch: TreeLine) -> str:
    if not branch.is_last:
        return ""
    *above, last = branch.is_last
    return "".join("   " if is_last_above else "│  " for is_last_above in above) + ("└─ " if last else "├─ ")


def render_events(events: Sequence[Manifest], screen: TerminalOutput, now: datetime) -> list[str]:
    rows = []
    for event in events:
        involved_object = as_mapping(event.get("involvedObject"))
        last_seen = str(event.get("lastTimestamp") or event.get("eventTime") or "")
        rows.append(
            (
                status_summary.format_age(last_seen, now),
                str(event.get("type") or ""),
                str(event.get("reason") or ""),
                f"{involved_object.get('kind')}/{involved_object.get('name')}",
                str(event.get("message") or ""),
            )
        )
    return screen.format_table(("LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"), rows)
