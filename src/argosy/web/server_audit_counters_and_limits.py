"""State that one server process keeps between requests and that several routes and the middleware share.

In: nothing. Out: ServerState, built once at start-up. Never: state of one feature alone, which its routes are built
with; a raw path in a counter.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from argosy.gitops.application_client.drift_attribution import DriftTextCache
from argosy.gitops.status.metrics import build_app_labels, build_operation_labels
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest
from argosy.observability.metrics import Sample
from argosy.web.recent_audit_lines import AuditTrail
from argosy.web.request_limits import ConcurrencyLimits


class RequestCounter:
    """Counts handled requests by method, path of the route, and code."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()

    def count_request(self, route_path: str, method: str, code: int) -> None:
        method_label = method if method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE") else "other"
        self.requests[(method_label, route_path, code)] += 1


class SyncCounter:
    """Counts finished operations. Operations that ended before the first call are not counted."""

    def __init__(self) -> None:
        self._finished_at: dict[tuple[str, str], str] = {}  # finishedAt of the last operation of each
        self._counts: Counter[tuple[tuple[str, str], ...]] = Counter()
        self._has_started = False

    def count_syncs(self, apps: Iterable[Manifest]) -> list[Sample]:
        for app in apps:
            state = as_mapping(as_mapping(app.get("status")).get("operationState"))
            finished_at = str(state.get("finishedAt") or "")
            app_key = (app["metadata"]["namespace"], app["metadata"]["name"])
            if finished_at and self._finished_at.get(app_key) != finished_at:
                self._finished_at[app_key] = finished_at
                if self._has_started:
                    self._counts[tuple({**build_app_labels(app), **build_operation_labels(state)}.items())] += 1
        self._has_started = True
        return [Sample(dict(labels), count) for labels, count in sorted(self._counts.items())]


@dataclass(frozen=True)
class ServerState:
    audit_trail: AuditTrail = field(default_factory=AuditTrail)
    concurrency_limits: ConcurrencyLimits = field(default_factory=ConcurrencyLimits)
    request_counter: RequestCounter = field(default_factory=RequestCounter)
    sync_counter: SyncCounter = field(default_factory=SyncCounter)
    drift_texts: DriftTextCache = field(default_factory=DriftTextCache)  # of Applications that a page compared
