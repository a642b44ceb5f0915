"""An informer for every watched kind of a cluster, in one cache; informers start and stop as CRDs come and go.

In: a cluster, a filter of kinds, the kinds that define others (CRDs), and the required kinds. Out: a filled cache, and
one call for each change. Never: treats a kind that cannot be listed as empty; drops cached objects because the server
is unreachable; keeps more than metadata of a kind whose full objects are not needed.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from argosy.errors import ArgosyError, ClusterError
from argosy.kube.client import Catalog, ClusterReader, Listing, WatchEvent
from argosy.kube.client.reachability import loudness
from argosy.kube.controller.cache import Cache
from argosy.kube.controller.clock import SYSTEM_CLOCK, Backoff, Clock, sleep, within
from argosy.kube.controller.informer import REFUSALS, Informer, Listener
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, key_of

log = logging.getLogger(__name__)

IsWatched = Callable[[GroupKind, Sequence[str]], bool]  # a kind, and the verbs that it is served with

AWAY = Backoff(first=0.2, most=30.0, jitter=0.5)
REFUSED = Backoff(first=30.0, most=600.0, jitter=0.2)  # a person must change a role first
LOOKS = (0.3, 0.5, 1.0, 2.0, 4.0)  # seconds between discoveries after a CRD change: its kind is served a little later
BETWEEN_LOOKS = 0.2  # seconds, minimum: many CRDs change together
ANYWAY = 120.0  # seconds between discoveries: kinds of extension API servers have no CRD
GIVEN_UP = 3  # refused lists of a kind after which `wait_synced` does not wait for it
ALONE = 6  # failed lists of a kind, while other kinds work, after which it does not wait: about twelve seconds


class Thrift(Protocol):
    """Decides which parts of manifests the cache keeps."""

    def is_read(self, kind: GroupKind) -> bool:
        """True if full objects of the kind are always needed."""

    def is_wanted(self, manifest: Manifest) -> bool:
        """True if this object, cached as metadata, requires full objects of its kind."""

    def is_short(self, manifest: Manifest) -> bool:
        """True if the full object is needed, but the cached one was trimmed."""

    def kept(self, manifest: Manifest) -> Manifest:
        """Return the manifest without the fields that are not needed."""


class Lavish:
    """A policy that keeps full manifests of all kinds."""

    def is_read(self, kind: GroupKind) -> bool:
        return True

    def is_wanted(self, manifest: Manifest) -> bool:
        return False

    def is_short(self, manifest: Manifest) -> bool:
        return False

    def kept(self, manifest: Manifest) -> Manifest:
        return manifest


@dataclass
class _Followed:
    """A watched kind and its informer."""

    version: str
    is_whole: bool
    informer: Informer
    task: asyncio.Task[None]
    failures: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)  # the first list succeeded or failed for good


class Everything:
    def __init__(
        self,
        cluster: ClusterReader,
        is_watched: IsWatched,
        cache: Cache,
        on_change: Listener,
        *,
        definitions: Iterable[GroupKind] = (),
        needed: Iterable[GroupKind] = (),
        clock: Clock = SYSTEM_CLOCK,
        at_once: int = 8,
        thrift: Thrift | None = None,
    ) -> None:
        """A change of any object of the definition kinds (CRDs) triggers discovery.

        Required kinds are watched regardless of `is_watched`, and `wait_synced` waits for them without a time limit.
        """
        self._thrift: Thrift = thrift or Lavish()
        self._read: set[GroupKind] = set()  # kinds whose full manifests are needed
        self._cluster, self._is_watched, self._cache, self._clock = cluster, is_watched, cache, clock
        self._gentle = _Gentle(cluster, at_once)
        self._on_change = on_change
        self._definitions, self._needed = frozenset(definitions), frozenset(needed)
        self._followed: dict[GroupKind, _Followed] = {}
        self._asides: dict[GroupKind, asyncio.Task[None]] = {}  # watches of definition kinds, only to trigger discovery
        self._absent: set[GroupKind] = set()
        self._looks = len(LOOKS)
        self._woken = asyncio.Event()
        self._looked = asyncio.Event()
        self._told = asyncio.Event()  # the state of a kind has changed since the last clear
        self._troubles: dict[GroupKind, ArgosyError] = {}
        self._context = contextvars.copy_context()

    async def run(self) -> None:
        """Discover kinds and run their informers until cancelled."""
        self._context, failures = contextvars.copy_context(), 0
        try:
            while True:
                try:
                    catalog = await self._cluster.kinds()
                except ArgosyError as error:
                    failures += 1
                    log.log(loudness(error, logging.WARNING), "API discovery failed: error=%s", error)
                    await sleep(self._clock, AWAY.delay(failures))
                    continue
                failures = 0
                await self._adapt(catalog)
                self._looked.set()
                await self._rest()
        finally:
            await _end([*(each.task for each in self._followed.values()), *self._asides.values()])
            self._followed.clear()
            self._asides.clear()

    async def synced(self) -> None:
        """Wait until every kind of the first discovery was listed once; kinds that cannot be listed are in `errors`.

        Required kinds are always waited for: a server that starts may refuse any request for a short time.
        """
        await self._looked.wait()
        for kind in tuple(self._followed):
            while (each := self._followed.get(kind)) is not None and not each.settled.is_set():
                await each.settled.wait()  # loop: the informer may have been replaced meanwhile to get full objects
        said: Sequence[str] = ()
        while lacking := self.lacking():
            if lacking != said:
                log.warning("waiting for the initial list of required kinds: %s", "; ".join(lacking))
            said = lacking
            self._told.clear()
            await self._told.wait()

    def lacking(self) -> list[str]:
        """List the reasons why required kinds are not synced yet."""
        return [
            f"{kind} is required, but cannot be listed: {self._troubles.get(kind) or 'the cluster does not serve it'}"
            for kind in sorted(self._needed)
            if not self.knows(kind)
        ]

    def look_again(self) -> None:
        """Discover again, because the results of `is_watched` or the cache policy have changed."""
        for kind in tuple(self._followed):
            if any(map(self._thrift.is_short, self._cache.list(kind))):
                self._read.add(kind)
                self._tell_anew(kind)
        self._woken.set()

    @property
    def kinds(self) -> frozenset[GroupKind]:
        """All watched kinds, including those that cannot be listed."""
        return frozenset(self._followed)

    def reads(self, kind: GroupKind) -> bool:
        """Like `is_synced`, but require full manifests: a kind cached as metadata is listed again in full."""
        self._want(kind)
        return self.knows(kind)

    def knows(self, kind: GroupKind) -> bool:
        """True if the cache has all objects of this kind. If False, an object missing in the cache may still exist."""
        if kind in self._troubles or not self.knew(kind):
            return False
        # k8s: a server that starts may not serve all kinds yet, and required kinds were served before
        return kind not in self._needed or self._followed[kind].informer.is_served

    def knew(self, kind: GroupKind) -> bool:
        """True if the cache had all objects of this kind once; it may be stale while the server is unreachable."""
        followed = self._followed.get(kind)
        return followed is not None and followed.informer.synced.is_set()

    @property
    def troubles(self) -> Mapping[GroupKind, ArgosyError]:
        """Errors by kind; the cache of these kinds may be incomplete."""
        return self._troubles

    def why_unlisted(self, kind: GroupKind) -> str:
        """Return why a kind cannot be listed; empty if it can, or if the server refuses it (401, 403, 405)."""
        error = self._troubles.get(kind)
        is_refusal = isinstance(error, ClusterError) and error.code in REFUSALS
        return "" if error is None or is_refusal else str(error)

    # -- discovery

    async def _rest(self) -> None:
        """Wait for a definition change or the next interval."""
        await sleep(self._clock, BETWEEN_LOOKS)
        pause = LOOKS[self._looks] if self._looks < len(LOOKS) else ANYWAY
        self._looks += 1
        with contextlib.suppress(TimeoutError):
            await within(self._clock, pause, self._woken.wait())
        if self._woken.is_set():
            self._woken.clear()
            self._looks = 0

    async def _adapt(self, catalog: Catalog) -> None:
        wanted = {
            kind: info.version
            for kind, info in catalog.items()
            if {"list", "watch"}.issubset(info.verbs) and (kind in self._needed or self._is_watched(kind, info.verbs))
        }
        await self._leave([kind for kind in self._followed if kind not in wanted], catalog)
        for kind, version in wanted.items():
            known = self._followed.get(kind)
            if known is not None and known.version == version:
                continue
            if known is not None:  # cached objects stay, and are updated to the other version
                await _end([known.task])
                known.settled.set()
            self._followed[kind] = self._follow(kind, version)
        self._read &= catalog.keys()
        for kind in self._definitions & catalog.keys() - self._asides.keys():
            self._asides[kind] = self._watch_aside(kind)
        self._told.set()

    async def _leave(self, kinds: Sequence[GroupKind], catalog: Catalog) -> None:
        """Stop informers. A kind counts as removed if two discoveries miss it: a starting server may omit kinds."""
        absent = {kind for kind in kinds if kind not in catalog}
        gone = [kind for kind in kinds if kind in catalog or kind in self._absent]
        self._absent = absent - set(gone)
        if self._absent:
            self._looks = 0
        for kind in gone:
            left = self._followed.pop(kind)
            await _end([left.task])
            left.settled.set()
            self._troubles.pop(kind, None)
            for key in self._cache.keys(kind):
                self._tell(self._cache.drop(key), None)

    # -- one kind

    def _want(self, kind: GroupKind) -> None:
        """Cache full objects of the kind. Until they are listed, the kind is not synced."""
        if kind in self._read:
            return
        self._read.add(kind)
        followed = self._followed.get(kind)
        if followed is not None and not followed.is_whole:
            self._tell_anew(kind)

    def _tell_anew(self, kind: GroupKind) -> None:
        log.debug("caching full objects: kind=%s", kind)
        followed = self._followed[kind]
        followed.task.cancel()  # if this is the current task, it ends at its next await
        self._followed[kind] = self._follow(kind, followed.version, afresh=True)
        followed.settled.set()

    def _follow(self, kind: GroupKind, version: str, *, afresh: bool = False) -> _Followed:
        is_whole = kind in self._read or self._thrift.is_read(kind)
        informer = Informer(
            self._gentle,
            kind,
            self._cache,
            metadata_only=not is_whole,
            clock=self._clock,
            refused=None if kind in self._needed else REFUSED,  # everything waits for required kinds
            kept=self._thrift.kept if is_whole else _metadata,
            afresh=afresh,
        )
        informer.listeners.append(self._tell if is_whole else self._tell_metadata)
        followed = _Followed(version, is_whole, informer, self._keep(kind, informer))

        def report(error: ArgosyError | None) -> None:
            self._report(kind, followed, error)

        informer.report = report
        return followed

    def _watch_aside(self, kind: GroupKind) -> asyncio.Task[None]:
        informer = Informer(self._gentle, kind, Cache(), metadata_only=True, clock=self._clock, refused=REFUSED)
        informer.listeners.append(lambda before, after: self._woken.set())
        return self._keep(kind, informer)

    def _keep(self, kind: GroupKind, informer: Informer) -> asyncio.Task[None]:
        async def keep() -> None:
            failures = 0
            while True:
                try:
                    await informer.run()
                except Exception as error:  # a failure of one kind must not stop the others
                    failures += 1
                    log.exception("informer failed, listing again: kind=%s", kind)
                    informer.stumbled(error)
                    await sleep(self._clock, AWAY.delay(failures))

        # Not the context of the caller: the informer outlives the reconcile that needed the kind first.
        return asyncio.create_task(keep(), name=f"everything {kind}", context=self._context.copy())

    def _report(self, kind: GroupKind, followed: _Followed, error: ArgosyError | None) -> None:
        self._told.set()
        if error is None:
            followed.failures = 0
            followed.settled.set()
            self._troubles.pop(kind, None)
            return
        followed.failures += 1
        self._troubles[kind] = error
        # Wait for an unreachable server, because it comes back. A refusal may last for ever, and so may the failure of
        # a single kind, whose extension API server may be down.
        is_no = isinstance(error, ClusterError) and (error.code in REFUSALS or followed.failures >= GIVEN_UP)
        if is_no or (followed.failures >= ALONE and self._answers()):
            followed.settled.set()

    def _answers(self) -> bool:
        """True if at least one kind is listed and watched without errors."""
        return any(each.settled.is_set() and not each.failures for each in self._followed.values())

    def _tell_metadata(self, before: Manifest | None, after: Manifest | None) -> None:
        if after is not None and self._thrift.is_wanted(after):
            self._want(key_of(after).group_kind)
        self._tell(before, after)

    def _tell(self, before: Manifest | None, after: Manifest | None) -> None:
        try:
            self._on_change(before, after)
        except Exception:  # a manifest that the listener cannot handle must not end the watch of its kind
            log.exception("change listener failed")


class _Gentle:
    """A ClusterReader that limits concurrent lists."""

    def __init__(self, cluster: ClusterReader, at_once: int) -> None:
        self._cluster = cluster
        self._turn = asyncio.Semaphore(at_once)

    async def kinds(self) -> Catalog:
        return await self._cluster.kinds()

    async def get(self, key: Any) -> Manifest | None:
        return await self._cluster.get(key)

    async def list(self, kind: GroupKind, **selectors: Any) -> Listing:
        async with self._turn:
            return await self._cluster.list(kind, **selectors)

    def watch(self, kind: GroupKind, **selectors: Any) -> AsyncIterator[WatchEvent]:
        return self._cluster.watch(kind, **selectors)


def _metadata(manifest: Manifest) -> Manifest:
    """Keep only metadata, without managedFields, even if the server returned the full object."""
    metadata = {name: each for name, each in manifest["metadata"].items() if name != "managedFields"}
    return {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
