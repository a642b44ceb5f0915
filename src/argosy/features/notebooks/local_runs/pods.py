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
from argosy.features.notebooks.job import KIND, read_job
from argosy.features.notebooks.local_runs import LocalRuns
from argosy.features.notebooks.local_runs.pod_manifest import is_ours, lines_of, pod_of, run_of, status_of
from argosy.features.notebooks.pod_runs.objects import pod_key
from argosy.kube.client import Cluster
from argosy.kube.controller import Context, Requeue, Watch, itself, owner
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, annotation, key_of

MANAGER: Final = "notebooks"
PAUSE: Final = 0.2  # seconds between polls of a followed run
SOON: Final = Requeue(0.05)
log = logging.getLogger(__name__)


class LocalPods:
    """Implements Controller and SelectivePodLogReader. Remembers created Pods, so that deleted ones stay deleted."""

    name = "notebook-pods"

    def __init__(self, runs: LocalRuns) -> None:
        self.watches = (Watch(KIND, itself),)
        self._runs = runs
        self._made: dict[ResourceKey, str] = {}
        self._cluster: Cluster | None = None

    async def reconcile(self, key: ResourceKey, context: Context) -> Requeue | None:
        if not self._runs.is_open:
            return None
        self._cluster = context.cluster
        try:
            await self._show(key, context.cluster)
        except Conflict:  # the object changed since it was read
            return SOON
        except ClusterError as error:
            if error.code not in (403, 404, 422):
                raise
            log.info("cannot create the placeholder Pod of %s: %s", key, error)  # k8s: quota, terminating namespace
        return None

    async def _show(self, key: ResourceKey, cluster: Cluster) -> None:
        live = await cluster.get(key)
        if live is None or live["metadata"].get("deletionTimestamp"):
            self._made.pop(key, None)  # the Pod is garbage-collected with the job
            return
        job, status = read_job(live), live.get("status") or {}
        wanted, run = pod_of(job, live), run_of(live)
        place = pod_key(key)
        pod = await cluster.get(place)
        if pod is not None and not is_ours(pod):
            return
        if pod is not None and (wanted is None or annotation(pod, NOTEBOOK_RUN) != run):
            await cluster.delete(place, uid=pod["metadata"]["uid"], grace=0)
            pod = None
        if wanted is None:
            return
        played = status_of(status, job.image)
        if pod is None:
            if played["phase"] != "Running" and self._made.get(key) == run:
                return
            pod = await cluster.create(wanted, manager=MANAGER)
            self._made[key] = run
        await _keep(pod, played, cluster)

    # -- logs

    def knows(self, pod: Manifest) -> bool:
        return is_ours(pod)

    async def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        """Yield lines until the run ends, or the job starts another run than that of the Pod."""
        shown = 0
        while True:
            live = await self._job_of(pod)
            if live is None or run_of(live) != annotation(pod, NOTEBOOK_RUN):
                return
            found, is_all = lines_of(live.get("status") or {})
            for line in found[shown:] if tail is None else found[max(len(found) - tail, 0) :]:
                yield line
            if is_all or not follow:
                return
            shown, tail = len(found), None
            await asyncio.sleep(PAUSE)

    async def _job_of(self, pod: Manifest) -> Manifest | None:
        if self._cluster is None:
            return None
        key = next(iter(owner(KIND)(pod)), None)
        return await self._cluster.get(key) if key is not None else None


async def _keep(pod: Manifest, wanted: Manifest, cluster: Cluster) -> None:
    """Update the status only if it differs."""
    known = pod.get("status") or {}
    if any(known.get(name) != value for name, value in wanted.items()):
        patch = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": wanted}
        await cluster.patch(key_of(pod), patch, subresource="status", manager=MANAGER)
