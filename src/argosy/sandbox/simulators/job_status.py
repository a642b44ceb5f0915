"""Computes the progress and the status of a Job.

In: a Job, its Pods, the time. Out: a JobProgress and a status. Never: reads a clock; writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from argosy.kube.objects import Manifest, annotation
from argosy.kube.objects.timestamps import remaining_delay
from argosy.sandbox.simulators.constants import is_dying, told
from argosy.sandbox.simulators.job_tally import Tally
from argosy.sandbox.simulators.pod_counts import is_active, is_ready, phase_of
from argosy.sandbox.simulators.timestamps import left, moment_of, stamp

Status = dict[str, Any]
INDEX: Final = "batch.kubernetes.io/job-completion-index"
FINISHED: Final = ("Complete", "Failed")
# k8s: 10 s and 6 min; shorter here, so that a rehearsed failure does not take long
FIRST_RETRY, MOST_RETRY = 1.0, 60.0


@dataclass(frozen=True)
class Outlook:
    active: Sequence[Manifest]
    dying: Sequence[Manifest]
    succeeded: int
    failed: int
    done: frozenset[int]  # completed indexes of an Indexed Job
    verdict: tuple[str, str, str] | None  # condition type (Complete or Failed), reason, message
    deadline: float | None  # seconds until activeDeadlineSeconds is reached


def condition(job: Manifest, type_: str) -> Status:
    """Return the condition of this type if its status is True, else an empty dict."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return next((dict(each) for each in conditions if each["type"] == type_ and each["status"] == "True"), {})


def is_finished(job: Manifest) -> bool:
    return any(condition(job, type_) for type_ in FINISHED)


def is_indexed(job: Manifest) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def index_of(pod: Manifest) -> int:
    """Return the completion index of the Pod, or -1."""
    text = annotation(pod, INDEX)
    return int(text) if text.isdigit() else -1


def look(job: Manifest, pods: Sequence[Manifest], tally: Tally, now: datetime) -> Outlook:
    """Compute which Pods are active, how many succeeded or failed, and whether the Job has finished."""
    status = job.get("status") or {}
    active = [each for each in pods if is_active(each)]
    dying = [each for each in pods if is_dying(each) and phase_of(each) not in ("Succeeded", "Failed")]
    ended = [each for each in pods if phase_of(each) == "Succeeded"]
    done = frozenset(_numbers(status.get("completedIndexes") or "")) | {index_of(each) for each in ended}
    done = frozenset(each for each in done if 0 <= each < int(job["spec"].get("completions") or 0))
    succeeded, failed = len(done) if is_indexed(job) else tally.succeeded, tally.failed
    began = status.get("startTime")
    limit = job["spec"].get("activeDeadlineSeconds")
    deadline = left(moment_of(began), float(limit), now) if began and limit is not None else None
    verdict = _verdict(job, active, succeeded, failed, deadline)
    return Outlook(active, dying, succeeded, failed, done, verdict, deadline)


def _verdict(
    job: Manifest, active: Sequence[Manifest], succeeded: int, failed: int, deadline: float | None
) -> tuple[str, str, str] | None:
    spec = job["spec"]
    if (target := condition(job, "FailureTarget")) or (target := condition(job, "SuccessCriteriaMet")):
        type_ = "Failed" if target["type"] == "FailureTarget" else "Complete"
        # an announced outcome is final
        return type_, str(target["reason"]), str(target.get("message") or "")
    limit = int(spec.get("backoffLimit", 6))
    if failed > limit or (spec["template"]["spec"].get("restartPolicy") == "OnFailure" and _tried(active, limit)):
        return "Failed", "BackoffLimitExceeded", told("Job has reached the specified backoff limit")
    if deadline is not None and deadline <= 0:
        return "Failed", "DeadlineExceeded", told("Job was active longer than specified deadline")
    completions = spec.get("completions")
    is_complete = succeeded >= completions if completions is not None else bool(succeeded and not active)
    if is_complete:
        return "Complete", "CompletionsReached", told("Reached expected number of succeeded pods")
    return None


def _tried(active: Sequence[Manifest], limit: int) -> bool:
    """k8s: restarts of all containers count together; reaching the limit fails the Job, unless the limit is 0."""
    statuses = [pod.get("status") or {} for pod in active]
    lists = [status.get(which) or () for status in statuses for which in ("initContainerStatuses", "containerStatuses")]
    return sum(int(each.get("restartCount") or 0) for found in lists for each in found) >= max(limit, 1)


def next_try(job: Manifest, outlook: Outlook, pods: Sequence[Manifest], now: datetime) -> float:
    """Return the seconds to wait before replacing a failed Pod; the delay doubles with each failure."""
    ends = [when for pod in pods if phase_of(pod) == "Failed" and (when := _ended(pod))]
    if not ends:
        return 0.0
    wait = min(FIRST_RETRY * 2 ** min(max(outlook.failed - 1, 0), 20), MOST_RETRY)
    return remaining_delay(moment_of(max(ends)), wait, now)


def _ended(pod: Manifest) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    times = [((each.get("state") or {}).get("terminated") or {}).get("finishedAt") for each in statuses]
    return max((str(each) for each in times if each), default="")


def status_of(job: Manifest, outlook: Outlook, now: datetime) -> Status:
    """k8s: SuccessCriteriaMet or FailureTarget is set first; Complete or Failed follows when the last Pod has ended."""
    status: Status = {
        "active": len(outlook.active),
        "ready": sum(map(is_ready, outlook.active)),
        "terminating": len(outlook.dying),
        "succeeded": outlook.succeeded,
        "failed": outlook.failed,
        "startTime": (job.get("status") or {}).get("startTime"),
    }
    wanted: list[tuple[str, str, str, str]] = []
    is_suspended = bool(job["spec"].get("suspend"))
    if outlook.verdict:
        type_, reason, message = outlook.verdict
        target = "FailureTarget" if type_ == "Failed" else "SuccessCriteriaMet"
        wanted.append((target, "True", reason, message))
        if not outlook.active and not outlook.dying:
            wanted.append((type_, "True", reason, message))
            if type_ == "Complete":
                status["completionTime"] = (job.get("status") or {}).get("completionTime") or stamp(now)
        status["startTime"] = status["startTime"] or stamp(now)
    elif is_suspended:
        wanted.append(("Suspended", "True", "JobSuspended", told("Job suspended")))
        status["startTime"] = None
    else:
        status["startTime"] = status["startTime"] or stamp(now)
        if any(each["type"] == "Suspended" for each in (job.get("status") or {}).get("conditions") or ()):
            wanted.append(("Suspended", "False", "JobResumed", told("Job resumed")))
    if is_indexed(job):
        status["completedIndexes"] = _text(outlook.done) or None
    status["conditions"] = _dated(job, wanted, now) or None
    return status


def _dated(job: Manifest, wanted: Sequence[tuple[str, str, str, str]], now: datetime) -> list[Status]:
    known = {each["type"]: dict(each) for each in (job.get("status") or {}).get("conditions") or ()}
    for type_, is_so, reason, message in wanted:
        if known.get(type_, {}).get("status") != is_so:
            times = {"lastProbeTime": stamp(now), "lastTransitionTime": stamp(now)}
            known[type_] = {"type": type_, "status": is_so, **times, "reason": reason, "message": message}
    return list(known.values())


def _numbers(text: str) -> list[int]:
    """Parse completed indexes: `0-2,5` means 0, 1, 2 and 5."""
    found: list[int] = []
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        found.extend(range(int(first), int(last or first) + 1))
    return found


def _text(numbers: frozenset[int]) -> str:
    """Render completed indexes: 0, 1, 2 and 5 become `0-2,5`."""
    runs: list[list[int]] = []
    for each in sorted(numbers):
        if runs and runs[-1][-1] == each - 1:
            runs[-1][-1:] = [each] if len(runs[-1]) > 1 else [runs[-1][0], each]
        else:
            runs.append([each])
    return ",".join("-".join(map(str, run)) for run in runs)
