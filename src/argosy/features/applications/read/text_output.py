"""Render Applications as text: lists, details, operations and history.

In: Applications, drift texts and delays. Out: lines. Never: prints; calls a cluster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from argosy.cli.tables import WHY, Screen, aligned, cut, plain, shown_width
from argosy.gitops.application import Application, OperationState
from argosy.gitops.application_client import summary
from argosy.gitops.application_client.summary import Row
from argosy.gitops.policy.delivery_engine import Engines
from argosy.gitops.status.history import Deployment
from argosy.gitops.status.hold import read_hold
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.names import ResourceKey

GAP: Final = "  "
UNDER: Final = "  └ "
SHORTEST: Final = 20
NO_DELAYS: Final[Mapping[ResourceKey, str]] = {}
MAX_WHY_LENGTH: Final = 300  # characters of WHY in a list, however wide the output is
MOST_REASONS: Final = 5  # objects listed as reasons for the health
WIDE: Final = (
    "NAME", "CLUSTER", "NAMESPACE", "PROJECT", "STATUS", "HEALTH", "SYNCPOLICY", "CONDITIONS", "REPO", "PATH", "TARGET",
)  # fmt: skip
NATIVE: Final = ("NAME", "STATUS", "HEALTH", "WHY", "REVISION", "SYNCPOLICY", "AGE")
DELIVERED: Final = "DELIVERED BY"
OBJECTS: Final = ("GROUP", "KIND", "NAMESPACE", "NAME", "STATUS", "HEALTH", "HOOK", "MESSAGE")


# -- lists ---------------------------------------------------------------------------------------------------------


def wide_lines(
    apps: Sequence[Application],
    found: Mapping[ResourceKey, str] | None = None,
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
                summary.sync_word(app),
                summary.health_word(app),
                summary.policy_word(app),
                summary.conditions_word(app),
                source.repo_url if source else "",
                (source.path or source.chart) if source else "",
                source.ref if source else "",
                *(() if found is None else (summary.why(app, found.get(app.key, ""), delays.get(app.key, "")),)),
            )
        )
    if found is None:
        return aligned([WIDE, *rows])
    return [line.rstrip() for line in aligned([(*WIDE, WHY), *rows])]


def list_lines(
    apps: Sequence[Application],
    screen: Screen,
    now: datetime,
    home: str,
    found: Mapping[ResourceKey, str] | None = None,
    engines: Engines | None = None,
    delays: Mapping[ResourceKey, str] = NO_DELAYS,
) -> list[str]:
    """Render status and reason of each Application, and its delivery engine if an Argo CD watches a namespace, too.

    WHY is truncated to the width of a terminal, so that each Application has one row, else to MAX_WHY_LENGTH
    characters; `render_wide_list` does not truncate it.
    """
    if engines is not None and not any(engines.over(app.namespace) for app in apps):
        engines = None
    names = NATIVE if engines is None else (*NATIVE, DELIVERED)
    rows = []
    for app in apps:
        name = app.name if app.namespace == home else f"{app.namespace}/{app.name}"
        hold = read_hold(app.annotations) is not None
        why = summary.why(app, (found or {}).get(app.key, ""), delays.get(app.key, ""))
        rows.append(
            (
                name,
                screen.mark(summary.sync_word(app)),
                screen.mark(summary.health_word(app)),
                cut(plain(why), MAX_WHY_LENGTH),
                ",".join(map(summary.short, summary.revisions(app))) or "-",
                f"{summary.policy_word(app)}{' (held)' if hold else ''}",
                summary.age(summary.created(app), now),
                *(() if engines is None else (engines.deliverer(app.annotations, app.namespace).value,)),
            )
        )
    shown = screen.table(names, rows)
    if screen.width is None or all(shown_width(line) <= screen.width for line in shown):
        return shown
    return _with_causes_below(names, rows, screen, screen.width)


def _with_causes_below(names: Sequence[str], rows: Sequence[Sequence[str]], screen: Screen, width: int) -> list[str]:
    """Show WHY on a line below each row, truncated to the width, if the column does not fit."""
    place = names.index(WHY)
    slim = [[*row[:place], *row[place + 1 :]] for row in (names, *rows)]
    head, *lines = screen.table(slim[0], slim[1:])
    shown = [head]
    for line, row in zip(lines, rows, strict=True):
        cause = plain(row[place])
        shown += [line, *([f"{UNDER}{cut(cause, max(width - len(UNDER), SHORTEST))}"] if cause else [])]
    return shown


def summary_line(apps: Sequence[Application]) -> str:
    synced = sum(1 for app in apps if summary.sync_word(app) == "Synced")
    needs = [app for app in apps if summary.sync_word(app) != "Synced" or summary.health_word(app) != "Healthy"]
    counted = f"{len(apps)} app{'' if len(apps) == 1 else 's'} · {synced} Synced · {len(apps) - synced} not"
    return f"{counted}          next: {_first_look(needs)}" if needs else counted


def _first_look(needs: Sequence[Application]) -> str:
    """Return the command for the first unhealthy Application, else for an OutOfSync one, else for a missing one."""
    ill = [app for app in needs if summary.health_word(app) not in ("Healthy", "Missing")]
    differing = [app for app in needs if summary.is_only_differing(app)]
    if differing and not ill:
        return f"argosy app diff {differing[0].name}"
    return f"argosy app get {(ill or needs)[0].name}"


# -- one -----------------------------------------------------------------------------------------------------------


def field(name: str, value: str) -> str:
    return f"{name:<20}{value}".rstrip()


def block_lines(app: Application, window: str, reasons: Sequence[str] = (), delivered: str = "") -> list[str]:
    """argo: The part of get above the table, without URL because there is no server."""
    destination = app.destination
    lines = [
        field("Name:", f"{app.namespace}/{app.name}"),
        field("Project:", app.project),
        field("Server:", destination.server or destination.name),
        field("Namespace:", destination.namespace),
        *_labels(app),
        "Sources:" if len(app.sources) > 1 else "Source:",
    ]
    for source in app.sources:
        lines.append(field("- Repo:", source.repo_url))
        lines.append(field("  Target:", source.ref))
        lines += [field("  Ref:", source.alias)] if source.alias else []
        lines += [field("  Chart:", source.chart)] if source.chart else []
        lines += [field("  Path:", source.path)] if source.path else []
        lines += tool_lines(source.wire)
    lines.append(field("SyncWindow:", window))
    lines.append(field("Sync Policy:", policy_word(app)))
    if (hold := read_hold(app.annotations)) is not None:
        who = f" by {hold.by}" if hold.by else ""
        lines.append(field("Held:", f"since {hold.at or '?'}{who}{f': {hold.reason}' if hold.reason else ''}"))
    lines += [field("Delivered by:", delivered)] if delivered else []
    lines.append(field("Sync Status:", _sync(app)))
    message = summary.health_message(app)
    lines.append(field("Health Status:", f"{summary.health_word(app)}{f' ({message})' if message else ''}"))
    lines += [field("Why:" if not place else "", plain(reason)) for place, reason in enumerate(reasons[:MOST_REASONS])]
    return lines + condition_lines(app)


def _labels(app: Application) -> list[str]:
    labels = summary.labels(app)
    return [field("Labels:", ",".join(f"{name}={value}" for name, value in sorted(labels.items())))] if labels else []


def tool_lines(wire: Mapping[str, Any]) -> list[str]:
    """argo: The options of tools that get shows."""
    helm, kustomize = mapping(wire.get("helm")), mapping(wire.get("kustomize"))
    lines = []
    if helm.get("valueFiles"):
        lines.append(field("  Helm Values:", ",".join(map(str, helm["valueFiles"]))))
    if kustomize.get("namePrefix"):
        lines.append(field("  Name Prefix:", str(kustomize["namePrefix"])))
    return lines


def policy_word(app: Application) -> str:
    automated = app.policy.automated
    if automated is None or not automated.is_on:
        return "Manual"
    return "Automated (Prune)" if automated.prune else "Automated"


def _sync(app: Application) -> str:
    word, ref = summary.sync_word(app), app.sources[0].ref if app.sources else ""
    found = summary.revisions(app)
    at = f" ({summary.short(found[0])})" if found else ""
    if len(app.sources) > 1:
        return word
    between = {"Synced": "to", "OutOfSync": "from"}.get(word)
    return f"{word} {between} {ref}{at}" if between else word


def condition_lines(app: Application) -> list[str]:
    conditions = mappings(app.status.get("conditions"))
    if not conditions:
        return []
    rows = [
        (str(each.get("type")), str(each.get("message")), summary.go_time(str(each.get("lastTransitionTime") or "")))
        for each in conditions
    ]
    return ["", *aligned([("CONDITION", "MESSAGE", "LAST TRANSITION"), *rows])]


def operation_lines(state: OperationState) -> list[str]:
    """argo: The last operation."""
    lines = [
        field("Operation:", "Sync"),
        field("Sync Revision:", state.revision or ", ".join(state.revisions)),
        field("Phase:", state.progress.value),
        field("Start:", summary.go_time(state.started)),
        field("Finished:", summary.go_time(state.finished) if state.finished else ""),
        field("Duration:", _duration(state)),
    ]
    return [*lines, *([field("Message:", state.message)] if state.message else [])]


def _duration(state: OperationState) -> str:
    try:
        began = datetime.fromisoformat(state.started)
        ended = datetime.fromisoformat(state.finished) if state.finished else datetime.now(UTC)
    except ValueError:
        return ""
    return f"{max(int((ended - began).total_seconds()), 0)}s"


def object_lines(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    return aligned([OBJECTS, *(object_cells(row) for row in rows)])


def object_cells(row: Row) -> tuple[str, ...]:
    key = row.key
    return key.group, key.kind, key.namespace, key.name, row.status, row.health, row.hook, row.message


# -- history -------------------------------------------------------------------------------------------------------


def history_lines(entries: Sequence[Deployment]) -> list[str]:
    rows = []
    for entry in entries:
        who = "auto-sync" if entry.is_automated else entry.by or "-"
        rows.append((str(entry.id), summary.go_time(entry.deployed), _refs(entry), who))
    return aligned([("ID", "DATE", "REVISION", "BY"), *rows])


def wide_history_lines(entries: Sequence[Deployment]) -> list[str]:
    """argo: One table per repository."""
    tables: dict[str, list[tuple[str, str, str]]] = {}
    for entry in entries:
        for source, revision in zip(entry.sources, entry.revisions):
            row = (str(entry.id), summary.go_time(entry.deployed), _ref(source, revision))
            tables.setdefault(str(source.get("repoURL") or ""), []).append(row)
    lines: list[str] = []
    for url, rows in tables.items():
        lines += [f"SOURCE{GAP}{url}", *aligned([("ID", "DATE", "REVISION"), *rows]), ""]
    return lines[:-1]


def _refs(entry: Deployment) -> str:
    return ", ".join(_ref(source, revision) for source, revision in zip(entry.sources, entry.revisions))


def _ref(source: Mapping[str, Any], revision: str) -> str:
    ref = str(source.get("targetRevision") or "HEAD")
    return f"{ref} ({summary.short(revision)})" if revision else ref
