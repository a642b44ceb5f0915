"""Registry of destination clusters; each is connected when the first Application needs it.

In: cluster Secrets from the settings. Out: a DestinationCluster for an Application, or why there is none. Never: lets
one cluster use all workers; keeps an unused cluster open; returns an outdated cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from argosy.annotations import REFRESH
from argosy.gitops.application import Application, read_destination
from argosy.gitops.policy.destination_cluster_lookup import IN_CLUSTER_SERVER, KnownCluster
from argosy.gitops.reconciler.destination_cluster import DestinationCluster, DestinationUnavailable
from argosy.gitops.reconciler.remote_cluster_connection import RemoteCluster
from argosy.gitops.reconciler.settings_watch import SETTINGS_KINDS, SettingsWatcher
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.controller import ChangeWatch, Clock, InformerCache
from argosy.kube.controller.clock import run_with_timeout
from argosy.kube.controller.cluster_concurrency import ClusterConcurrencyLimiter
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

log = logging.getLogger(__name__)
UNUSED_SECONDS: Final = 600.0  # seconds without Applications until a cluster is closed
SWEEP_INTERVAL_SECONDS: Final = 60.0  # seconds between sweeps


class ClusterRegistry:
    """A DestinationRegistry. `build_remote` builds a RemoteCluster from a Secret; `enqueue` enqueues an Application."""

    def __init__(
        self,
        local: DestinationCluster,
        settings: SettingsWatcher,
        cache: InformerCache,
        clock: Clock,
        build_remote: Callable[[KnownCluster, Manifest], RemoteCluster],
        enqueue: Callable[[ResourceKey], None],
        *,
        workers: int,
    ) -> None:
        """`cache`: the cache of the Applications' cluster."""
        self._local, self._settings, self._cache, self._clock = local, settings, cache, clock
        self._build_remote, self._enqueue, self._concurrency = (
            build_remote,
            enqueue,
            ClusterConcurrencyLimiter(workers, enqueue, clock.monotonic),
        )
        self._remotes: dict[str, RemoteCluster] = {}  # by Secret name
        self._fingerprints: dict[str, object] = {}
        self._unused_since: dict[str, float] = {}  # since when
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._sweep_requested = asyncio.Event()
        self._context = contextvars.copy_context()

    @property
    def remotes(self) -> tuple[RemoteCluster, ...]:
        """Destination clusters other than this one that are open or being opened."""
        return tuple(self._remotes.values())

    def list_connected(self) -> Iterable[DestinationCluster]:
        yield self._local
        for remote in self._remotes.values():
            if remote.destination is not None:
                yield remote.destination

    def enter(self, app: Application) -> AbstractContextManager[DestinationCluster | DestinationUnavailable]:
        cluster = self._settings.current_settings().clusters.find(app.destination)
        if cluster is not None and cluster.server == IN_CLUSTER_SERVER:
            return nullcontext(self._local)
        remote = None if cluster is None else self._get_or_open(cluster)
        if cluster is None or remote is None:
            return nullcontext(
                DestinationUnavailable(f"cluster {app.destination.name or app.destination.server} is not configured")
            )
        return self._enter_remote(cluster.secret_name, remote, app)

    def on_passes_finished(self, app: ResourceKey) -> None:
        self._concurrency.drop_reservation(app)

    def is_reconciling_remotely(self, app: ResourceKey) -> bool:
        """True if the Application is being reconciled in another cluster."""
        return self._concurrency.has_slot(app)

    def _get_or_open(self, cluster: KnownCluster) -> RemoteCluster | None:
        """Return the open cluster, unless its Secret changed."""
        secret = self._settings.find_cluster_secret(cluster.secret_name)
        if secret is None:
            return None
        fingerprint = _build_fingerprint(secret, self._settings.list_auth_programs())
        if cluster.secret_name in self._remotes and self._fingerprints[cluster.secret_name] != fingerprint:
            log.info("cluster %s: reconnecting because its Secret changed", cluster.name)
            self._close(cluster.secret_name)
        if cluster.secret_name not in self._remotes:
            remote = self._build_remote(cluster, secret)
            remote.on_state_change = lambda: self.enqueue_cluster_apps(cluster.secret_name)
            self._remotes[cluster.secret_name], self._fingerprints[cluster.secret_name] = remote, fingerprint
            self._concurrency.add_cluster(cluster.secret_name, lambda: remote.is_slow)
            # Its task has no context of the first Application, and outlives that Application's reconciliation.
            self._tasks[cluster.secret_name] = asyncio.create_task(
                remote.run(), name=f"cluster {cluster.name}", context=self._context.copy()
            )
        self._unused_since.pop(cluster.secret_name, None)
        return self._remotes[cluster.secret_name]

    @contextlib.contextmanager
    def _enter_remote(
        self, secret_name: str, remote: RemoteCluster, app: Application
    ) -> Iterator[DestinationCluster | DestinationUnavailable]:
        destination = remote.destination
        if destination is None:
            yield DestinationUnavailable(remote.problem)  # its Applications are enqueued when that changes
        elif not self._concurrency.try_acquire(secret_name, app.key, app.project):
            yield DestinationUnavailable()
        else:
            try:
                yield destination
            finally:
                self._concurrency.release(secret_name, app.key)
                if remote.destination is not destination:  # the connection ended during the pass, which may have cached
                    remote.forget_connection(app.key, destination)

    def enqueue_cluster_apps(self, secret_name: str) -> None:
        for app in self._apps_by_cluster().get(secret_name, ()):
            self._enqueue(app)

    def _apps_by_cluster(self) -> dict[str, list[ResourceKey]]:
        """Map Secrets of clusters to the Applications that deliver there."""
        clusters = self._settings.current_settings().clusters
        apps: dict[str, list[ResourceKey]] = {}
        secrets: dict[tuple[str, str], str] = {}
        for manifest in self._cache.list(APPLICATION):
            destination = as_mapping(as_mapping(manifest.get("spec")).get("destination"))
            server_and_name = str(destination.get("server") or ""), str(destination.get("name") or "")
            if server_and_name not in secrets:
                cluster = clusters.find(read_destination(*server_and_name))
                secrets[server_and_name] = cluster.secret_name if cluster is not None else ""
            if secrets[server_and_name]:
                apps.setdefault(secrets[server_and_name], []).append(key_of(manifest))
        return apps

    @property
    def watches(self) -> tuple[ChangeWatch, ...]:
        return (ChangeWatch(SETTINGS_KINDS, self._on_settings_change),)

    def _on_settings_change(self, before: Manifest | None, after: Manifest | None) -> None:
        """Sweep soon if the Secret of a cluster may have changed or gone."""
        changed = after or before
        if changed is not None and self._settings.affects_settings(changed):
            self.sweep_soon()

    def sweep_soon(self) -> None:
        self._sweep_requested.set()

    def apply_settings(self) -> None:
        for remote in self._remotes.values():
            remote.apply_settings()

    async def run(self) -> None:
        """Close unused clusters until cancelled. Others stay open for running work: see `close`."""
        self._context = contextvars.copy_context()
        while True:
            with contextlib.suppress(TimeoutError):
                await run_with_timeout(self._clock, SWEEP_INTERVAL_SECONDS, self._sweep_requested.wait())
            self._sweep_requested.clear()
            self._sweep()

    async def close(self) -> None:
        """Close all clusters; call it when no reconciliation is running."""
        for secret in list(self._remotes):
            self._close(secret)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def _sweep(self) -> None:
        apps_by_cluster, now = self._apps_by_cluster(), self._clock.monotonic()
        for secret in list(self._remotes):
            if self._settings.find_cluster_secret(secret) is None:
                self._close(secret)
            elif secret in apps_by_cluster:
                self._unused_since.pop(secret, None)
            elif now - self._unused_since.setdefault(secret, now) >= UNUSED_SECONDS:
                self._close(secret)

    def _close(self, secret_name: str) -> None:
        self._unused_since.pop(secret_name, None)
        self._fingerprints.pop(secret_name, None)
        del self._remotes[secret_name]
        self._concurrency.remove_cluster(secret_name)
        task = self._tasks.pop(secret_name)
        task.cancel()
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)


def _build_fingerprint(secret: Manifest, programs: frozenset[str]) -> object:
    """Return a value that changes when a cluster must be reconnected. argo: also on request by an annotation."""
    metadata = secret["metadata"]
    refresh_request = (metadata.get("annotations") or {}).get(REFRESH)
    return metadata.get("uid"), refresh_request, tuple(sorted((secret.get("data") or {}).items())), programs
