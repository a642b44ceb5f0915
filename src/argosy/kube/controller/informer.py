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
from argosy.kube.client.reachability import loudness
from argosy.kube.controller.cache import Cache
from argosy.kube.controller.clock import SYSTEM_CLOCK, Backoff, Clock, sleep
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, key_of

log = logging.getLogger(__name__)

Listener = Callable[[Manifest | None, Manifest | None], None]  # old (None: created), new (None: deleted)
Report = Callable[[ArgosyError | None], None]  # the lasting error; None: resolved

RECONNECT = Backoff(first=0.2, most=30.0, jitter=0.5)
NOT_SERVED = Backoff(first=0.5, most=5.0, jitter=0.2)  # short: the request is cheap, and a user may wait for a new CRD
REFUSALS = frozenset({401, 403, 405})
# A watch that lost an event, or reported a false deletion, leaves the cache wrong until the next list. A false event
# with the resourceVersion of the live object is not corrected: such an object counts as unchanged.
RELIST_INTERVAL_SECONDS = 3600.0  # minimum: the list follows the end of a watch, which servers end within minutes
SHORT_WATCH = 1.0  # seconds; a shorter watch counts as a failure, else a broken server would be flooded


class Informer:
    def __init__(
        self,
        cluster: ClusterReader,
        kind: GroupKind,
        cache: Cache,
        *,
        namespace: str = "",
        labels: str = "",
        metadata_only: bool = False,
        clock: Clock = SYSTEM_CLOCK,
        refused: Backoff | None = None,
        kept: Callable[[Manifest], Manifest] = lambda manifest: manifest,
        afresh: bool = False,
    ) -> None:
        """`refused_backoff`: delays after a refusal that lasts until a person acts.

        `transform` is applied before a manifest is cached. `force_update`: the cache holds less than `transform` keeps.
        """
        self._cluster, self._kind, self._cache, self._clock = cluster, kind, cache, clock
        self._refused = refused
        self._namespace, self._labels, self._metadata_only = namespace, labels, metadata_only
        self._kept, self._afresh = kept, afresh
        self._version = ""  # resourceVersion to watch from; empty: list first
        self._listed_at = 0.0
        self._failures = 0
        self._told = ""  # the last logged error, so that it is logged once
        self.listeners: list[Listener] = []
        self.report: Report | None = None  # called with lasting errors, and with None after every successful list
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
                await self._follow()
            except Gone as error:
                log.info("watch expired, listing again: kind=%s error=%s", self._kind, error.message)
                await self._pause(RECONNECT, relist=True)
            except ClusterError as error:
                if error.code == 404:
                    await self._not_served()
                else:
                    await self._trouble(error)
            except ArgosyError as error:
                await self._trouble(error)

    def _is_list_due(self) -> bool:
        return self._clock.monotonic() - self._listed_at >= RELIST_INTERVAL_SECONDS

    async def _try_relist(self) -> None:
        """List again. If the list fails, watch from the last version, and list again after the next watch."""
        try:
            await self._relist()
        except ArgosyError as error:
            if isinstance(error, ClusterError) and (error.code == 404 or error.code in REFUSALS):
                raise
            if str(error) != self._told:
                self._told = str(error)
                log.log(
                    loudness(error, logging.WARNING), "cannot list, still watching: kind=%s error=%s", self._kind, error
                )

    async def _relist(self) -> None:
        started = self._clock.monotonic()
        listing = await self._cluster.list(
            self._kind, namespace=self._namespace, labels=self._labels, metadata_only=self._metadata_only
        )
        listed = {key_of(manifest): manifest for manifest in listing.items}
        for key in self._cache.keys(self._kind):
            if key not in listed:
                self._tell(self._cache.drop(key), None)
        for manifest in listed.values():
            self._notice(manifest)
        self._afresh = False
        self._listed_at = started
        self._version, self._told, self.is_served = listing.version, "", True
        self._synced()

    async def _follow(self) -> None:
        """Watch until the server ends the watch; the next watch continues from the last version."""
        started, seen = self._clock.monotonic(), 0
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
                seen += 1
                self._well()
                self._take(event)
        if self._clock.monotonic() - started >= SHORT_WATCH:
            self._well()
        else:  # also after events: else a server that ends each watch after one event would be flooded
            await self._pause(RECONNECT, relist=not seen and self._failures >= 2)

    def _take(self, event: WatchEvent) -> None:
        version = event.manifest["metadata"].get("resourceVersion") or ""
        if event.type == "DELETED":
            self._tell(self._cache.drop(key_of(event.manifest)) or event.manifest, None)
        elif event.type != "BOOKMARK":
            self._notice(event.manifest)
        self._version = version or self._version

    def _notice(self, manifest: Manifest) -> None:
        known = self._cache.get(key_of(manifest))
        if known is not None and _state(known) == _state(manifest) and not self._afresh:
            return
        kept = self._kept(manifest)
        self._tell(self._cache.put(kept), kept)

    def _tell(self, before: Manifest | None, after: Manifest | None) -> None:
        for listener in self.listeners:
            listener(before, after)

    async def _not_served(self) -> None:
        """Clear the cache of a kind that the server does not serve; its CRD may be installed later."""
        for key in self._cache.keys(self._kind):
            self._tell(self._cache.drop(key), None)
        if not self._told:
            log.debug("kind is not served yet: kind=%s", self._kind)
            self._told = "not served"
        self.is_served = False
        self._synced()
        await self._pause(NOT_SERVED, relist=True)

    async def _trouble(self, error: ArgosyError) -> None:
        if str(error) != self._told:
            self._told = str(error)
            log.log(loudness(error, logging.WARNING), "cannot list or watch: kind=%s error=%s", self._kind, error)
        is_refused = isinstance(error, ClusterError) and error.code in REFUSALS
        # One failure may be a dropped connection. Two may mean a version that this server never had: list again.
        relist = is_refused or self._failures >= 1
        if self.report is not None and (relist or not self._version):
            self.report(error)
        await self._pause(self._refused if is_refused and self._refused else RECONNECT, relist=relist)

    def stumbled(self, error: Exception) -> None:
        """Reset after `run` raised an unexpected error, before it is run again; reports the error as transient."""
        self._version = ""
        if self.report is not None:
            self.report(TransientError(f"{self._kind}: cannot process the server's answer: {type(error).__name__}"))

    def _synced(self) -> None:
        self.synced.set()
        if self.report is not None:
            self.report(None)

    async def _pause(self, backoff: Backoff, *, relist: bool) -> None:
        self._failures += 1
        if relist:
            self._version = ""
        await sleep(self._clock, backoff.delay(self._failures))

    def _well(self) -> None:
        self._failures, self._told = 0, ""


def _state(manifest: Manifest) -> tuple[str, str]:
    """Return apiVersion and resourceVersion: an unchanged object is cached again if its preferred version changes."""
    return manifest["apiVersion"], manifest["metadata"].get("resourceVersion") or ""
