"""All that lives in a cluster, kept fresh by watches: what pages and the API read from.

In: a desk. Out: a cache, settings, a Reader over both, rows of Applications, one call for each change. Never: writes;
asks the cluster for what a watch has told already; takes silence for news: `as_of` says how fresh it is.
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
_place: Final = operator.attrgetter("name", "namespace")  # of a row in the list
CONTROLLERS: Final = "controllers of an Argo CD"  # an index
LOOK_SECONDS: Final = 0.5  # between looks whether the watches are up
ASK_SECONDS: Final = 10.0  # between questions whether anybody is there
ASK_PATIENCE: Final = 5.0  # seconds for an answer to that


class AsOf(NamedTuple):
    """How fresh all of it is."""

    at: datetime  # now while the watches are up, else when they were last known to be
    is_up: bool
    why: str = ""  # what is in the way
    changed: datetime | None = None  # when the last change came


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
        self._silence = ""  # why nobody answers
        self._changed: datetime | None = None
        self._is_synced = False
        self.has_ended = False  # its watches failed for good: what it knows grows old

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._everything.run(), name="lookout")
                tasks.create_task(self._ask(), name="whether the cluster answers")
                await self._everything.synced()
                self._is_synced = True
                while True:
                    self._look()
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            self.has_ended = True

    async def _ask(self) -> None:
        """A watch is as quiet when nobody is there as when nothing happens: of a server elsewhere, that is asked."""
        while isinstance(self.desk.cluster, Versioned):
            now = self._clock.now()
            try:
                async with asyncio.timeout(ASK_PATIENCE):
                    await self.desk.cluster.version()
                self._answered, self._silence = now, ""
            except (ArgosyError, TimeoutError) as error:
                if isinstance(error, ArgosyError) and _is_refusal(error):
                    self._answered, self._silence = now, ""  # who says no is there
                else:
                    self._well = min(self._well, self._answered)
                    self._silence = str(error) or "the cluster does not answer"
            await asyncio.sleep(ASK_SECONDS)

    async def synced(self) -> None:
        """Until every kind has been listed once, as far as it may be."""
        await self._everything.synced()
        self._is_synced = True

    # -- what it knows ------------------------------------------------------------------------------------------

    @property
    def rules(self) -> Rules:
        return self.settings.rules()

    @property
    def renders(self) -> Renders:
        """What was rendered for comparisons, and is still remembered."""
        return self.reader.assembler.renders

    def knows(self, kind: GroupKind) -> bool:
        """Whether silence of the cache about a kind means that there is nothing, or was, where the server is away."""
        trouble = self._everything.troubles.get(kind)
        return self._everything.knew(kind) and (trouble is None or not _is_refusal(trouble))

    @property
    def engines(self) -> Engines:
        """Who delivers here, by what they say; where workloads may not be read, nobody is known."""
        return engines_of(self.cache.find(CONTROLLERS, True), lambda found: claims(found, self.cache.get))

    @property
    def as_of(self) -> AsOf:
        trouble = self._look()
        return AsOf(self._well, not trouble, trouble, self._changed)

    @property
    def hidden(self) -> list[GroupKind]:
        """Kinds that may not be read: of them nothing is known."""
        return sorted(kind for kind, error in self._everything.troubles.items() if _is_refusal(error))

    def _look(self) -> str:
        """What is away and will come back. What is refused is another matter: that is how it is."""
        away = [str(error) for error in self._everything.troubles.values() if not _is_refusal(error)]
        if self._silence:
            away.append(self._silence)
        if self.has_ended:
            away.append("the watches of the cluster have ended; start this server again")
        if not away and self._is_synced:
            self._well = self._clock.now()
            return ""
        return away[0] if away else "the cluster is being read for the first time"

    # -- Applications -------------------------------------------------------------------------------------------

    def applications(self) -> Sequence[AppRow]:
        """Of all namespaces, by name and namespace. The same value as long as none has changed."""
        if self._ordered is None:
            self._ordered = sorted(self._rows.values(), key=_place)
        return self._ordered

    def row(self, namespace: str, name: str) -> AppRow | None:
        return self._rows.get(ResourceKey(*APPLICATION, namespace, name))

    def application(self, namespace: str, name: str) -> Application | None:
        """Raises a UserError where it is there and nobody can read it."""
        found = self.cache.get(ResourceKey(*APPLICATION, namespace, name))
        return read_application(found, f"Application {namespace}/{name}") if found is not None else None

    # -- changes ------------------------------------------------------------------------------------------------

    def listen(self, callback: Listener) -> Callable[[], None]:
        """Called with what was before (None: it is new) and what is now (None: it is gone). Returns how to stop it."""
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
            except Exception:  # one who cannot bear it must not keep it from the others
                log.exception("a listener failed")

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
        ordered = list(self._ordered)  # whoever has the one before keeps it as it was
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
    """At work and synced. Repositories and a crew that are given stay open at the end."""
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
    """Whoever waits for it learns that it failed."""
    waiting = asyncio.create_task(wait)
    await asyncio.wait({work, waiting}, return_when=asyncio.FIRST_COMPLETED)
    if work.done():
        waiting.cancel()
        await work
    await waiting
