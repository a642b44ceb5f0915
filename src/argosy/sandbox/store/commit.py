"""A write on its way to the disk, and the end when it cannot get there.

In: what `Store.put` staged. Out: an awaitable that is done once it is durable. Never: done before that.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Generator
from typing import Any, NamedTuple

from argosy.sandbox.store.entries import Entry, Event

FATAL_EXIT = 70


def end_process(message: str) -> None:
    """At once and without cleaning up: clean-up could write, or acknowledge, more."""
    sys.stderr.write(f"argosy: {message}\n")
    sys.stderr.flush()
    os._exit(FATAL_EXIT)


class Commit:
    """A staged write. `entry` is known at once; awaiting it means: durable, and every watcher has the event."""

    __slots__ = ("_done", "entry")

    def __init__(self, entry: Entry, done: asyncio.Future[None]) -> None:
        self.entry = entry
        self._done = done

    def __await__(self) -> Generator[Any, None, Entry]:
        # A writer that is cancelled stops waiting, no more: the write goes on, and others wait for it too.
        yield from asyncio.shield(self._done)
        return self.entry


class Staged(NamedTuple):
    event: Event
    path: str
    entry: Entry
    done: asyncio.Future[None]
