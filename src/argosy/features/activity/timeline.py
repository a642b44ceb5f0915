"""Builds the activity timeline: syncs, promotions, Events, settings changes and audit records.

In: cached manifests, promotion history. Out: ActivityEntry values, newest first, filtered and paged. Never: I/O;
checks permissions: the caller passes only visible data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from argosy.features.promote.board import Happened
from argosy.gitops.status.rollback import gone_back
from argosy.gitops.status.wire_format import mapping, mappings
from argosy.kube.objects import Manifest

KINDS: Final = ("sync", "promotion", "event", "setting", "audit")
MOST: Final = 2000  # on all pages
PAGE: Final = 50

Whose = Callable[[str, str, str], tuple[str, str] | None]  # kind, namespace, name → (Application, its page)


@dataclass(frozen=True)
class Happening:
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
class Wanted:
    kinds: tuple[str, ...] = ()
    app: str = ""
    severity: str = ""  # bad: only warnings and errors
    text: str = ""
    page: int = 1


@dataclass(frozen=True)
class Timeline:
    shown: tuple[Happening, ...]
    total: int  # entries that match the filters
    of: int
    page: int
    pages: int
    counts: tuple[tuple[str, int], ...]


def timeline(found: Iterable[Happening], wanted: Wanted) -> Timeline:
    """Filter and page the entries. Counts ignore the kind filter, so that they show the result of a click."""
    everything = list(found)
    others = [each for each in everything if _fits(each, wanted)]
    fitting = newest(each for each in others if fits(each, wanted))
    pages = max(1, -(-len(fitting) // PAGE))
    page = min(max(1, wanted.page), pages)
    counted = Counter(each.kind for each in others)
    shown = tuple(fitting[(page - 1) * PAGE : page * PAGE])
    counts = tuple((kind, counted[kind]) for kind in KINDS)
    return Timeline(shown, len(fitting), len(everything), page, pages, counts)


def newest(found: Iterable[Happening]) -> list[Happening]:
    """Return at most MAX_ENTRIES of the filtered entries, so that a busy Application hides no others."""
    return sorted(found, key=lambda each: each.time, reverse=True)[:MOST]


def fits(each: Happening, wanted: Wanted) -> bool:
    return (not wanted.kinds or each.kind in wanted.kinds) and _fits(each, wanted)


def _fits(each: Happening, wanted: Wanted) -> bool:
    if wanted.app and each.app != wanted.app:
        return False
    if wanted.severity == "bad" and not each.is_bad:
        return False
    return not wanted.text or wanted.text.lower() in f"{each.title} {each.text} {each.app} {each.who}".lower()


def of_applications(apps: Iterable[Manifest]) -> Iterator[Happening]:
    for app in apps:
        namespace, name = str(app["metadata"].get("namespace") or ""), str(app["metadata"]["name"])
        status, url = mapping(app.get("status")), f"/apps/{namespace}/{name}"
        history = mappings(status.get("history"))
        for deployed, back in zip(history, gone_back(history), strict=True):
            title = "Synced" if back is None else "Rolled back"
            text = f"{f'to deployment {back}, as ' if back is not None else ''}deployment {deployed.get('id', '')}"
            by = _initiator(mapping(deployed.get("initiatedBy")))
            revision = str(deployed.get("revision") or "")
            yield Happening(
                str(deployed.get("deployedAt") or ""), "sync", "ok" if back is None else "warning", title, text,
                name, f"{url}/history", by, revision=revision,
            )  # fmt: skip
        yield from _operation(mapping(status.get("operationState")), name, url)


def _operation(state: Mapping[str, Any], name: str, url: str) -> Iterator[Happening]:
    """Yield a running or failed operation, which is not in the history."""
    phase = str(state.get("phase") or "")
    if not phase or phase == "Succeeded":
        return
    is_over = phase in ("Failed", "Error")
    time = str(state.get("finishedAt") or state.get("startedAt") or "")
    by = _initiator(mapping(mapping(state.get("operation")).get("initiatedBy")))
    title, severity = (f"Sync {phase.lower()}", "error") if is_over else (f"Sync {phase.lower()}", "info")
    revision = str(mapping(state.get("syncResult")).get("revision") or "")
    message = str(state.get("message") or "")
    yield Happening(time, "sync", severity, title, message, name, f"{url}/operation", by, revision=revision)


def _initiator(by: Mapping[str, Any]) -> str:
    return "automatic" if by.get("automated") else str(by.get("username") or "")


def of_promotions(log: Iterable[Happened]) -> Iterator[Happening]:
    for each in log:
        title = f"{each.action.capitalize()} {each.release}".strip()
        text = " · ".join(filter(None, (each.environment, each.text)))
        severity = "warning" if each.action in ("rollback", "reject", "hold") else "ok"
        yield Happening(
            each.time, "promotion", severity, title, text, "", "/environments", each.by, revision=each.commit
        )


def of_events(events: Iterable[Manifest], whose: Whose) -> Iterator[Happening]:
    """Yield Events of objects for which `find_owner` returns a result."""
    for event in events:
        about = mapping(event.get("involvedObject"))
        kind, namespace, name = (str(about.get(field) or "") for field in ("kind", "namespace", "name"))
        found = whose(kind, namespace, name)
        if found is None:
            continue
        app, url = found
        series = mapping(event.get("series"))
        time = event.get("lastTimestamp") or series.get("lastObservedTime") or event.get("eventTime")
        count = event.get("count") or series.get("count") or 1
        source = mapping(event.get("source"))
        yield Happening(
            str(time or event["metadata"].get("creationTimestamp") or ""), "event",
            "warning" if event.get("type") == "Warning" else "info", f"{event.get('reason') or 'Event'}",
            f"{kind} {name}: {event.get('message') or ''}", app, url,
            str(event.get("reportingComponent") or source.get("component") or ""),
            count if isinstance(count, int) else 1, namespace=namespace,
        )  # fmt: skip


def of_settings(manifests: Iterable[Manifest]) -> Iterator[Happening]:
    """k8s: managedFields has the last write time of each field manager."""
    for manifest in manifests:
        kind, name = str(manifest.get("kind") or ""), str(manifest["metadata"]["name"])
        for each in manifest["metadata"].get("managedFields") or ():
            wrote = mapping(each)
            if wrote.get("time") and wrote.get("subresource") != "status":
                yield Happening(
                    str(wrote["time"]), "setting", "info", f"{kind} {name}", "changed", "", _page_of(kind, name),
                    str(wrote.get("manager") or ""),
                )  # fmt: skip


def of_audit(lines: Iterable[Mapping[str, Any]]) -> Iterator[Happening]:
    """Yield mutating requests to this server since it started."""
    for each in lines:
        result = str(each.get("result") or "")
        severity = {"done": "ok", "refused": "warning"}.get(result, "error")
        text = " · ".join(filter(None, (str(each.get("object") or ""), str(each.get("from") or ""))))
        what = str(each.get("what") or "")
        yield Happening(str(each.get("time") or ""), "audit", severity, what, f"{result} {text}".strip(), "", "",
                        str(each.get("who") or ""), int(each.get("count") or 1))  # fmt: skip


def _page_of(kind: str, name: str) -> str:
    return f"/settings/projects/{name}" if kind == "AppProject" else "/settings"


def apps_of(found: Sequence[Happening]) -> list[tuple[str, int]]:
    """Count entries per Application, most first."""
    return Counter(each.app for each in found if each.app).most_common(50)
