"""Whether an Argo CD delivers in this cluster, too: asked once, or kept fresh by watches.

In: a cluster, the control namespace. Out: Engines. Never: changes anything; takes what may not be read for absent, or
what is away for a moment for gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from argosy.errors import ArgosyError, ClusterError
from argosy.gitops.coexistence.argocd_scope import Asked, reached
from argosy.gitops.policy.delivery_engine import SELECTORS, Controller, Engines
from argosy.kube.client.reachability import loudness
from argosy.kube.controller import SYSTEM_CLOCK, Cache, Clock
from argosy.kube.controller.clock import Backoff, Timer, sleep
from argosy.kube.controller.informer import REFUSALS, Informer
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

log = logging.getLogger(__name__)
# Pods, too: one whose StatefulSet is deleted without it runs on.
KINDS: Final = (GroupKind("apps", "StatefulSet"), GroupKind("apps", "Deployment"), GroupKind("", "Pod"))
AWAY: Final = Backoff(first=0.2, most=30.0, jitter=0.5)
REFUSED: Final = 60.0  # seconds until it is tried again to read what may not be read
SETTLING: Final = 60.0  # seconds without any until an Argo CD counts as gone: one that is made anew is away for a while
# argo: how far it looks is read when it starts, which its Pods tell; rights can also come and go without that.
ASKED_AGAIN: Final = 60.0
UNKNOWN: Final = Engines(is_known=False)


async def find_engines(cluster: Asked, control: str) -> Engines:
    """Once: of all namespaces, or of the control namespace where no more may be read."""
    for place in ("", control):
        asked = [_listed(cluster, kind, labels, place) for kind in KINDS for labels in SELECTORS]
        try:
            found = await asyncio.gather(*asked)
        except ClusterError as error:
            if error.code not in REFUSALS:
                raise
        else:
            return await reached(cluster, [each for some in found for each in some])
    return UNKNOWN


async def seen_engines(cluster: Asked, control: str) -> Engines:
    """The same for who only looks: what cannot be asked is not known, and no reason to fail."""
    try:
        return await find_engines(cluster, control)
    except ArgosyError:
        return UNKNOWN


async def _listed(cluster: Asked, kind: GroupKind, labels: str, namespace: str) -> list[Manifest]:
    try:
        found = await cluster.list(kind, namespace=namespace, labels=labels)
    except ClusterError as error:
        if error.code == 404:  # a cluster without workloads has none
            return []
        raise
    return [{**each, "kind": kind.kind} for each in found.items]


async def _readable(cluster: Asked, control: str) -> str | None:
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
        self, cluster: Asked, control: str, changed: Callable[[Engines], None], clock: Clock = SYSTEM_CLOCK
    ) -> None:
        """`changed` is called whenever `engines` has become another, with what it was."""
        self._cluster, self._control, self._changed, self._clock = cluster, control, changed, clock
        self._found: dict[tuple[ResourceKey, str], Manifest] = {}
        self._stirred = asyncio.Event()  # something that is found has changed
        self._settled = asyncio.Event()
        self._seen = UNKNOWN  # what is there now
        self._leaving: dict[str, Timer] = {}  # by namespace: those that count, and are not seen any more
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
                level = loudness(error, logging.WARNING)
                log.log(level, "whether an Argo CD delivers here cannot be asked: %s", error)
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
        """Whether one that counts is not seen any more."""
        return bool(self._leaving)

    async def _follow(self, namespace: str) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            informers = [self._informer(kind, labels, namespace) for kind in KINDS for labels in SELECTORS]
            for each in informers:
                tasks.create_task(each.run(), name="beside")
            for each in informers:
                await each.synced.wait()
            await self._look()

    async def _look(self) -> None:
        """Again and again, whenever something has changed."""
        failures = 0
        while True:
            self._stirred.clear()
            try:
                self._settle(await reached(self._cluster, tuple(self._found.values())))
            except ArgosyError as error:
                failures += 1
                log.warning("how far an Argo CD looks cannot be asked: %s", error)
                await sleep(self._clock, AWAY.delay(failures))
                continue
            failures = 0
            again = self._clock.call_later(ASKED_AGAIN, self._stirred.set)
            try:
                await self._stirred.wait()
            finally:
                again.cancel()

    def _informer(self, kind: GroupKind, labels: str, namespace: str) -> Informer:
        informer = Informer(self._cluster, kind, Cache(), namespace=namespace, labels=labels, clock=self._clock)

        def noticed(before: Manifest | None, after: Manifest | None) -> None:
            # One that has the labels of both selectors is known twice, and goes only when it is gone from both.
            if after is not None:
                self._found[key_of(after), labels] = after
            elif before is not None:
                self._found.pop((key_of(before), labels), None)
            self._stirred.set()

        informer.listeners.append(noticed)
        return informer

    def _settle(self, engines: Engines) -> None:
        """Where one is gone, or looks less far, what was so counts for a while."""
        self._seen, gone = engines, _lost(self.engines, engines) if engines.is_known else set()
        for place in self._leaving.keys() - gone:
            self._leaving.pop(place).cancel()
        for place in gone - self._leaving.keys():
            told = "the Argo CD in %s is not seen as it was: that counts for %d s more, unless it comes back"
            log.info(told, place, SETTLING)
            self._leaving[place] = self._clock.call_later(SETTLING, partial(self._leave, place))
        self._become()

    def _leave(self, place: str) -> None:
        del self._leaving[place]
        self._become()

    def _stay(self) -> None:
        while self._leaving:
            self._leaving.popitem()[1].cancel()

    def _become(self) -> None:
        kept = (each for each in self.engines.controllers if each.namespace in self._leaving)
        engines = replace(self._seen, controllers=tuple(sorted({*self._seen.controllers, *kept})))
        is_first = not self._settled.is_set()
        self._settled.set()
        if engines != self.engines or is_first:
            before, self.engines = self.engines, engines
            self._changed(before)


def _lost(before: Engines, now: Engines) -> set[str]:
    """Namespaces with an Argo CD that is gone, or does not look at all any more that it looked at."""
    seen = _reaches(now.controllers)
    return {place for place, reach in _reaches(before.controllers).items() if not reach <= seen.get(place, set())}


def _reaches(controllers: tuple[Controller, ...]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in controllers:
        found.setdefault(each.namespace, set()).update((each.namespace, *each.reach))
    return found
