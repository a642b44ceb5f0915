"""Counters of one engine: reconciles, syncs, requests to clusters and to Git hosts.

In: events of an engine. Out: metric families under Argo CD's names. Never: a label per managed object.
"""

from __future__ import annotations

from typing import Final

from argosy.gitops.application import Application
from argosy.gitops.policy.destination_cluster_lookup import IN_CLUSTER_SERVER
from argosy.gitops.reconciler import ReconcileResult
from argosy.gitops.reconciler.remote_cluster_connection import RemoteCluster
from argosy.gitops.reconciler.request_owner import find_request_owner
from argosy.gitops.status.metrics import (
    METRIC_HELP,
    SYNC_SECONDS_METRIC,
    SYNCS_METRIC,
    build_app_labels,
    build_operation_labels,
    operation_seconds,
    remove_url_user,
)
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.client.call_metrics import RecordedCall
from argosy.kube.controller import EVERY_KIND, ChangeWatch
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION
from argosy.observability.metrics import Histogram, LabeledCounter, MetricFamily

RECONCILE_BUCKETS_SECONDS: Final = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)  # argo: same buckets
GIT_REQUEST_BUCKETS_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
GIT_FAILURE_METRICS: Final = {"fetch": "argocd_git_fetch_fail_total", "ls-remote": "argocd_git_lsremote_fail_total"}


class EngineCounters:
    """Counters of one engine since its start."""

    def __init__(self) -> None:
        self._reconciles = Histogram(
            "argocd_app_reconcile", RECONCILE_BUCKETS_SECONDS, "Duration of reconciliations in seconds."
        )
        self._syncs = LabeledCounter(SYNCS_METRIC, METRIC_HELP[SYNCS_METRIC])
        self._sync_seconds = LabeledCounter(SYNC_SECONDS_METRIC, METRIC_HELP[SYNC_SECONDS_METRIC])
        self._requests = LabeledCounter("argocd_app_k8s_request_total", "Requests to clusters.")
        self._events = LabeledCounter("argocd_cluster_events_total", "Watch events received from clusters.")
        self._git = LabeledCounter("argocd_git_request_total", "Requests to Git hosts.")
        metric_name = "argocd_git_request_duration_seconds"
        self._git_seconds = Histogram(
            metric_name, GIT_REQUEST_BUCKETS_SECONDS, "Duration of requests to Git hosts in seconds."
        )
        help_text = "Failed requests to Git hosts."
        self._failures = {request: LabeledCounter(name, help_text) for request, name in GIT_FAILURE_METRICS.items()}

    def count_reconcile(self, app: Application, result: ReconcileResult, seconds: float) -> None:
        """Count one reconciliation of an Application, or one step of its operation."""
        labels = build_app_labels(app.wire)
        server = app.destination.server or labels["dest_server"]
        self._reconciles.observe(seconds, {"namespace": labels["namespace"], "dest_server": server})
        state_patch = as_mapping(as_mapping((result.patch or {}).get("status")).get("operationState"))
        if state_patch.get("finishedAt"):
            state = {**as_mapping(app.status.get("operationState")), **state_patch}
            sync_labels = {**labels, "dest_server": server}
            self._syncs.add({**sync_labels, **build_operation_labels(state)})
            self._sync_seconds.add(sync_labels, operation_seconds(state))

    def count_request(self, server: str, call: RecordedCall) -> None:
        """Count a request. Requests that no operation needs, such as watches, have no labels of an Application."""
        labels = {"server": server, "verb": call.verb, "resource_kind": call.kind, "response_code": str(call.code)}
        labels["dry_run"] = str(call.is_dry_run).lower()
        if (app := find_request_owner()) is not None:
            labels |= {name: text for name, text in build_app_labels(app.wire).items() if name != "dest_server"}
            labels["resource_namespace"] = call.namespace
        self._requests.add(labels)

    @property
    def watches(self) -> tuple[ChangeWatch, ...]:
        return (
            self._build_event_watch(IN_CLUSTER_SERVER),
            ChangeWatch((APPLICATION,), self._on_application_change),
        )

    def build_remote_watches(self, remote: RemoteCluster) -> tuple[ChangeWatch, ...]:
        return (self._build_event_watch(remote.cluster.server),)

    def _build_event_watch(self, server: str) -> ChangeWatch:
        return ChangeWatch(EVERY_KIND, lambda before, after: self._events.add({"server": server}))

    def _on_application_change(self, before: Manifest | None, after: Manifest | None) -> None:
        if before is not None and after is None:
            self._drop_application(key_of(before))

    def count_git_request(self, repository: str, request: str, seconds: float, succeeded: bool) -> None:
        labels = {"repo": remove_url_user(repository), "request_type": request}
        self._git.add(labels)
        self._git_seconds.observe(seconds, labels)
        if not succeeded:
            self._failures[request].add({"repo": labels["repo"]})

    def _drop_application(self, app: ResourceKey) -> None:
        """Drop the series of a deleted Application."""
        for counter in (self._syncs, self._sync_seconds, self._requests):
            counter.remove_series(
                lambda labels: (labels.get("namespace"), labels.get("name")) == (app.namespace, app.name)
            )

    def families(self) -> list[MetricFamily]:
        counts = (self._syncs, self._sync_seconds, self._requests, self._events, self._git, *self._failures.values())
        return [
            *(counter.to_family() for counter in counts),
            self._reconciles.to_family(),
            self._git_seconds.to_family(),
        ]
