"""Maintains the placeholder Pods of local runs and serves their logs.

In: the key of a job; a Pod. Out: one Pod per job with a matching status; log lines. Never: acts on a run; touches Pods
of others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Final

from argosy.annotations import NOTEBOOK_RUN
from argosy.errors import ClusterError, Conflict
from argosy.features.notebooks.local_runs import LocalRuns
from argosy.features.notebooks.local_runs.placeholder_pod_manifest import (
    build_pod,
    build_run_id,
    build_status,
    is_placeholder_pod,
    render_log_lines,
)
from argosy.features.notebooks.notebook_validation_job_parser import read_job
from argosy.features.notebooks.pod_runs.object_metadata import pod_key
from argosy.kube.client import Cluster
from argosy.kube.controller import ControllerContext, Requeue, Watch, itself, map_to_owner
from argosy.kube.objects import Manifest, get_annotation, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import NOTEBOOK_JOB

MANAGER: Final = "notebooks"
POLL_INTERVAL_SECONDS: Final = 0.2  # seconds between polls of a followed run
CONFLICT_REQUEUE: Final = Requeue(0.05)
log = logging.getLogger(__name__)


class PlaceholderPodController:
    """Implements Controller and SelectivePodLogReader. Remembers created Pods, so that deleted ones stay deleted."""

    name = "notebook-pods"

    def __init__(self, runs: LocalRuns) -> None:
        self.watches = (Watch(NOTEBOOK_JOB, itself),)
        self._runs = runs
        self._created_runs: dict[ResourceKey, str] = {}
        self._cluster: Cluster | None = None

    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        if not self._runs.is_open:
            return None
        self._cluster = context.cluster
        try:
            await self._reconcile_pod(key, context.cluster)
        except Conflict:  # the object changed since it was read
            return CONFLICT_REQUEUE
        except ClusterError as error:
            if error.code not in (403, 404, 422):
                raise
            log.info("cannot create the placeholder Pod of %s: %s", key, error)  # k8s: quota, terminating namespace
        return None

    async def _reconcile_pod(self, key: ResourceKey, cluster: Cluster) -> None:
        live = await cluster.get(key)
        if live is None or live["metadata"].get("deletionTimestamp"):
            self._created_runs.pop(key, None)  # the Pod is garbage-collected with the job
            return
        job, status = read_job(live), live.get("status") or {}
        expected_pod, run = build_pod(job, live), build_run_id(live)
        expected_key = pod_key(key)
        pod = await cluster.get(expected_key)
        if pod is not None and not is_placeholder_pod(pod):
            return
        if pod is not None and (expected_pod is None or get_annotation(pod, NOTEBOOK_RUN) != run):
            await cluster.delete(expected_key, uid=pod["metadata"]["uid"], grace=0)
            pod = None
        if expected_pod is None:
            return
        expected_status = build_status(status, job.image)
        if pod is None:
            if expected_status["phase"] != "Running" and self._created_runs.get(key) == run:
                return
            pod = await cluster.create(expected_pod, manager=MANAGER)
            self._created_runs[key] = run
        await _update_status(pod, expected_status, cluster)

    # -- logs

    def has_logs_of(self, pod: Manifest) -> bool:
        return is_placeholder_pod(pod)

    async def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        """Yield lines until the run ends, or the job starts another run than that of the Pod."""
        shown_count = 0
        while True:
            live = await self._load_job(pod)
            if live is None or build_run_id(live) != get_annotation(pod, NOTEBOOK_RUN):
                return
            log_lines, is_all = render_log_lines(live.get("status") or {})
            for line in log_lines[shown_count:] if tail is None else log_lines[max(len(log_lines) - tail, 0) :]:
                yield line
            if is_all or not follow:
                return
            shown_count, tail = len(log_lines), None
            await asyncio.sleep(POLL_INTERVAL_SECONDS)

    async def _load_job(self, pod: Manifest) -> Manifest | None:
        if self._cluster is None:
            return None
        key = next(iter(map_to_owner(NOTEBOOK_JOB)(pod)), None)
        return await self._cluster.get(key) if key is not None else None


async def _update_status(pod: Manifest, expected_status: Manifest, cluster: Cluster) -> None:
    """Update the status only if it differs."""
    current_status = pod.get("status") or {}
    if any(current_status.get(name) != value for name, value in expected_status.items()):
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": expected_status}
        await cluster.patch(key_of(pod), patch, subresource="status", manager=MANAGER)
