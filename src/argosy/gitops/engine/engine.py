"""The engine: wires reconciler, informers, queue and workers to one cluster.

In: a cluster, a folder for mirrors. Out: Applications that are delivered until it is cancelled. Never: decides anything
about an Application.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from argosy.errors import ArgosyError
from argosy.gitops.applicationset.missing_controller_condition_writer import ApplicationSetReporter
from argosy.gitops.clusters.cluster_secret import build_connection, read_secret_values
from argosy.gitops.coexistence.argocd_detection import ArgoCDDetector
from argosy.gitops.engine.counters import EngineCounters
from argosy.gitops.engine.local_repository_poller import LocalRepositoryPoller, list_raw_sources
from argosy.gitops.engine.logging_setup import QuotableSecrets, mask_log_output
from argosy.gitops.engine.shard_application_takeover import EngineSharding
from argosy.gitops.live.tracking import read_instance_name
from argosy.gitops.policy.application_delivery_engine_detection import DeliveryEngines
from argosy.gitops.policy.destination_cluster_lookup import IN_CLUSTER_SERVER, KnownCluster
from argosy.gitops.reconciler import Reconciler
from argosy.gitops.reconciler.app_memo import OwnershipMemos
from argosy.gitops.reconciler.application_controller import ApplicationController
from argosy.gitops.reconciler.cluster_registry import ClusterRegistry
from argosy.gitops.reconciler.ownership.delivery_handover import DeliveryHandover, describe_lost_applications
from argosy.gitops.reconciler.remote_cluster_connection import RemoteCluster
from argosy.gitops.reconciler.settings_watch import SettingsWatcher
from argosy.gitops.reconciler.watched_cluster import WatchedCluster
from argosy.gitops.reconciler.worker_time_budget_reporter import BudgetReporter
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.source.webhook_payloads import Push
from argosy.gitops.source.webhook_verification import affects_source, read_pushes
from argosy.gitops.status.application_event_manifests import ALL_EVENT_REASONS
from argosy.isolation import WorkerPool
from argosy.isolation.confinement_health import ConfinementCheck
from argosy.isolation.trusted_process_pool import ProcessPool
from argosy.kube.client import Cluster
from argosy.kube.client.connection_settings import Connection
from argosy.kube.controller import (
    SYSTEM_CLOCK,
    ChangeWatch,
    Clock,
    ControllerContext,
    InformerCache,
    WorkQueue,
    run_workers,
)
from argosy.kube.controller.clock import is_being_cancelled
from argosy.kube.controller.log_context import with_log_fields
from argosy.kube.controller.sharding.membership import ShardMembership
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, CONFIG_MAP, SECRET

log = logging.getLogger(__name__)
MAX_SILENCE_SECONDS: Final = 180.0  # seconds without events: the kinds are rediscovered every two minutes at least
GC_THRESHOLDS: Final = (10_000, 20, 20)  # gc thresholds: manifests have no cycles, so frequent collections find nothing
PUSH_HEAD_START_SECONDS: Final = 1.0  # seconds of head start for Applications that a push changes
APPS_PER_YIELD: Final = 20  # Applications checked before other tasks may run
MAX_IMMEDIATE_APPS: Final = 100  # unchanged Applications that are reconciled at once after a push; the rest is spread
# seconds between them: frequent pushes to a shared repository must not use up all workers
APP_SPREAD_SECONDS: Final = 0.02


@dataclass(frozen=True)
class EngineOptions:
    mirror_folder: Path
    wave_delay_seconds: float = 2.0
    workers: int = 8
    render_workers: int = 2
    plugin_sockets: str = ""  # folder with the sockets of plug-ins in sidecars; empty: none
    event_reasons: frozenset[str] = ALL_EVENT_REASONS  # Events with other reasons are not written
    condition_types: frozenset[str] = frozenset()  # conditions that are exported as metrics
    grace_seconds: float = 5.0  # seconds that a running reconciliation or sync step has to finish at shutdown


def compute_total_workers(workers: int) -> int:
    """Return the total number of workers: some for one project, and as many for projects without a running one."""
    return 2 * workers


class Engine:
    def __init__(
        self,
        cluster: Cluster,
        options: EngineOptions,
        namespace: str,
        clock: Clock = SYSTEM_CLOCK,
        repositories: Repositories | None = None,
        render_pool: ProcessPool | None = None,
        members: ShardMembership | None = None,
    ) -> None:
        """`render_pool`: a shared pool that the caller closes. `members`: the replicas that share the Applications."""
        self.options, self.clock = options, clock
        self.counters, self.cache = EngineCounters(), InformerCache()
        self.render_pool, self.pool = render_pool or ProcessPool(workers=options.render_workers), WorkerPool()
        self._own_render_pool = self.render_pool if render_pool is None else None
        self.repositories = repositories or Repositories(options.mirror_folder, SourceSettings())
        self.repositories.on_request = self.counters.count_git_request
        self.settings = self._build_settings_watcher(namespace)
        self.watched = WatchedCluster(
            cluster,
            self.cache,
            lambda: self.settings.current_settings().tracking,
            self._is_watched,
            partial(self.counters.count_request, IN_CLUSTER_SERVER),
            clock,
        )
        self.cluster, self.informers = self.watched.client, self.watched.informers
        self.reconciler = self._build_reconciler()
        self.argocd_detection = ArgoCDDetector(self.watched.recorder, namespace, self._on_engines_changed, clock)
        delivery_turns = DeliveryHandover(OwnershipMemos(), lambda: self.argocd_detection.engines, clock.monotonic)
        self.queue = WorkQueue(clock=clock, find_tenant=self._find_project, slots_per_tenant=options.workers)
        self.controller = ApplicationController(
            self.reconciler,
            self.settings,
            self.cache,
            delivery_turns,
            self.queue.add,
            self.queue.restart,
            self.counters.count_reconcile,
            options.event_reasons,
        )
        self.quotable_secrets = QuotableSecrets(
            namespace, lambda secret: bool(read_instance_name(secret, self.watched.tracking)), self.cache.get
        )
        self.sharding = (
            EngineSharding(members, self.controller, self.queue, self.cache) if members is not None else None
        )
        self.clusters = self.reconciler.destinations = self._build_cluster_registry()
        self.application_sets = ApplicationSetReporter(
            self.cluster, self.cache, namespace, clock.now, self._is_fully_cached
        )
        self.application_sets.claims = self.controller.claims
        self.local_repositories = LocalRepositoryPoller(self.repositories, clock, self._enqueue_after_push)
        for part in (self.quotable_secrets, self.counters, self.local_repositories, self.controller,
                     self.application_sets, self.clusters, self):  # fmt: skip
            self.watched.add_watches(part.watches)
        self.confinement = ConfinementCheck()
        self.filled_at: float | None = None  # when the cache was complete for the first time

    @property
    def watches(self) -> tuple[ChangeWatch, ...]:
        return (ChangeWatch((CONFIG_MAP,), self._on_config_map_change),)

    def _find_project(self, app: ResourceKey) -> str:
        return self.controller.find_project(app)

    def _build_settings_watcher(self, namespace: str) -> SettingsWatcher:
        return SettingsWatcher(
            self.cache,
            self.repositories,
            self.pool,
            control_namespace=namespace,
            wave_delay=self.options.wave_delay_seconds,
            plugin_sockets=self.options.plugin_sockets,
        )

    def _build_reconciler(self) -> Reconciler:
        reconciler = Reconciler(
            self.cluster,
            self.cache,
            self.render_pool,
            now=self.clock.now,
            monotonic=self.clock.monotonic,
            is_kind_cached=self._is_fully_cached,
        )
        reconciler.desired_states.renders.control_namespace = self.settings.control_namespace
        return reconciler

    def _build_cluster_registry(self) -> ClusterRegistry:
        return ClusterRegistry(
            self.reconciler.local_destination,
            self.settings,
            self.cache,
            self.clock,
            self._build_remote_cluster,
            self.queue.add,
            workers=self.options.workers,
        )

    def _is_fully_cached(self, kind: GroupKind) -> bool:
        return self.informers.is_synced_in_full(kind)

    def _is_watched(self, kind: GroupKind, verbs: Sequence[str]) -> bool:
        return self.settings.current_settings().exclusions.is_watched(kind, verbs)

    def _build_remote_cluster(self, known_cluster: KnownCluster, secret: Manifest) -> RemoteCluster:
        def connection() -> Connection:
            return build_connection(
                read_secret_values(secret), self.settings.list_auth_programs(), self.settings.read_max_memory()
            )

        return RemoteCluster(
            known_cluster,
            connection,
            self.settings,
            self.reconciler.desired_states,
            self.reconciler.memos,
            self.cache,
            self.clock,
            (self.counters, self.quotable_secrets, self.controller),
            partial(self.counters.count_request, known_cluster.server),
        )

    def is_silent(self) -> bool:
        """True if the cluster has sent nothing for so long that it must be unreachable."""
        return self.clock.monotonic() - self.watched.recorder.last_update_at > MAX_SILENCE_SECONDS

    def _on_engines_changed(self, before: DeliveryEngines) -> None:
        """Reconcile every Application after an Argo CD was installed or removed, because ownership may change."""
        log.info("%s", self.argocd_detection.engines.log_message)
        if warning := describe_lost_applications(self.cache.list(APPLICATION), before, self.argocd_detection.engines):
            log.warning("%s", warning)
        for key in self.cache.keys(APPLICATION):
            self.queue.add(key)

    def _on_config_map_change(self, before: Manifest | None, after: Manifest | None) -> None:
        """Apply another tracking method. The controller has invalidated the settings before."""
        if self.watched.apply_tracking():
            for secret in self.cache.list(SECRET):  # tracked Secrets may differ now
                self.quotable_secrets.on_change(secret, secret)
            self.informers.rediscover()
            self.clusters.apply_settings()

    async def run(self) -> None:
        """Run until cancelled."""
        log_fields = {} if self.sharding is None else {"member": self.sharding.members.identity}
        with mask_log_output(self.quotable_secrets.mask), with_log_fields(**log_fields):
            await self._run()

    async def _run(self) -> None:
        gc.set_threshold(*GC_THRESHOLDS)
        context = ControllerContext(self.cluster, self.cache, self.clock)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_run_task(self.informers.run), name="informers")
                tasks.create_task(_run_task(self.argocd_detection.run), name="Argo CD detection")
                tasks.create_task(self.confinement.run(), name="confinement check")
                await self.informers.wait_synced()
                await self.argocd_detection.wait_until_detected()
                self.filled_at = self.clock.monotonic()
                tasks.create_task(_run_task(self.local_repositories.run), name="local repositories")
                tasks.create_task(_run_task(self.controller.run_ignored_update_checks), name="updates")
                tasks.create_task(_run_task(self.clusters.run), name="clusters")
                tasks.create_task(_run_task(self.application_sets.run), name="application sets")
                tasks.create_task(_run_task(self._build_budget_reporter().run), name="project budgets")
                workers = compute_total_workers(self.options.workers)
                run_all_workers = partial(run_workers, self.controller, self.queue, context, workers=workers)
                tasks.create_task(
                    _run_task(partial(run_all_workers, grace_seconds=self.options.grace_seconds)), name="workers"
                )
                if self.sharding is not None:
                    tasks.create_task(_run_task(self.sharding.run), name="sharding")
        finally:
            if self.sharding is not None:
                await self.sharding.leave()  # at once: other replicas wait for our Applications
            await self.clusters.close()
            self.repositories.close()
            if self._own_render_pool is not None:
                await self._own_render_pool.close()
            await self.pool.close()

    def _build_budget_reporter(self) -> BudgetReporter:
        workers, namespace = (self.render_pool, self.pool), self.settings.control_namespace
        identity = "leader" if self.sharding is None else self.sharding.members.identity
        return BudgetReporter(
            self.cluster, self.cache, namespace, identity, self.clock, workers, self.queue,
            lambda: self.settings.current_settings().projects)  # fmt: skip

    async def handle_webhook(self, headers: Mapping[str, str], body: bytes) -> list[ResourceKey]:
        """Handle a webhook. Raises SourceRefused if its sender cannot be verified."""
        return await self.handle_pushes(read_pushes(headers, body, self.settings.load_webhook_secrets()))

    async def handle_pushes(self, pushes: Sequence[Push]) -> list[ResourceKey]:
        """Reconcile the Applications that the pushes concern; return their keys."""
        apps_by_url: dict[str, list[ResourceKey]] = {}
        for manifest in self.cache.list(APPLICATION):
            for source in list_raw_sources(manifest):
                url, ref = str(source.get("repoURL") or ""), str(source.get("targetRevision") or "")
                if any(
                    affects_source(push, url, ref, tag_prefix=str(source.get("tagPrefix") or "")) for push in pushes
                ):
                    apps_by_url.setdefault(url, []).append(key_of(manifest))
        for url, apps in apps_by_url.items():
            with contextlib.suppress(ArgosyError):  # Applications that need it report the error
                await self.repositories.mirror(url).list_refs()
            await self._enqueue_after_push(apps)
        return list(dict.fromkeys(key for apps in apps_by_url.values() for key in apps))

    async def _enqueue_after_push(self, apps: Sequence[ResourceKey]) -> None:
        """Reconcile the Applications that a push changes first; the others only record the new revision."""
        changed_count = 0
        for index, key in enumerate(apps):
            if await self.controller.may_render_differently(key):
                changed_count += 1
                self.queue.add(key, is_urgent=True)
                await asyncio.sleep(0)  # start it while the others are checked
            elif index % APPS_PER_YIELD == 0:
                await asyncio.sleep(0)  # let other tasks run
        for index, key in enumerate(apps):
            self.queue.add_after(
                key,
                (PUSH_HEAD_START_SECONDS if changed_count else 0.0)
                + max(0, index - MAX_IMMEDIATE_APPS) * APP_SPREAD_SECONDS,
            )


def _get_task_name() -> str:
    task = asyncio.current_task()
    return task.get_name() if task is not None else "a task"


async def _run_task(run_part: Callable[[], Awaitable[None]]) -> None:
    """Run a task of the engine; raise if it ends by itself, so that the whole engine stops with it."""
    try:
        await run_part()
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
    if not is_being_cancelled():
        raise RuntimeError(
            f"engine task {_get_task_name()!r} ended unexpectedly; the engine stops and must be restarted"
        )
