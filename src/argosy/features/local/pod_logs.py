"""Chooses the log reader of a Pod: the first that knows the Pod, else the fallback.

In: a Pod. Out: lines from one reader. Never: produces lines itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from argosy.errors import UserError
from argosy.kube.client import EarlierLogs, PodLogs, SomeLogs, WayIn
from argosy.kube.objects import Manifest

NOBODY: Final = "nothing runs Pods in this cluster, so there are no logs and no shell"


class FirstWhoKnows:
    """Implements PodLogReader, PodAccess and PreviousLogs."""

    def __init__(self, some: Sequence[SomeLogs], others: PodLogs | None = None) -> None:
        self._some, self._others = tuple(some), others

    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        """Log lines of the Pod. Raises UserError if no reader knows it."""
        asked = next((each for each in self._some if each.knows(pod)), self._others)
        if asked is None:
            raise UserError(NOBODY)
        return asked.lines(pod, container=container, follow=follow, tail=tail)

    def way_in(self, manifest: Manifest) -> str:
        others: object = self._others
        return others.way_in(manifest) if isinstance(others, WayIn) else NOBODY

    def earlier(self, pod: Manifest, *, container: str, tail: int | None) -> AsyncIterator[str] | None:
        others: object = self._others
        if isinstance(others, EarlierLogs) and not any(each.knows(pod) for each in self._some):
            return others.earlier(pod, container=container, tail=tail)
        return None
