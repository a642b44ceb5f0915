"""Simulates the Job controller.

In: the key of a Job. Out: its Pods, its status, its deletion after ttlSecondsAfterFinished. Never: creates a Pod for a
finished or suspended Job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

from argosy.kube.controller import ControllerContext, Requeue, Watch, map_to_owner
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import JOB, POD
from argosy.sandbox.simulators.conditional_writes import delete_object, requeue_on_conflict, update_status_if_changed
from argosy.sandbox.simulators.event_recorder import EventDraft, EventRecorder
from argosy.sandbox.simulators.job_finished_pod_counts import JobPodCounter
from argosy.sandbox.simulators.job_status import (
    COMPLETION_INDEX_ANNOTATION,
    JobProgress,
    build_job_status,
    compute_job_progress,
    compute_retry_delay,
    find_true_condition,
    is_finished,
    is_indexed,
    read_completion_index,
)
from argosy.sandbox.simulators.owner_references_and_marks import (
    SIMULATED_NOTE,
    build_pod,
    enqueue_if_unmarked,
    hash_to_name_suffix,
    is_being_deleted,
    is_simulated_by_other_addon,
)
from argosy.sandbox.simulators.pod_control import create_pods, delete_pods
from argosy.sandbox.simulators.pod_counts import list_owned_pods
from argosy.sandbox.simulators.timestamps_and_durations import parse_timestamp, seconds_until_deadline

MAX_PODS_PER_BATCH: Final = 100
REJECTED_RETRY_SECONDS: Final = 1.0
JOB_CONTROLLER_NAME: Final = "kubernetes.io/job-controller"


class JobController:
    name = "simulated-jobs"
    watches = (Watch(JOB, enqueue_if_unmarked), Watch(POD, map_to_owner(JOB)))

    def __init__(self) -> None:
        self._events = EventRecorder("job-controller")
        self._pod_counter = JobPodCounter()

    @requeue_on_conflict
    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        job = context.cache.get(key)
        if job is None or is_being_deleted(job) or is_simulated_by_other_addon(job):
            self._pod_counter.forget(key)
            return None
        if job["spec"].get("managedBy", JOB_CONTROLLER_NAME) != JOB_CONTROLLER_NAME:
            return None  # k8s: another controller manages this Job
        if is_finished(job):
            self._pod_counter.forget(key)
            return await _delete_after_ttl(job, context)
        now, pods = context.clock.now(), list_owned_pods(job, context.cache)
        progress = compute_job_progress(job, pods, self._pod_counter.count(job, pods), now)
        new_status = build_job_status(job, progress, now)
        if await update_status_if_changed(job, new_status, context.cluster):
            await self._events.record(job, _build_condition_events(job, new_status), context)
        if progress.outcome or job["spec"].get("suspend"):
            if not progress.outcome:
                self._pod_counter.mark_not_failed(job, progress.active_pods)
            await delete_pods(job, progress.active_pods, self._events, context)
            return None
        desired_pods = _compute_desired_pods(job, progress)
        surplus_pods = list(reversed(progress.active_pods))[: max(len(progress.active_pods) - desired_pods, 0)]
        self._pod_counter.mark_not_failed(job, surplus_pods)
        await delete_pods(job, surplus_pods, self._events, context)
        waits = [progress.seconds_until_deadline]
        if (wait := compute_retry_delay(job, progress, pods, now)) > 0:
            waits.append(wait)
        elif await _create_missing_pods(job, progress, desired_pods, pods, self._events, context):
            waits.append(REJECTED_RETRY_SECONDS)
        return Requeue(min(seconds for seconds in waits if seconds is not None)) if any(waits) else None


async def _delete_after_ttl(job: Manifest, context: ControllerContext) -> Requeue | None:
    """Delete a finished Job after `ttlSecondsAfterFinished`."""
    ttl_seconds = job["spec"].get("ttlSecondsAfterFinished")
    if ttl_seconds is None:
        return None
    finished_condition = find_true_condition(job, "Complete") or find_true_condition(job, "Failed")
    wait = seconds_until_deadline(
        parse_timestamp(finished_condition["lastTransitionTime"]), float(ttl_seconds), context.clock.now()
    )
    if wait > 0:
        return Requeue(wait)
    await delete_object(job, context.cluster)
    return None


def _build_condition_events(job: Manifest, new_status: dict[str, Any]) -> Iterator[EventDraft]:
    """Yield an event for each new condition."""
    previous = {(entry["type"], entry["status"]) for entry in (job.get("status") or {}).get("conditions") or ()}
    for entry in new_status["conditions"] or ():
        if (entry["type"], entry["status"]) in previous:
            continue
        message = str(entry["message"]).removesuffix(f" ({SIMULATED_NOTE})")
        if entry["type"] == "Complete":
            yield EventDraft("Completed", "Job completed")
        elif entry["type"] == "Failed":
            yield EventDraft(entry["reason"], message, is_warning=True)
        elif entry["type"] == "Suspended":
            yield EventDraft("Suspended" if entry["status"] == "True" else "Resumed", message)


def _compute_desired_pods(job: Manifest, progress: JobProgress) -> int:
    """Return how many Pods should run: parallelism, but not more than the remaining completions."""
    completions, parallelism = job["spec"].get("completions"), int(job["spec"].get("parallelism", 1))
    if completions is not None:
        return min(parallelism, int(completions) - progress.succeeded)
    # k8s: without completions, the first Pod that succeeds ends the work
    return min(parallelism, len(progress.active_pods)) if progress.succeeded else parallelism


async def _create_missing_pods(
    job: Manifest,
    progress: JobProgress,
    desired_pods: int,
    pods: Sequence[Manifest],
    recorder: EventRecorder,
    context: ControllerContext,
) -> str:
    """Create the missing Pods; return why they cannot be created, or an empty string."""
    # k8s: a terminating Pod is replaced at once, unless podReplacementPolicy is Failed
    terminating_count = len(progress.terminating_pods) if job["spec"].get("podReplacementPolicy") == "Failed" else 0
    missing_count = min(desired_pods - len(progress.active_pods) - terminating_count, MAX_PODS_PER_BATCH)
    if missing_count <= 0:
        return ""
    new_pods = (_build_indexed_pods if is_indexed(job) else _build_pods)(job, progress, pods)
    return await create_pods(job, list(islice(new_pods, missing_count)), recorder, context)


def _build_pods(job: Manifest, progress: JobProgress, pods: Sequence[Manifest]) -> Iterator[Manifest]:
    """Yield Pods with deterministic names, so that a Pod the cache does not show yet is not created twice."""
    metadata = job["metadata"]
    taken_names = {str(pod["metadata"]["name"]) for pod in pods}
    for number in range(len(pods) + MAX_PODS_PER_BATCH):
        name = f"{metadata['name'][:57]}-{hash_to_name_suffix(metadata['uid'] + '/' + str(number), 5)}"
        if name not in taken_names:
            yield build_pod(job["spec"]["template"], job, name)


def _build_indexed_pods(job: Manifest, progress: JobProgress, pods: Sequence[Manifest]) -> Iterator[Manifest]:
    metadata = job["metadata"]
    busy_indexes = {
        read_completion_index(existing_pod) for existing_pod in (*progress.active_pods, *progress.terminating_pods)
    }
    for index in range(int(job["spec"].get("completions") or 0)):
        if index in progress.completed_indexes or index in busy_indexes:
            continue
        attempts = sum(1 for existing_pod in pods if read_completion_index(existing_pod) == index)
        suffix = hash_to_name_suffix(f"{metadata['uid']}/{index}/{attempts}", 5)
        pod = build_pod(
            _add_completion_index_env(job["spec"]["template"], index), job, f"{metadata['name'][:50]}-{index}-{suffix}"
        )
        pod["metadata"]["labels"] = {**pod["metadata"]["labels"], COMPLETION_INDEX_ANNOTATION: str(index)}
        pod["metadata"]["annotations"] = {
            **pod["metadata"].get("annotations", {}),
            COMPLETION_INDEX_ANNOTATION: str(index),
        }
        yield pod


def _add_completion_index_env(template: Manifest, index: int) -> Manifest:
    index_variable = {"name": "JOB_COMPLETION_INDEX", "value": str(index)}
    containers: list[dict[str, Any]] = [
        {**container, "env": [*(container.get("env") or ()), index_variable]}
        for container in template["spec"]["containers"]
    ]
    return {**template, "spec": {**template["spec"], "containers": containers}}
