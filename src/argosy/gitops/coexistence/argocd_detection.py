"""Detects an Argo CD in the cluster, once or continuously by watches.

In: a cluster, the control namespace. Out: DeliveryEngines. Never: changes anything; takes a forbidden read as absence,
or a short outage as removal.
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
# Pods, too: one whose StatefulSet was deleted without it keeps running.
KINDS: Final = (GroupKind("apps", "StatefulSet"), GroupKind("apps", "Deployment"), GroupKind("", "Pod"))
AWAY: Final = Backoff(first=0.2, most=30.0, jitter=0.5)
REFUSED: Final = 60.0  # seconds until a forbidden read is tried again
SETTLING: Final = 60.0  # seconds until a missing Argo CD counts as removed: a recreated one is away for a while
# argo: its namespaces are read at its start, which its Pods show; RBAC can also change without that.
ASKED_AGAIN: Final = 60.0
UNKNOWN: Final = Engines(is_known=False)


async def find_engines(cluster: Asked, control: str) -> Engines:
    """Detect once: in all namespaces, or in the control namespace if only that may be read."""
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
    """Detect once for read-only callers: errors mean unknown."""
    try:
        return await find_engines(cluster, control)
    except ArgosyError:
        return UNKNOWN


async def _listed(cluster: Asked, kind: GroupKind, labels: str, namespace: str) -> list[Manifest]:
    try:
        found = await cluster.list(kind, namespace=namespace, labels=labels)
    except ClusterError as error:
        if error.code == 404:  # the kind is not served
            return []
        raise
    return [{**each, "kind": kind.kind} for each in found.items]


async def _readable(cluster: Asked, control: str) -> str | None:
    """Return where workloads may be listed: "" for all namespaces, the control namespace, or None."""
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
        """`on_change` is called with the previous value whenever `engines` changes."""
        self._cluster, self._control, self._changed, self._clock = cluster, control, changed, clock
        self._found: dict[tuple[ResourceKey, str], Manifest] = {}
        self._stirred = asyncio.Event()  # a detected object changed
        self._settled = asyncio.Event()
        self._seen = UNKNOWN  # as detected now
        self._leaving: dict[str, Timer] = {}  # by namespace: controllers that still count, but are gone
        self.engines = UNKNOWN

    async def run(self) -> None:
        """Watch until cancelled."""
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
                log.log(level, "cannot detect Argo CD: error=%s", error)
                await sleep(self._clock, AWAY.delay(failures))
                continue
            if place is not None:
                await self._follow(place)
            self._settle(UNKNOWN)
            await sleep(self._clock, REFUSED)

    async def synced(self) -> None:
        """Wait until the result is known, or known to be forbidden."""
        await self._settled.wait()

    @property
    def is_leaving(self) -> bool:
        """True if a controller that still counts is gone."""
        return bool(self._leaving)

    async def _follow(self, namespace: str) -> None:
        """Watch until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            informers = [self._informer(kind, labels, namespace) for kind in KINDS for labels in SELECTORS]
            for each in informers:
                tasks.create_task(each.run(), name="beside")
            for each in informers:
                await each.synced.wait()
            await self._look()

    async def _look(self) -> None:
        """Update the engines after every change."""
        failures = 0
        while True:
            self._stirred.clear()
            try:
                self._settle(await reached(self._cluster, tuple(self._found.values())))
            except ArgosyError as error:
                failures += 1
                log.warning("cannot read the namespaces of Argo CD: error=%s", error)
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
            # An object that matches both selectors is stored twice, and counts until it is gone from both.
            if after is not None:
                self._found[key_of(after), labels] = after
            elif before is not None:
                self._found.pop((key_of(before), labels), None)
            self._stirred.set()

        informer.listeners.append(noticed)
        return informer

    def _settle(self, engines: Engines) -> None:
        """Keep a controller that is gone, or watches fewer namespaces, for a grace period."""
        self._seen, gone = engines, _lost(self.engines, engines) if engines.is_known else set()
        for place in self._leaving.keys() - gone:
            self._leaving.pop(place).cancel()
        for place in gone - self._leaving.keys():
            told = "Argo CD is gone or watches less: namespace=%s grace_seconds=%d"
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
    """Return the namespaces whose Argo CD is gone, or no longer watches all that it watched."""
    seen = _reaches(now.controllers)
    return {place for place, reach in _reaches(before.controllers).items() if not reach <= seen.get(place, set())}


def _reaches(controllers: tuple[Controller, ...]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for each in controllers:
        found.setdefault(each.namespace, set()).update((each.namespace, *each.reach))
    return found
