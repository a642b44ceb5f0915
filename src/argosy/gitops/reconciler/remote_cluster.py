"""One remote destination cluster: connects, watches and reconnects.

In: its cluster Secret. Out: a DestinationCluster while it is reachable, else the reason. Never: a DestinationCluster
whose cache is incomplete or from before an outage.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from argosy.errors import ArgosyError, ClusterError, UserError
from argosy.gitops.live import Keeping, Tracking, indexes
from argosy.gitops.policy.destination_clusters import KnownCluster
from argosy.gitops.reconciler.desired_state import Assembler
from argosy.gitops.reconciler.destination import Ground
from argosy.gitops.reconciler.read_your_writes import Doorway
from argosy.gitops.reconciler.settings_watch import Settings
from argosy.kube.client import Cluster
from argosy.kube.client.connection import Connection
from argosy.kube.client.counting import Counted, Tell
from argosy.kube.client.http import connect
from argosy.kube.client.namespaced import Narrowed
from argosy.kube.controller import Cache, Clock
from argosy.kube.controller.clock import beside, let_go, sleep, within
from argosy.kube.controller.informer import Listener
from argosy.kube.controller.informer_set import Everything
from argosy.kube.controller.liveness import PATIENCE, Living, Pulse
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

log = logging.getLogger(__name__)
DEFINITION: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
OLDEST: Final = "kube-system"  # a namespace that every cluster has
AGAIN: Final = 30.0  # seconds until unusable credentials are retried
Noticed = Callable[["Outpost", Manifest | None, Manifest | None], None]


class Outpost:
    def __init__(
        self,
        known: KnownCluster,
        connection: Callable[[], Connection],
        settings: Settings,
        assembler: Assembler,
        applications: Cache,
        clock: Clock,
        noticed: Noticed,
    ) -> None:
        self.known, self._connection, self._settings = known, connection, settings
        self._assembler, self._applications, self._clock, self._noticed = assembler, applications, clock, noticed
        self.changed: Callable[[], None] = lambda: None
        self.seen: Listener = lambda before, after: None  # every change, also during the initial list
        self.told: Tell = lambda asked: None  # every request
        self.following: tuple[Counted, Everything] | None = None  # sources of the cache, while reachable
        self.ground: Ground | None = None
        self.cache = Cache()
        self._said = ""
        self._pulse: Pulse | None = None
        self._everything: Everything | None = None
        self._tracking = Tracking()

    @property
    def said(self) -> str:
        """Why the cluster is unavailable, with its name; empty while it is too early to say."""
        return f"cluster {self.known.name} ({self.known.server}): {self._said}" if self._said else ""

    @property
    def is_slow(self) -> bool:
        return self._pulse is not None and self._pulse.is_slow

    async def run(self) -> None:
        """Connect and reconnect until cancelled; a failure of one cluster is reported and does not affect others."""
        while True:
            try:
                await self._open()
            except UserError as error:  # unusable credentials
                self._say(f"{error.message} (Secret {self.known.secret})")
            except ArgosyError as error:  # or not usable yet
                self._say(str(error))
            except Exception:
                log.exception("cluster %s: unexpected error; reconnecting", self.known.name)
                self._say("unexpected error; see the log of the controller")
            await sleep(self._clock, AGAIN)

    async def _open(self) -> None:
        cluster = await connect(self._connection())
        try:
            await self._hold(cluster)
        finally:
            self.ground = None
            await cluster.close()

    async def _hold(self, cluster: Cluster) -> None:
        """Fill a fresh cache whenever the cluster becomes reachable, and drop it when it does not answer."""
        pulse = self._pulse = Pulse(partial(_asked, cluster, (*self.known.namespaces, OLDEST)[0]), self._clock)
        beating = asyncio.create_task(pulse.run())
        try:
            await beside(beating, self._follow(cluster, pulse))
        finally:
            beating.cancel()
            await asyncio.gather(beating, return_exceptions=True)

    async def _follow(self, cluster: Cluster, pulse: Pulse) -> None:
        while True:
            beats, stops = asyncio.create_task(pulse.beats.wait()), asyncio.create_task(pulse.stopped.wait())
            try:
                await _first(beats, stops)
            finally:
                await asyncio.gather(let_go(beats), let_go(stops))
            if pulse.beats.is_set():
                await self._work(Living(cluster, pulse), pulse)
            self._say(pulse.said)
            await pulse.beats.wait()

    async def _work(self, cluster: Cluster, pulse: Pulse) -> None:
        """Watch the cluster until it stops answering."""
        cache = self.cache = Cache()
        cluster = counted = Counted(cluster, self.told, self._clock.monotonic)
        keeping = Keeping(lambda: self._settings.rules().tracking)
        doorway = Doorway(cluster, cache.get, self._clock.monotonic, keeping.kept)
        keeping.once = doorway.once
        known = self.known
        seen = Narrowed(cluster, known.namespaces, has_cluster_kinds=known.has_cluster_kinds)
        everything = self._everything = Everything(
            seen if known.namespaces else cluster,
            self._is_watched,
            cache,
            partial(self._tell, doorway),
            definitions=[DEFINITION],
            clock=self._clock,
            thrift=keeping,
        )
        self.following = counted, everything
        self._index()
        filling = asyncio.create_task(everything.run(), name=f"everything of {known.name}")
        try:
            await beside(filling, self._stand(everything, doorway, pulse))
        finally:
            self.ground, self._everything, self.following = None, None, None
            filling.cancel()
            await asyncio.gather(filling, return_exceptions=True)

    async def _stand(self, everything: Everything, doorway: Doorway, pulse: Pulse) -> None:
        if not await self._filled(everything, pulse):
            return
        self.ground = Ground(
            doorway,
            self.cache,
            self._assembler,
            self._clock.now,
            knows=everything.reads,
            why_unlisted=everything.why_unlisted,
            applications=self._applications,
            localised=partial(self._settings.localised, self.cache, self.known.server),
        )
        self._say("")
        await pulse.stopped.wait()

    async def _filled(self, everything: Everything, pulse: Pulse) -> bool:
        """Wait for the initial list; False if the cluster stopped answering before."""
        whole, stops = asyncio.create_task(everything.synced()), asyncio.create_task(pulse.stopped.wait())
        try:
            with contextlib.suppress(TimeoutError):
                await within(self._clock, PATIENCE, _first(whole, stops))
            if not whole.done() and not stops.done():
                self._say("the initial list of its objects is not complete")
            await _first(whole, stops)
            return not pulse.stopped.is_set()
        finally:
            await asyncio.gather(let_go(whole), let_go(stops))

    def _is_watched(self, kind: GroupKind, verbs: object) -> bool:
        rules = self._settings.localised(self.cache, self.known.server, self._settings.rules())
        return rules.exclusions.is_watched(kind, verbs)  # type: ignore[arg-type]

    def _tell(self, doorway: Doorway, before: Manifest | None, after: Manifest | None) -> None:
        doorway.notice(before, after)
        self.seen(before, after)
        if self.ground is not None:  # before that nobody reads it, afterwards every Application is enqueued
            self._noticed(self, before, after)

    def follow_settings(self) -> None:
        """Apply changed settings: tracking method and watched kinds."""
        if self._tracking != self._settings.rules().tracking:
            self._index()
        if self._everything is not None:
            self._everything.look_again()

    def _index(self) -> None:
        self._tracking = self._settings.rules().tracking
        for name, index in indexes(self._tracking).items():
            self.cache.index(name, index)

    def _say(self, said: str) -> None:
        if said and said != self._said:
            log.warning("cluster %s: %s", self.known.name, said)
        elif not said:
            log.info("cluster %s: open", self.known.name)
        self._said = said
        self.changed()


async def _asked(cluster: Cluster, namespace: str) -> None:
    """Probe the cluster. An API server lists kinds from memory even without its store, so read an object, too."""
    await cluster.kinds()
    try:
        await cluster.get(ResourceKey("", "Namespace", "", namespace))
    except ClusterError as error:
        if error.code not in (403, 404):  # a namespaced account may lack the permission
            raise


async def _first(*tasks: asyncio.Task[Any]) -> None:
    """Wait until one of the tasks is done."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
