"""Who is asked for the log of a Pod: the first who knows it, else whoever plays all others.

In: a Pod. Out: lines, from one of them. Never: lines of its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from argosy.errors import UserError
from argosy.kube.client import EarlierLogs, PodLogs, SomeLogs, WayIn
from argosy.kube.objects import Manifest

NOBODY: Final = "nothing runs such Pods in this cluster, so there is nothing to show or to enter"


class FirstWhoKnows:
    """Implements PodLogs, WayIn and EarlierLogs."""

    def __init__(self, some: Sequence[SomeLogs], others: PodLogs | None = None) -> None:
        self._some, self._others = tuple(some), others

    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        """Raises UserError where nobody does."""
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
