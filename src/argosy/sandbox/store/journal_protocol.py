"""Journal protocol: makes batches durable and reads old history; and a journal without a disk.

In: batches of events from the loop. Out: `on_committed()` on the loop, once the batch is on disk. Never: acknowledges a
write that is not on disk; a failed write ends the process, because the content of the disk is unknown then. A full disk
and a damaged page are detected before anything is written; they make the store read-only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from argosy.errors import ArgosyError, Gone
from argosy.sandbox.store.entries_and_events import StoreEntry, StoreEvent

FatalErrorHandler = Callable[[str], None]


class JournalListener(Protocol):
    """Callbacks of the journal, implemented by the store. Called on the loop."""

    def on_committed(self) -> None: ...
    def on_compacted(self, revision: int) -> None: ...
    def on_failed(self, message: str) -> None: ...
    def on_refused(self, error: ArgosyError) -> None:
        """The batch was not written, and no batch will be until `on_recovered`."""

    def on_recovered(self) -> None: ...


class StoreJournal(Protocol):
    keeps_history: bool

    def start(self, listener: JournalListener) -> None: ...
    def write(self, events: Sequence[StoreEvent]) -> None:
        """Write one batch. The next call must wait for `on_committed`."""

    def compact(self, revision: int) -> None: ...
    async def list_events(self, bucket: str, after: int, until: int) -> list[StoreEvent]: ...
    async def list_live(self, bucket: str, namespace: str, revision: int) -> list[StoreEntry]: ...
    async def list_live_revisions(self, revision: int) -> list[tuple[str, str, str, int]] | None:
        """Keys and revisions of the live objects on disk; None if there is no disk."""

    async def close(self) -> None: ...


class MemoryJournal:
    """Keeps nothing on disk: events that left the window are compacted."""

    keeps_history = False

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def start(self, listener: JournalListener) -> None:
        self._listener = listener

    def write(self, events: Sequence[StoreEvent]) -> None:
        self._loop.call_soon(self._listener.on_committed)

    def compact(self, revision: int) -> None:
        self._loop.call_soon(self._listener.on_compacted, revision)

    async def list_events(self, bucket: str, after: int, until: int) -> list[StoreEvent]:
        raise build_gone_error(after, until)

    async def list_live(self, bucket: str, namespace: str, revision: int) -> list[StoreEntry]:
        raise build_gone_error(revision, revision + 1)

    async def list_live_revisions(self, revision: int) -> list[tuple[str, str, str, int]] | None:
        return None

    async def close(self) -> None:
        return None


def build_gone_error(revision: int, compacted: int) -> Gone:
    # k8s: the message of the watch cache.
    return Gone(f"too old resource version: {revision} ({compacted})", reason="Expired")
