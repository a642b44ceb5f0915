"""An informer: keeps one kind of a cluster in the cache by list and watch, and lists again when necessary.

In: a cluster's lists and watches. Out: a filled cache, and one call of every listener for each change. Never: misses a
deletion (a new list is compared with the cache); reports a version twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from argosy.errors import ArgosyError, ClusterError, Gone, TransientError
from argosy.kube.client import ClusterReader, WatchEvent
from argosy.kube.client.reachability_log import choose_log_level
from argosy.kube.controller.cache import InformerCache
from argosy.kube.controller.clock import SYSTEM_CLOCK, Backoff, Clock, sleep
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind

log = logging.getLogger(__name__)

ChangeListener = Callable[[Manifest | None, Manifest | None], None]  # old (None: created), new (None: deleted)
ReportError = Callable[[ArgosyError | None], None]  # the lasting error; None: resolved

RECONNECT_BACKOFF = Backoff(first_seconds=0.2, max_seconds=30.0, jitter=0.5)
NOT_SERVED_BACKOFF = Backoff(
    first_seconds=0.5, max_seconds=5.0, jitter=0.2
)  # short: the request is cheap, and a user may wait for a new CRD
REFUSED_CODES = frozenset({401, 403, 405})
# A watch that lost an event, or reported a false deletion, leaves the cache wrong until the next list. A false event
# with the resourceVersion of the live object is not corrected: such an object counts as unchanged.
RELIST_INTERVAL_SECONDS = 3600.0  # minimum: the list follows the end of a watch, which servers end within minutes
SHORT_WATCH_SECONDS = 1.0  # seconds; a shorter watch counts as a failure, else a broken server would be flooded


class Informer:
    def __init__(
        self,
        cluster: ClusterReader,
        kind: GroupKind,
        cache: InformerCache,
        *,
        namespace: str = "",
        labels: str = "",
        metadata_only: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        refused_backoff: Backoff | None = None,
        transform: Callable[[Manifest], Manifest] = lambda manifest: manifest,
        force_update: bool = False,
    ) -> None:
        """`refused_backoff`: delays after a refusal that lasts until a person acts.

        `transform` is applied before a manifest is cached. `force_update`: the cache holds less than `transform` keeps.
        """
        self._cluster, self._kind, self._cache, self._clock = cluster, kind, cache, clock
        self._refused_backoff = refused_backoff
        self._namespace, self._labels, self._metadata_only = namespace, labels, metadata_only
        self._transform, self._force_update = transform, force_update
        self._version = ""  # resourceVersion to watch from; empty: list first
        self._listed_at = 0.0
        self._failures = 0
        self._last_logged_error = ""  # the last logged error, so that it is logged once
        self.listeners: list[ChangeListener] = []
        self.report_error: ReportError | None = (
            None  # called with lasting errors, and with None after every successful list
        )
        self.is_served = True  # as far as known
        self.synced = asyncio.Event()  # the kind was listed once, or is not served

    async def run(self) -> None:
        """List and watch until cancelled."""
        while True:
            try:
                if not self._version:
                    await self._relist()
                elif self._is_list_due():
                    await self._try_relist()
                await self._watch()
            except Gone as error:
                log.info("watch expired, listing again: kind=%s error=%s", self._kind, error.message)
                await self._back_off(RECONNECT_BACKOFF, relist=True)
            except ClusterError as error:
                if error.code == 404:
                    await self._handle_not_served()
                else:
                    await self._handle_error(error)
            except ArgosyError as error:
                await self._handle_error(error)

    def _is_list_due(self) -> bool:
        return self._clock.monotonic() - self._listed_at >= RELIST_INTERVAL_SECONDS

    async def _try_relist(self) -> None:
        """List again. If the list fails, watch from the last version, and list again after the next watch."""
        try:
            await self._relist()
        except ArgosyError as error:
            if isinstance(error, ClusterError) and (error.code == 404 or error.code in REFUSED_CODES):
                raise
            if str(error) != self._last_logged_error:
                self._last_logged_error = str(error)
                log.log(
                    choose_log_level(error, logging.WARNING),
                    "cannot list, still watching: kind=%s error=%s",
                    self._kind,
                    error,
                )

    async def _relist(self) -> None:
        started = self._clock.monotonic()
        listing = await self._cluster.list(
            self._kind, namespace=self._namespace, labels=self._labels, metadata_only=self._metadata_only
        )
        manifests = {key_of(manifest): manifest for manifest in listing.items}
        for key in self._cache.keys(self._kind):
            if key not in manifests:
                self._notify(self._cache.drop(key), None)
        for manifest in manifests.values():
            self._update_cache(manifest)
        self._force_update = False
        self._listed_at = started
        self._version, self._last_logged_error, self.is_served = listing.version, "", True
        self._mark_synced()

    async def _watch(self) -> None:
        """Watch until the server ends the watch; the next watch continues from the last version."""
        started, event_count = self._clock.monotonic(), 0
        events = self._cluster.watch(
            self._kind,
            since=self._version,
            namespace=self._namespace,
            labels=self._labels,
            metadata_only=self._metadata_only,
        )
        async with contextlib.AsyncExitStack() as stack:
            if hasattr(events, "aclose"):
                stack.push_async_callback(events.aclose)
            async for event in events:
                event_count += 1
                self._reset_failures()
                self._handle_event(event)
        if self._clock.monotonic() - started >= SHORT_WATCH_SECONDS:
            self._reset_failures()
        else:  # also after events: else a server that ends each watch after one event would be flooded
            await self._back_off(RECONNECT_BACKOFF, relist=not event_count and self._failures >= 2)

    def _handle_event(self, event: WatchEvent) -> None:
        version = event.manifest["metadata"].get("resourceVersion") or ""
        if event.type == "DELETED":
            self._notify(self._cache.drop(key_of(event.manifest)) or event.manifest, None)
        elif event.type != "BOOKMARK":
            self._update_cache(event.manifest)
        self._version = version or self._version

    def _update_cache(self, manifest: Manifest) -> None:
        cached = self._cache.get(key_of(manifest))
        if cached is not None and _read_versions(cached) == _read_versions(manifest) and not self._force_update:
            return
        transformed = self._transform(manifest)
        self._notify(self._cache.put(transformed), transformed)

    def _notify(self, old: Manifest | None, new: Manifest | None) -> None:
        for listener in self.listeners:
            listener(old, new)

    async def _handle_not_served(self) -> None:
        """Clear the cache of a kind that the server does not serve; its CRD may be installed later."""
        for key in self._cache.keys(self._kind):
            self._notify(self._cache.drop(key), None)
        if not self._last_logged_error:
            log.debug("kind is not served yet: kind=%s", self._kind)
            self._last_logged_error = "not served"
        self.is_served = False
        self._mark_synced()
        await self._back_off(NOT_SERVED_BACKOFF, relist=True)

    async def _handle_error(self, error: ArgosyError) -> None:
        if str(error) != self._last_logged_error:
            self._last_logged_error = str(error)
            log.log(
                choose_log_level(error, logging.WARNING), "cannot list or watch: kind=%s error=%s", self._kind, error
            )
        is_refused = isinstance(error, ClusterError) and error.code in REFUSED_CODES
        # One failure may be a dropped connection. Two may mean a version that this server never had: list again.
        relist = is_refused or self._failures >= 1
        if self.report_error is not None and (relist or not self._version):
            self.report_error(error)
        await self._back_off(
            self._refused_backoff if is_refused and self._refused_backoff else RECONNECT_BACKOFF, relist=relist
        )

    def reset_after_failure(self, error: Exception) -> None:
        """Reset after `run` raised an unexpected error, before it is run again; reports the error as transient."""
        self._version = ""
        if self.report_error is not None:
            self.report_error(
                TransientError(f"{self._kind}: cannot process the server's answer: {type(error).__name__}")
            )

    def _mark_synced(self) -> None:
        self.synced.set()
        if self.report_error is not None:
            self.report_error(None)

    async def _back_off(self, backoff: Backoff, *, relist: bool) -> None:
        self._failures += 1
        if relist:
            self._version = ""
        await sleep(self._clock, backoff.delay(self._failures))

    def _reset_failures(self) -> None:
        self._failures, self._last_logged_error = 0, ""


def _read_versions(manifest: Manifest) -> tuple[str, str]:
    """Return apiVersion and resourceVersion: an unchanged object is cached again if its preferred version changes."""
    return manifest["apiVersion"], manifest["metadata"].get("resourceVersion") or ""
