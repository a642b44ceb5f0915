"""Prometheus metrics of an engine and its process, under Argo CD's names.

In: an engine. Out: metric families. Never: a label per managed object; an Application of another controller.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from argosy import __version__
from argosy.gitops.application import read_destination
from argosy.gitops.engine.engine import Engine
from argosy.gitops.policy.destination_clusters import HERE, HERE_NAME
from argosy.gitops.reconciler.application_controller import APPLICATION
from argosy.gitops.status.metrics import (
    of_applications,
    server_of,
)
from argosy.isolation.health_report import ConfinementCheck
from argosy.kube.client.counting import Counted
from argosy.kube.controller import Cache
from argosy.kube.controller.informer_set import Everything
from argosy.kube.objects import Manifest, key_of
from argosy.observability.metrics import MOST_SERIES, Family, Sample, one

QUEUE: Final = "app_reconciliation_queue"  # argo: same name
CLUSTERS: Final = {
    "argocd_cluster_info": "Destination clusters.",
    "argocd_cluster_connection_status": "1 if the cluster is reachable.",
    "argocd_cluster_api_resources": "Watched kinds of a cluster.",
    "argocd_cluster_api_resource_objects": "Cached objects of a cluster.",
    "argocd_cluster_cache_age_seconds": "Seconds since the last event of a cluster.",
}


def of_engine(engine: Engine) -> Iterator[Family]:
    clusters = engine.settings.rules().clusters

    def server(destination: Mapping[str, Any]) -> str:
        server, name = (str(destination.get(part) or "") for part in ("server", "name"))
        known = clusters.find(read_destination(server, name))
        return known.server if known is not None else server_of(destination)

    ours = _ours(engine)
    yield from of_applications(ours, server)
    yield from engine.measures.families()
    yield from _of_clusters(engine)
    yield from _of_queue(engine)
    yield from of_confinement(engine.confinement)
    every = len(engine.cache.keys(APPLICATION))
    yield one("argosy_applications", "gauge", "Applications in the cluster.", every)
    yield one("argosy_shard_applications", "gauge", "Applications that this controller owns.", len(ours))
    if engine.sharing is not None:
        members = engine.sharing.members
        about = "1 if the member Lease of this controller is valid."
        yield one("argosy_member", "gauge", about, int(members.is_valid()), member=members.identity)
        yield one("argosy_members", "gauge", "Controllers that share the Applications.", len(members.roster))


def of_confinement(check: ConfinementCheck) -> Iterator[Family]:
    about = "1 if untrusted code is refused when it cannot be confined."
    yield one("argosy_confinement_required", "gauge", about, int(check.is_required))
    samples = [Sample({"protection": name}, int(holds)) for name, holds in check.protections().items()]
    yield Family("argosy_confinement", "gauge", "1 if the protection for untrusted code is active.", samples)


def _ours(engine: Engine) -> list[Manifest]:
    found = engine.cache.list(APPLICATION)
    claims = engine.controller.claims
    return list(found) if claims is None else [app for app in found if claims.has(key_of(app))]


def _of_queue(engine: Engine) -> Iterator[Family]:
    queue = engine.queue
    yield one("workqueue_depth", "gauge", "Applications that wait for a worker.", len(queue), name=QUEUE)
    yield one("workqueue_adds_total", "counter", "Additions to the queue.", queue.added, name=QUEUE)
    yield one("workqueue_retries_total", "counter", "Retries.", queue.retried, name=QUEUE)
    about = "Duration of the longest running reconciliation in seconds."
    yield one("workqueue_longest_running_processor_seconds", "gauge", about, queue.longest[1], name=QUEUE)
    about = "Age of the oldest queued item in seconds."
    yield one("argosy_workqueue_oldest_seconds", "gauge", about, queue.oldest, name=QUEUE)
    yield one("argosy_workers", "gauge", "Live workers.", queue.workers)
    depths = {"passes": queue.depths(), "renders": engine.crew.depths(), "scripts": engine.pool.depths()}
    samples = [
        Sample({"project": project, "queue": name}, depth)
        for name, projects in depths.items()
        for project, depth in sorted(projects.items())[:MOST_SERIES]
    ]
    about = "Queued reconciliations, renders and scripts, by project."
    yield Family("argosy_project_queue_depth", "gauge", about, samples)


class _Row(NamedTuple):
    """One cluster with its informers, if it is reachable."""

    known: Mapping[str, str]
    is_up: bool
    watched: tuple[Counted, Everything, Cache] | None


def _of_clusters(engine: Engine) -> Iterator[Family]:
    here = {"server": HERE, "name": HERE_NAME}
    rows = [_Row(here, not engine.is_silent(), (engine.heard, engine.everything, engine.cache))]
    for each in engine.grounds.outposts:
        known = {"server": each.known.server, "name": each.known.name}
        watched = None if each.following is None else (*each.following, each.cache)
        rows += [_Row(known, each.ground is not None, watched)]
    now = engine.clock.monotonic()
    samples: dict[str, list[Sample]] = {name: [] for name in CLUSTERS}
    for row in rows:
        server = {"server": row.known["server"]}
        samples["argocd_cluster_info"] += [Sample(row.known, 1)]
        samples["argocd_cluster_connection_status"] += [Sample(server, int(row.is_up))]
        if row.watched is not None:
            counted, everything, cache = row.watched
            samples["argocd_cluster_api_resources"] += [Sample(server, len(everything.kinds))]
            samples["argocd_cluster_api_resource_objects"] += [Sample(server, cache.count())]
            samples["argocd_cluster_cache_age_seconds"] += [Sample(server, now - counted.heard_at)]
    for name, about in CLUSTERS.items():
        yield Family(name, "gauge", about, samples[name])


def of_process() -> Iterator[Family]:
    """Yield process metrics under the names of Prometheus' client libraries."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    yield one("argosy_info", "gauge", "Version of argosy.", 1, version=f"v{__version__}")
    about = "CPU time used in seconds."
    yield one("process_cpu_seconds_total", "counter", about, used.ru_utime + used.ru_stime)
    yield one("process_resident_memory_bytes", "gauge", "Resident memory in bytes.", _resident(used.ru_maxrss * 1024))
    yield one("process_start_time_seconds", "gauge", "Start time of the process.", BEGAN)
    if (files := Path("/proc/self/fd")).is_dir():
        yield one("process_open_fds", "gauge", "Open file descriptors.", len(os.listdir(files)))


def _resident(at_most: int) -> int:
    """Return the current resident memory if the system reports it, else the maximum."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return at_most


BEGAN: Final = time.time()
