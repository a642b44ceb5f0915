"""Counts the succeeded and failed Pods of Jobs, including Pods that no longer exist.

In: a Job and its Pods, at every reconcile. Out: the number of succeeded and failed Pods. Never: writes. After a
restart, counting continues from the Job's status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.simulators.owner_references_and_marks import is_being_deleted
from argosy.sandbox.simulators.pod_counts import is_active, read_pod_phase


class JobPodCounts(NamedTuple):
    succeeded: int
    failed: int


@dataclass
class _CountedPods:
    """Pod uids of one Job by outcome, and the counts from before this process started."""

    job_uid: str
    earlier_counts: JobPodCounts
    succeeded: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    active: set[str] = field(default_factory=set)
    not_failed: set[str] = field(default_factory=set)


class JobPodCounter:
    def __init__(self) -> None:
        self._counted_by_job: dict[ResourceKey, _CountedPods] = {}

    def count(self, job: Manifest, pods: Sequence[Manifest]) -> JobPodCounts:
        """k8s: a Pod that is deleted before it finishes has failed, whoever deleted it."""
        succeeded = _read_uids(pod for pod in pods if read_pod_phase(pod) == "Succeeded")
        failed = _read_uids(pod for pod in pods if read_pod_phase(pod) == "Failed")
        counted = self._find_or_start_counts(job, len(succeeded), len(failed))
        terminating = _read_uids(pod for pod in pods if is_being_deleted(pod)) - succeeded
        gone = counted.active - _read_uids(pods)
        counted.succeeded |= succeeded
        counted.failed |= (failed | terminating | gone) - counted.succeeded - counted.not_failed
        counted.active = _read_uids(pod for pod in pods if is_active(pod))
        return JobPodCounts(
            counted.earlier_counts.succeeded + len(counted.succeeded),
            counted.earlier_counts.failed + len(counted.failed),
        )

    def mark_not_failed(self, job: Manifest, pods: Iterable[Manifest]) -> None:
        """k8s: Pods that the Job controller deletes because of suspension or lower parallelism have not failed."""
        if counted := self._counted_by_job.get(key_of(job)):
            counted.not_failed |= _read_uids(pods)

    def forget(self, key: ResourceKey) -> None:
        self._counted_by_job.pop(key, None)

    def _find_or_start_counts(self, job: Manifest, succeeded: int, failed: int) -> _CountedPods:
        uid, counted = str(job["metadata"]["uid"]), self._counted_by_job.get(key_of(job))
        if counted is None or counted.job_uid != uid:
            status = job.get("status") or {}
            missing = int(status.get("succeeded") or 0) - succeeded, int(status.get("failed") or 0) - failed
            counted = self._counted_by_job[key_of(job)] = _CountedPods(
                uid, JobPodCounts(*(max(number, 0) for number in missing))
            )
        return counted


def _read_uids(pods: Iterable[Manifest]) -> set[str]:
    return {str(pod["metadata"]["uid"]) for pod in pods}
