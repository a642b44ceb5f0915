"""Prometheus metrics of an engine and its process, under Argo CD's names.

In: an engine. Out: metric families. Never: a label per managed object; an Application of another controller.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from argosy import __version__
from argosy.gitops.application import read_destination
from argosy.gitops.engine.engine import Engine
from argosy.gitops.policy.destination_cluster_lookup import IN_CLUSTER_NAME, IN_CLUSTER_SERVER
from argosy.gitops.reconciler.watched_cluster import WatchedCluster
from argosy.gitops.status.metrics import (
    METRIC_HELP,
    ORPHANS_METRIC,
    build_app_labels,
    build_application_metrics,
    read_destination_server,
)
from argosy.isolation.confinement_health import ConfinementCheck
from argosy.kube.objects import Manifest, key_of
from argosy.kube.well_known_kinds import APPLICATION
from argosy.observability.metrics import MAX_SERIES, MetricFamily, Sample, build_family
from argosy.observability.process_memory import read_resident_bytes

QUEUE_NAME: Final = "app_reconciliation_queue"  # argo: same name
CLUSTER_METRICS: Final = {
    "argocd_cluster_info": "Destination clusters.",
    "argocd_cluster_connection_status": "1 if the cluster is reachable.",
    "argocd_cluster_api_resources": "Watched kinds of a cluster.",
    "argocd_cluster_api_resource_objects": "Cached objects of a cluster.",
    "argocd_cluster_cache_age_seconds": "Seconds since the last event of a cluster.",
}


def collect_engine_metrics(engine: Engine) -> Iterator[MetricFamily]:
    clusters = engine.settings.current_settings().clusters

    def resolve_server(destination: Mapping[str, Any]) -> str:
        server_url, name = (str(destination.get(part) or "") for part in ("server", "name"))
        cluster = clusters.find(read_destination(server_url, name))
        return cluster.server if cluster is not None else read_destination_server(destination)

    own_apps = _list_own_apps(engine)
    yield from build_application_metrics(own_apps, resolve_server, engine.options.condition_types)
    yield _collect_orphan_counts(engine, own_apps)
    yield from engine.counters.families()
    yield from _collect_cluster_metrics(engine)
    yield from _collect_queue_metrics(engine)
    yield from collect_confinement_metrics(engine.confinement)
    total = len(engine.cache.keys(APPLICATION))
    yield build_family("argosy_applications", "gauge", "Applications in the cluster.", total)
    yield build_family("argosy_shard_applications", "gauge", "Applications that this controller owns.", len(own_apps))
    if engine.sharding is not None:
        members = engine.sharding.members
        help_text = "1 if the member Lease of this controller is valid."
        yield build_family("argosy_member", "gauge", help_text, int(members.is_valid()), member=members.identity)
        yield build_family("argosy_members", "gauge", "Controllers that share the Applications.", len(members.roster))


def collect_confinement_metrics(check: ConfinementCheck) -> Iterator[MetricFamily]:
    help_text = "1 if untrusted code is refused when it cannot be confined."
    yield build_family("argosy_confinement_required", "gauge", help_text, int(check.is_required))
    samples = [Sample({"protection": name}, int(is_active)) for name, is_active in check.get_protections().items()]
    yield MetricFamily("argosy_confinement", "gauge", "1 if the protection for untrusted code is active.", samples)


def _list_own_apps(engine: Engine) -> list[Manifest]:
    apps = engine.cache.list(APPLICATION)
    claims = engine.controller.claims
    return list(apps) if claims is None else [app for app in apps if claims.is_owned(key_of(app))]


def _collect_orphan_counts(engine: Engine, own_apps: Sequence[Manifest]) -> MetricFamily:
    samples = []
    for app in own_apps:
        memo = engine.controller.memos.find(key_of(app))
        if memo is not None and memo.orphan_count is not None:
            labels = build_app_labels(app)
            del labels["dest_server"]  # argo: without it
            samples.append(Sample(labels, memo.orphan_count))
    return MetricFamily(ORPHANS_METRIC, "gauge", METRIC_HELP[ORPHANS_METRIC], samples)


def _collect_queue_metrics(engine: Engine) -> Iterator[MetricFamily]:
    queue = engine.queue
    yield build_family("workqueue_depth", "gauge", "Applications that wait for a worker.", len(queue), name=QUEUE_NAME)
    yield build_family("workqueue_adds_total", "counter", "Additions to the queue.", queue.added_count, name=QUEUE_NAME)
    yield build_family("workqueue_retries_total", "counter", "Retries.", queue.retried_count, name=QUEUE_NAME)
    help_text = "Duration of the longest running reconciliation in seconds."
    yield build_family(
        "workqueue_longest_running_processor_seconds", "gauge", help_text, queue.longest_processing[1], name=QUEUE_NAME
    )
    help_text = "Age of the oldest queued item in seconds."
    yield build_family(
        "argosy_workqueue_oldest_seconds", "gauge", help_text, queue.oldest_wait_seconds, name=QUEUE_NAME
    )
    yield build_family("argosy_workers", "gauge", "Live workers.", queue.worker_count)
    depths = {
        "passes": queue.list_depths(),
        "renders": engine.render_pool.list_depths(),
        "scripts": engine.pool.list_depths(),
    }
    samples = [
        Sample({"project": project, "queue": name}, depth)
        for name, projects in depths.items()
        for project, depth in sorted(projects.items())[:MAX_SERIES]
    ]
    help_text = "Queued reconciliations, renders and scripts, by project."
    yield MetricFamily("argosy_project_queue_depth", "gauge", help_text, samples)


class _ClusterMetricsRow(NamedTuple):
    """One cluster with its informers, if it is reachable."""

    labels: Mapping[str, str]
    is_reachable: bool
    watched: WatchedCluster | None


def _collect_cluster_metrics(engine: Engine) -> Iterator[MetricFamily]:
    local_labels = {"server": IN_CLUSTER_SERVER, "name": IN_CLUSTER_NAME}
    rows = [_ClusterMetricsRow(local_labels, not engine.is_silent(), engine.watched)]
    for remote in engine.clusters.remotes:
        labels = {"server": remote.cluster.server, "name": remote.cluster.name}
        rows += [_ClusterMetricsRow(labels, remote.destination is not None, remote.watched)]
    now = engine.clock.monotonic()
    samples: dict[str, list[Sample]] = {name: [] for name in CLUSTER_METRICS}
    for row in rows:
        server = {"server": row.labels["server"]}
        samples["argocd_cluster_info"] += [Sample(row.labels, 1)]
        samples["argocd_cluster_connection_status"] += [Sample(server, int(row.is_reachable))]
        if (watched := row.watched) is not None:
            samples["argocd_cluster_api_resources"] += [Sample(server, len(watched.informers.watched_kinds))]
            samples["argocd_cluster_api_resource_objects"] += [Sample(server, watched.cache.count())]
            samples["argocd_cluster_cache_age_seconds"] += [Sample(server, now - watched.recorder.last_update_at)]
    for name, help_text in CLUSTER_METRICS.items():
        yield MetricFamily(name, "gauge", help_text, samples[name])


def collect_process_metrics() -> Iterator[MetricFamily]:
    """Yield process metrics under the names of Prometheus' client libraries."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    yield build_family("argosy_info", "gauge", "Version of argosy.", 1, version=f"v{__version__}")
    help_text = "CPU time used in seconds."
    yield build_family("process_cpu_seconds_total", "counter", help_text, usage.ru_utime + usage.ru_stime)
    yield build_family("process_resident_memory_bytes", "gauge", "Resident memory in bytes.", read_resident_bytes())
    yield build_family("process_start_time_seconds", "gauge", "Start time of the process.", PROCESS_START_TIME)
    if (fd_folder := Path("/proc/self/fd")).is_dir():
        yield build_family("process_open_fds", "gauge", "Open file descriptors.", len(os.listdir(fd_folder)))


PROCESS_START_TIME: Final = time.time()
