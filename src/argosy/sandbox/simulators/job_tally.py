"""Counts the succeeded and failed Pods of Jobs, including Pods that no longer exist.

In: a Job and its Pods, at every reconcile. Out: the number of succeeded and failed Pods. Never: writes. After a
restart, counting continues from the Job's status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.sandbox.simulators.constants import is_dying
from argosy.sandbox.simulators.pod_counts import is_active, phase_of


class Tally(NamedTuple):
    succeeded: int
    failed: int


@dataclass
class _Known:
    """Pod uids of one Job by outcome, and the counts from before this process started."""

    job: str
    before: Tally
    succeeded: set[str] = field(default_factory=set)
    failed: set[str] = field(default_factory=set)
    active: set[str] = field(default_factory=set)
    excused: set[str] = field(default_factory=set)


class Tallies:
    def __init__(self) -> None:
        self._known: dict[ResourceKey, _Known] = {}

    def count(self, job: Manifest, pods: Sequence[Manifest]) -> Tally:
        """k8s: a Pod that is deleted before it finishes has failed, whoever deleted it."""
        succeeded = _uids(each for each in pods if phase_of(each) == "Succeeded")
        failed = _uids(each for each in pods if phase_of(each) == "Failed")
        known = self._of(job, len(succeeded), len(failed))
        dying = _uids(each for each in pods if is_dying(each)) - succeeded
        gone = known.active - _uids(pods)
        known.succeeded |= succeeded
        known.failed |= (failed | dying | gone) - known.succeeded - known.excused
        known.active = _uids(each for each in pods if is_active(each))
        return Tally(known.before.succeeded + len(known.succeeded), known.before.failed + len(known.failed))

    def excuse(self, job: Manifest, pods: Iterable[Manifest]) -> None:
        """k8s: Pods that the Job controller deletes because of suspension or lower parallelism have not failed."""
        if known := self._known.get(key_of(job)):
            known.excused |= _uids(pods)

    def forget(self, key: ResourceKey) -> None:
        self._known.pop(key, None)

    def _of(self, job: Manifest, succeeded: int, failed: int) -> _Known:
        uid, known = str(job["metadata"]["uid"]), self._known.get(key_of(job))
        if known is None or known.job != uid:
            status = job.get("status") or {}
            missing = int(status.get("succeeded") or 0) - succeeded, int(status.get("failed") or 0) - failed
            known = self._known[key_of(job)] = _Known(uid, Tally(*(max(each, 0) for each in missing)))
        return known


def _uids(pods: Iterable[Manifest]) -> set[str]:
    return {str(each["metadata"]["uid"]) for each in pods}
