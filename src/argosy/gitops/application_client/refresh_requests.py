"""Refreshes that others ask for, by an annotation that any engine reads: at most one of an Application in a while.

In: keys of Applications. Out: annotations, written in the background. Never: forgets one that came too early: it is
done when its time has come; keeps whoever asks waiting.
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
SECONDS: Final = 10.0  # between two of one Application
AT_ONCE: Final = 8
MOST: Final = 50_000  # Applications that are remembered


class Refreshes:
    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._last: dict[ResourceKey, float] = {}
        self._due: dict[ResourceKey, float] = {}
        self._work: asyncio.Task[None] | None = None
        self._asked = asyncio.Event()

    def ask(self, cluster: Cluster, keys: Iterable[ResourceKey]) -> int:
        """How many of them are new: one that waits for its time already is not asked for twice."""
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
                with suppress(TimeoutError):  # what is asked for meanwhile may be due before
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
        """Until nothing waits."""
        if self._work is not None:
            await asyncio.wait({self._work})


async def ask_quietly(cluster: Cluster, key: ResourceKey) -> None:
    """Without an Event: nobody in particular asks. On what it is now: a hard one may wait. Nothing where it is gone."""
    for attempt in range(ATTEMPTS):
        found = await cluster.get(key)
        if found is None:
            return
        asked = refresh_asked(found["metadata"].get("annotations") or {}, datetime.now(UTC))
        version = found["metadata"].get("resourceVersion")
        try:
            await cluster.patch(key, {"metadata": {"resourceVersion": version, "annotations": asked}})
        except Conflict:
            await asyncio.sleep(PAUSE * 2**attempt)  # who writes is given the time to end it
            continue
        return
    raise TransientError(f"{key.name}: others write it all the time")


async def _refresh(cluster: Cluster, key: ResourceKey) -> None:
    with about(**about_object(key)):
        try:
            await ask_quietly(cluster, key)
        except ArgosyError as error:  # it is gone, or the cluster is away: it is looked at sooner or later anyway
            log.info("%s/%s was not refreshed: %s", key.namespace, key.name, error)
        except Exception:
            log.exception("%s/%s was not refreshed", key.namespace, key.name)
