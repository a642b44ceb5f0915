"""Decides how much history is kept.

In: the current revision, the bytes written and the time. Out: the revision to compact to, or None.
Never: compacts.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

MARKS = 32  # history is compacted in pieces of about 1/32 of a bound


@dataclass(frozen=True, slots=True)
class Retention:
    """History that is older than `age` seconds, or behind more revisions or bytes than this, is compacted.

    k8s: kube-apiserver compacts every five minutes, so a client may resume after five to ten.
    """

    age: float = 600.0
    revisions: int = 20_000
    bytes: int = 24 * 1024 * 1024


class _Mark(NamedTuple):
    time: float
    revision: int
    bytes: int


class Marks:
    """Records milestones of the history; those beyond the retention say which revision to compact to."""

    def __init__(self, retention: Retention, *, now: float, revision: int, history_bytes: int) -> None:
        self._retention = retention
        self._bytes = history_bytes
        # History from before the start is compacted in one piece, once this milestone is beyond the retention.
        self._marks: deque[_Mark] = deque([_Mark(now, revision, 0)])

    def passed(self, *, now: float, revision: int, written: int) -> int | None:
        """Account for more written bytes; return the newest revision that is beyond the retention, if there is one."""
        self._bytes += written
        self._set(now, revision)
        keep, target = self._retention, None
        while self._marks:
            mark = self._marks[0]
            if (
                now - mark.time <= keep.age
                and revision - mark.revision <= keep.revisions
                and self._bytes - mark.bytes <= keep.bytes
            ):
                break
            target = self._marks.popleft().revision
        return target

    def _set(self, now: float, revision: int) -> None:
        keep, last = self._retention, self._marks[-1] if self._marks else _Mark(float("-inf"), -1, 0)
        if revision > last.revision and (
            now - last.time >= keep.age / MARKS
            or revision - last.revision >= max(1, keep.revisions // MARKS)
            or self._bytes - last.bytes >= keep.bytes // MARKS
        ):
            self._marks.append(_Mark(now, revision, self._bytes))
