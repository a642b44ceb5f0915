"""Deletes Events one hour after they last occurred."""

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
    """Tracks the age of Events by the monotonic clock, like the TTL of Kubernetes.

    Timestamps in Events are unreliable after the system clock was changed: Events would stay too long or be deleted all
    at once. Timestamps only decide for Events that existed before this process started.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        # Revision, and when it was first seen; None before the first update.
        self._known: dict[tuple[str, str], tuple[int, float]] | None = None
        self._old: dict[tuple[str, str], int] = {}  # revisions at the first update

    def is_over(self, entry: Entry, oldest: datetime) -> bool:
        """True if the Event has expired. Call `update` first."""
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
        except Exception:  # one malformed Event must not stop the expiry of all others
            log.exception("cannot delete expired Events")


async def expire_once(registry: Registry, ages: EventAges | None = None) -> None:
    """Without `ages`, as after a start, the timestamps in Events decide."""
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
                pass  # already deleted, or replaced by another Event


def last_seen(body: bytes) -> datetime:
    event = orjson.loads(body)
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    stamps = [datetime.fromisoformat(text) for text in (*times, event["metadata"]["creationTimestamp"]) if text]
    return max(stamps)
