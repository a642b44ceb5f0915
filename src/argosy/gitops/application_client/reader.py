"""Reads one Application's desired state, live objects, health and resource tree, without writes.

In: an ApplicationService, an Application. Out: AppState, tree nodes, health by key. Never: writes; reads more than the
Application's objects.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Self

from argosy.errors import ClusterError, PolicyError, TransientError, UserError
from argosy.fair_share import on_behalf_of
from argosy.gitops.application import Application, Source, read_source
from argosy.gitops.application.project import OrphanRule, Project
from argosy.gitops.application.step_results import Assessment, Checkout, Health
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.lazy_client import Late
from argosy.gitops.application_client.render_process import renderer
from argosy.gitops.application_client.summary import rows
from argosy.gitops.clusters.cluster_secret import connection_of, values_of
from argosy.gitops.diff import Memory
from argosy.gitops.live import indexes, orphans, tree
from argosy.gitops.live.resource_tree import Node
from argosy.gitops.policy.destination_clusters import HERE
from argosy.gitops.policy.projects import forbidden_sources
from argosy.gitops.reconciler.app_state import DEFINITION, Look, Looker
from argosy.gitops.reconciler.desired_state import Assembled, Assembler, Wanted
from argosy.gitops.reconciler.impersonation import user_to_impersonate
from argosy.gitops.reconciler.read_your_writes import Doorway
from argosy.gitops.reconciler.render_cache import Renders
from argosy.gitops.reconciler.settings import Rules
from argosy.gitops.reconciler.settings_watch import CONFIG_MAP, PROJECT, SECRET, STORAGE_CLASS, Settings
from argosy.gitops.source.folder_tree import FolderTree
from argosy.gitops.source.repositories import Repositories
from argosy.gitops.source.settings import SourceSettings
from argosy.gitops.workspace.checkouts import cache_folder
from argosy.gitops.workspace.paths import locate
from argosy.isolation import Pool
from argosy.isolation.process_pool import Crew
from argosy.kube.client import Catalog, Cluster, User
from argosy.kube.controller import Cache
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of
from argosy.kube.schema.builtin_kinds import BUILT_IN

AT_ONCE: Final = 8  # concurrent requests
_BUILT_IN: Final = frozenset(each.group_kind for each in BUILT_IN)
LOCAL: Final = "local"  # revision of a local folder


class _LocalRepositories(Repositories):
    """Returns the local folder for every repository."""

    tree: FolderTree

    async def checkout(self, url: str, ref: str, **_: object) -> Checkout:
        return Checkout(self.tree, LOCAL)


class Unseen(UserError):
    """The destination cluster cannot be read from here, so differences are unknown."""


class Reader:
    """Reads each object once and caches it."""

    def __init__(
        self, desk: Desk, repositories: Repositories, crew: Crew, pool: Pool, cache: Cache | None = None
    ) -> None:
        self.desk, self.pool = desk, pool
        self.cluster: Cluster = desk.cluster
        self.cache = Cache() if cache is None else cache
        self.settings = Settings(self.cache, repositories, pool, control_namespace=desk.control)
        self._crew, self.assembler = crew, Assembler(Renders(crew))
        self._doorway = Doorway(desk.cluster, self.cache.get, time.monotonic)
        self.looker = Looker(self._doorway, self.cache, Memory())
        self._gate = asyncio.Semaphore(AT_ONCE)
        self.denied: set[ResourceKey] = set()  # objects that may not be read
        self.control_cache = self.cache  # cache of the cluster with the settings
        self._place, self._localised = HERE, _as_they_are  # destination, and its overrides of the settings
        self._late: dict[str, tuple[Manifest, Late]] = {}  # clients of other clusters, by Secret name

    def at(self, app: Application) -> Reader:
        """Return an uncached reader of the Application's destination cluster. Raises DestinationUnreadable."""
        known = self.settings.rules().clusters.find(app.destination)
        server = known.server if known is not None else app.destination.server
        if server == self._place or (known is None and app.destination.is_here and self._place == HERE):
            return self
        secret = self.settings.cluster_secret(known.secret) if known is not None else None
        if known is None or secret is None:
            raise self._unseen(app, "read from here: no cluster Secret that you may read describes it")
        if self.desk.opener is None:
            raise self._unseen(app, "compared from here")
        other = copy.copy(self)
        other.__class__ = Reader
        other.cluster, other.cache, other.denied = self._opened(known.secret, secret), Cache(), set()
        other._doorway = Doorway(other.cluster, other.cache.get, time.monotonic)
        other.looker = Looker(other._doorway, other.cache, Memory(), applications=self.control_cache)
        other._gate, other._place = asyncio.Semaphore(AT_ONCE), known.server
        other._localised = partial(self.settings.localised, other.cache, known.server)
        for name, index in indexes(self.settings.rules().tracking).items():
            other.cache.index(name, index)
        return other

    def impersonating(self, app: Application) -> Reader:
        """Return a reader whose writes impersonate the account that syncs of the Application use."""
        if not self.rules.impersonation.is_enabled:
            return self
        user = user_to_impersonate(app, self.project(app), self.rules)
        if not user:
            return self
        other = copy.copy(self)
        other.cluster = self.cluster.acting_as(User(user))
        return other

    def check(self, app: Application) -> None:
        """Raise DestinationUnreadable if the Application's destination is another cluster than this reader's."""
        if self.at(app) is not self:
            raise self._unseen(app, "compared from here")

    @staticmethod
    def _unseen(app: Application, why: str) -> Unseen:
        told = f"goes to another cluster ({app.destination.server or app.destination.name}), which cannot be {why}"
        return Unseen(f"{told}; see its status: argosy app get {app.name}", where=app.name)

    @property
    def is_here(self) -> bool:
        """True if this reader reads the cluster that holds the Applications."""
        return self._place == HERE

    def _opened(self, name: str, secret: Manifest) -> Late:
        """Return the open client, unless its Secret changed."""
        assert self.desk.opener is not None
        before = self._late.get(name)
        if before is not None and before[0].get("data") == secret.get("data"):
            return before[1]
        made = Late(connection_of(values_of(secret), self.settings.programs()), self.desk.opener)
        if before is not None:
            self._late[f"{name} {len(self._late)}"] = before  # others may still use it
        self._late[name] = secret, made
        return made

    async def close(self) -> None:
        """Close clients of other clusters."""
        for _, each in self._late.values():
            await each.close()

    def signed(self, by: str) -> Self:
        """Return a reader that records Events in the name of this user."""
        other = copy.copy(self)
        other.desk = replace(self.desk, signer=by)
        return other

    async def load_settings(self) -> None:
        control = self.desk.control
        await asyncio.gather(
            *(self._put_all(kind, control) for kind in (CONFIG_MAP, PROJECT)),
            self._put_all(SECRET, control, "argocd.argoproj.io/secret-type"),
            self._put_all(STORAGE_CLASS, ""),
            self.kinds(),
        )
        self.settings.outdate()
        for name, index in indexes(self.rules.tracking).items():
            self.cache.index(name, index)

    @property
    def rules(self) -> Rules:
        return self._localised(self.settings.rules())

    def project(self, app: Application) -> Project:
        found = self.rules.projects.get(app.project)
        if found is None:
            raise UserError(f"{app.name}: project {app.project!r} not found; create it, or choose another")
        return found

    def on_behalf_of(self, app: Application) -> AbstractContextManager[None]:
        """Account scripts that run within this context to the Application's project."""
        return on_behalf_of(self.rules.tenant(app.project))

    async def assemble(self, app: Application, refs: Sequence[str] = ()) -> Assembled:
        """Render the desired state at the Application's own refs, or at these."""
        wanted = tuple(
            (refs[place] if place < len(refs) else "") or source.ref for place, source in enumerate(app.sources)
        )
        project, kinds = self.project(app), await self.kinds()
        if forbidden := forbidden_sources(project, app.sources):
            raise PolicyError("; ".join(forbidden), where=app.name)
        self._crew.begin()  # starts the process while repositories are fetched
        return await self.assembler.assemble(app, project, Wanted(app.sources, wanted), self.rules, kinds)

    async def kinds(self) -> Catalog:
        return await self._doorway.kinds()

    async def look(self, app: Application, refs: Sequence[str] = (), *, is_judged: bool = True) -> Look:
        return await self.look_at(app, await self.assemble(app, refs), is_judged=is_judged)

    async def look_at(self, app: Application, assembled: Assembled, *, is_judged: bool = True) -> Look:
        """Compare the desired state with live objects; raises DestinationUnreadable if the cluster is unreachable.

        `assess_health=False` skips health, for callers that only compare.
        """
        self.check(app)
        desired = [key_of(each) for each in assembled.desired if each["metadata"].get("name")]
        kinds = await self.kinds()
        await self.load([*desired, *(row.key for row in rows(app)), *_definitions(desired, kinds)])
        rules = self.rules if is_judged else replace(self.rules, assess_all=_unjudged)
        return await self.looker.look(app, self.project(app), assembled, rules, kinds)

    def hidden(self, app: Application, look: Look) -> list[str]:
        """List kinds of its objects that may not be read: they appear as missing."""
        asked = {*(row.key for row in rows(app)), *(pair.key for pair in look.comparison.pairs)}
        return sorted({key.kind for key in self.denied & asked})

    async def load(self, keys: Iterable[ResourceKey]) -> None:
        await asyncio.gather(*(self._put(key) for key in dict.fromkeys(keys)))

    async def health(self, app: Application) -> dict[ResourceKey, Assessment]:
        """Assess each managed object. argo: an object that does not exist is Missing, unless it is a hook."""
        self.check(app)
        found = rows(app)
        await self.load(row.key for row in found)
        live = {row.key: there for row in found if (there := self.cache.get(row.key)) is not None}
        with self.on_behalf_of(app):
            said = await self.rules.assess_all(list(live.values()))
        judged = {key: each for key, each in zip(live, said, strict=True) if each is not None}
        missing = [row.key for row in found if row.key not in live and not row.hook and row.status == "OutOfSync"]
        return {**judged, **{key: Assessment(Health.MISSING) for key in missing}}

    async def tree(self, app: Application) -> list[Node]:
        """Build the resource tree with the health of each node."""
        self.check(app)
        keys = [row.key for row in rows(app) if not row.hook]
        await self.load(keys)
        await self.load_namespaces({key.namespace for key in keys if key.namespace})
        managed = {key: found for key in keys if (found := self.cache.get(key)) is not None}
        nodes = tree(self.cache, managed)
        with self.on_behalf_of(app):
            said = await self.rules.assess_all([self.cache.get(node.key) or {} for node in nodes])
        return [replace(node, health=each) for node, each in zip(nodes, said, strict=True)]

    async def orphans(self, app: Application) -> list[ResourceKey]:
        """List objects in the Application's namespace that no Application manages."""
        self.check(app)
        keys = [row.key for row in rows(app)]
        namespace = app.destination.namespace
        await self.load(keys)
        await self.load_namespaces({namespace} - {""})
        managed = {key: found for key in keys if (found := self.cache.get(key)) is not None}
        rule = self.project(app).orphans or OrphanRule()
        return [node.key for node in orphans(self.cache, rule, namespace, managed, self.rules.tracking)]

    async def load_namespaces(self, namespaces: Iterable[str]) -> None:
        kinds = [
            kind
            for kind, info in (await self.kinds()).items()
            if info.namespaced and "list" in info.verbs and self.rules.exclusions.is_watched(kind, info.verbs)
        ]
        await asyncio.gather(*(self._put_all(kind, each) for each in namespaces for kind in kinds))

    async def _put(self, key: ResourceKey) -> None:
        async with self._gate:
            try:
                found = await self.cluster.get(key)
            except ClusterError as error:
                if error.code not in (403, 404):
                    raise
                if error.code == 403:
                    self.denied.add(key)
                return
        if found is not None:
            self.cache.put(found)

    async def _put_all(self, kind: GroupKind, namespace: str, labels: str = "") -> None:
        async with self._gate:
            try:
                found = await self.cluster.list(kind, namespace=namespace, labels=labels)
            except ClusterError as error:
                if error.code not in (403, 404, 405):
                    raise
                return  # not permitted: continue without it
        for manifest in found.items:
            self.cache.put(_whole(manifest, kind))


def _as_they_are(rules: Rules) -> Rules:
    return rules


async def _unjudged(manifests: Sequence[Manifest]) -> list[Assessment | None]:
    return [None] * len(manifests)


def _definitions(keys: Iterable[ResourceKey], kinds: Catalog) -> list[ResourceKey]:
    """List the CRDs of the custom kinds: they define how lists are compared."""
    custom = {key.group_kind for key in keys if key.group_kind in kinds and key.group_kind not in _BUILT_IN}
    return [ResourceKey(*DEFINITION, "", f"{kinds[kind].plural}.{kind.group}") for kind in custom]


def _whole(manifest: Manifest, kind: GroupKind) -> Manifest:
    return manifest if manifest.get("kind") else {**manifest, "kind": kind.kind}


@asynccontextmanager
async def open_reader(
    desk: Desk,
    local: Path | None = None,
    repositories: Repositories | None = None,
    crew: Crew | None = None,
    app: Application | None = None,
) -> AsyncIterator[Reader]:
    """Open a reader. `local_folder`: read every source from this folder; `render_pool` is closed at the end.

    With `app`, the reader reads the destination cluster of this Application.
    """
    folder = cache_folder()
    repositories = repositories or Repositories(folder, SourceSettings())
    if local is not None:
        repositories = _LocalRepositories(folder, SourceSettings())
        repositories.tree = FolderTree(local)
    crew, pool = crew or renderer(), Pool()
    try:
        reader = Reader(desk, repositories, crew, pool)
        await reader.load_settings()
        try:
            yield reader if app is None else reader.at(app)
        finally:
            await reader.close()
    finally:
        repositories.close()
        await crew.close()
        await pool.close()


async def fares(reader: Reader, app: Application) -> tuple[Reader, dict[ResourceKey, Assessment]]:
    """Assess an Application's objects and return the reader that read them; empty if another cluster is unreachable."""
    try:
        there = reader.at(app)
        return there, await there.health(app)
    except (Unseen, TransientError, ClusterError):
        if app.destination.is_here:
            raise
        return reader, {}


def in_folder(app: Application, path: str, root: str = "") -> tuple[Application, Path]:
    """Replace the source's path by a local folder; also return the root of its tree."""
    if len(app.sources) != 1:
        told = "has several sources, but --local replaces only one; push a branch and use --revision"
        raise UserError(f"{app.name} {told}")
    place = locate(path)
    top = Path(root).resolve() if root else Path(place.root)
    inner = (Path(place.root) / place.path).resolve()
    if not inner.is_relative_to(top):
        raise UserError(f"{path} is not below {root}; name one of its parent folders", where="--local-repo-root")
    source = read_source({**app.sources[0].wire, "path": str(inner.relative_to(top)) or "."})
    return replace(app, sources=(source,)), top


def health_words(found: Mapping[ResourceKey, Assessment]) -> dict[ResourceKey, str]:
    return {key: each.health.value for key, each in found.items() if each.health is not None}


__all__ = ["LOCAL", "Reader", "Source", "Unseen", "fares", "health_words", "in_folder", "open_reader"]
