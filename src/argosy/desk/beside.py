"""Whether an Argo CD delivers in this cluster, too: asked once, or kept fresh by watches.

In: a cluster, the control namespace. Out: Engines. Never: writes; takes what may not be read for absent, or
what is away for a moment for gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from argosy.cluster import ClusterReader
from argosy.model.errors import ArgosyError, ClusterError
from argosy.model.manifest import Manifest, key_of
from argosy.model.names import GroupKind, ResourceKey
from argosy.policy.engines import SELECTORS, Engines, engines_of
from argosy.runtime import SYSTEM_CLOCK, Cache, Clock
from argosy.runtime.clock import Backoff, Timer, sleep
from argosy.runtime.informer import REFUSALS, Informer

log = logging.getLogger(__name__)
# Pods, too: one whose StatefulSet is deleted without it runs on.
KINDS: Final = (GroupKind("apps", "StatefulSet"), GroupKind("apps", "Deployment"), GroupKind("", "Pod"))
AWAY: Final = Backoff(first=0.2, most=30.0, jitter=0.5)
REFUSED: Final = 60.0  # seconds until it is tried again to read what may not be read
SETTLING: Final = 60.0  # seconds without any until an Argo CD counts as gone: one that is made anew is away for a while
UNKNOWN: Final = Engines(is_known=False)


async def find_engines(cluster: ClusterReader, control: str) -> Engines:
    """Once: of all namespaces, or of the control namespace where no more may be read."""
    for place in ("", control):
        asked = [_listed(cluster, kind, labels, place) for kind in KINDS for labels in SELECTORS]
        try:
            found = await asyncio.gather(*asked)
        except ClusterError as error:
            if error.code not in REFUSALS:
                raise
        else:
            return engines_of(each for some in found for each in some)
    return UNKNOWN


async def seen_engines(cluster: ClusterReader, control: str) -> Engines:
    """The same for who only looks: what cannot be asked is not known, and no reason to fail."""
    try:
        return await find_engines(cluster, control)
    except ArgosyError:
        return UNKNOWN


async def _listed(cluster: ClusterReader, kind: GroupKind, labels: str, namespace: str) -> list[Manifest]:
    try:
        found = await cluster.list(kind, namespace=namespace, labels=labels)
    except ClusterError as error:
        if error.code == 404:  # a cluster without workloads has none
            return []
        raise
    return [{**each, "kind": kind.kind} for each in found.items]


async def _readable(cluster: ClusterReader, control: str) -> str | None:
    """Where it may be read: in all namespaces (empty), in the control namespace, or nowhere (None)."""
    for place in ("", control):
        try:
            await asyncio.gather(*(_listed(cluster, kind, SELECTORS[0], place) for kind in KINDS))
        except ClusterError as error:
            if error.code not in REFUSALS:
                raise
        else:
            return place
    return None


class Beside:
    def __init__(
        self, cluster: ClusterReader, control: str, changed: Callable[[], None], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        """`changed` is called whenever `engines` has become another."""
        self._cluster, self._control, self._changed, self._clock = cluster, control, changed, clock
        self._found: dict[tuple[ResourceKey, str], Manifest] = {}
        self._is_whole = False  # whether all of them have been listed
        self._settled = asyncio.Event()
        self._leaving: Timer | None = None
        self.engines = UNKNOWN

    async def run(self) -> None:
        """Until cancelled."""
        try:
            await self._run()
        finally:
            self._stay()

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                place = await _readable(self._cluster, self._control)
            except ArgosyError as error:
                failures += 1
                log.warning("whether an Argo CD delivers here cannot be asked: %s", error)
                await sleep(self._clock, AWAY.delay(failures))
                continue
            if place is not None:
                await self._follow(place)
            self._settle(UNKNOWN)
            await sleep(self._clock, REFUSED)

    async def synced(self) -> None:
        """Until it is known, or known that it may not be known."""
        await self._settled.wait()

    @property
    def is_leaving(self) -> bool:
        """Whether the one that counts is not seen any more."""
        return self._leaving is not None

    async def _follow(self, namespace: str) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            informers = [self._informer(kind, labels, namespace) for kind in KINDS for labels in SELECTORS]
            for each in informers:
                tasks.create_task(each.run(), name="beside")
            for each in informers:
                await each.synced.wait()
            self._is_whole = True
            self._settle(engines_of(self._found.values()))

    def _informer(self, kind: GroupKind, labels: str, namespace: str) -> Informer:
        informer = Informer(self._cluster, kind, Cache(), namespace=namespace, labels=labels, clock=self._clock)

        def noticed(before: Manifest | None, after: Manifest | None) -> None:
            # One that has the labels of both selectors is known twice, and goes only when it is gone from both.
            if after is not None:
                self._found[key_of(after), labels] = after
            elif before is not None:
                self._found.pop((key_of(before), labels), None)
            if self._is_whole:
                self._settle(engines_of(self._found.values()))

        informer.listeners.append(noticed)
        return informer

    def _settle(self, engines: Engines) -> None:
        if self.engines.argocd and engines.is_known and not engines.argocd:
            if self._leaving is None:
                log.info("no Argo CD is seen any more: it counts as gone in %d s, unless it comes back", SETTLING)
                self._leaving = self._clock.call_later(SETTLING, partial(self._become, engines))
            return
        self._stay()
        self._become(engines)

    def _stay(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
            self._leaving = None

    def _become(self, engines: Engines) -> None:
        is_first, self._leaving = not self._settled.is_set(), None
        self._settled.set()
        if engines != self.engines or is_first:
            self.engines = engines
            self._changed()
