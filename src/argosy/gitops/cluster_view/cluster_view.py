"""Read-only view of a cluster, kept fresh by watches, for the pages and the API.

In: an ApplicationService. Out: a cache, settings, a Reader over both, rows of Applications, a callback per change.
Never: writes; requests an object that is watched; hides that data is stale: `as_of` says how fresh it is.
"""

from __future__ import annotations

import asyncio
import logging
import operator
from bisect import bisect_left
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from argosy.errors import ArgosyError, ClusterError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.filtered_app_list import AppRow, build_row
from argosy.gitops.application_client.render_pool_prestart import build_render_pool
from argosy.gitops.cluster_view.cached_reader import CachedCluster, CachedReader
from argosy.gitops.coexistence.argocd_application_namespaces import read_namespaces
from argosy.gitops.policy.application_delivery_engine_detection import (
    DeliveryEngines,
    build_engines,
    is_application_controller,
)
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.render_cache import RenderCache
from argosy.gitops.reconciler.settings_watch import SettingsWatcher
from argosy.gitops.reconciler.watched_cluster import WatchedObjects
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.workspace.command_file_tree_cache import find_cache_folder
from argosy.isolation import WorkerPool
from argosy.isolation.trusted_process_pool import ProcessPool
from argosy.kube.client import VersionedCluster
from argosy.kube.controller import EVERY_KIND, SYSTEM_CLOCK, ChangeWatch, Clock, InformerCache
from argosy.kube.controller.informer import REFUSED_CODES, ChangeListener
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

log = logging.getLogger(__name__)
_row_sort_key: Final = operator.attrgetter("name", "namespace")  # sort key of a row
CONTROLLERS_INDEX: Final = "controllers of an Argo CD"  # name of an index
WATCH_CHECK_INTERVAL_SECONDS: Final = 0.5  # between checks of the watches
REACHABILITY_CHECK_INTERVAL_SECONDS: Final = 10.0  # between requests that check whether the server is reachable
REACHABILITY_TIMEOUT_SECONDS: Final = 5.0  # seconds


class ViewFreshness(NamedTuple):
    """How fresh the view is."""

    fresh_at: datetime  # now while the watches are up, else the last time they were
    is_up: bool
    reason: str = ""  # why the view is not up to date
    changed_at: datetime | None = None  # time of the last watch event


class CacheFigures(NamedTuple):
    kinds: int
    objects: int
    synced_at: datetime


class ClusterView:
    def __init__(
        self,
        service: ApplicationService,
        repositories: Repositories,
        workers: ProcessPool,
        pool: WorkerPool,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.service, self._clock = service, clock
        self.cache = InformerCache()
        cached_service = replace(service, cluster=CachedCluster(service.cluster, self.cache, self.is_fully_cached))
        self.reader = CachedReader(cached_service, repositories, workers, pool, self.cache, self.is_fully_cached)
        self.settings: SettingsWatcher = self.reader.settings
        self.cache.add_index(CONTROLLERS_INDEX, lambda manifest: (True,) if is_application_controller(manifest) else ())
        self._watched = WatchedObjects(
            service.cluster, self.cache, lambda: self.rules.tracking, self._is_watched, clock
        )
        self._watched.add_watches([ChangeWatch(EVERY_KIND, self._on_change)])
        self._informers = self._watched.informers
        self._listeners: list[ChangeListener] = []
        self._rows_by_key: dict[ResourceKey, AppRow] = {}
        self._sorted_rows: Sequence[AppRow] | None = None
        self._fresh_at = self._reached_at = clock.now()
        self._unreachable_reason = ""  # why the server is unreachable
        self._changed_at: datetime | None = None
        self._synced_at: datetime | None = None  # when every readable kind had been listed
        self.has_stopped = False  # the watches stopped for good: the data is stale

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._informers.run(), name="cluster-view")
                tasks.create_task(self._check_reachability(), name="cluster-reachability")
                await self.wait_until_synced()
                while True:
                    self._check_freshness()
                    await asyncio.sleep(WATCH_CHECK_INTERVAL_SECONDS)
        finally:
            self.has_stopped = True

    async def _check_reachability(self) -> None:
        """Poll the version of a remote server: a watch cannot distinguish a lost server from one without changes."""
        while isinstance(self.service.cluster, VersionedCluster):
            now = self._clock.now()
            try:
                async with asyncio.timeout(REACHABILITY_TIMEOUT_SECONDS):
                    await self.service.cluster.version()
                self._reached_at, self._unreachable_reason = now, ""
            except (ArgosyError, TimeoutError) as error:
                if isinstance(error, ArgosyError) and _is_refusal(error):
                    self._reached_at, self._unreachable_reason = now, ""  # a server that refuses is reachable
                else:
                    self._fresh_at = min(self._fresh_at, self._reached_at)
                    self._unreachable_reason = str(error) or "the cluster does not answer"
            await asyncio.sleep(REACHABILITY_CHECK_INTERVAL_SECONDS)

    async def wait_until_synced(self) -> None:
        """Wait until every readable kind has been listed once."""
        await self._informers.wait_synced()
        self._synced_at = self._synced_at or self._clock.now()

    # -- state --------------------------------------------------------------------------------------------------

    @property
    def rules(self) -> ReconcilerSettings:
        return self.settings.current_settings()

    @property
    def render_cache(self) -> RenderCache:
        """The cache of rendered sources."""
        return self.reader.desired_states.renders

    def is_fully_cached(self, kind: GroupKind) -> bool:
        """True if the cache holds all objects of the kind, possibly as of when the server was last reachable."""
        error = self._informers.errors.get(kind)
        return self._informers.was_synced(kind) and (error is None or not _is_refusal(error))

    @property
    def engines(self) -> DeliveryEngines:
        """The delivery engines found in this cluster; none if workloads cannot be read."""
        return build_engines(
            self.cache.find(CONTROLLERS_INDEX, True), lambda controller: read_namespaces(controller, self.cache.get)
        )

    @property
    def as_of(self) -> ViewFreshness:
        stale_reason = self._check_freshness()
        return ViewFreshness(self._fresh_at, not stale_reason, stale_reason, self._changed_at)

    @property
    def cache_figures(self) -> CacheFigures | None:
        """The size of the cache; None until every readable kind has been listed."""
        if self._synced_at is None:
            return None
        kinds = self._informers.watched_kinds - self._informers.errors.keys()
        return CacheFigures(len(kinds), self.cache.count(), self._synced_at)

    @property
    def unreadable_kinds(self) -> list[GroupKind]:
        """Kinds that this user may not read."""
        return sorted(kind for kind, error in self._informers.errors.items() if _is_refusal(error))

    def _check_freshness(self) -> str:
        """Return why the view is stale, empty if it is fresh. Kinds that may not be read do not make it stale."""
        problems = [str(error) for error in self._informers.errors.values() if not _is_refusal(error)]
        if self._unreachable_reason:
            problems.append(self._unreachable_reason)
        if self.has_stopped:
            problems.append("the watches of the cluster stopped; restart this server")
        if not problems and self._synced_at:
            self._fresh_at = self._clock.now()
            return ""
        return problems[0] if problems else "waiting for the initial list of the cluster"

    # -- Applications -------------------------------------------------------------------------------------------

    def list_rows(self) -> Sequence[AppRow]:
        """Return the rows of all namespaces, sorted by name and namespace; the same object while nothing changes."""
        if self._sorted_rows is None:
            self._sorted_rows = sorted(self._rows_by_key.values(), key=_row_sort_key)
        return self._sorted_rows

    def find_row(self, namespace: str, name: str) -> AppRow | None:
        return self._rows_by_key.get(ResourceKey(*APPLICATION, namespace, name))

    def find_application(self, namespace: str, name: str) -> Application | None:
        """Return None if there is none. Raises UserError if it is malformed."""
        manifest = self.cache.get(ResourceKey(*APPLICATION, namespace, name))
        return read_application(manifest, f"Application {namespace}/{name}") if manifest is not None else None

    # -- changes ------------------------------------------------------------------------------------------------

    def add_listener(self, callback: ChangeListener) -> Callable[[], None]:
        """Call `callback(before, after)` on each change; None: created or deleted. Returns a function that stops it."""
        self._listeners.append(callback)

        def stop() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return stop

    def _on_change(self, before: Manifest | None, after: Manifest | None) -> None:
        manifest = after or before or {}
        self._changed_at = self._clock.now()
        self.reader.on_watch_event(before, after)
        if self.settings.affects_settings(manifest):
            self.settings.invalidate()
            self._watched.apply_tracking()
            self._informers.rediscover()
        key = key_of(manifest)
        if key.group_kind == APPLICATION:
            self._update_row(key, after)
        for listener in tuple(self._listeners):
            try:
                listener(before, after)
            except Exception:  # a failing listener must not block the others
                log.exception("listener of cluster changes failed")

    def _update_row(self, key: ResourceKey, after: Manifest | None) -> None:
        if after is None:
            self._rows_by_key.pop(key, None)
            self._sorted_rows = None
            return
        row = build_row(after)
        is_new = key not in self._rows_by_key
        self._rows_by_key[key] = row
        if is_new or self._sorted_rows is None:
            self._sorted_rows = None
            return
        rows = list(self._sorted_rows)  # copy: earlier callers hold the previous list
        rows[bisect_left(rows, _row_sort_key(row), key=_row_sort_key)] = row
        self._sorted_rows = rows

    def _is_watched(self, kind: GroupKind, verbs: Sequence[str]) -> bool:
        return self.rules.exclusions.is_watched(kind, verbs)


def _is_refusal(error: ArgosyError) -> bool:
    return isinstance(error, ClusterError) and error.code in REFUSED_CODES


@asynccontextmanager
async def open_cluster_view(
    service: ApplicationService, repositories: Repositories | None = None, workers: ProcessPool | None = None
) -> AsyncIterator[ClusterView]:
    """Open a running and synced ClusterView. Repositories and workers that are passed in are not closed."""
    own_repositories = repositories or Repositories(find_cache_folder(), SourceSettings())
    own_workers, pool = workers or build_render_pool(), WorkerPool()
    view = ClusterView(service, own_repositories, own_workers, pool)
    task = asyncio.create_task(view.run(), name="cluster-view")
    try:
        await _wait_or_fail(task, view.wait_until_synced())
        yield view
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await view.reader.close()
        if repositories is None:
            own_repositories.close()
        if workers is None:
            await own_workers.close()
        await pool.close()


async def _wait_or_fail(task: asyncio.Task[None], coroutine: Coroutine[None, None, None]) -> None:
    """Await the coroutine, but raise the error of the task if the task ends first."""
    waiting_task = asyncio.create_task(coroutine)
    await asyncio.wait({task, waiting_task}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        waiting_task.cancel()
        await task
    await waiting_task
