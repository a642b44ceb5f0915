"""Requests refreshes by annotation, rate-limited per Application.

In: keys of Applications. Out: annotations, written in the background. Never: drops a request that came too early: it is
delayed; blocks the caller.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from argosy.errors import ArgosyError, Conflict, TransientError
from argosy.gitops.application.refresh import refresh_asked
from argosy.gitops.application_client.client import ATTEMPTS, PAUSE
from argosy.kube.client import Cluster
from argosy.kube.controller.log_context import about, about_object
from argosy.kube.names import ResourceKey

log = logging.getLogger(__name__)
SECONDS: Final = 10.0  # minimum between two refreshes of one Application
AT_ONCE: Final = 8
MOST: Final = 50_000  # Applications in memory


class Refreshes:
    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._last: dict[ResourceKey, float] = {}
        self._due: dict[ResourceKey, float] = {}
        self._work: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()

    def ask(self, cluster: Cluster, keys: Iterable[ResourceKey]) -> int:
        """Queue refreshes; return how many were not queued already."""
        now, count = asyncio.get_running_loop().time(), 0
        for key in keys:
            if key not in self._due and len(self._due) < MOST:
                self._due[key] = max(now, self._last.get(key, now - self._seconds) + self._seconds)
                count += 1
        self._asked.set()
        if self._due and (self._work is None or self._work.done()):
            self._work = asyncio.create_task(self._run(cluster), name="refreshes")
        return count

    async def _run(self, cluster: Cluster) -> None:
        clock = asyncio.get_running_loop().time
        while self._due:
            ready = [key for key, at in self._due.items() if at <= clock()][:AT_ONCE]
            if not ready:
                self._asked.clear()
                with suppress(TimeoutError):  # a new request may be due earlier
                    await asyncio.wait_for(self._asked.wait(), min(self._due.values()) - clock())
                continue
            for key in ready:
                del self._due[key]
                self._remember(key, clock())
            await asyncio.gather(*(_refresh(cluster, key) for key in ready))

    def _remember(self, key: ResourceKey, at: float) -> None:
        if len(self._last) >= MOST:
            self._last = {each: then for each, then in self._last.items() if then > at - self._seconds}
        self._last[key] = at

    async def done(self) -> None:
        """Wait until the queue is empty."""
        if self._work is not None:
            await asyncio.wait({self._work})


async def ask_quietly(cluster: Cluster, key: ResourceKey) -> None:
    """Write the refresh annotation without an Event, keeping a pending hard refresh; does nothing if the object is
    gone.
    """
    for attempt in range(ATTEMPTS):
        found = await cluster.get(key)
        if found is None:
            return
        asked = refresh_asked(found["metadata"].get("annotations") or {}, datetime.now(UTC))
        version = found["metadata"].get("resourceVersion")
        try:
            await cluster.patch(key, {"metadata": {"resourceVersion": version, "annotations": asked}})
        except Conflict:
            await asyncio.sleep(PAUSE * 2**attempt)
            continue
        return
    raise TransientError(f"{key.name}: gave up after {ATTEMPTS} write conflicts")


async def _refresh(cluster: Cluster, key: ResourceKey) -> None:
    with about(**about_object(key)):
        try:
            await ask_quietly(cluster, key)
        except ArgosyError as error:  # gone, or the cluster is unreachable: the periodic refresh follows anyway
            log.info("cannot request a refresh: %s/%s: %s", key.namespace, key.name, error)
        except Exception:
            log.exception("cannot request a refresh: %s/%s", key.namespace, key.name)
