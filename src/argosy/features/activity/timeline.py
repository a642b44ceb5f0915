"""Builds the activity timeline: syncs, promotions, Events, settings changes and audit records.

In: cached manifests, promotion history. Out: ActivityEntry values, newest first, filtered and paged. Never: I/O;
checks permissions: the caller passes only visible data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.features.promote.environments_board import HistoryEvent
from argosy.gitops.status.rollback_detection import find_restored_id_per_entry
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest

KINDS: Final = ("sync", "promotion", "event", "setting", "audit")
MAX_ENTRIES: Final = 2000  # on all pages
ENTRIES_PER_PAGE: Final = 50

# kind, namespace, name → (Application, its page)
FindOwningApplication = Callable[[str, str, str], tuple[str, str] | None]


@dataclass(frozen=True)
class ActivityEntry:
    time: str
    kind: str
    severity: str  # ok, info, warning, error
    title: str
    text: str
    app: str = ""
    url: str = ""
    who: str = ""
    count: int = 1
    revision: str = ""
    namespace: str = ""  # of the object that an Event is about

    @property
    def is_bad(self) -> bool:
        return self.severity in ("warning", "error")


@dataclass(frozen=True)
class ActivityFilter:
    kinds: tuple[str, ...] = ()
    app: str = ""
    severity: str = ""  # bad: only warnings and errors
    text: str = ""
    page: int = 1


@dataclass(frozen=True)
class ActivityTimeline:
    shown: tuple[ActivityEntry, ...]
    total: int  # entries that match the filters
    of: int
    page: int
    pages: int
    counts: tuple[tuple[str, int], ...]


def build_timeline(entries: Iterable[ActivityEntry], filters: ActivityFilter) -> ActivityTimeline:
    """Filter and page the entries. Counts ignore the kind filter, so that they show the result of a click."""
    all_entries = list(entries)
    matching_any_kind = [entry for entry in all_entries if _matches_except_kind(entry, filters)]
    matching = select_newest_entries(entry for entry in matching_any_kind if matches_filter(entry, filters))
    pages = max(1, -(-len(matching) // ENTRIES_PER_PAGE))
    page = min(max(1, filters.page), pages)
    count_by_kind = Counter(entry.kind for entry in matching_any_kind)
    shown = tuple(matching[(page - 1) * ENTRIES_PER_PAGE : page * ENTRIES_PER_PAGE])
    counts = tuple((kind, count_by_kind[kind]) for kind in KINDS)
    return ActivityTimeline(shown, len(matching), len(all_entries), page, pages, counts)


def select_newest_entries(entries: Iterable[ActivityEntry]) -> list[ActivityEntry]:
    """Return at most MAX_ENTRIES of the filtered entries, so that a busy Application hides no others."""
    return sorted(entries, key=lambda entry: entry.time, reverse=True)[:MAX_ENTRIES]


def matches_filter(entry: ActivityEntry, filters: ActivityFilter) -> bool:
    return (not filters.kinds or entry.kind in filters.kinds) and _matches_except_kind(entry, filters)


def _matches_except_kind(entry: ActivityEntry, filters: ActivityFilter) -> bool:
    if filters.app and entry.app != filters.app:
        return False
    if filters.severity == "bad" and not entry.is_bad:
        return False
    return not filters.text or filters.text.lower() in f"{entry.title} {entry.text} {entry.app} {entry.who}".lower()


def iterate_sync_entries(apps: Iterable[Manifest]) -> Iterator[ActivityEntry]:
    for app in apps:
        namespace, name = str(app["metadata"].get("namespace") or ""), str(app["metadata"]["name"])
        status, url = as_mapping(app.get("status")), f"/apps/{namespace}/{name}"
        history = as_mappings(status.get("history"))
        for deployed, rolled_back_to in zip(history, find_restored_id_per_entry(history), strict=True):
            title = "Synced" if rolled_back_to is None else "Rolled back"
            text = (
                f"{f'to deployment {rolled_back_to}, as ' if rolled_back_to is not None else ''}deployment "
                f"{deployed.get('id', '')}"
            )
            initiator = _read_initiator(as_mapping(deployed.get("initiatedBy")))
            revision = str(deployed.get("revision") or "")
            yield ActivityEntry(
                str(deployed.get("deployedAt") or ""),
                "sync",
                "ok" if rolled_back_to is None else "warning",
                title,
                text,
                name,
                f"{url}/history",
                initiator,
                revision=revision,
            )
        yield from _iterate_operation_entries(as_mapping(status.get("operationState")), name, url)


def _iterate_operation_entries(state: Mapping[str, Any], name: str, url: str) -> Iterator[ActivityEntry]:
    """Yield a running or failed operation, which is not in the history."""
    phase = str(state.get("phase") or "")
    if not phase or phase == "Succeeded":
        return
    is_over = phase in ("Failed", "Error")
    time = str(state.get("finishedAt") or state.get("startedAt") or "")
    initiator = _read_initiator(as_mapping(as_mapping(state.get("operation")).get("initiatedBy")))
    title, severity = (f"Sync {phase.lower()}", "error") if is_over else (f"Sync {phase.lower()}", "info")
    revision = str(as_mapping(state.get("syncResult")).get("revision") or "")
    message = str(state.get("message") or "")
    yield ActivityEntry(time, "sync", severity, title, message, name, f"{url}/operation", initiator, revision=revision)


def _read_initiator(initiated_by: Mapping[str, Any]) -> str:
    return "automatic" if initiated_by.get("automated") else str(initiated_by.get("username") or "")


def iterate_promotion_entries(log: Iterable[HistoryEvent]) -> Iterator[ActivityEntry]:
    for event in log:
        title = f"{event.action.capitalize()} {event.release}".strip()
        text = " · ".join(filter(None, (event.environment, event.text)))
        severity = "warning" if event.action in ("rollback", "reject", "hold") else "ok"
        yield ActivityEntry(
            event.time, "promotion", severity, title, text, "", "/environments", event.by, revision=event.commit
        )


def iterate_event_entries(events: Iterable[Manifest], find_owner: FindOwningApplication) -> Iterator[ActivityEntry]:
    """Yield Events of objects for which `find_owner` returns a result."""
    for event in events:
        involved = as_mapping(event.get("involvedObject"))
        kind, namespace, name = (str(involved.get(field) or "") for field in ("kind", "namespace", "name"))
        owner = find_owner(kind, namespace, name)
        if owner is None:
            continue
        app, url = owner
        series = as_mapping(event.get("series"))
        time = event.get("lastTimestamp") or series.get("lastObservedTime") or event.get("eventTime")
        count = event.get("count") or series.get("count") or 1
        source = as_mapping(event.get("source"))
        yield ActivityEntry(
            str(time or event["metadata"].get("creationTimestamp") or ""), "event",
            "warning" if event.get("type") == "Warning" else "info", f"{event.get('reason') or 'Event'}",
            f"{kind} {name}: {event.get('message') or ''}", app, url,
            str(event.get("reportingComponent") or source.get("component") or ""),
            count if isinstance(count, int) else 1, namespace=namespace,
        )  # fmt: skip


def iterate_settings_entries(manifests: Iterable[Manifest]) -> Iterator[ActivityEntry]:
    """k8s: managedFields has the last write time of each field manager."""
    for manifest in manifests:
        kind, name = str(manifest.get("kind") or ""), str(manifest["metadata"]["name"])
        for managed_fields in manifest["metadata"].get("managedFields") or ():
            writer = as_mapping(managed_fields)
            if writer.get("time") and writer.get("subresource") != "status":
                yield ActivityEntry(
                    str(writer["time"]),
                    "setting",
                    "info",
                    f"{kind} {name}",
                    "changed",
                    "",
                    _get_settings_path(kind, name),
                    str(writer.get("manager") or ""),
                )


def iterate_audit_entries(lines: Iterable[Mapping[str, Any]]) -> Iterator[ActivityEntry]:
    """Yield mutating requests to this server since it started."""
    for record in lines:
        result = str(record.get("result") or "")
        severity = {"done": "ok", "refused": "warning"}.get(result, "error")
        text = " · ".join(filter(None, (str(record.get("object") or ""), str(record.get("from") or ""))))
        action = str(record.get("what") or "")
        yield ActivityEntry(
            str(record.get("time") or ""),
            "audit",
            severity,
            action,
            f"{result} {text}".strip(),
            "",
            "",
            str(record.get("who") or ""),
            int(record.get("count") or 1),
        )


def _get_settings_path(kind: str, name: str) -> str:
    return f"/settings/projects/{name}" if kind == "AppProject" else "/settings"


def count_by_application(entries: Sequence[ActivityEntry]) -> list[tuple[str, int]]:
    """Count entries per Application, most first."""
    return Counter(entry.app for entry in entries if entry.app).most_common(50)
