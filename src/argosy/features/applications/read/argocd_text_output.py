"""Render an Application exactly as the argocd command prints it.

In: an Application, its sync windows. Out: lines. Never: lines that argocd does not print, as scripts parse them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from argosy.cli.tables import format_aligned_columns
from argosy.features.applications.read.text_output import describe_sync_policy, render_conditions, render_tool_options
from argosy.gitops.application import Application, Source
from argosy.gitops.application_client import status_summary
from argosy.gitops.application_client.application_service import utc_now
from argosy.gitops.application_client.status_summary import ManagedObjectRow
from argosy.gitops.application_client.tree_order import TreeLine, list_tree_lines
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.resource_key import ResourceKey

LABEL_WIDTH: Final = 20
MAX_VALUE_LENGTH: Final = 80
RESOURCE_COLUMNS: Final = ("GROUP", "KIND", "NAMESPACE", "NAME", "ORPHANED")
TREE_COLUMNS: Final = ("KIND/NAME", "STATUS", "HEALTH", "MESSAGE")
DETAILED_TREE_COLUMNS: Final = ("KIND/NAME", "STATUS", "HEALTH", "AGE", "MESSAGE", "REASON")
HEX_DIGITS: Final = frozenset("0123456789abcdef")


def render_field(name: str, value: str) -> str:
    return f"{name:<{LABEL_WIDTH}}{value}"


def render_summary(app: Application, window: str, *, url: str, windows: Sequence[str] = ()) -> list[str]:
    destination = app.destination
    lines = [
        render_field("Name:", f"{app.namespace}/{app.name}"),
        render_field("Project:", app.project),
        render_field("Server:", destination.server or destination.name),
        render_field("Namespace:", destination.namespace),
        render_field("URL:", url),
        "Sources:" if app.has_many_sources else "Source:",
    ]
    for source in app.sources:
        lines += _render_source(source)
    lines.append(render_field("SyncWindow:", window))
    lines += [render_field("Assigned Windows:", ",".join(windows))] if windows else []
    lines.append(render_field("Sync Policy:", describe_sync_policy(app)))
    lines.append(render_field("Sync Status:", _render_sync_status(app)))
    lines.append(render_field("Health Status:", status_summary.read_health_status(app)))
    return lines


def _render_source(source: Source) -> list[str]:
    lines = [
        render_field("- Repo:", source.repo_url),
        render_field("  Target:", str(source.wire.get("targetRevision") or "")),
    ]
    lines += [render_field("  Path:", source.path)] if source.path else []
    lines += [render_field("  Ref:", source.alias)] if source.alias else []
    return lines + render_tool_options(source.wire)


def _render_sync_status(app: Application) -> str:
    """argo: Shows only the first source; adds the commit unless the target revision is a commit."""
    status = status_summary.read_sync_status(app)
    ref = str(app.sources[0].wire.get("targetRevision") or "") if app.sources else ""
    preposition = {"Synced": " to ", "OutOfSync": " from "}.get(status)
    text = f"{status}{preposition}{ref}" if preposition else status
    revision = str(as_mapping(app.status.get("sync")).get("revision") or "")
    is_commit = len(ref) in (7, 40) and set(ref.lower()) <= HEX_DIGITS
    return f"{text} ({revision[:7]})" if len(revision) > 7 and not is_commit else text


def list_managed_object_rows(app: Application, health: Mapping[ResourceKey, str]) -> list[ManagedObjectRow]:
    """argo: Results of the last operation in their order, then the other objects by name."""
    rows_by_key = {row.key: row for row in status_summary.list_rows(app, health) if not row.hook}
    listed_keys = {_key(resource) for resource in as_mappings(app.status.get("resources"))}
    rows = []
    for result in app.state.results if app.state else ():
        row = rows_by_key.pop(result.key, None)
        if row is None or result.hook or result.key not in listed_keys:
            phase = result.hook_phase.value if result.hook_phase else ""
            row = ManagedObjectRow(result.key, phase, str(result.result_code or ""), result.hook)
        rows.append(row._replace(message=result.message))
    remaining = sorted(rows_by_key.values(), key=lambda row: "/".join(row.key))
    return rows + [row._replace(message="") for row in remaining]


def _key(wire: Mapping[str, Any]) -> ResourceKey:
    return ResourceKey(*(str(wire.get(part) or "") for part in ResourceKey._fields))


def render_tree(app: Application, nodes: Sequence[ResourceNode], *, is_detailed: bool) -> list[str]:
    """argo: Managed objects with their children."""
    rows_by_key = {row.key: row for row in status_summary.list_rows(app)}
    rows = []
    for branch in list_tree_lines(nodes):
        node, row = branch.node, rows_by_key.get(branch.node.key)
        health = node.health.health.value if node.health and node.health.health else ""
        message = row.message if row else ""
        cells = [f"{render_branch_prefix(branch)}{node.key.kind}/{node.key.name}", row.status if row else "", health]
        if is_detailed:
            reason = node.health.message if node.health else ""
            cells += [status_summary.format_age(node.created, utc_now()) or "<unknown>", message, reason]
        else:
            cells.append(message)
        rows.append(cells)
    columns = DETAILED_TREE_COLUMNS if is_detailed else TREE_COLUMNS
    return format_aligned_columns([columns, *rows])


def render_resource_tree(
    nodes: Sequence[ResourceNode], orphans: Sequence[ResourceKey], *, is_detailed: bool
) -> list[str]:
    """argo: The branch prefix precedes the group."""
    rows: list[tuple[str, ...]] = []
    for branch in list_tree_lines(nodes):
        node, key = branch.node, branch.node.key
        health = node.health.health.value if node.health and node.health.health else ""
        details = (
            status_summary.format_age(node.created, utc_now()) or "<unknown>",
            health,
            node.health.message if node.health else "",
        )
        rows.append(
            (
                f"{render_branch_prefix(branch)}{key.group}",
                key.kind,
                key.namespace,
                key.name,
                "No",
                *(details[: 3 * is_detailed]),
            )
        )
    rows += [(*key, "Yes", *(("<unknown>", "", "")[: 3 * is_detailed])) for key in orphans]
    return format_aligned_columns([RESOURCE_COLUMNS + (("AGE", "HEALTH", "REASON") if is_detailed else ()), *rows])


def render_branch_prefix(branch: TreeLine) -> str:
    """argo: Two characters per level."""
    if not branch.is_last:
        return ""
    *above, last = branch.is_last
    return "".join("  " if is_last_above else "│ " for is_last_above in above) + ("└─" if last else "├─")


def conditions(app: Application) -> list[str]:
    lines = render_conditions(app)
    return [*lines, ""] if lines else []


def render_parameters(app: Application, position: int | None, name: str) -> list[str]:
    """argo: The Helm parameters of the only source or of the selected source."""
    helm = as_mapping(_find_source(app, position, name).get("helm"))
    if not helm:
        return []
    helm_parameters = as_mappings(helm.get("parameters"))
    rows = [
        (str(parameter.get("name") or ""), _truncate(str(parameter.get("value") or "")))
        for parameter in helm_parameters
    ]
    return ["", "", *format_aligned_columns([("NAME", "VALUE"), *rows])]


def _find_source(app: Application, position: int | None, name: str) -> Mapping[str, Any]:
    if len(app.sources) == 1:
        return app.sources[0].wire
    if name:
        return next((source.wire for source in app.sources if source.wire.get("name") == name), {})
    return app.sources[position - 1].wire if position and 1 <= position <= len(app.sources) else {}


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[: MAX_VALUE_LENGTH - 3]}..."
