"""Writes that are staged but not durable yet, and the exit of the process if they cannot be written.

In: what `Store.put` staged. Out: an awaitable that is done once the write is durable. Never: done before that.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Generator
from typing import Any, NamedTuple

from argosy.sandbox.store.entries_and_events import StoreEntry, StoreEvent

FATAL_EXIT_CODE = 70


def end_process(message: str) -> None:
    """Exit immediately and without clean-up, which could write or acknowledge more."""
    sys.stderr.write(f"argosy: {message}\n")
    sys.stderr.flush()
    os._exit(FATAL_EXIT_CODE)


class PendingWrite:
    """A staged write. `entry` is available at once; awaiting returns when it is durable and watches have the event."""

    __slots__ = ("_done", "entry")

    def __init__(self, entry: StoreEntry, done: asyncio.Future[None]) -> None:
        self.entry = entry
        self._done = done

    def __await__(self) -> Generator[Any, None, StoreEntry]:
        # A cancelled writer only stops waiting: the write continues, because others may wait for it.
        yield from asyncio.shield(self._done)
        return self.entry


class StagedWrite(NamedTuple):
    event: StoreEvent
    path: str
    entry: StoreEntry
    done: asyncio.Future[None]
