"""Deletes Events one hour after they last occurred."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

import orjson

from argosy.errors import ClusterError
from argosy.sandbox.apiserver.controllers.controller import CONTROLLER_CALL
from argosy.sandbox.apiserver.deletion import DeleteOptions, ObjectDeleter
from argosy.sandbox.apiserver.registry import Registry
from argosy.sandbox.store import StoreEntry

log = logging.getLogger(__name__)
EVENT_LIFETIME = timedelta(hours=1)  # k8s: --event-ttl
CHECK_INTERVAL_SECONDS = 60.0


class EventAgeTracker:
    """Tracks the age of Events by the monotonic clock, like the TTL of Kubernetes.

    Timestamps in Events are unreliable after the system clock was changed: Events would stay too long or be deleted all
    at once. Timestamps only decide for Events that existed before this process started.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        # Revision, and when it was first seen; None before the first update.
        self._first_seen: dict[tuple[str, str], tuple[int, float]] | None = None
        self._initial_revisions: dict[tuple[str, str], int] = {}  # revisions at the first update

    def is_expired(self, entry: StoreEntry, oldest: datetime) -> bool:
        """True if the Event has expired. Call `update` first."""
        key = (entry.namespace, entry.name)
        assert self._first_seen is not None
        revision, first_seen = self._first_seen[key]
        if self._monotonic() - first_seen >= EVENT_LIFETIME.total_seconds():
            return True
        return self._initial_revisions.get(key) == revision and read_last_seen(entry.body) < oldest

    def update(self, entries: Iterable[StoreEntry]) -> None:
        now, previous = self._monotonic(), self._first_seen or {}
        first_seen: dict[tuple[str, str], tuple[int, float]] = {}
        for entry in entries:
            key = (entry.namespace, entry.name)
            seen = previous.get(key)
            first_seen[key] = seen if seen and seen[0] == entry.revision else (entry.revision, now)
        if self._first_seen is None:
            self._initial_revisions = {key: revision for key, (revision, _) in first_seen.items()}
        self._first_seen = first_seen


async def run_event_expiry(registry: Registry) -> None:
    ages = EventAgeTracker()
    ages.update(registry.store.list("events"))
    while True:
        await asyncio.sleep(CHECK_INTERVAL_SECONDS)
        try:
            await delete_expired_events(registry, ages)
        except Exception:  # one malformed Event must not stop the expiry of all others
            log.exception("cannot delete expired Events")


async def delete_expired_events(registry: Registry, ages: EventAgeTracker | None = None) -> None:
    """Without `ages`, as after a start, the timestamps in Events decide."""
    ages = ages or EventAgeTracker()
    served = registry.catalog.find_resource("", "v1", "events")
    assert served is not None
    deletion, oldest = ObjectDeleter(registry), registry.clock() - EVENT_LIFETIME
    entries = list(registry.store.list("events"))
    ages.update(entries)
    for entry in entries:
        if ages.is_expired(entry, oldest):
            try:
                uid = orjson.loads(entry.body)["metadata"].get("uid") or ""
                await deletion.delete(served, entry.namespace, entry.name, DeleteOptions(uid=uid), CONTROLLER_CALL)
            except ClusterError:
                pass  # already deleted, or replaced by another Event


def read_last_seen(body: bytes) -> datetime:
    event = orjson.loads(body)
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    stamps = [datetime.fromisoformat(text) for text in (*times, event["metadata"]["creationTimestamp"]) if text]
    return max(stamps)
