"""Counters of one engine: reconciles, syncs, requests to clusters and to Git hosts.

In: events of an engine. Out: metric families under Argo CD's names. Never: a label per managed object.
"""

from __future__ import annotations

from typing import Final

from argosy.gitops.application import Application
from argosy.gitops.reconciler import Passed
from argosy.gitops.status.metrics import (
    ABOUT,
    SYNC_SECONDS,
    SYNCS,
    identity,
    of_operation,
    plain,
    seconds_of,
)
from argosy.gitops.status.wire_format import mapping
from argosy.kube.client.counting import Answered
from argosy.kube.names import ResourceKey
from argosy.observability.metrics import Counts, Family, Histogram

RECONCILING: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # argo: same buckets
ASKING_GIT: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
FAILURES: Final = {"fetch": "argocd_git_fetch_fail_total", "ls-remote": "argocd_git_lsremote_fail_total"}


class Measures:
    """Counters of one engine since its start."""

    def __init__(self) -> None:
        self._reconciles = Histogram("argocd_app_reconcile", RECONCILING, "Duration of reconciliations in seconds.")
        self._syncs = Counts(SYNCS, ABOUT[SYNCS])
        self._sync_seconds = Counts(SYNC_SECONDS, ABOUT[SYNC_SECONDS])
        self._requests = Counts("argocd_app_k8s_request_total", "Requests to clusters.")
        self._events = Counts("argocd_cluster_events_total", "Watch events received from clusters.")
        self._git = Counts("argocd_git_request_total", "Requests to Git hosts.")
        seconds = "argocd_git_request_duration_seconds"
        self._git_seconds = Histogram(seconds, ASKING_GIT, "Duration of requests to Git hosts in seconds.")
        about = "Failed requests to Git hosts."
        self._failures = {request: Counts(name, about) for request, name in FAILURES.items()}

    def passed(self, app: Application, passed: Passed, seconds: float) -> None:
        """Count one reconciliation of an Application, or one step of its operation."""
        labels = identity(app.wire)
        server = app.destination.server or labels["dest_server"]
        self._reconciles.observe(seconds, {"namespace": labels["namespace"], "dest_server": server})
        part = mapping(mapping((passed.patch or {}).get("status")).get("operationState"))
        if part.get("finishedAt"):
            state = {**mapping(app.status.get("operationState")), **part}
            known = {**labels, "dest_server": server}
            self._syncs.add({**known, **of_operation(state)})
            self._sync_seconds.add(known, seconds_of(state))

    def asked(self, server: str, asked: Answered) -> None:
        labels = {"server": server, "verb": asked.verb, "resource_kind": asked.kind, "response_code": str(asked.code)}
        self._requests.add({**labels, "dry_run": str(asked.is_dry).lower()})

    def heard(self, server: str) -> None:
        self._events.add({"server": server})

    def asked_git(self, repository: str, request: str, seconds: float, is_good: bool) -> None:
        labels = {"repo": plain(repository), "request_type": request}
        self._git.add(labels)
        self._git_seconds.observe(seconds, labels)
        if not is_good:
            self._failures[request].add({"repo": labels["repo"]})

    def forget(self, app: ResourceKey) -> None:
        """Drop the series of a deleted Application."""
        for each in (self._syncs, self._sync_seconds):
            each.forget(lambda labels: (labels["namespace"], labels["name"]) == (app.namespace, app.name))

    def families(self) -> list[Family]:
        counts = (self._syncs, self._sync_seconds, self._requests, self._events, self._git, *self._failures.values())
        return [*(each.family() for each in counts), self._reconciles.family(), self._git_seconds.family()]
