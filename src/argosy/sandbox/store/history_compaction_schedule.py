"""Decides how much history is kept.

In: the current revision, the bytes written and the time. Out: the revision to compact to, or None.
Never: compacts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

MILESTONES_PER_BOUND = 32  # history is compacted in pieces of about 1/32 of a bound


@dataclass(frozen=True, slots=True)
class Retention:
    """History that is older than `max_age_seconds`, or behind more revisions or bytes than this, is compacted.

    k8s: kube-apiserver compacts every five minutes, so a client may resume after five to ten.
    """

    max_age_seconds: float = 600.0
    max_revisions: int = 20_000
    max_bytes: int = 24 * 1024 * 1024


class _Milestone(NamedTuple):
    time: float
    revision: int
    bytes: int


class CompactionSchedule:
    """Records milestones of the history; those beyond the retention say which revision to compact to."""

    def __init__(self, retention: Retention, *, now: float, revision: int, history_bytes: int) -> None:
        self._retention = retention
        self._bytes = history_bytes
        # History from before the start is compacted in one piece, once this milestone is beyond the retention.
        self._milestones: deque[_Milestone] = deque([_Milestone(now, revision, 0)])

    def record_progress(self, *, now: float, revision: int, written_bytes: int) -> int | None:
        """Account for more written bytes; return the newest revision that is beyond the retention, if there is one."""
        self._bytes += written_bytes
        self._add_milestone(now, revision)
        retention, target = self._retention, None
        while self._milestones:
            milestone = self._milestones[0]
            if (
                now - milestone.time <= retention.max_age_seconds
                and revision - milestone.revision <= retention.max_revisions
                and self._bytes - milestone.bytes <= retention.max_bytes
            ):
                break
            target = self._milestones.popleft().revision
        return target

    def _add_milestone(self, now: float, revision: int) -> None:
        retention, last = (
            self._retention,
            self._milestones[-1] if self._milestones else _Milestone(float("-inf"), -1, 0),
        )
        if revision > last.revision and (
            now - last.time >= retention.max_age_seconds / MILESTONES_PER_BOUND
            or revision - last.revision >= max(1, retention.max_revisions // MILESTONES_PER_BOUND)
            or self._bytes - last.bytes >= retention.max_bytes // MILESTONES_PER_BOUND
        ):
            self._milestones.append(_Milestone(now, revision, self._bytes))
