"""Backend that runs each notebook in a Pod, on any cluster.

In: jobs. Out: the state of their runs, read from Pods and ConfigMaps. Never: reads a log or a Secret; runs two Pods of
a job at once; touches objects of others.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from argosy.errors import ClusterError, Conflict, Forbidden, TransientError, UserError
from argosy.features.notebooks.local_runs.run_limits_config_map import load_config_map_data
from argosy.features.notebooks.notebook_validation_job_parser import NotebookJob
from argosy.features.notebooks.pod_runs import object_metadata, runner_archive_config_map
from argosy.features.notebooks.pod_runs.run_state_from_pod import read_run_state
from argosy.features.notebooks.pod_runs.validation_pod_manifest import (
    TERMINATION_GRACE_SECONDS,
    build_pod,
    build_runner_input,
)
from argosy.features.notebooks.run_backend import NotebookRunState, RunKey, build_pod_name
from argosy.kube.client import Cluster
from argosy.kube.controller import ControllerContext
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP

MANAGER: Final = "notebooks"
# Seconds between two reads of a Pod: a hundred of them must not keep an API server busy.
POLL_INTERVAL_SECONDS: Final = 2.0
TERMINAL_PHASES: Final = ("Succeeded", "Failed")
KNOWN_HOSTS, TLS_CERTIFICATES = "argocd-ssh-known-hosts-cm", "argocd-tls-certs-cm"


class PodRuns:
    """Implements RunBackend. All state is in the cluster; only the last reads are cached."""

    def __init__(self, poll_interval: float = POLL_INTERVAL_SECONDS) -> None:
        self._poll_interval = poll_interval
        self._cached_states: dict[RunKey, tuple[float, NotebookRunState]] = {}

    async def start(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> None:
        cluster = context.cluster
        live = await cluster.get(object_metadata.pod_key(job.key))
        if live is not None and object_metadata.belongs_to_run(live, run):
            return
        if live is not None:
            await self._delete_previous_pod(job, live, cluster)
        await _ensure_runner_config_map(job, cluster)
        data = {object_metadata.INPUT_FILE: build_runner_input(job), **await _load_trusted_hosts(job, cluster)}
        await _recreate_config_map(job, run, data, cluster)
        try:
            await cluster.create(build_pod(job, run), manager=MANAGER)
        except Conflict as error:
            raise TransientError(f"Pod {build_pod_name(job.name)}: {error.message}; try again") from error

    async def _delete_previous_pod(self, job: NotebookJob, live: Manifest, cluster: Cluster) -> None:
        """Delete the Pod of another run. Always raises: a Pod needs time to terminate."""
        name = live["metadata"]["name"]
        if not object_metadata.belongs_to_job(live, job.key):
            raise UserError("is not owned by this job; rename the Pod or the job", where=f"Pod {name}")
        await _delete(live, cluster)
        raise TransientError(f"Pod {name}: the previous run is still terminating; try again")

    async def observe(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> NotebookRunState:
        now = context.clock.monotonic()
        read_at, cached = self._cached_states.get(run, (0.0, None))
        if cached is not None and now - read_at < self._poll_interval:
            return cached
        run_state = await self._load_run_state(job, run, context)
        self._cached_states.pop(run, None)
        if run_state.state in ("waiting", "running"):
            self._cached_states[run] = (now, run_state)
        return run_state

    async def _load_run_state(self, job: NotebookJob, run: RunKey, context: ControllerContext) -> NotebookRunState:
        cluster = context.cluster
        live = await cluster.get(object_metadata.pod_key(job.key))
        if live is None or not object_metadata.belongs_to_run(live, run):
            return NotebookRunState("absent")
        config_map = await cluster.get(object_metadata.config_map_key(job.key))
        is_own = config_map is not None and object_metadata.belongs_to_run(config_map, run)
        run_state = read_run_state(job, live, config_map if is_own else None, context.clock.now())
        if run_state.state == "ended" and (live.get("status") or {}).get("phase") not in TERMINAL_PHASES:
            await _delete(live, cluster)  # given up: it must not start when nobody waits for it any more
        return run_state

    async def stop(self, job: ResourceKey, run: RunKey | None, context: ControllerContext) -> None:
        cluster = context.cluster
        for cached_run in [run_key for run_key in self._cached_states if run in (None, run_key)]:
            del self._cached_states[cached_run]
        for key in (object_metadata.pod_key(job), object_metadata.config_map_key(job)):
            live = await cluster.get(key)
            if live is None or not object_metadata.belongs_to_job(live, job):
                continue
            if run is None or object_metadata.belongs_to_run(live, run):
                await _delete(live, cluster)


async def _ensure_runner_config_map(job: NotebookJob, cluster: Cluster) -> None:
    """Ensure that the runner ConfigMap exists, and that this job is one of its owners."""
    key = ResourceKey(*CONFIG_MAP, job.namespace, runner_archive_config_map.build_config_map_name())
    owner = {**object_metadata.build_owner_reference(job), "controller": False}
    live = await cluster.get(key)
    if live is None:
        try:
            await cluster.create(
                runner_archive_config_map.build_config_map(job.namespace, _build_runner_labels(job), owner),
                manager=MANAGER,
            )
        except Conflict as error:
            raise TransientError(f"ConfigMap {key.name}: {error.message}; try again") from error
        return
    owners = live["metadata"].get("ownerReferences") or []
    if not any(reference.get("uid") == job.uid for reference in owners):
        metadata = {"ownerReferences": [*owners, owner], "resourceVersion": live["metadata"]["resourceVersion"]}
        try:
            await cluster.patch(key, {"metadata": metadata}, manager=MANAGER)
        except Conflict as error:
            raise TransientError(f"ConfigMap {key.name}: {error.message}; try again") from error


def _build_runner_labels(job: NotebookJob) -> dict[str, str]:
    return {
        name: text
        for name, text in object_metadata.build_labels(job, "runner").items()
        if name != object_metadata.JOB_LABEL
    }


async def _recreate_config_map(job: NotebookJob, run: RunKey, data: dict[str, str], cluster: Cluster) -> None:
    """Recreate the ConfigMap of the run without data of an earlier run."""
    live = await cluster.get(object_metadata.config_map_key(job.key))
    if live is not None and object_metadata.belongs_to_run(live, run):
        return
    if live is not None:
        if not object_metadata.belongs_to_job(live, job.key):
            name = live["metadata"]["name"]
            raise UserError("is not owned by this job; rename the ConfigMap or the job", where=f"ConfigMap {name}")
        await _delete(live, cluster)
    try:
        await cluster.create(object_metadata.build_config_map(job, run, data), manager=MANAGER)
    except Conflict as error:
        raise TransientError(f"ConfigMap {build_pod_name(job.name)}: {error.message}; try again") from error


async def _load_trusted_hosts(job: NotebookJob, cluster: Cluster) -> dict[str, str]:
    """SSH known hosts and TLS certificates from Argo CD's settings, for the hosts of this job."""
    data: dict[str, str] = {}
    try:
        hosts = (await load_config_map_data(KNOWN_HOSTS, cluster)).get("ssh_known_hosts", "")
        certificates = await load_config_map_data(TLS_CERTIFICATES, cluster)
    except Forbidden:  # not permitted to read them: use none
        return data
    if hosts.strip():
        data["known_hosts"] = hosts
    for notebook in filter(None, (job.notebook, job.golden)):
        host = _get_host(notebook.url)
        if certificates.get(host, "").strip():
            data[f"ca-{host}.crt"] = certificates[host]
    return data


def _get_host(url: str) -> str:
    """Host of a URL; "" if it is malformed, which git rejects."""
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


async def _delete(live: Manifest, cluster: Cluster) -> None:
    if live["metadata"].get("deletionTimestamp"):
        return
    try:
        await cluster.delete(
            key_of(live),
            uid=live["metadata"]["uid"],
            grace=TERMINATION_GRACE_SECONDS if live["kind"] == "Pod" else None,
        )
    except ClusterError as error:
        if error.code not in (404, 409):  # deleted, or replaced by now
            raise
