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
from typing import Any, Final

from argosy.errors import ArgosyError
from argosy.gitops.applicationset.condition import ApplicationSetReporter
from argosy.gitops.clusters.cluster_secret import connection_of, values_of
from argosy.gitops.coexistence.argocd_detection import Beside
from argosy.gitops.engine.counters import Measures
from argosy.gitops.engine.logging_setup import QuotableSecrets, masked
from argosy.gitops.engine.sharded_engine import Sharing
from argosy.gitops.live import CacheReader, Keeping, indexes
from argosy.gitops.live.tracking import owner
from argosy.gitops.policy.delivery_engine import Engines
from argosy.gitops.policy.destination_clusters import HERE, KnownCluster
from argosy.gitops.reconciler import Pipeline
from argosy.gitops.reconciler.application_controller import APPLICATION, ApplicationController
from argosy.gitops.reconciler.budget_reporter import BudgetReporter
from argosy.gitops.reconciler.cluster_registry import Grounds
from argosy.gitops.reconciler.ignored_updates import Updates
from argosy.gitops.reconciler.ownership.delivery_turn import Turns, lost
from argosy.gitops.reconciler.read_your_writes import Doorway
from argosy.gitops.reconciler.remote_cluster import Outpost
from argosy.gitops.reconciler.settings_watch import SECRET, SETTINGS, Settings
from argosy.gitops.source.git.ref_fingerprint import Footprint
from argosy.gitops.source.git.refs import Refs
from argosy.gitops.source.repositories import Repositories
from argosy.gitops.source.settings import SourceSettings
from argosy.gitops.source.webhook_payloads import Push
from argosy.gitops.source.webhooks import concerns, read_pushes
from argosy.isolation import Pool
from argosy.isolation.health_report import ConfinementCheck
from argosy.isolation.process_pool import Crew
from argosy.kube.client import Cluster
from argosy.kube.client.connection import Connection
from argosy.kube.client.counting import Counted
from argosy.kube.controller import SYSTEM_CLOCK, Cache, Clock, Context, WorkQueue, attend
from argosy.kube.controller.clock import is_ended
from argosy.kube.controller.informer_set import Everything
from argosy.kube.controller.log_context import about
from argosy.kube.controller.sharding.members import Members
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

log = logging.getLogger(__name__)
DEFINITION: Final = GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")
SILENT: Final = 180.0  # seconds without events: the kinds are rediscovered every two minutes at least
COLLECTED: Final = (10_000, 20, 20)  # gc thresholds: manifests have no cycles, so frequent collections find nothing
MOMENT: Final = 1.0  # seconds of head start for Applications that a push changes
LOOKED_THROUGH: Final = 20  # Applications checked before other tasks may run
AT_ONCE: Final = 100  # unchanged Applications that are reconciled at once after a push; the rest is spread
AFTER_ANOTHER: Final = 0.02  # seconds between them: frequent pushes to a shared repository must not use up all workers
LOCAL_SECONDS: Final = 5.0  # seconds until the list of local repositories is rebuilt
LOCAL_LOOK: Final = 0.1  # seconds between polls of local repositories
LOOK_EACH: Final = 0.005  # additional seconds per repository: 100 of them are polled about twice a second


@dataclass(frozen=True)
class EngineOptions:
    mirrors: Path
    wave_delay: float = 2.0
    workers: int = 8
    renderers: int = 2
    grace: float = 5.0  # seconds that a running reconciliation or sync step has to finish at shutdown


def count_workers(workers: int) -> int:
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
        crew: Crew | None = None,
        members: Members | None = None,
    ) -> None:
        """`render_pool`: a shared pool that the caller closes. `members`: the replicas that share the Applications."""
        self.options, self.clock = options, clock
        self.measures = Measures()
        cluster = self.heard = Counted(cluster, partial(self.measures.asked, HERE), clock.monotonic)
        self.cache = Cache()
        keeping = Keeping(lambda: self.settings.rules().tracking)
        self.cluster = Doorway(cluster, self.cache.get, clock.monotonic, keeping.kept)
        keeping.once = self.cluster.once
        self.crew, self.pool = crew or Crew(workers=options.renderers), Pool()
        self._own_crew = self.crew if crew is None else None
        self.repositories = repositories or Repositories(options.mirrors, SourceSettings())
        self.repositories.observe = self.measures.asked_git
        self.settings = Settings(
            self.cache, self.repositories, self.pool, control_namespace=namespace, wave_delay=options.wave_delay
        )
        self.pipeline = Pipeline(
            self.cluster, self.cache, self.crew, now=clock.now, monotonic=clock.monotonic, knows=self._knows
        )
        self.pipeline.assembler.renders.control_namespace = namespace
        self.beside = Beside(cluster, namespace, self._engines_changed, clock)
        turns = Turns(lambda: self.beside.engines, clock.monotonic)
        self.controller = ApplicationController(self.pipeline, self.settings, self.cache, turns)
        self.queue = WorkQueue(clock=clock, tenant_of=self.controller.tenant, slots=options.workers)
        self.updates = Updates(self.settings)
        self.quotable = QuotableSecrets(namespace, lambda secret: bool(owner(secret, self._tracking)), self.cache.get)
        self.controller.wake, self.controller.passed = self.queue.add, self.measures.passed
        self.sharing = Sharing(members, self.controller, self.queue, self.cache) if members is not None else None
        self._tracking = self.settings.rules().tracking
        for name, index in indexes(self._tracking).items():
            self.cache.index(name, index)
        self.everything = Everything(
            cluster,
            self._is_watched,
            self.cache,
            self._noticed,
            definitions=[DEFINITION],
            needed=[APPLICATION, *SETTINGS],
            clock=clock,
            thrift=keeping,
        )
        self.grounds = self.pipeline.fleet = Grounds(
            self.pipeline.here, self.settings, self.cache, clock, self._establish, self.queue.add,
            workers=options.workers)  # fmt: skip
        self.application_sets = ApplicationSetReporter(self.cluster, self.cache, namespace, clock.now, self._knows)
        self.application_sets.claims = self.controller.claims
        self._heard: dict[str, Refs] = {}
        self._prints: dict[str, Footprint | None] = {}
        self._local: dict[str, list[ResourceKey]] | None = None  # None: to be rebuilt
        self.confinement, self._local_until = ConfinementCheck(), 0.0
        self.filled_at: float | None = None  # when the cache was complete for the first time

    def _knows(self, kind: GroupKind) -> bool:
        return self.everything.reads(kind)

    def _is_watched(self, kind: GroupKind, verbs: Sequence[str]) -> bool:
        return self.settings.rules().exclusions.is_watched(kind, verbs)

    def _establish(self, known: KnownCluster, secret: Manifest) -> Outpost:
        def connection() -> Connection:
            return connection_of(values_of(secret), self.settings.programs(), self.settings.max_memory())

        assembler = self.pipeline.assembler
        outpost = Outpost(known, connection, self.settings, assembler, self.cache, self.clock, self._noticed_there)
        outpost.told = partial(self.measures.asked, known.server)

        def seen(before: Manifest | None, after: Manifest | None) -> None:
            self.measures.heard(known.server)
            self.quotable.noticed(before, after, known.name)

        outpost.seen = seen
        return outpost

    def is_silent(self) -> bool:
        """True if the cluster has sent nothing for so long that it must be unreachable."""
        return self.clock.monotonic() - self.heard.heard_at > SILENT

    def _noticed_there(self, outpost: Outpost, before: Manifest | None, after: Manifest | None) -> None:
        """Handle a change in a destination cluster."""
        self._look(self.controller.noticed_in(outpost.cache, before, after), before, after, outpost.cache)

    def _noticed(self, before: Manifest | None, after: Manifest | None) -> None:
        self.cluster.notice(before, after)
        self.quotable.noticed(before, after)
        self.measures.heard(HERE)
        kind = (after or before or {}).get("kind")
        if kind == APPLICATION.kind and before is not None and after is None:
            self.measures.forget(key_of(before))
            if self.controller.claims is not None:
                self.controller.claims.forget(key_of(before))
        if kind == APPLICATION.kind and (before or {}).get("spec") != (after or {}).get("spec"):
            self._local = None
        self._look(self.controller.noticed(before, after), before, after)
        self.application_sets.notice(after or before)
        if (told := after or before) is not None and self.settings.concerns(told):
            self.grounds.look_again()
        self._follow_settings()

    def _look(
        self,
        keys: set[ResourceKey],
        before: Manifest | None,
        after: Manifest | None,
        there: CacheReader | None = None,
    ) -> None:
        idle = self.controller.idle(keys, after)
        if idle and self.updates.holds_back(before, after, idle, there):
            keys -= idle
        for key in keys:
            self.queue.add(key)

    def _engines_changed(self, before: Engines) -> None:
        """Reconcile every Application after an Argo CD was installed or removed, because ownership may change."""
        log.info("%s", self.beside.engines.sentence)
        if told := lost(self.cache.list(APPLICATION), before, self.beside.engines):
            log.warning("%s", told)
        for key in self.cache.keys(APPLICATION):
            self.queue.add(key)

    def _follow_settings(self) -> None:
        tracking = self.settings.rules().tracking
        if tracking != self._tracking:
            self._tracking = tracking
            for name, index in indexes(tracking).items():
                self.cache.index(name, index)
            for secret in self.cache.list(SECRET):  # tracked Secrets may differ now
                self.quotable.noticed(secret, secret)
            self.everything.look_again()
            self.grounds.follow_settings()

    async def run(self) -> None:
        """Run until cancelled."""
        member = {} if self.sharing is None else {"member": self.sharing.members.identity}
        with masked(self.quotable.mask), about(**member):
            await self._run()

    async def _run(self) -> None:
        gc.set_threshold(*COLLECTED)
        context = Context(self.cluster, self.cache, self.clock)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_for_ever(self.everything.run), name="everything")
                tasks.create_task(_for_ever(self.beside.run), name="beside")
                tasks.create_task(self.confinement.run(), name="confinement check")
                await self.everything.synced()
                await self.beside.synced()
                self.filled_at = self.clock.monotonic()
                tasks.create_task(_for_ever(self._listen), name="local repositories")
                tasks.create_task(_for_ever(partial(self.updates.run, self.queue.add)), name="updates")
                tasks.create_task(_for_ever(self.grounds.run), name="clusters")
                tasks.create_task(_for_ever(self.application_sets.run), name="application sets")
                tasks.create_task(_for_ever(self._budget_reporter().run), name="project budgets")
                workers = count_workers(self.options.workers)
                working = partial(attend, self.controller, self.queue, context, workers=workers)
                tasks.create_task(_for_ever(partial(working, grace=self.options.grace)), name="workers")
                if self.sharing is not None:
                    tasks.create_task(_for_ever(self.sharing.run), name="sharing")
        finally:
            if self.sharing is not None:
                await self.sharing.end()  # at once: other replicas wait for our Applications
            await self.grounds.close()
            self.repositories.close()
            if self._own_crew is not None:
                await self._own_crew.close()
            await self.pool.close()

    def _budget_reporter(self) -> BudgetReporter:
        workers, namespace = (self.crew, self.pool), self.settings.control_namespace
        identity = "leader" if self.sharing is None else self.sharing.members.identity
        return BudgetReporter(
            self.cluster, self.cache, namespace, identity, self.clock, workers, self.queue,
            lambda: self.settings.rules().projects)  # fmt: skip

    async def _listen(self) -> None:
        """Poll local repositories, which send no webhooks; polling them is cheap."""
        while True:
            await asyncio.sleep(LOCAL_LOOK + LOOK_EACH * len(self._local_sources()))
            for url in tuple(self._local_sources()):
                print_ = self.repositories.footprint(url)
                if print_ is not None and print_ == self._prints.get(url):
                    continue
                try:
                    refs = await self.repositories.mirror(url).refs()
                except ArgosyError:
                    continue  # Applications that need it report the error
                self._prints[url] = print_
                if refs != self._heard.get(url):
                    self._heard[url] = refs
                    # including new Applications: they may have resolved the ref just before the push
                    await self._wake(self._local_sources().get(url, ()))

    async def told(self, headers: Mapping[str, str], body: bytes) -> list[ResourceKey]:
        """Handle a webhook. Raises SourceRefused if its sender cannot be verified."""
        return await self.pushed(read_pushes(headers, body, self.settings.webhook_secrets()))

    async def pushed(self, pushes: Sequence[Push]) -> list[ResourceKey]:
        """Reconcile the Applications that the pushes concern; return their keys."""
        told: dict[str, list[ResourceKey]] = {}
        for manifest in self.cache.list(APPLICATION):
            for source in _sources(manifest):
                url, ref = str(source.get("repoURL") or ""), str(source.get("targetRevision") or "")
                if any(concerns(push, url, ref, tag_prefix=str(source.get("tagPrefix") or "")) for push in pushes):
                    told.setdefault(url, []).append(key_of(manifest))
        for url, apps in told.items():
            with contextlib.suppress(ArgosyError):  # Applications that need it report the error
                await self.repositories.mirror(url).refs()
            await self._wake(apps)
        return list(dict.fromkeys(key for apps in told.values() for key in apps))

    async def _wake(self, apps: Sequence[ResourceKey]) -> None:
        """Reconcile the Applications that a push changes first; the others only record the new revision."""
        touched = 0
        for place, key in enumerate(apps):
            if await self.controller.is_touched(key):
                touched += 1
                self.queue.add(key, is_urgent=True)
                await asyncio.sleep(0)  # start it while the others are checked
            elif place % LOOKED_THROUGH == 0:
                await asyncio.sleep(0)  # let other tasks run
        for place, key in enumerate(apps):
            self.queue.add_after(key, (MOMENT if touched else 0.0) + max(0, place - AT_ONCE) * AFTER_ANOTHER)

    def _local_sources(self) -> dict[str, list[ResourceKey]]:
        if self._local is not None and self.clock.monotonic() < self._local_until:
            return self._local
        found: dict[str, list[ResourceKey]] = {}
        is_local: dict[str, bool] = {}
        for manifest in self.cache.list(APPLICATION):
            for source in _sources(manifest):
                url = source.get("repoURL")
                if not isinstance(url, str):
                    continue
                if url not in is_local:
                    is_local[url] = self.repositories.is_local(url)
                if is_local[url]:
                    found.setdefault(url, []).append(key_of(manifest))
        self._local, self._local_until = found, self.clock.monotonic() + LOCAL_SECONDS
        return found


def _name() -> str:
    me = asyncio.current_task()
    return me.get_name() if me is not None else "a task"


async def _for_ever(part: Callable[[], Awaitable[None]]) -> None:
    """Run a task of the engine; raise if it ends by itself, so that the whole engine stops with it."""
    try:
        await part()
    except asyncio.CancelledError:
        if is_ended():
            raise
    if not is_ended():
        raise RuntimeError(f"engine task {_name()!r} ended unexpectedly; the engine stops and must be restarted")


def _sources(app: Manifest) -> list[dict[str, Any]]:
    spec = app.get("spec") or {}
    return [each for each in (spec.get("source"), *(spec.get("sources") or ())) if isinstance(each, dict)]
