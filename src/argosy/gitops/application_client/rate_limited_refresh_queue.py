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
from argosy.gitops.application.refresh_request_annotations import build_refresh_annotations
from argosy.gitops.application_client.application_service import FIRST_RETRY_SECONDS, MAX_WRITE_ATTEMPTS
from argosy.kube.client import Cluster
from argosy.kube.controller.log_context import build_object_field, with_log_fields
from argosy.kube.resource_key import ResourceKey

log = logging.getLogger(__name__)
MIN_INTERVAL_SECONDS: Final = 10.0  # minimum between two refreshes of one Application
MAX_CONCURRENT_WRITES: Final = 8
MAX_TRACKED_APPLICATIONS: Final = 50_000  # Applications in memory


class RefreshQueue:
    def __init__(self, interval_seconds: float = MIN_INTERVAL_SECONDS) -> None:
        self._interval_seconds = interval_seconds
        self._last_refresh: dict[ResourceKey, float] = {}
        self._due: dict[ResourceKey, float] = {}
        self._task: asyncio.Task[None] | None = None
        self._new_request = asyncio.Event()

    def enqueue(self, cluster: Cluster, keys: Iterable[ResourceKey]) -> int:
        """Queue refreshes; return how many were not queued already."""
        now, count = asyncio.get_running_loop().time(), 0
        for key in keys:
            if key not in self._due and len(self._due) < MAX_TRACKED_APPLICATIONS:
                self._due[key] = max(
                    now, self._last_refresh.get(key, now - self._interval_seconds) + self._interval_seconds
                )
                count += 1
        self._new_request.set()
        if self._due and (self._task is None or self._task.done()):
            self._task = asyncio.create_task(self._run(cluster), name="refreshes")
        return count

    async def _run(self, cluster: Cluster) -> None:
        clock = asyncio.get_running_loop().time
        while self._due:
            ready = [key for key, due in self._due.items() if due <= clock()][:MAX_CONCURRENT_WRITES]
            if not ready:
                self._new_request.clear()
                with suppress(TimeoutError):  # a new request may be due earlier
                    await asyncio.wait_for(self._new_request.wait(), min(self._due.values()) - clock())
                continue
            for key in ready:
                del self._due[key]
                self._record_refresh(key, clock())
            await asyncio.gather(*(_try_refresh(cluster, key) for key in ready))

    def _record_refresh(self, key: ResourceKey, refreshed_at: float) -> None:
        if len(self._last_refresh) >= MAX_TRACKED_APPLICATIONS:
            self._last_refresh = {
                other_key: other_time
                for other_key, other_time in self._last_refresh.items()
                if other_time > refreshed_at - self._interval_seconds
            }
        self._last_refresh[key] = refreshed_at

    async def wait_until_empty(self) -> None:
        """Wait until the queue is empty."""
        if self._task is not None:
            await asyncio.wait({self._task})


async def write_refresh_annotation(cluster: Cluster, key: ResourceKey) -> None:
    """Write the refresh annotation without an Event, keeping a pending hard refresh; does nothing if the object is
    gone.
    """
    for attempt in range(MAX_WRITE_ATTEMPTS):
        manifest = await cluster.get(key)
        if manifest is None:
            return
        annotations = build_refresh_annotations(manifest["metadata"].get("annotations") or {}, datetime.now(UTC))
        version = manifest["metadata"].get("resourceVersion")
        try:
            await cluster.patch(key, {"metadata": {"resourceVersion": version, "annotations": annotations}})
        except Conflict:
            await asyncio.sleep(FIRST_RETRY_SECONDS * 2**attempt)
            continue
        return
    raise TransientError(f"{key.name}: gave up after {MAX_WRITE_ATTEMPTS} write conflicts")


async def _try_refresh(cluster: Cluster, key: ResourceKey) -> None:
    with with_log_fields(**build_object_field(key)):
        try:
            await write_refresh_annotation(cluster, key)
        except ArgosyError as error:  # gone, or the cluster is unreachable: the periodic refresh follows anyway
            log.info("cannot request a refresh: %s/%s: %s", key.namespace, key.name, error)
        except Exception:
            log.exception("cannot request a refresh: %s/%s", key.namespace, key.name)
