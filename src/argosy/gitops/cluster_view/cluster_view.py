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
from argosy.gitops.application_client.app_list import AppRow, row_of
from argosy.gitops.application_client.client import APPLICATION, Desk
from argosy.gitops.application_client.render_process import renderer
from argosy.gitops.cluster_view.cached_reader import LiveReader, SeenCluster
from argosy.gitops.coexistence.argocd_scope import claims
from argosy.gitops.live import indexes
from argosy.gitops.policy.delivery_engine import Engines, engines_of, is_controller
from argosy.gitops.reconciler.app_state import DEFINITION
from argosy.gitops.reconciler.render_cache import Renders
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.reconciler.settings_watch import Settings
from argosy.gitops.source.repositories import Repositories
from argosy.gitops.source.settings import SourceSettings
from argosy.gitops.workspace.checkouts import cache_folder
from argosy.isolation import Pool
from argosy.isolation.process_pool import Crew
from argosy.kube.client import Versioned
from argosy.kube.controller import SYSTEM_CLOCK, Cache, Clock
from argosy.kube.controller.informer import REFUSALS, Listener
from argosy.kube.controller.informer_set import Everything
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

log = logging.getLogger(__name__)
_place: Final = operator.attrgetter("name", "namespace")  # sort key of a row
CONTROLLERS: Final = "controllers of an Argo CD"  # name of an index
LOOK_SECONDS: Final = 0.5  # between checks of the watches
ASK_SECONDS: Final = 10.0  # between requests that check whether the server is reachable
ASK_PATIENCE: Final = 5.0  # seconds


class AsOf(NamedTuple):
    """How fresh the view is."""

    at: datetime  # now while the watches are up, else the last time they were
    is_up: bool
    why: str = ""  # why the view is not up to date
    changed: datetime | None = None  # time of the last watch event


class Lookout:
    def __init__(
        self, desk: Desk, repositories: Repositories, crew: Crew, pool: Pool, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        self.desk, self._clock = desk, clock
        self.cache = Cache()
        seen = replace(desk, cluster=SeenCluster(desk.cluster, self.cache, self.knows))
        self.reader = LiveReader(seen, repositories, crew, pool, self.cache, self.knows)
        self.settings: Settings = self.reader.settings
        self._tracking = self.rules.tracking
        self._index()
        self._everything = Everything(
            desk.cluster, self._is_watched, self.cache, self._noticed, definitions=[DEFINITION], clock=clock
        )
        self._listeners: list[Listener] = []
        self._rows: dict[ResourceKey, AppRow] = {}
        self._ordered: Sequence[AppRow] | None = None
        self._well = self._answered = clock.now()
        self._silence = ""  # why the server is unreachable
        self._changed: datetime | None = None
        self._is_synced = False
        self.has_ended = False  # the watches stopped for good: the data is stale

    async def run(self) -> None:
        """Run until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._everything.run(), name="lookout")
                tasks.create_task(self._ask(), name="cluster-reachability")
                await self._everything.synced()
                self._is_synced = True
                while True:
                    self._look()
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            self.has_ended = True

    async def _ask(self) -> None:
        """Poll the version of a remote server: a watch cannot distinguish a lost server from one without changes."""
        while isinstance(self.desk.cluster, Versioned):
            now = self._clock.now()
            try:
                async with asyncio.timeout(ASK_PATIENCE):
                    await self.desk.cluster.version()
                self._answered, self._silence = now, ""
            except (ArgosyError, TimeoutError) as error:
                if isinstance(error, ArgosyError) and _is_refusal(error):
                    self._answered, self._silence = now, ""  # a server that refuses is reachable
                else:
                    self._well = min(self._well, self._answered)
                    self._silence = str(error) or "the cluster does not answer"
            await asyncio.sleep(ASK_SECONDS)

    async def synced(self) -> None:
        """Wait until every readable kind has been listed once."""
        await self._everything.synced()
        self._is_synced = True

    # -- state --------------------------------------------------------------------------------------------------

    @property
    def rules(self) -> Rules:
        return self.settings.rules()

    @property
    def renders(self) -> Renders:
        """The cache of rendered sources."""
        return self.reader.assembler.renders

    def knows(self, kind: GroupKind) -> bool:
        """True if the cache holds all objects of the kind, possibly as of when the server was last reachable."""
        trouble = self._everything.troubles.get(kind)
        return self._everything.knew(kind) and (trouble is None or not _is_refusal(trouble))

    @property
    def engines(self) -> Engines:
        """The delivery engines found in this cluster; none if workloads cannot be read."""
        return engines_of(self.cache.find(CONTROLLERS, True), lambda found: claims(found, self.cache.get))

    @property
    def as_of(self) -> AsOf:
        trouble = self._look()
        return AsOf(self._well, not trouble, trouble, self._changed)

    @property
    def hidden(self) -> list[GroupKind]:
        """Kinds that this user may not read."""
        return sorted(kind for kind, error in self._everything.troubles.items() if _is_refusal(error))

    def _look(self) -> str:
        """Return why the view is stale, empty if it is fresh. Kinds that may not be read do not make it stale."""
        away = [str(error) for error in self._everything.troubles.values() if not _is_refusal(error)]
        if self._silence:
            away.append(self._silence)
        if self.has_ended:
            away.append("the watches of the cluster stopped; restart this server")
        if not away and self._is_synced:
            self._well = self._clock.now()
            return ""
        return away[0] if away else "waiting for the initial list of the cluster"

    # -- Applications -------------------------------------------------------------------------------------------

    def applications(self) -> Sequence[AppRow]:
        """Return the rows of all namespaces, sorted by name and namespace; the same object while nothing changes."""
        if self._ordered is None:
            self._ordered = sorted(self._rows.values(), key=_place)
        return self._ordered

    def row(self, namespace: str, name: str) -> AppRow | None:
        return self._rows.get(ResourceKey(*APPLICATION, namespace, name))

    def application(self, namespace: str, name: str) -> Application | None:
        """Return None if there is none. Raises UserError if it is malformed."""
        found = self.cache.get(ResourceKey(*APPLICATION, namespace, name))
        return read_application(found, f"Application {namespace}/{name}") if found is not None else None

    # -- changes ------------------------------------------------------------------------------------------------

    def listen(self, callback: Listener) -> Callable[[], None]:
        """Call `callback(before, after)` on each change; None: created or deleted. Returns a function that stops it."""
        self._listeners.append(callback)

        def stop() -> None:
            if callback in self._listeners:
                self._listeners.remove(callback)

        return stop

    def _noticed(self, before: Manifest | None, after: Manifest | None) -> None:
        manifest = after or before or {}
        self._changed = self._clock.now()
        self.reader.notice(before, after)
        if self.settings.concerns(manifest):
            self.settings.outdate()
            self._follow_settings()
        key = key_of(manifest)
        if key.group_kind == APPLICATION:
            self._list(key, after)
        for each in tuple(self._listeners):
            try:
                each(before, after)
            except Exception:  # a failing listener must not block the others
                log.exception("listener of cluster changes failed")

    def _list(self, key: ResourceKey, after: Manifest | None) -> None:
        if after is None:
            self._rows.pop(key, None)
            self._ordered = None
            return
        row = row_of(after)
        is_new = key not in self._rows
        self._rows[key] = row
        if is_new or self._ordered is None:
            self._ordered = None
            return
        ordered = list(self._ordered)  # copy: earlier callers hold the previous list
        ordered[bisect_left(ordered, _place(row), key=_place)] = row
        self._ordered = ordered

    def _follow_settings(self) -> None:
        rules = self.rules
        if rules.tracking != self._tracking:
            self._tracking = rules.tracking
            self._index()
        self._everything.look_again()

    def _index(self) -> None:
        self.cache.index(CONTROLLERS, lambda manifest: (True,) if is_controller(manifest) else ())
        for name, index in indexes(self._tracking).items():
            self.cache.index(name, index)

    def _is_watched(self, kind: GroupKind, verbs: Sequence[str]) -> bool:
        return self.rules.exclusions.is_watched(kind, verbs)


def _is_refusal(error: ArgosyError) -> bool:
    return isinstance(error, ClusterError) and error.code in REFUSALS


@asynccontextmanager
async def open_lookout(
    desk: Desk, repositories: Repositories | None = None, crew: Crew | None = None
) -> AsyncIterator[Lookout]:
    """Open a running and synced ClusterView. Repositories and workers that are passed in are not closed."""
    own_repositories = repositories or Repositories(cache_folder(), SourceSettings())
    own_crew, pool = crew or renderer(), Pool()
    lookout = Lookout(desk, own_repositories, own_crew, pool)
    work = asyncio.create_task(lookout.run(), name="lookout")
    try:
        await _either(work, lookout.synced())
        yield lookout
    finally:
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await lookout.reader.close()
        if repositories is None:
            own_repositories.close()
        if crew is None:
            await own_crew.close()
        await pool.close()


async def _either(work: asyncio.Task[None], wait: Coroutine[None, None, None]) -> None:
    """Await `wait`, but raise the error of `work` if that ends first."""
    waiting = asyncio.create_task(wait)
    await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        waiting.cancel()
        await work
    await waiting
