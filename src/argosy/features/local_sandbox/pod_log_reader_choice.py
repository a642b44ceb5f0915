"""Chooses the log reader of a Pod: the first that knows the Pod, else the fallback.

In: a Pod. Out: lines from one reader. Never: produces lines itself.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from argosy.errors import UserError
from argosy.kube.client import AccessDescriber, PodLogReader, PreviousPodLogReader, SelectivePodLogReader
from argosy.kube.objects import Manifest

NO_READER_MESSAGE: Final = "nothing runs Pods in this cluster, so there are no logs and no shell"


class PodLogDispatcher:
    """Implements PodLogReader, PodAccess and PreviousLogs."""

    def __init__(self, readers: Sequence[SelectivePodLogReader], fallback: PodLogReader | None = None) -> None:
        self._readers, self._fallback = tuple(readers), fallback

    def lines(self, pod: Manifest, *, container: str, follow: bool, tail: int | None) -> AsyncIterator[str]:
        """Log lines of the Pod. Raises UserError if no reader knows it."""
        reader = next((candidate for candidate in self._readers if candidate.has_logs_of(pod)), self._fallback)
        if reader is None:
            raise UserError(NO_READER_MESSAGE)
        return reader.lines(pod, container=container, follow=follow, tail=tail)

    def describe_access(self, manifest: Manifest) -> str:
        fallback: object = self._fallback
        return fallback.describe_access(manifest) if isinstance(fallback, AccessDescriber) else NO_READER_MESSAGE

    def previous_lines(self, pod: Manifest, *, container: str, tail: int | None) -> AsyncIterator[str] | None:
        fallback: object = self._fallback
        if isinstance(fallback, PreviousPodLogReader) and not any(reader.has_logs_of(pod) for reader in self._readers):
            return fallback.previous_lines(pod, container=container, tail=tail)
        return None
