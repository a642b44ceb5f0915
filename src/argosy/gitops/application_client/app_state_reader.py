"""Reads one Application's desired state, live objects, health and resource tree, without writes.

In: an ApplicationService, an Application. Out: AppState, tree nodes, health by key. Never: writes; reads more than the
Application's objects.
"""

from __future__ import annotations

import asyncio
import copy
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, Self

from argosy.errors import ClusterError, PolicyError, TransientError, UserError
from argosy.fair_share import charge_work_to
from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import OrphanRule, Project
from argosy.gitops.application.step_results import Assessment, HealthStatus
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.lazy_cluster_client import LazyClusterClient
from argosy.gitops.application_client.local_source_override import LocalRepositories
from argosy.gitops.application_client.render_pool_prestart import build_render_pool
from argosy.gitops.application_client.status_summary import list_rows
from argosy.gitops.clusters.cluster_secret import build_connection, read_secret_values
from argosy.gitops.diff import DiffCache
from argosy.gitops.live import build_tree, find_orphans
from argosy.gitops.live.resource_tree import ResourceNode
from argosy.gitops.policy.destination_cluster_lookup import IN_CLUSTER_SERVER
from argosy.gitops.policy.projects import list_forbidden_sources
from argosy.gitops.reconciler.app_memo import AppMemos
from argosy.gitops.reconciler.app_state_comparison import AppStateComparer
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_builder import DesiredStateBuilder
from argosy.gitops.reconciler.desired_state_values import DesiredState, DesiredStateRequest
from argosy.gitops.reconciler.impersonation import user_to_impersonate
from argosy.gitops.reconciler.local_manifests import find_compared_manifests
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.render_cache import RenderCache
from argosy.gitops.reconciler.settings_watch import SettingsWatcher
from argosy.gitops.reconciler.watched_cluster import index_by_tracking
from argosy.gitops.source.folder_tree import FolderTree
from argosy.gitops.source.repository_access_settings import SourceSettings
from argosy.gitops.source.repository_mirrors import Repositories
from argosy.gitops.workspace.command_file_tree_cache import find_cache_folder
from argosy.isolation import WorkerPool
from argosy.isolation.trusted_process_pool import ProcessPool
from argosy.kube.client import Catalog, User
from argosy.kube.controller import InformerCache
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.schema.builtin_kinds import BUILTIN_RESOURCES
from argosy.kube.well_known_kinds import APP_PROJECT, CONFIG_MAP, CRD, SECRET, STORAGE_CLASS

MAX_CONCURRENT_REQUESTS: Final = 8  # concurrent requests
_BUILT_IN: Final = frozenset(resource.group_kind for resource in BUILTIN_RESOURCES)


class DestinationUnreadable(UserError):
    """The destination cluster cannot be read from here, so differences are unknown."""


class ApplicationReader:
    """Reads each object once and caches it."""

    def __init__(
        self,
        service: ApplicationService,
        repositories: Repositories,
        render_pool: ProcessPool,
        pool: WorkerPool,
        cache: InformerCache | None = None,
    ) -> None:
        self.service, self.pool, self.cluster = service, pool, service.cluster
        self.cache = InformerCache() if cache is None else cache
        ns, sockets = service.control_namespace, service.plugin_sockets
        self.settings = SettingsWatcher(self.cache, repositories, pool, control_namespace=ns, plugin_sockets=sockets)
        self._render_pool, self.memos = render_pool, AppMemos()
        self._comparison_memos = self.memos
        self.desired_states = DesiredStateBuilder(RenderCache(render_pool, self.memos), self.memos)
        self._read_client = ReadYourWritesClient(service.cluster, self.cache.get, time.monotonic)
        self.comparer = AppStateComparer(self._read_client, self.cache, DiffCache())
        self._semaphore = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS)
        self.unreadable: set[ResourceKey] = set()  # objects that may not be read
        self.control_cache = self.cache  # cache of the cluster with the settings
        self._destination_server = IN_CLUSTER_SERVER
        self._localize_settings = _unchanged_settings  # applies the destination's overrides of the settings
        self._lazy_clients: dict[str, tuple[Manifest, LazyClusterClient]] = {}  # of other clusters, by Secret name

    def for_destination(self, app: Application) -> ApplicationReader:
        """Return an uncached reader of the Application's destination cluster. Raises DestinationUnreadable."""
        cluster = self.settings.current_settings().clusters.find(app.destination)
        server = cluster.server if cluster is not None else app.destination.server
        if server == self._destination_server or (
            cluster is None and app.destination.is_in_cluster and self._destination_server == IN_CLUSTER_SERVER
        ):
            return self
        secret = self.settings.find_cluster_secret(cluster.secret_name) if cluster is not None else None
        if cluster is None or secret is None:
            raise self._build_unreadable(app, "read from here: no cluster Secret that you may read describes it")
        if self.service.opener is None:
            raise self._build_unreadable(app, "compared from here")
        reader = copy.copy(self)
        reader.__class__ = ApplicationReader
        reader.cluster = self._open_lazy_client(cluster.secret_name, secret)
        reader.cache, reader.unreadable, reader._comparison_memos = InformerCache(), set(), AppMemos()
        reader._read_client = ReadYourWritesClient(reader.cluster, reader.cache.get, time.monotonic)
        reader.comparer = AppStateComparer(
            reader._read_client, reader.cache, DiffCache(), applications=self.control_cache
        )
        reader._semaphore, reader._destination_server = asyncio.Semaphore(MAX_CONCURRENT_REQUESTS), cluster.server
        reader._localize_settings = partial(self.settings.localize_settings, reader.cache, cluster.server)
        index_by_tracking(reader.cache, self.settings.current_settings().tracking)
        return reader

    def impersonating(self, app: Application) -> ApplicationReader:
        """Return a reader whose writes impersonate the account that syncs of the Application use."""
        if not self.reconciler_settings.impersonation.is_enabled:
            return self
        user = user_to_impersonate(app, self.get_project(app), self.reconciler_settings)
        if not user:
            return self
        reader = copy.copy(self)
        reader.cluster = self.cluster.acting_as(User(user))
        return reader

    def check_same_destination(self, app: Application) -> None:
        """Raise DestinationUnreadable if the Application's destination is another cluster than this reader's."""
        if self.for_destination(app) is not self:
            raise self._build_unreadable(app, "compared from here")

    @staticmethod
    def _build_unreadable(app: Application, problem: str) -> DestinationUnreadable:
        message = (
            f"goes to another cluster ({app.destination.server or app.destination.name}), which cannot be {problem}"
        )
        return DestinationUnreadable(f"{message}; see its status: argosy app get {app.name}", where=app.name)

    @property
    def is_here(self) -> bool:
        """True if this reader reads the cluster that holds the Applications."""
        return self._destination_server == IN_CLUSTER_SERVER

    def _open_lazy_client(self, name: str, secret: Manifest) -> LazyClusterClient:
        """Return the open client, unless its Secret changed."""
        assert self.service.opener is not None
        previous = self._lazy_clients.get(name)
        if previous is not None and previous[0].get("data") == secret.get("data"):
            return previous[1]
        client = LazyClusterClient(
            build_connection(read_secret_values(secret), self.settings.list_auth_programs()), self.service.opener
        )
        if previous is not None:
            self._lazy_clients[f"{name} {len(self._lazy_clients)}"] = previous  # others may still use it
        self._lazy_clients[name] = secret, client
        return client

    async def close(self) -> None:
        """Close clients of other clusters."""
        for _, client in self._lazy_clients.values():
            await client.close()

    def recording_events_as(self, user: str) -> Self:
        """Return a reader that records Events in the name of this user."""
        reader = copy.copy(self)
        reader.service = replace(self.service, acting_user=user)
        return reader

    async def load_settings(self) -> None:
        control = self.service.control_namespace
        await asyncio.gather(
            *(self._load_kind(kind, control) for kind in (CONFIG_MAP, APP_PROJECT)),
            self._load_kind(SECRET, control, "argocd.argoproj.io/secret-type"),
            self._load_kind(STORAGE_CLASS, ""),
            self.list_kinds(),
        )
        self.settings.invalidate()
        index_by_tracking(self.cache, self.reconciler_settings.tracking)

    @property
    def reconciler_settings(self) -> ReconcilerSettings:
        return self._localize_settings(self.settings.current_settings())

    def get_project(self, app: Application) -> Project:
        project = self.reconciler_settings.projects.get(app.project)
        if project is None:
            raise UserError(f"{app.name}: project {app.project!r} not found; create it, or choose another")
        return project

    def charge_work_to_project(self, app: Application) -> AbstractContextManager[None]:
        """Account scripts that run within this context to the Application's project."""
        return charge_work_to(self.reconciler_settings.build_tenant(app.project))

    async def render_desired_state(
        self, app: Application, refs: Sequence[str] = (), *, reports_unverified: bool = False
    ) -> DesiredState:
        """Render the sources at the Application's own refs, or at these. See `DesiredStateBuilder.build`."""
        effective_refs = tuple(
            (refs[index] if index < len(refs) else "") or source.ref for index, source in enumerate(app.sources)
        )
        request = DesiredStateRequest(app.sources, effective_refs, reports_unverified=reports_unverified)
        return await self.build_desired_state(app, request)

    async def load_compared_state(self, app: Application, refs: Sequence[str] = ()) -> DesiredState:
        """Return what the controller compares: local manifests after a sync of such, else the rendered sources."""
        if refs or not (texts := find_compared_manifests(app)):
            return await self.render_desired_state(app, refs)
        refs = tuple(source.ref for source in app.sources)
        return await self.build_desired_state(app, DesiredStateRequest(app.sources, refs, local_manifests=texts))

    async def build_desired_state(self, app: Application, request: DesiredStateRequest) -> DesiredState:
        project, kinds = self.get_project(app), await self.list_kinds()
        if forbidden := list_forbidden_sources(project, app.sources):
            raise PolicyError("; ".join(forbidden), where=app.name)
        self._render_pool.start_first_worker()  # starts the process while repositories are fetched
        return await self.desired_states.build(app, project, request, self.reconciler_settings, kinds)

    def without_render_cache(self) -> ApplicationReader:
        """Return a reader that remembers no renders, for an Application that is not stored, and may never be."""
        reader = copy.copy(self)
        memos = AppMemos()
        reader.desired_states = DesiredStateBuilder(RenderCache(self._render_pool, memos), memos)
        return reader

    async def list_kinds(self) -> Catalog:
        return await self._read_client.kinds()

    async def compare(
        self, app: Application, refs: Sequence[str] = (), *, assess_health: bool = True, from_git: bool = False
    ) -> AppState:
        """Compare like the controller. `from_git` ignores local manifests that were synced."""
        load = self.render_desired_state if from_git else self.load_compared_state
        return await self.compare_desired_state(app, await load(app, refs), assess_health=assess_health)

    async def compare_desired_state(
        self, app: Application, desired: DesiredState, *, assess_health: bool = True
    ) -> AppState:
        """Compare the desired state with live objects; raises DestinationUnreadable if the cluster is unreachable.

        `assess_health=False` skips health, for callers that only compare.
        """
        self.check_same_destination(app)
        desired_keys = [key_of(manifest) for manifest in desired.manifests if manifest["metadata"].get("name")]
        kinds = await self.list_kinds()
        await self.load_objects(
            [*desired_keys, *(row.key for row in list_rows(app)), *_list_crd_keys(desired_keys, kinds)]
        )
        settings = (
            self.reconciler_settings
            if assess_health
            else replace(self.reconciler_settings, assess_all=_skip_assessment)
        )
        memo = self._comparison_memos[app.key].get_connection(self._read_client).comparison
        return await self.comparer.compare_app_state(app, self.get_project(app), desired, settings, kinds, memo)

    def list_unreadable_kinds(self, app: Application, app_state: AppState) -> list[str]:
        """List kinds of its objects that may not be read: they appear as missing."""
        keys = {*(row.key for row in list_rows(app)), *(pair.key for pair in app_state.comparison.pairs)}
        return sorted({key.kind for key in self.unreadable & keys})

    async def load_objects(self, keys: Iterable[ResourceKey]) -> None:
        await asyncio.gather(*(self._load_object(key) for key in dict.fromkeys(keys)))

    async def assess_managed_objects(self, app: Application) -> dict[ResourceKey, Assessment]:
        """Assess each managed object. argo: an object that does not exist is Missing, unless it is a hook."""
        self.check_same_destination(app)
        resource_rows = list_rows(app)
        await self.load_objects(row.key for row in resource_rows)
        live = {row.key: manifest for row in resource_rows if (manifest := self.cache.get(row.key)) is not None}
        with self.charge_work_to_project(app):
            assessments = await self.reconciler_settings.assess_all(list(live.values()))
        assessed = {
            key: assessment for key, assessment in zip(live, assessments, strict=True) if assessment is not None
        }
        missing = [
            row.key for row in resource_rows if row.key not in live and not row.hook and row.status == "OutOfSync"
        ]
        return {**assessed, **{key: Assessment(HealthStatus.MISSING) for key in missing}}

    async def build_tree(self, app: Application) -> list[ResourceNode]:
        """Build the resource tree with the health of each node."""
        self.check_same_destination(app)
        keys = [row.key for row in list_rows(app) if not row.hook]
        await self.load_objects(keys)
        await self.load_namespaces({key.namespace for key in keys if key.namespace})
        managed = {key: manifest for key in keys if (manifest := self.cache.get(key)) is not None}
        nodes = build_tree(self.cache, managed)
        with self.charge_work_to_project(app):
            assessments = await self.reconciler_settings.assess_all([self.cache.get(node.key) or {} for node in nodes])
        return [replace(node, health=assessment) for node, assessment in zip(nodes, assessments, strict=True)]

    async def list_orphans(self, app: Application) -> list[ResourceKey]:
        """List objects in the Application's namespace that no Application manages."""
        self.check_same_destination(app)
        keys = [row.key for row in list_rows(app)]
        namespace = app.destination.namespace
        await self.load_objects(keys)
        await self.load_namespaces({namespace} - {""})
        managed = {key: manifest for key in keys if (manifest := self.cache.get(key)) is not None}
        rule = self.get_project(app).orphans or OrphanRule()
        return [
            node.key for node in find_orphans(self.cache, rule, namespace, managed, self.reconciler_settings.tracking)
        ]

    async def load_namespaces(self, namespaces: Iterable[str]) -> None:
        kinds = [
            kind
            for kind, info in (await self.list_kinds()).items()
            if info.namespaced
            and "list" in info.verbs
            and self.reconciler_settings.exclusions.is_watched(kind, info.verbs)
        ]
        await asyncio.gather(*(self._load_kind(kind, namespace) for namespace in namespaces for kind in kinds))

    async def _load_object(self, key: ResourceKey) -> None:
        async with self._semaphore:
            try:
                manifest = await self.cluster.get(key)
            except ClusterError as error:
                if error.code not in (403, 404):
                    raise
                if error.code == 403:
                    self.unreadable.add(key)
                return
        if manifest is not None:
            self.cache.put(manifest)

    async def _load_kind(self, kind: GroupKind, namespace: str, labels: str = "") -> None:
        async with self._semaphore:
            try:
                listing = await self.cluster.list(kind, namespace=namespace, labels=labels)
            except ClusterError as error:
                if error.code not in (403, 404, 405):
                    raise
                return  # not permitted: continue without it
        for manifest in listing.items:
            self.cache.put(manifest if manifest.get("kind") else {**manifest, "kind": kind.kind})


def _unchanged_settings(settings: ReconcilerSettings) -> ReconcilerSettings:
    return settings


async def _skip_assessment(manifests: Sequence[Manifest]) -> list[Assessment | None]:
    return [None] * len(manifests)


def _list_crd_keys(keys: Iterable[ResourceKey], kinds: Catalog) -> list[ResourceKey]:
    """List the CRDs of the custom kinds: they define how lists are compared."""
    custom = {key.group_kind for key in keys if key.group_kind in kinds and key.group_kind not in _BUILT_IN}
    return [ResourceKey(*CRD, "", f"{kinds[kind].plural}.{kind.group}") for kind in custom]


@asynccontextmanager
async def open_reader(
    service: ApplicationService,
    local_folder: Path | None = None,
    repositories: Repositories | None = None,
    render_pool: ProcessPool | None = None,
    app: Application | None = None,
) -> AsyncIterator[ApplicationReader]:
    """Open a reader. `local_folder`: read every source from this folder; `render_pool` is closed at the end.

    With `app`, the reader reads the destination cluster of this Application.
    """
    folder = find_cache_folder()
    repositories = repositories or Repositories(folder, SourceSettings())
    if local_folder is not None:
        repositories = LocalRepositories(folder, SourceSettings())
        repositories.tree = FolderTree(local_folder)
    render_pool, pool = render_pool or build_render_pool(), WorkerPool()
    try:
        reader = ApplicationReader(service, repositories, render_pool, pool)
        await reader.load_settings()
        try:
            yield reader if app is None else reader.for_destination(app)
        finally:
            await reader.close()
    finally:
        repositories.close()
        await render_pool.close()
        await pool.close()


async def assess_or_empty(
    reader: ApplicationReader, app: Application
) -> tuple[ApplicationReader, dict[ResourceKey, Assessment]]:
    """Assess an Application's objects and return the reader that read them; empty if another cluster is unreachable."""
    try:
        destination_reader = reader.for_destination(app)
        return destination_reader, await destination_reader.assess_managed_objects(app)
    except (DestinationUnreadable, TransientError, ClusterError):
        if app.destination.is_in_cluster:
            raise
        return reader, {}
