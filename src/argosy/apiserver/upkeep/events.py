"""Events are news: an hour after they last happened they go."""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime, timedelta

import orjson

from argosy.apiserver.deletion import DeleteOptions, Deletion
from argosy.apiserver.registry import Registry
from argosy.apiserver.upkeep.keeper import CONTROLLER
from argosy.model.errors import ClusterError

log = logging.getLogger(__name__)
LIFETIME = timedelta(hours=1)  # k8s: --event-ttl
LOOK_EVERY = 60.0


async def expire(registry: Registry) -> None:
    while True:
        await asyncio.sleep(LOOK_EVERY)
        try:
            await expire_once(registry)
        except Exception:  # an event that cannot be judged must not keep all others for ever
            log.exception("old events could not be removed")


async def expire_once(registry: Registry) -> None:
    served = registry.catalog.at("", "v1", "events")
    assert served is not None
    deletion, oldest = Deletion(registry), registry.clock() - LIFETIME
    for entry in list(registry.store.list("events")):
        if last_seen(entry.body) < oldest:
            try:
                await deletion.delete(served, entry.namespace, entry.name, DeleteOptions(), CONTROLLER)
            except ClusterError:
                pass  # somebody else removed it


def last_seen(body: bytes) -> datetime:
    event = orjson.loads(body)
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    stamps = [datetime.fromisoformat(text) for text in (*times, event["metadata"]["creationTimestamp"]) if text]
    return max(stamps)
