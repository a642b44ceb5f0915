"""Events are news: an hour after they last happened they go."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import orjson

from argosy.errors import ClusterError
from argosy.sandbox.apiserver.controllers.controller import CONTROLLER
from argosy.sandbox.apiserver.deletion import DeleteOptions, Deletion
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.store import Entry

log = logging.getLogger(__name__)
LIFETIME = timedelta(hours=1)  # k8s: --event-ttl
LOOK_EVERY = 60.0


class EventAges:
    """How long each Event is known here, by the monotonic clock: k8s counts its time to live so, too.

    The times that are written in Events say little after the clock was set: those from before would stay for as long as
    it was ahead, or all would go at once. They decide only for Events that were there before this process began.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        # Revision, and since when it is known; None before the first look.
        self._known: dict[tuple[str, str], tuple[int, float]] | None = None
        self._old: dict[tuple[str, str], int] = {}  # revisions that were there before the first look

    def is_over(self, entry: Entry, oldest: datetime) -> bool:
        """Whether the Event has lived long enough. Asked after `look`."""
        name = (entry.namespace, entry.name)
        assert self._known is not None
        revision, since = self._known[name]
        if self._monotonic() - since >= LIFETIME.total_seconds():
            return True
        return self._old.get(name) == revision and last_seen(entry.body) < oldest

    def look(self, entries: Iterable[Entry]) -> None:
        now, before = self._monotonic(), self._known or {}
        found: dict[tuple[str, str], tuple[int, float]] = {}
        for entry in entries:
            name = (entry.namespace, entry.name)
            known = before.get(name)
            found[name] = known if known and known[0] == entry.revision else (entry.revision, now)
        if self._known is None:
            self._old = {name: revision for name, (revision, _) in found.items()}
        self._known = found


async def expire(registry: Registry) -> None:
    ages = EventAges()
    ages.look(registry.store.list("events"))
    while True:
        await asyncio.sleep(LOOK_EVERY)
        try:
            await expire_once(registry, ages)
        except Exception:  # an event that cannot be judged must not keep all others for ever
            log.exception("old events could not be removed")


async def expire_once(registry: Registry, ages: EventAges | None = None) -> None:
    """Without `ages`, as after a start: the times that are written in Events decide."""
    ages = ages or EventAges()
    served = registry.catalog.at("", "v1", "events")
    assert served is not None
    deletion, oldest = Deletion(registry), registry.clock() - LIFETIME
    entries = list(registry.store.list("events"))
    ages.look(entries)
    for entry in entries:
        if ages.is_over(entry, oldest):
            try:
                uid = orjson.loads(entry.body)["metadata"].get("uid") or ""
                await deletion.delete(served, entry.namespace, entry.name, DeleteOptions(uid=uid), CONTROLLER)
            except ClusterError:
                pass  # somebody else removed it, or wrote another Event of its name


def last_seen(body: bytes) -> datetime:
    event = orjson.loads(body)
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    stamps = [datetime.fromisoformat(text) for text in (*times, event["metadata"]["creationTimestamp"]) if text]
    return max(stamps)
