"""Render Applications as text: lists, details, operations and history.

In: Applications, drift texts and delays. Out: lines. Never: prints; calls a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from argosy.cli.tables import (
    WHY_COLUMN,
    TerminalOutput,
    drop_control_characters,
    format_aligned_columns,
    measure_width,
    truncate,
)
from argosy.gitops.application import Application, OperationState
from argosy.gitops.application_client import status_summary
from argosy.gitops.application_client.status_summary import ManagedObjectRow
from argosy.gitops.policy.application_delivery_engine_detection import DeliveryEngines
from argosy.gitops.status.history import DeploymentRecord
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.gitops.status.sync_hold_annotation import read_hold
from argosy.kube.resource_key import ResourceKey

COLUMN_GAP: Final = "  "
CAUSE_PREFIX: Final = "  └ "
MIN_CAUSE_LENGTH: Final = 20
NO_DELAYS: Final[Mapping[ResourceKey, str]] = {}
MAX_WHY_LENGTH: Final = 300  # characters of WHY in a list, however wide the output is
MAX_REASONS: Final = 5  # objects listed as reasons for the health
WIDE_COLUMNS: Final = (
    "NAME", "CLUSTER", "NAMESPACE", "PROJECT", "STATUS", "HEALTH", "SYNCPOLICY", "CONDITIONS", "REPO", "PATH", "TARGET",
)  # fmt: skip
LIST_COLUMNS: Final = ("NAME", "STATUS", "HEALTH", "WHY", "REVISION", "SYNCPOLICY", "AGE")
DELIVERED_COLUMN: Final = "DELIVERED BY"
OBJECT_COLUMNS: Final = ("GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK", "MESSAGE")


# -- lists ---------------------------------------------------------------------------------------------------------


def render_wide_list(
    apps: Sequence[Application],
    drift_texts: Mapping[ResourceKey, str] | None = None,
    delays: Mapping[ResourceKey, str] = NO_DELAYS,
) -> list[str]:
    """argo: The columns of Argo CD, as scripts count them. With `drift_texts`, WHY comes last and is not truncated."""
    rows = []
    for app in apps:
        source = app.sources[0] if app.sources else None
        rows.append(
            (
                f"{app.namespace}/{app.name}",
                app.destination.server or app.destination.name,
                app.destination.namespace,
                app.project,
                status_summary.read_sync_status(app),
                status_summary.read_health_status(app),
                status_summary.describe_sync_policy(app),
                status_summary.summarize_conditions(app),
                source.repo_url if source else "",
                (source.path or source.chart) if source else "",
                source.ref if source else "",
                *(
                    ()
                    if drift_texts is None
                    else (status_summary.describe_problem(app, drift_texts.get(app.key, ""), delays.get(app.key, "")),)
                ),
            )
        )
    if drift_texts is None:
        return format_aligned_columns([WIDE_COLUMNS, *rows])
    return [line.rstrip() for line in format_aligned_columns([(*WIDE_COLUMNS, WHY_COLUMN), *rows])]


def render_list(
    apps: Sequence[Application],
    screen: TerminalOutput,
    now: datetime,
    default_namespace: str,
    drift_texts: Mapping[ResourceKey, str] | None = None,
    engines: DeliveryEngines | None = None,
    delays: Mapping[ResourceKey, str] = NO_DELAYS,
) -> list[str]:
    """Render status and reason of each Application, and its delivery engine if an Argo CD watches a namespace, too.

    WHY is truncated to the width of a terminal, so that each Application has one row, else to MAX_WHY_LENGTH
    characters; `render_wide_list` does not truncate it.
    """
    if engines is not None and not any(engines.list_watching_controllers(app.namespace) for app in apps):
        engines = None
    names = LIST_COLUMNS if engines is None else (*LIST_COLUMNS, DELIVERED_COLUMN)
    rows = []
    for app in apps:
        name = app.name if app.namespace == default_namespace else f"{app.namespace}/{app.name}"
        hold = read_hold(app.annotations) is not None
        reason = status_summary.describe_problem(app, (drift_texts or {}).get(app.key, ""), delays.get(app.key, ""))
        rows.append(
            (
                name,
                screen.format_status(status_summary.read_sync_status(app)),
                screen.format_status(status_summary.read_health_status(app)),
                truncate(drop_control_characters(reason), MAX_WHY_LENGTH),
                ",".join(map(status_summary.shorten_revision, status_summary.read_synced_revisions(app))) or "-",
                f"{status_summary.describe_sync_policy(app)}{' (held)' if hold else ''}",
                status_summary.format_age(status_summary.read_creation_time(app), now),
                *(() if engines is None else (engines.find_deliverer(app.annotations, app.namespace).value,)),
            )
        )
    lines = screen.format_table(names, rows)
    if screen.width is None or all(measure_width(line) <= screen.width for line in lines):
        return lines
    return _render_with_causes_below(names, rows, screen, screen.width)


def _render_with_causes_below(
    names: Sequence[str], rows: Sequence[Sequence[str]], screen: TerminalOutput, width: int
) -> list[str]:
    """Show WHY on a line below each row, truncated to the width, if the column does not fit."""
    why_index = names.index(WHY_COLUMN)
    rows_without_why = [[*row[:why_index], *row[why_index + 1 :]] for row in (names, *rows)]
    heading, *lines = screen.format_table(rows_without_why[0], rows_without_why[1:])
    rendered = [heading]
    for line, row in zip(lines, rows, strict=True):
        cause = drop_control_characters(row[why_index])
        rendered += [
            line,
            *([f"{CAUSE_PREFIX}{truncate(cause, max(width - len(CAUSE_PREFIX), MIN_CAUSE_LENGTH))}"] if cause else []),
        ]
    return rendered


def render_summary_line(apps: Sequence[Application]) -> str:
    synced = sum(1 for app in apps if status_summary.read_sync_status(app) == "Synced")
    needing_attention = [
        app
        for app in apps
        if status_summary.read_sync_status(app) != "Synced" or status_summary.read_health_status(app) != "Healthy"
    ]
    counts_text = f"{len(apps)} app{'' if len(apps) == 1 else 's'} · {synced} Synced · {len(apps) - synced} not"
    return f"{counts_text}          next: {_next_command(needing_attention)}" if needing_attention else counts_text


def _next_command(needing_attention: Sequence[Application]) -> str:
    """Return the command for the first unhealthy Application, else for an OutOfSync one, else for a missing one."""
    unhealthy = [
        app for app in needing_attention if status_summary.read_health_status(app) not in ("Healthy", "Missing")
    ]
    differing = [app for app in needing_attention if status_summary.is_only_differing(app)]
    if differing and not unhealthy:
        return f"argosy app diff {differing[0].name}"
    return f"argosy app get {(unhealthy or needing_attention)[0].name}"


# -- one -----------------------------------------------------------------------------------------------------------


def render_field(name: str, value: str) -> str:
    return f"{name:<20}{value}".rstrip()


def render_summary(app: Application, window: str, reasons: Sequence[str] = (), delivered_by: str = "") -> list[str]:
    """argo: The part of get above the table, without URL because there is no server."""
    destination = app.destination
    lines = [
        render_field("Name:", f"{app.namespace}/{app.name}"),
        render_field("Project:", app.project),
        render_field("Server:", destination.server or destination.name),
        render_field("Namespace:", destination.namespace),
        *_render_labels(app),
        "Sources:" if len(app.sources) > 1 else "Source:",
    ]
    for source in app.sources:
        lines.append(render_field("- Repo:", source.repo_url))
        lines.append(render_field("  Target:", source.ref))
        lines += [render_field("  Ref:", source.alias)] if source.alias else []
        lines += [render_field("  Chart:", source.chart)] if source.chart else []
        lines += [render_field("  Path:", source.path)] if source.path else []
        lines += render_tool_options(source.wire)
    lines.append(render_field("SyncWindow:", window))
    lines.append(render_field("Sync Policy:", describe_sync_policy(app)))
    if (hold := read_hold(app.annotations)) is not None:
        held_by = f" by {hold.by}" if hold.by else ""
        lines.append(
            render_field("Held:", f"since {hold.at or '?'}{held_by}{f': {hold.reason}' if hold.reason else ''}")
        )
    lines += [render_field("Delivered by:", delivered_by)] if delivered_by else []
    lines.append(render_field("Sync Status:", _render_sync_status(app)))
    message = status_summary.read_health_message(app)
    lines.append(
        render_field("Health Status:", f"{status_summary.read_health_status(app)}{f' ({message})' if message else ''}")
    )
    lines += [
        render_field("Why:" if not index else "", drop_control_characters(reason))
        for index, reason in enumerate(reasons[:MAX_REASONS])
    ]
    return lines + render_conditions(app)


def _render_labels(app: Application) -> list[str]:
    labels = status_summary.read_app_labels(app)
    return (
        [render_field("Labels:", ",".join(f"{name}={value}" for name, value in sorted(labels.items())))]
        if labels
        else []
    )


def render_tool_options(wire: Mapping[str, Any]) -> list[str]:
    """argo: The options of tools that get shows."""
    helm, kustomize = as_mapping(wire.get("helm")), as_mapping(wire.get("kustomize"))
    lines = []
    if helm.get("valueFiles"):
        lines.append(render_field("  Helm Values:", ",".join(map(str, helm["valueFiles"]))))
    if kustomize.get("namePrefix"):
        lines.append(render_field("  Name Prefix:", str(kustomize["namePrefix"])))
    return lines


def describe_sync_policy(app: Application) -> str:
    automated = app.policy.automated
    if automated is None or not automated.is_on:
        return "Manual"
    return "Automated (Prune)" if automated.prune else "Automated"


def _render_sync_status(app: Application) -> str:
    status, ref = status_summary.read_sync_status(app), app.sources[0].ref if app.sources else ""
    revisions = status_summary.read_synced_revisions(app)
    revision_text = f" ({status_summary.shorten_revision(revisions[0])})" if revisions else ""
    if len(app.sources) > 1:
        return status
    preposition = {"Synced": "to", "OutOfSync": "from"}.get(status)
    return f"{status} {preposition} {ref}{revision_text}" if preposition else status


def render_conditions(app: Application) -> list[str]:
    conditions = as_mappings(app.status.get("conditions"))
    if not conditions:
        return []
    rows = [
        (
            str(condition.get("type")),
            str(condition.get("message")),
            status_summary.format_go_time(str(condition.get("lastTransitionTime") or "")),
        )
        for condition in conditions
    ]
    return ["", *format_aligned_columns([("CONDITION", "MESSAGE", "LAST TRANSITION"), *rows])]


def render_operation(state: OperationState) -> list[str]:
    """argo: The last operation."""
    lines = [
        render_field("Operation:", "Sync"),
        render_field("Sync Revision:", state.revision or ", ".join(state.revisions)),
        render_field("Phase:", state.phase.value),
        render_field("Start:", status_summary.format_go_time(state.started)),
        render_field("Finished:", status_summary.format_go_time(state.finished) if state.finished else ""),
        render_field("Duration:", _render_duration(state)),
    ]
    return [*lines, *([render_field("Message:", state.message)] if state.message else [])]


def _render_duration(state: OperationState) -> str:
    try:
        began = datetime.fromisoformat(state.started)
        ended = datetime.fromisoformat(state.finished) if state.finished else datetime.now(UTC)
    except ValueError:
        return ""
    return f"{max(int((ended - began).total_seconds()), 0)}s"


def render_objects(rows: Sequence[ManagedObjectRow]) -> list[str]:
    if not rows:
        return []
    return format_aligned_columns([OBJECT_COLUMNS, *(build_object_cells(row) for row in rows)])


def build_object_cells(row: ManagedObjectRow) -> tuple[str, ...]:
    key = row.key
    return key.group, key.kind, key.namespace, key.name, row.status, row.health, row.hook, row.message


# -- history -------------------------------------------------------------------------------------------------------


def render_history(entries: Sequence[DeploymentRecord]) -> list[str]:
    rows = []
    for entry in entries:
        deployed_by = "auto-sync" if entry.is_automated else entry.by or "-"
        rows.append((str(entry.id), status_summary.format_go_time(entry.deployed), _render_refs(entry), deployed_by))
    return format_aligned_columns([("ID", "DATE", "REVISION", "BY"), *rows])


def render_wide_history(entries: Sequence[DeploymentRecord]) -> list[str]:
    """argo: One table per repository."""
    tables: dict[str, list[tuple[str, str, str]]] = {}
    for entry in entries:
        for source, revision in zip(entry.sources, entry.revisions):
            row = (str(entry.id), status_summary.format_go_time(entry.deployed), _render_ref(source, revision))
            tables.setdefault(str(source.get("repoURL") or ""), []).append(row)
    lines: list[str] = []
    for url, rows in tables.items():
        lines += [f"SOURCE{COLUMN_GAP}{url}", *format_aligned_columns([("ID", "DATE", "REVISION"), *rows]), ""]
    return lines[:-1]


def _render_refs(entry: DeploymentRecord) -> str:
    return ", ".join(_render_ref(source, revision) for source, revision in zip(entry.sources, entry.revisions))


def _render_ref(source: Mapping[str, Any], revision: str) -> str:
    ref = str(source.get("targetRevision") or "HEAD")
    return f"{ref} ({status_summary.shorten_revision(revision)})" if revision else ref
