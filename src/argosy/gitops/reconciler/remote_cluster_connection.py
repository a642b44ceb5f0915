"""One remote destination cluster: connects, watches and reconnects.

In: its cluster Secret. Out: a DestinationCluster while it is reachable, else the reason. Never: a DestinationCluster
whose cache is incomplete or from before an outage.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from argosy.errors import ArgosyError, ClusterError, UserError
from argosy.gitops.policy.destination_cluster_lookup import KnownCluster
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder
from argosy.gitops.reconciler.destination_cluster import DestinationCluster
from argosy.gitops.reconciler.settings_watch import SettingsWatcher
from argosy.gitops.reconciler.watched_cluster import WatchedCluster
from argosy.kube.client import Cluster, ClusterReader
from argosy.kube.client.call_metrics import RecordCall
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.namespaced_reader import NamespacedClusterReader
from argosy.kube.controller import ChangeWatch, Clock, InformerCache
from argosy.kube.controller.clock import cancel_and_wait, run_unless_failed, run_with_timeout, sleep
from argosy.kube.controller.cluster_liveness import FAILURE_THRESHOLD_SECONDS, FailFastCluster, LivenessProbe
from argosy.kube.controller.informer_set import InformerSet
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import NAMESPACE

log = logging.getLogger(__name__)
PROBE_NAMESPACE: Final = "kube-system"  # a namespace that every cluster has
RETRY_SECONDS: Final = 30.0  # seconds until unusable credentials are retried


class RemoteWatcher(Protocol):
    """A part of the engine that watches other clusters, too."""

    def build_remote_watches(self, remote: RemoteCluster) -> Sequence[ChangeWatch]:
        """Return what it watches in this cluster. Changes are reported during the initial list, too."""


class RemoteCluster:
    def __init__(
        self,
        cluster: KnownCluster,
        build_connection: Callable[[], Connection],
        settings: SettingsWatcher,
        desired_states: DesiredStateBuilder,
        memos: AppMemos,
        applications: InformerCache,
        clock: Clock,
        watchers: Sequence[RemoteWatcher],
        record: RecordCall,
    ) -> None:
        """`applications`: the cache with the Applications. `record` is called for each request."""
        self.cluster, self._build_connection, self._settings = cluster, build_connection, settings
        self._desired_states, self._memos, self._applications = desired_states, memos, applications
        self._clock, self._watchers, self._record = clock, watchers, record
        self.on_state_change: Callable[[], None] = lambda: None
        self.watched: WatchedCluster | None = None  # while it is reachable
        self.destination: DestinationCluster | None = None
        self.cache = InformerCache()
        self._problem = ""
        self._probe: LivenessProbe | None = None

    @property
    def problem(self) -> str:
        """Why the cluster is unavailable, with its name; empty while it is too early to say."""
        return f"cluster {self.cluster.name} ({self.cluster.server}): {self._problem}" if self._problem else ""

    @property
    def is_slow(self) -> bool:
        return self._probe is not None and self._probe.is_slow

    async def run(self) -> None:
        """Connect and reconnect until cancelled; a failure of one cluster is reported and does not affect others."""
        while True:
            try:
                await self._connect_and_run()
            except UserError as error:  # unusable credentials
                self._set_problem(f"{error.message} (Secret {self.cluster.secret_name})")
            except ArgosyError as error:  # or not usable yet
                self._set_problem(str(error))
            except Exception:
                log.exception("cluster %s: unexpected error; reconnecting", self.cluster.name)
                self._set_problem("unexpected error; see the log of the controller")
            await sleep(self._clock, RETRY_SECONDS)

    async def _connect_and_run(self) -> None:
        client = await connect(self._build_connection())
        try:
            await self._run_connected(client)
        finally:
            self.destination = None
            await client.close()

    async def _run_connected(self, client: Cluster) -> None:
        """Fill a fresh cache whenever the cluster becomes reachable, and drop it when it does not answer."""
        probe = self._probe = LivenessProbe(
            partial(_probe_cluster, client, (*self.cluster.namespaces, PROBE_NAMESPACE)[0]), self._clock
        )
        probe_task = asyncio.create_task(probe.run())
        try:
            await run_unless_failed(probe_task, self._watch_while_alive(client, probe))
        finally:
            probe_task.cancel()
            await asyncio.gather(probe_task, return_exceptions=True)

    async def _watch_while_alive(self, client: Cluster, probe: LivenessProbe) -> None:
        while True:
            alive, dead = asyncio.create_task(probe.alive.wait()), asyncio.create_task(probe.dead.wait())
            try:
                await _wait_for_first(alive, dead)
            finally:
                await asyncio.gather(cancel_and_wait(alive), cancel_and_wait(dead))
            if probe.alive.is_set():
                await self._watch_until_dead(FailFastCluster(client, probe), probe)
            self._set_problem(probe.failure)
            await probe.alive.wait()

    async def _watch_until_dead(self, client: Cluster, probe: LivenessProbe) -> None:
        """Watch the cluster until it stops answering."""
        watched = self.watched = WatchedCluster(
            client,
            InformerCache(),
            lambda: self._settings.current_settings().tracking,
            self._is_watched,
            self._record,
            self._clock,
            choose_reader=self._choose_reader,
        )
        self.cache = watched.cache
        for watcher in self._watchers:
            watched.add_watches(watcher.build_remote_watches(self))
        informer_task = asyncio.create_task(watched.informers.run(), name=f"informers of {self.cluster.name}")
        try:
            await run_unless_failed(informer_task, self._serve_destination(watched, probe))
        finally:
            self.destination, self.watched = None, None
            self._memos.drop_connection(watched.client)
            informer_task.cancel()
            await asyncio.gather(informer_task, return_exceptions=True)

    def forget_connection(self, app: ResourceKey, destination: DestinationCluster) -> None:
        """Free what a pass over an Application cached of a connection that has ended."""
        if (memo := self._memos.find(app)) is not None:
            memo.drop_connection(destination.cluster)

    def _choose_reader(self, client: Cluster) -> ClusterReader:
        if not self.cluster.namespaces:
            return client
        return NamespacedClusterReader(
            client, self.cluster.namespaces, has_cluster_kinds=self.cluster.manages_cluster_scoped
        )

    async def _serve_destination(self, watched: WatchedCluster, probe: LivenessProbe) -> None:
        informers = watched.informers
        if not await self._wait_until_synced(informers, probe):
            return
        self.destination = DestinationCluster(
            watched.client,
            self.cache,
            self._desired_states,
            self._memos,
            self._clock.now,
            is_kind_cached=informers.is_synced_in_full,
            find_list_error=informers.describe_list_error,
            applications=self._applications,
            localize=partial(self._settings.localize_settings, self.cache, self.cluster.server),
        )
        self._set_problem("")
        await probe.dead.wait()

    async def _wait_until_synced(self, informers: InformerSet, probe: LivenessProbe) -> bool:
        """Wait for the initial list; False if the cluster stopped answering before."""
        synced, dead = asyncio.create_task(informers.wait_synced()), asyncio.create_task(probe.dead.wait())
        try:
            with contextlib.suppress(TimeoutError):
                await run_with_timeout(self._clock, FAILURE_THRESHOLD_SECONDS, _wait_for_first(synced, dead))
            if not synced.done() and not dead.done():
                self._set_problem("the initial list of its objects is not complete")
            await _wait_for_first(synced, dead)
            return not probe.dead.is_set()
        finally:
            await asyncio.gather(cancel_and_wait(synced), cancel_and_wait(dead))

    def _is_watched(self, kind: GroupKind, verbs: object) -> bool:
        settings = self._settings.localize_settings(self.cache, self.cluster.server, self._settings.current_settings())
        return settings.exclusions.is_watched(kind, verbs)  # type: ignore[arg-type]

    def apply_settings(self) -> None:
        """Apply changed settings: tracking method and watched kinds."""
        if self.watched is not None:
            self.watched.apply_tracking()
            self.watched.informers.rediscover()

    def _set_problem(self, problem: str) -> None:
        if problem and problem != self._problem:
            log.warning("cluster %s: %s", self.cluster.name, problem)
        elif not problem:
            log.info("cluster %s: open", self.cluster.name)
        self._problem = problem
        self.on_state_change()


async def _probe_cluster(cluster: Cluster, namespace: str) -> None:
    """Probe the cluster. An API server lists kinds from memory even without its store, so read an object, too."""
    await cluster.kinds()
    try:
        await cluster.get(ResourceKey(*NAMESPACE, "", namespace))
    except ClusterError as error:
        if error.code not in (403, 404):  # a namespaced account may lack the permission
            raise


async def _wait_for_first(*tasks: asyncio.Task[Any]) -> None:
    """Wait until one of the tasks is done."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
