"""Backend that runs each notebook in a Pod, on any cluster.

In: jobs. Out: the state of their runs, read from Pods and ConfigMaps. Never: reads a log or a Secret; runs two Pods of
a job at once; touches objects of others.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from argosy.errors import ClusterError, Conflict, Forbidden, TransientError, UserError
from argosy.features.notebooks.job import Job
from argosy.features.notebooks.local_runs.settings import data_of
from argosy.features.notebooks.pod_runs import objects, runner_archive
from argosy.features.notebooks.pod_runs.pod import STOP, errand, pod
from argosy.features.notebooks.pod_runs.progress import standing
from argosy.features.notebooks.run_backend import RunKey, Standing, pod_name
from argosy.kube.client import Cluster
from argosy.kube.controller import Context
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

MANAGER: Final = "notebooks"
REST: Final = 2.0  # seconds between two reads of a Pod: a hundred of them must not keep an API server busy
ENDED: Final = ("Succeeded", "Failed")
KNOWN_HOSTS, AUTHORITIES = "argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm"


class PodRuns:
    """Implements RunBackend. All state is in the cluster; only the last reads are cached."""

    def __init__(self, rest: float = REST) -> None:
        self._rest = rest
        self._seen: dict[RunKey, tuple[float, Standing]] = {}

    async def start(self, job: Job, run: RunKey, context: Context) -> None:
        cluster = context.cluster
        live = await cluster.get(objects.pod_key(job.key))
        if live is not None and objects.is_of_run(live, run):
            return
        if live is not None:
            await self._make_room(job, live, cluster)
        await _share(job, cluster)
        data = {objects.ERRAND: errand(job), **await _trusted(job, cluster)}
        await _renew(job, run, data, cluster)
        try:
            await cluster.create(pod(job, run), manager=MANAGER)
        except Conflict as error:
            raise TransientError(f"Pod {pod_name(job.name)}: {error.message}; try again") from error

    async def _make_room(self, job: Job, live: Manifest, cluster: Cluster) -> None:
        """Delete the Pod of another run. Always raises: a Pod needs time to terminate."""
        name = live["metadata"]["name"]
        if not objects.is_of_job(live, job.key):
            raise UserError("is not owned by this job; rename the Pod or the job", where=f"Pod {name}")
        await _remove(live, cluster)
        raise TransientError(f"Pod {name}: the previous run is still terminating; try again")

    async def look(self, job: Job, run: RunKey, context: Context) -> Standing:
        now = context.clock.monotonic()
        when, known = self._seen.get(run, (0.0, None))
        if known is not None and now - when < self._rest:
            return known
        found = await self._look(job, run, context)
        self._seen.pop(run, None)
        if found.state in ("waiting", "running"):
            self._seen[run] = (now, found)
        return found

    async def _look(self, job: Job, run: RunKey, context: Context) -> Standing:
        cluster = context.cluster
        live = await cluster.get(objects.pod_key(job.key))
        if live is None or not objects.is_of_run(live, run):
            return Standing("absent")
        notes = await cluster.get(objects.map_key(job.key))
        is_own = notes is not None and objects.is_of_run(notes, run)
        found = standing(job, live, notes if is_own else None, context.clock.now())
        if found.state == "ended" and (live.get("status") or {}).get("phase") not in ENDED:
            await _remove(live, cluster)  # given up: it must not start when nobody waits for it any more
        return found

    async def end(self, job: ResourceKey, run: RunKey | None, context: Context) -> None:
        cluster = context.cluster
        for known in [each for each in self._seen if run in (None, each)]:
            del self._seen[known]
        for key in (objects.pod_key(job), objects.map_key(job)):
            live = await cluster.get(key)
            if live is None or not objects.is_of_job(live, job):
                continue
            if run is None or objects.is_of_run(live, run):
                await _remove(live, cluster)


async def _share(job: Job, cluster: Cluster) -> None:
    """Ensure that the runner ConfigMap exists, and that this job is one of its owners."""
    key = ResourceKey("", "ConfigMap", job.namespace, runner_archive.name())
    owner = {**objects.owner(job), "controller": False}
    live = await cluster.get(key)
    if live is None:
        try:
            await cluster.create(runner_archive.config_map(job.namespace, _labels(job), owner), manager=MANAGER)
        except Conflict as error:
            raise TransientError(f"ConfigMap {key.name}: {error.message}; try again") from error
        return
    owners = live["metadata"].get("ownerReferences") or []
    if not any(each.get("uid") == job.uid for each in owners):
        metadata = {"ownerReferences": [*owners, owner], "resourceVersion": live["metadata"]["resourceVersion"]}
        try:
            await cluster.patch(key, {"metadata": metadata}, manager=MANAGER)
        except Conflict as error:
            raise TransientError(f"ConfigMap {key.name}: {error.message}; try again") from error


def _labels(job: Job) -> dict[str, str]:
    return {name: text for name, text in objects.labels(job, "runner").items() if name != objects.LABEL}


async def _renew(job: Job, run: RunKey, data: dict[str, str], cluster: Cluster) -> None:
    """Recreate the ConfigMap of the run without data of an earlier run."""
    live = await cluster.get(objects.map_key(job.key))
    if live is not None and objects.is_of_run(live, run):
        return
    if live is not None:
        if not objects.is_of_job(live, job.key):
            name = live["metadata"]["name"]
            raise UserError("is not owned by this job; rename the ConfigMap or the job", where=f"ConfigMap {name}")
        await _remove(live, cluster)
    try:
        await cluster.create(objects.config_map(job, run, data), manager=MANAGER)
    except Conflict as error:
        raise TransientError(f"ConfigMap {pod_name(job.name)}: {error.message}; try again") from error


async def _trusted(job: Job, cluster: Cluster) -> dict[str, str]:
    """SSH known hosts and TLS certificates from Argo CD's settings, for the hosts of this job."""
    found: dict[str, str] = {}
    try:
        hosts = (await data_of(KNOWN_HOSTS, cluster)).get("ssh_known_hosts", "")
        authorities = await data_of(AUTHORITIES, cluster)
    except Forbidden:  # not permitted to read them: use none
        return found
    if hosts.strip():
        found["known_hosts"] = hosts
    for notebook in filter(None, (job.notebook, job.golden)):
        host = _host(notebook.url)
        if authorities.get(host, "").strip():
            found[f"ca-{host}.crt"] = authorities[host]
    return found


def _host(url: str) -> str:
    """Host of a URL; "" if it is malformed, which git rejects."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


async def _remove(live: Manifest, cluster: Cluster) -> None:
    if live["metadata"].get("deletionTimestamp"):
        return
    try:
        await cluster.delete(key_of(live), uid=live["metadata"]["uid"], grace=STOP if live["kind"] == "Pod" else None)
    except ClusterError as error:
        if error.code not in (404, 409):  # deleted, or replaced by now
            raise
