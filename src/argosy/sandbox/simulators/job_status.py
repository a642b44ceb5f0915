"""Computes the progress and the status of a Job.

In: a Job, its Pods, the time. Out: a JobProgress and a status. Never: reads a clock; writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.objects.timestamps_and_delays import format_timestamp, remaining_delay
from argosy.sandbox.simulators.job_finished_pod_counts import JobPodCounts
from argosy.sandbox.simulators.owner_references_and_marks import append_simulated_note, is_being_deleted
from argosy.sandbox.simulators.pod_counts import is_active, is_ready, read_pod_phase
from argosy.sandbox.simulators.timestamps_and_durations import parse_timestamp, seconds_until_deadline

JobStatus = dict[str, Any]
COMPLETION_INDEX_ANNOTATION: Final = "batch.kubernetes.io/job-completion-index"
FINISHED_CONDITIONS: Final = ("Complete", "Failed")
# k8s: 10 s and 6 min; shorter here, so that a rehearsed failure does not take long
INITIAL_RETRY_SECONDS, MAX_RETRY_SECONDS = 1.0, 60.0


@dataclass(frozen=True)
class JobProgress:
    active_pods: Sequence[Manifest]
    terminating_pods: Sequence[Manifest]
    succeeded: int
    failed: int
    completed_indexes: frozenset[int]  # completed indexes of an Indexed Job
    outcome: tuple[str, str, str] | None  # condition type (Complete or Failed), reason, message
    seconds_until_deadline: float | None  # seconds until activeDeadlineSeconds is reached


def find_true_condition(job: Manifest, type_: str) -> JobStatus:
    """Return the condition of this type if its status is True, else an empty dict."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return next((dict(entry) for entry in conditions if entry["type"] == type_ and entry["status"] == "True"), {})


def is_finished(job: Manifest) -> bool:
    return any(find_true_condition(job, type_) for type_ in FINISHED_CONDITIONS)


def is_indexed(job: Manifest) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def read_completion_index(pod: Manifest) -> int:
    """Return the completion index of the Pod, or -1."""
    text = get_annotation(pod, COMPLETION_INDEX_ANNOTATION)
    return int(text) if text.isdigit() else -1


def compute_job_progress(job: Manifest, pods: Sequence[Manifest], counts: JobPodCounts, now: datetime) -> JobProgress:
    """Compute which Pods are active, how many succeeded or failed, and whether the Job has finished."""
    status = job.get("status") or {}
    active_pods = [item for item in pods if is_active(item)]
    terminating_pods = [
        item for item in pods if is_being_deleted(item) and read_pod_phase(item) not in ("Succeeded", "Failed")
    ]
    succeeded_pods = [item for item in pods if read_pod_phase(item) == "Succeeded"]
    completed = frozenset(_parse_indexes(status.get("completedIndexes") or "")) | {
        read_completion_index(item) for item in succeeded_pods
    }
    completed = frozenset(item for item in completed if 0 <= item < int(job["spec"].get("completions") or 0))
    succeeded, failed = len(completed) if is_indexed(job) else counts.succeeded, counts.failed
    started_at = status.get("startTime")
    deadline_seconds = job["spec"].get("activeDeadlineSeconds")
    seconds_left = (
        seconds_until_deadline(parse_timestamp(started_at), float(deadline_seconds), now)
        if started_at and deadline_seconds is not None
        else None
    )
    outcome = _compute_outcome(job, active_pods, succeeded, failed, seconds_left)
    return JobProgress(active_pods, terminating_pods, succeeded, failed, completed, outcome, seconds_left)


def _compute_outcome(
    job: Manifest, active_pods: Sequence[Manifest], succeeded: int, failed: int, seconds_left: float | None
) -> tuple[str, str, str] | None:
    spec = job["spec"]
    if (target := find_true_condition(job, "FailureTarget")) or (
        target := find_true_condition(job, "SuccessCriteriaMet")
    ):
        type_ = "Failed" if target["type"] == "FailureTarget" else "Complete"
        # an announced outcome is final
        return type_, str(target["reason"]), str(target.get("message") or "")
    limit = int(spec.get("backoffLimit", 6))
    if failed > limit or (
        spec["template"]["spec"].get("restartPolicy") == "OnFailure" and _has_reached_restart_limit(active_pods, limit)
    ):
        return "Failed", "BackoffLimitExceeded", append_simulated_note("Job has reached the specified backoff limit")
    if seconds_left is not None and seconds_left <= 0:
        return "Failed", "DeadlineExceeded", append_simulated_note("Job was active longer than specified deadline")
    completions = spec.get("completions")
    is_complete = succeeded >= completions if completions is not None else bool(succeeded and not active_pods)
    if is_complete:
        return "Complete", "CompletionsReached", append_simulated_note("Reached expected number of succeeded pods")
    return None


def _has_reached_restart_limit(active: Sequence[Manifest], limit: int) -> bool:
    """k8s: restarts of all containers count together; reaching the limit fails the Job, unless the limit is 0."""
    statuses = [pod.get("status") or {} for pod in active]
    status_lists = [
        status.get(field) or () for status in statuses for field in ("initContainerStatuses", "containerStatuses")
    ]
    return sum(
        int(container_status.get("restartCount") or 0)
        for container_statuses in status_lists
        for container_status in container_statuses
    ) >= max(limit, 1)


def compute_retry_delay(job: Manifest, progress: JobProgress, pods: Sequence[Manifest], now: datetime) -> float:
    """Return the seconds to wait before replacing a failed Pod; the delay doubles with each failure."""
    failure_times = [
        failed_at for pod in pods if read_pod_phase(pod) == "Failed" and (failed_at := _read_finish_time(pod))
    ]
    if not failure_times:
        return 0.0
    wait = min(INITIAL_RETRY_SECONDS * 2 ** min(max(progress.failed - 1, 0), 20), MAX_RETRY_SECONDS)
    return remaining_delay(parse_timestamp(max(failure_times)), wait, now)


def _read_finish_time(pod: Manifest) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    times = [((item.get("state") or {}).get("terminated") or {}).get("finishedAt") for item in statuses]
    return max((str(item) for item in times if item), default="")


def build_job_status(job: Manifest, progress: JobProgress, now: datetime) -> JobStatus:
    """k8s: SuccessCriteriaMet or FailureTarget is set first; Complete or Failed follows when the last Pod has ended."""
    status: JobStatus = {
        "active": len(progress.active_pods),
        "ready": sum(map(is_ready, progress.active_pods)),
        "terminating": len(progress.terminating_pods),
        "succeeded": progress.succeeded,
        "failed": progress.failed,
        "startTime": (job.get("status") or {}).get("startTime"),
    }
    new_conditions: list[tuple[str, str, str, str]] = []
    is_suspended = bool(job["spec"].get("suspend"))
    if progress.outcome:
        type_, reason, message = progress.outcome
        target = "FailureTarget" if type_ == "Failed" else "SuccessCriteriaMet"
        new_conditions.append((target, "True", reason, message))
        if not progress.active_pods and not progress.terminating_pods:
            new_conditions.append((type_, "True", reason, message))
            if type_ == "Complete":
                status["completionTime"] = (job.get("status") or {}).get("completionTime") or format_timestamp(now)
        status["startTime"] = status["startTime"] or format_timestamp(now)
    elif is_suspended:
        new_conditions.append(("Suspended", "True", "JobSuspended", append_simulated_note("Job suspended")))
        status["startTime"] = None
    else:
        status["startTime"] = status["startTime"] or format_timestamp(now)
        if any(entry["type"] == "Suspended" for entry in (job.get("status") or {}).get("conditions") or ()):
            new_conditions.append(("Suspended", "False", "JobResumed", append_simulated_note("Job resumed")))
    if is_indexed(job):
        status["completedIndexes"] = _render_indexes(progress.completed_indexes) or None
    status["conditions"] = _merge_conditions(job, new_conditions, now) or None
    return status


def _merge_conditions(
    job: Manifest, new_conditions: Sequence[tuple[str, str, str, str]], now: datetime
) -> list[JobStatus]:
    conditions_by_type = {entry["type"]: dict(entry) for entry in (job.get("status") or {}).get("conditions") or ()}
    for type_, status, reason, message in new_conditions:
        if conditions_by_type.get(type_, {}).get("status") != status:
            times = {"lastProbeTime": format_timestamp(now), "lastTransitionTime": format_timestamp(now)}
            conditions_by_type[type_] = {"type": type_, "status": status, **times, "reason": reason, "message": message}
    return list(conditions_by_type.values())


def _parse_indexes(text: str) -> list[int]:
    """Parse completed indexes: `0-2,5` means 0, 1, 2 and 5."""
    indexes: list[int] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        indexes.extend(range(int(first), int(last or first) + 1))
    return indexes


def _render_indexes(indexes: frozenset[int]) -> str:
    """Render completed indexes: 0, 1, 2 and 5 become `0-2,5`."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1][-1:] = [index] if len(runs[-1]) > 1 else [runs[-1][0], index]
        else:
            runs.append([index])
    return ",".join("-".join(map(str, run)) for run in runs)
