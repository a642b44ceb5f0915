"""Everything that a cluster serves, in one cache: an informer for each kind, as kinds come and go.

In: a cluster, which kinds count, which kinds define others, which nobody can do without. Out: a filled cache, and one
call for each change. Never: takes a kind that cannot be read for empty; forgets what it knew of a kind because the
server was away; keeps more than metadata of a kind that nobody reads more of.
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
REFUSED = Backoff(first=30.0, most=600.0, jitter=0.2)  # somebody must change a role first
LOOKS = (0.3, 0.5, 1.0, 2.0, 4.0)  # a definition is there before its kind is served: how often to look for that
BETWEEN_LOOKS = 0.2  # at least: many definitions come together
ANYWAY = 120.0  # what other servers bring needs no definition
GIVEN_UP = 3  # after so many refusals to list a kind, nobody waits for it any longer
ALONE = 6  # the same where it gives no answer, and others do: about twelve seconds


class Thrift(Protocol):
    """What may be left out of the cache."""

    def is_read(self, kind: GroupKind) -> bool:
        """Whether more than metadata is read of a kind, whatever there is of it."""

    def is_wanted(self, manifest: Manifest) -> bool:
        """Whether all of this one is read, and so all of its kind."""

    def is_short(self, manifest: Manifest) -> bool:
        """Whether all of it is read, and it is not all there."""

    def kept(self, manifest: Manifest) -> Manifest:
        """The same, or without what nobody reads of it."""


class Lavish:
    """Everything is kept."""

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
    """One kind that is in the cache."""

    version: str
    is_whole: bool
    informer: Informer
    task: asyncio.Task[None]
    failures: int = 0
    settled: asyncio.Event = field(default_factory=asyncio.Event)  # listed, or reported


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
        """A change of any object of `definitions` is a reason to look for kinds that came or went.

        `needed` are followed whatever `is_watched` says, and waited for, however long it takes to list them.
        """
        self._thrift: Thrift = thrift or Lavish()
        self._read: set[GroupKind] = set()  # of these whole manifests are wanted
        self._cluster, self._is_watched, self._cache, self._clock = cluster, is_watched, cache, clock
        self._gentle = _Gentle(cluster, at_once)
        self._on_change = on_change
        self._definitions, self._needed = frozenset(definitions), frozenset(needed)
        self._followed: dict[GroupKind, _Followed] = {}
        self._asides: dict[GroupKind, asyncio.Task[None]] = {}  # watches of definitions, for their changes alone
        self._absent: set[GroupKind] = set()
        self._looks = len(LOOKS)
        self._woken = asyncio.Event()
        self._looked = asyncio.Event()
        self._told = asyncio.Event()  # something about a kind, since it was asked last
        self._troubles: dict[GroupKind, ArgosyError] = {}
        self._context = contextvars.copy_context()

    async def run(self) -> None:
        """Until cancelled."""
        self._context, failures = contextvars.copy_context(), 0
        try:
            while True:
                try:
                    catalog = await self._cluster.kinds()
                except ArgosyError as error:
                    failures += 1
                    log.log(loudness(error, logging.WARNING), "which kinds there are cannot be asked: %s", error)
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
        """Until every kind that was found at first has been listed once; those that cannot be are in `troubles`.

        None of those that are needed may be among them: a server that starts may refuse anything, and soon no longer.
        """
        await self._looked.wait()
        for kind in tuple(self._followed):
            while (each := self._followed.get(kind)) is not None and not each.settled.is_set():
                await each.settled.wait()  # and again, where all of it was wanted meanwhile
        said: Sequence[str] = ()
        while lacking := self.lacking():
            if lacking != said:
                log.warning("nothing is begun yet: %s", "; ".join(lacking))
            said = lacking
            self._told.clear()
            await self._told.wait()

    def lacking(self) -> list[str]:
        """Of those that are needed, why each that is not known is not."""
        return [
            f"{kind} is needed and cannot be listed: {self._troubles.get(kind) or 'the cluster does not serve it yet'}"
            for kind in sorted(self._needed)
            if not self.knows(kind)
        ]

    def look_again(self) -> None:
        """`is_watched`, or the thrift, gives other answers now."""
        for kind in tuple(self._followed):
            if any(map(self._thrift.is_short, self._cache.list(kind))):
                self._read.add(kind)
                self._tell_anew(kind)
        self._woken.set()

    @property
    def kinds(self) -> frozenset[GroupKind]:
        """Those that are followed, whether or not they can be listed."""
        return frozenset(self._followed)

    def reads(self, kind: GroupKind) -> bool:
        """As `knows`, for who reads whole manifests: where only metadata is kept, all of the kind comes soon."""
        self._want(kind)
        return self.knows(kind)

    def knows(self, kind: GroupKind) -> bool:
        """Has the cache all of this kind, but for what is on its way? If not, its silence means nothing."""
        if kind in self._troubles or not self.knew(kind):
            return False
        # k8s: a server that starts may not find what it serves, and there was something of what is needed
        return kind not in self._needed or self._followed[kind].informer.is_served

    def knew(self, kind: GroupKind) -> bool:
        """Had the cache all of this kind at some moment? So it may be old, where the server is away."""
        followed = self._followed.get(kind)
        return followed is not None and followed.informer.synced.is_set()

    @property
    def troubles(self) -> Mapping[GroupKind, ArgosyError]:
        """Kinds of which the cache may say too little, and why."""
        return self._troubles

    def why_unlisted(self, kind: GroupKind) -> str:
        """Say why a kind cannot be listed; empty if it can, or if the server refuses it by its rules."""
        error = self._troubles.get(kind)
        is_refusal = isinstance(error, ClusterError) and error.code in REFUSALS
        return "" if error is None or is_refusal else str(error)

    # -- which kinds

    async def _rest(self) -> None:
        """Until somebody says that kinds change, or it is time to look anyway."""
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
            if {"list", "watch"}.issubset(info.verbs)
            and (kind in self._needed or self._is_watched(kind, info.verbs))
        }
        await self._leave([kind for kind in self._followed if kind not in wanted], catalog)
        for kind, version in wanted.items():
            known = self._followed.get(kind)
            if known is not None and known.version == version:
                continue
            if known is not None:  # what is cached stays, and is told again in the other version
                await _end([known.task])
                known.settled.set()
            self._followed[kind] = self._follow(kind, version)
        self._read &= catalog.keys()
        for kind in self._definitions & catalog.keys() - self._asides.keys():
            self._asides[kind] = self._watch_aside(kind)
        self._told.set()

    async def _leave(self, kinds: Sequence[GroupKind], catalog: Catalog) -> None:
        """A kind that is not served counts as gone when it is missing twice: a server that starts may forget some."""
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
        """Its objects are told anew, whole. Until they are, the cache does not know the kind."""
        if kind in self._read:
            return
        self._read.add(kind)
        followed = self._followed.get(kind)
        if followed is not None and not followed.is_whole:
            self._tell_anew(kind)

    def _tell_anew(self, kind: GroupKind) -> None:
        log.debug("%s: whole from now on", kind)
        followed = self._followed[kind]
        followed.task.cancel()  # it may be this very task: then it ends when it waits next
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
            refused=None if kind in self._needed else REFUSED,  # all else waits for it
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
        informer = Informer(
            self._gentle, kind, Cache(), metadata_only=True, clock=self._clock, refused=REFUSED
        )
        informer.listeners.append(lambda before, after: self._woken.set())
        return self._keep(kind, informer)

    def _keep(self, kind: GroupKind, informer: Informer) -> asyncio.Task[None]:
        async def keep() -> None:
            failures = 0
            while True:
                try:
                    await informer.run()
                except Exception as error:  # one kind that cannot be understood must not end the others
                    failures += 1
                    log.exception("%s: listing again", kind)
                    informer.stumbled(error)
                    await sleep(self._clock, AWAY.delay(failures))

        # Whoever wants a kind first may be at something else: the watch is not about that, and outlives it.
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
        # A server that is away will come back and is waited for; one that says no may do so for ever, and so may one
        # that another server stands behind: a kind that fails alone.
        is_no = isinstance(error, ClusterError) and (error.code in REFUSALS or followed.failures >= GIVEN_UP)
        if is_no or (followed.failures >= ALONE and self._answers()):
            followed.settled.set()

    def _answers(self) -> bool:
        """Whether some kind is listed and watched as it should be."""
        return any(each.settled.is_set() and not each.failures for each in self._followed.values())

    def _tell_metadata(self, before: Manifest | None, after: Manifest | None) -> None:
        if after is not None and self._thrift.is_wanted(after):
            self._want(key_of(after).group_kind)
        self._tell(before, after)

    def _tell(self, before: Manifest | None, after: Manifest | None) -> None:
        try:
            self._on_change(before, after)
        except Exception:  # one manifest that nobody can read must not end the watch of its kind
            log.exception("nobody is told of this change")


class _Gentle:
    """The same cluster, with few lists at a time."""

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
    """Without who wrote it; also where a server gives more than it was asked for."""
    metadata = {name: each for name, each in manifest["metadata"].items() if name != "managedFields"}
    return {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": metadata}


async def _end(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
