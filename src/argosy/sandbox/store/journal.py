"""Where batches become durable, and where old history is read.

In: batches of events from the loop. Out: `committed()` on the loop, once the batch is on disk. Never: acknowledges
what is not on disk; a write that fails ends the process, because nobody can say what the disk holds then. A full disk
and a damaged page are told before anything is written: then the store is read-only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from argosy.errors import ArgosyError, Gone
from argosy.sandbox.store.entries import Entry, Event

Fatal = Callable[[str], None]


class Listener(Protocol):
    """The store, as a journal sees it. Called on the loop."""

    def committed(self) -> None: ...
    def compacted_to(self, revision: int) -> None: ...
    def failed(self, message: str) -> None: ...
    def refused(self, error: ArgosyError) -> None:
        """Nothing of the batch was written, and nothing will be until `recovered`."""

    def recovered(self) -> None: ...


class Journal(Protocol):
    keeps_history: bool

    def start(self, listener: Listener) -> None: ...
    def write(self, events: Sequence[Event]) -> None:
        """One batch at a time: the next only after `committed`."""

    def compact(self, revision: int) -> None: ...
    async def events(self, bucket: str, after: int, upto: int) -> list[Event]: ...
    async def live(self, bucket: str, namespace: str, revision: int) -> list[Entry]: ...
    async def live_revisions(self, revision: int) -> list[tuple[str, str, str, int]] | None:
        """None: there is no disk to compare with."""

    async def close(self) -> None: ...


class MemoryJournal:
    """Nothing on disk: what left the window is compacted."""

    keeps_history = False

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def start(self, listener: Listener) -> None:
        self._listener = listener

    def write(self, events: Sequence[Event]) -> None:
        self._loop.call_soon(self._listener.committed)

    def compact(self, revision: int) -> None:
        self._loop.call_soon(self._listener.compacted_to, revision)

    async def events(self, bucket: str, after: int, upto: int) -> list[Event]:
        raise gone(after, upto)

    async def live(self, bucket: str, namespace: str, revision: int) -> list[Entry]:
        raise gone(revision, revision + 1)

    async def live_revisions(self, revision: int) -> list[tuple[str, str, str, int]] | None:
        return None

    async def close(self) -> None:
        return None


def gone(revision: int, compacted: int) -> Gone:
    # k8s: the words of the watch cache.
    return Gone(f"too old resource version: {revision} ({compacted})", reason="Expired")
