"""Compares an Application's desired state with the live state, and assesses its health.

In: desired manifests, the cache. Out: AppState. Never: changes anything in the cluster, except by dry runs.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import starmap
from typing import Final

from argosy.annotations import COMPARE_OPTIONS
from argosy.errors import ClusterError, UserError
from argosy.fair_share import charge_work_to
from argosy.gitops.application import Application
from argosy.gitops.application.project_spec import Project
from argosy.gitops.application.step_results import AppComparison, Assessment, HealthStatus, SyncStatus
from argosy.gitops.diff import (
    NO_JQ_RESULTS,
    CrdShapes,
    DiffCache,
    DiffOptions,
    JqQuestion,
    JqResults,
    build_diff_options,
    compare_manifests,
    list_jq_questions,
    needs_real_jq,
)
from argosy.gitops.health.aggregate import ResourceWithHealth, aggregate_health
from argosy.gitops.live import (
    CacheReader,
    ResourceNode,
    build_instance_name,
    find_managed_resources,
    find_orphans,
    find_version_mismatches,
    is_self_referenced,
    is_trimmed,
    normalize_tracking,
    orphan_warning,
    read_instance_name,
    walk_tree,
)
from argosy.gitops.reconciler.app_memo import CachedAppState, ComparisonMemo
from argosy.gitops.reconciler.app_state_values import AppState
from argosy.gitops.reconciler.desired_state_values import DesiredState
from argosy.gitops.reconciler.fetched_objects import ObjectFetch
from argosy.gitops.reconciler.impersonation import impersonate_service_account
from argosy.gitops.reconciler.object_permission_and_deletion_check import (
    IsAllowed,
    build_permission_check,
    check_keys_in_scope,
)
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.resources_and_warnings import (
    build_resources,
    build_warnings,
    list_shared_resource_messages,
)
from argosy.gitops.reconciler.server_side_diff import predict_by_dry_run
from argosy.gitops.reconciler.unknown_state import LIVE_STATE_ERROR, build_unknown_state
from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.gitops.status.resources import list_resource_keys
from argosy.gitops.sync.sync_plan import build_namespace
from argosy.kube.client import Catalog
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import CRD, NAMESPACE

READER_FIELD_MANAGER: Final = "argosy-reader"
MAX_CACHE_SECONDS: Final = 300.0


async def report_unreadable_as_unknown(
    app: Application, desired: DesiredState, comparison: Awaitable[AppState]
) -> AppState:
    """Await a comparison; if the live objects cannot be read, the status is Unknown and a condition says why."""
    try:
        return await comparison
    except UserError as error:
        condition = AppCondition(ConditionType.COMPARISON_ERROR, f"{LIVE_STATE_ERROR}: {error}")
        app_state = build_unknown_state(app, [*desired.conditions, condition], desired.revisions)
        # argo: no live object is known, so those that Git asks for count as missing
        health = Assessment(HealthStatus.MISSING) if desired.manifests else app_state.health
        return replace(app_state, desired=replace(app_state.desired, tools=desired.tools), health=health)


class AppStateComparer:
    def __init__(
        self,
        cluster: ReadYourWritesClient,
        cache: CacheReader,
        diff_cache: DiffCache,
        is_kind_cached: Callable[[GroupKind], bool] = lambda kind: True,
        *,
        applications: CacheReader | None = None,
    ) -> None:
        """`is_kind_cached` tells for which kinds the cache is complete; for other kinds a missing key means nothing.

        `applications` is the cache with the Applications, if these are in another cluster.
        """
        self.cluster, self.cache, self.diff_cache, self.is_kind_cached = cluster, cache, diff_cache, is_kind_cached
        self._applications = cache if applications is None else applications
        self.find_shape = CrdShapes(partial(cache.list, CRD))

    async def compare_app_state(
        self,
        app: Application,
        project: Project,
        desired: DesiredState,
        settings: ReconcilerSettings,
        kinds: Catalog,
        memo: ComparisonMemo,
        *,
        repeat_dry_runs: bool = False,
    ) -> AppState:
        """Return the same AppState as last time if no input changed; `repeat_dry_runs` ignores cached ones.

        argo: if the desired state is not known, live objects are listed with status Unknown, and their health counts.
        """
        check_keys_in_scope(desired.keys, app, settings, kinds)
        is_allowed = build_permission_check(app, project, settings, kinds)
        uncached_keys = self._find_uncached(desired.keys, kinds)
        live = self._collect_live(app, desired, settings, is_allowed, uncached_keys)
        full_objects = await memo.full_objects.fetch_all(
            map(self._full_object_fetch, filter(is_trimmed, live.values()))
        )
        live |= await self._fetch_uncached(uncached_keys, live, is_allowed) | full_objects
        if not desired.is_known:  # only the status names objects of kinds that cannot be listed
            live = await self.list_owned(app, live, settings, kinds, is_allowed)
        inputs = (project, desired.manifests, settings, kinds)
        # Another revision may have the same manifests, but not the same signature.
        spec = (app.wire.get("spec"), app.annotations.get(COMPARE_OPTIONS), desired.conditions)
        cached = memo.cached if desired.is_known else None
        if repeat_dry_runs and build_diff_options(app, settings.diff).server_side:
            cached, memo.predictions = None, {}
        if cached is not None and cached.until > time.monotonic() and cached.is_valid_for(inputs, spec, live):
            cached_desired = cached.app_state.desired
            if (cached_desired.revisions, cached_desired.sources) == (desired.revisions, desired.sources):
                return cached.app_state
            app_state = replace(cached.app_state, desired=desired)
            memo.cached = replace(cached, app_state=app_state)
            return app_state
        with charge_work_to(settings.build_tenant(app.project)):
            app_state = await self._compare(app, project, desired, settings, is_allowed, dict(live), memo)
        # Orphans and failed checks may differ next time, although no input here changed.
        is_repeatable = project.orphans is None and not any(
            condition.type.is_error for condition in app_state.conditions
        )
        until = time.monotonic() + MAX_CACHE_SECONDS
        memo.cached = CachedAppState(inputs, spec, live, app_state, until) if is_repeatable else None
        return app_state

    def _collect_live(
        self,
        app: Application,
        desired: DesiredState,
        settings: ReconcilerSettings,
        is_allowed: IsAllowed,
        uncached_keys: Set[ResourceKey],
    ) -> dict[ResourceKey, Manifest]:
        """Overlay the cache with our own writes. Deleted objects count until the operation has seen them go."""
        instance = build_instance_name(app, settings.tracking)
        live = find_managed_resources(self.cache, instance, desired.keys, is_allowed)
        for key in desired.keys:
            cached = live.get(key)
            manifest = self.cluster.find_newest(key, cached)
            if cached is None and key in uncached_keys:
                continue  # our write would count forever, because no watch reports its deletion
            if manifest is not None and manifest is not cached and is_allowed(key):
                live[key] = manifest
        if app.operation is None:
            return {key: manifest for key, manifest in live.items() if not self.cluster.is_deleted(key, manifest)}
        return live

    async def _compare(
        self,
        app: Application,
        project: Project,
        desired: DesiredState,
        settings: ReconcilerSettings,
        is_allowed: IsAllowed,
        live: dict[ResourceKey, Manifest],
        memo: ComparisonMemo,
    ) -> AppState:
        instance = build_instance_name(app, settings.tracking)
        fetches = starmap(self._converted_fetch, find_version_mismatches(desired.manifests, live))
        live |= await memo.converted.fetch_all(fetches)
        diff_options = build_diff_options(app, settings.diff, cache_salt=repr(settings.tracking))
        manifests = _add_managed_namespace(app, desired, live)
        adapted = self._normalize_live_tracking(manifests, live, settings)
        impersonated_client = partial(impersonate_service_account, self.cluster, app, project, settings)
        predicted: Mapping[ResourceKey, Manifest] = {}
        if diff_options.server_side:
            predicted = await predict_by_dry_run(memo, manifests, live, impersonated_client)
        list_questions = partial(
            list_jq_questions, predicted=predicted, cache=self.diff_cache, find_shape=self.find_shape
        )
        comparison = compare_manifests(
            manifests,
            adapted,
            diff_options,
            predicted=predicted,
            jq_results=await evaluate_jq(settings, diff_options, list_questions(manifests, adapted, diff_options)),
            is_own=partial(is_self_referenced, tracking=settings.tracking),
            cache=self.diff_cache,
            find_shape=self.find_shape,
        )
        if not desired.is_known:
            comparison = replace(comparison, status=SyncStatus.UNKNOWN)
        assessed = await self._assess_health(comparison, live, settings)
        app_health = aggregate_health(app.key, assessed, uid=app.uid)
        shared_resources = list_shared_resource_messages(app, live, instance, settings)
        orphans = self._find_orphans(app, project, live, settings, is_allowed)
        orphan_message = orphan_warning(orphans, project.orphans)
        return AppState(
            desired,
            comparison,
            live,
            build_resources(app, manifests, comparison, assessed, live, is_allowed),
            Assessment(app_health.health, app_health.message),
            (
                *desired.conditions,
                *build_warnings(comparison, app_health, shared_resources),
                *([AppCondition(ConditionType.ORPHANED_RESOURCE_WARNING, orphan_message)] if orphan_message else ()),
            ),
            len(orphans),
            shared_resources[0] if shared_resources else "",
        )

    def _find_uncached(self, keys: Sequence[ResourceKey], kinds: Catalog) -> set[ResourceKey]:
        """Return keys for which a cache miss proves nothing: the kind is not cached, or the watch missed our write.

        Without those that lack a namespace: they exist nowhere, and a condition says so.
        """
        keys = [
            key for key in keys if key.namespace or key.group_kind not in kinds or not kinds[key.group_kind].namespaced
        ]
        unknown = {kind for kind in {key.group_kind for key in keys} if kind in kinds and not self.is_kind_cached(kind)}
        doubtful = {key for key in keys if self.cluster.may_have_missed_delete(key) and key.group_kind in kinds}
        return doubtful | {key for key in keys if unknown and key.group_kind in unknown}

    async def _fetch_uncached(
        self, keys: Set[ResourceKey], live: Mapping[ResourceKey, Manifest], is_allowed: IsAllowed
    ) -> dict[ResourceKey, Manifest]:
        """Fetch the objects that the cache may not have."""
        missing_keys = [key for key in sorted(keys) if key not in live and is_allowed(key)]
        return {key: manifest for key in missing_keys if (manifest := await self._fetch_object(key)) is not None}

    def _full_object_fetch(self, slim: Manifest) -> ObjectFetch:
        """Fetch the full object of a slim cache entry, which no Application tracked until now."""
        key, metadata = key_of(slim), slim["metadata"]
        return ObjectFetch(
            key, (metadata.get("uid"), metadata.get("resourceVersion")), partial(self._fetch_object, key)
        )

    async def fetch_full_object(self, manifest: Manifest) -> Manifest:
        """Return the object with all fields, from the cluster if the cache has only some of them."""
        return (await self._fetch_object(key_of(manifest)) or manifest) if is_trimmed(manifest) else manifest

    async def _fetch_object(self, key: ResourceKey) -> Manifest | None:
        try:
            return await self.cluster.get(key)
        except ClusterError as error:
            raise UserError(f"cannot read {key.kind} {key.name}: {error}") from error

    def list_descendants(self, app_state: AppState) -> Iterable[Manifest]:
        """Return the managed objects and all their descendants."""
        return walk_tree(self.cache, app_state.live)

    def list_tracked(self, app: Application, settings: ReconcilerSettings) -> dict[ResourceKey, Manifest]:
        """Return the objects with the tracking mark of the Application; used if its desired state is unknown."""
        excludes = settings.exclusions.excludes
        return find_managed_resources(
            self.cache, build_instance_name(app, settings.tracking), (), lambda key: not excludes(key.group_kind)
        )

    async def list_owned(
        self,
        app: Application,
        live: Mapping[ResourceKey, Manifest],
        settings: ReconcilerSettings,
        kinds: Catalog,
        is_allowed: IsAllowed,
    ) -> dict[ResourceKey, Manifest]:
        """Return `live`, plus allowed objects from the Application's status that carry its tracking mark."""
        instance = build_instance_name(app, settings.tracking)
        uncached_keys = self._find_uncached(list_resource_keys(app.status), kinds)
        fetched = await self._fetch_uncached(uncached_keys, live, is_allowed)
        return {
            **live,
            **{
                key: manifest
                for key, manifest in fetched.items()
                if read_instance_name(manifest, settings.tracking) == instance
            },
        }

    def _converted_fetch(self, manifest: Manifest, live: Manifest) -> ObjectFetch:
        """Fetch a live object in the apiVersion that Git uses, if the cluster prefers another version.

        A dry-run apply of an empty object returns the live object in the requested apiVersion.
        """
        metadata = live["metadata"]
        identity = {name: metadata[name] for name in ("name", "namespace") if metadata.get(name)}
        empty_manifest = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "metadata": identity}

        async def ask() -> Manifest | None:
            try:
                return await self.cluster.apply(empty_manifest, manager=READER_FIELD_MANAGER, dry_run=True)
            except ClusterError:
                return None  # compare the cached version; a sync will report the error

        version = (metadata.get("uid"), metadata.get("resourceVersion"), manifest["apiVersion"])
        return ObjectFetch(key_of(manifest), version, ask)

    @staticmethod
    def _normalize_live_tracking(
        desired: Sequence[Manifest], live: Mapping[ResourceKey, Manifest], settings: ReconcilerSettings
    ) -> dict[ResourceKey, Manifest]:
        by_key = {key_of(manifest): manifest for manifest in desired if manifest["metadata"].get("name")}
        return {
            key: normalize_tracking(by_key[key], live_manifest, settings.tracking) if key in by_key else live_manifest
            for key, live_manifest in live.items()
        }

    async def _assess_health(
        self, comparison: AppComparison, live: Mapping[ResourceKey, Manifest], settings: ReconcilerSettings
    ) -> list[ResourceWithHealth]:
        live_pairs = [pair for pair in comparison.pairs if pair.live is not None]
        assessments = await settings.assess_all([live.get(pair.key) or pair.live or {} for pair in live_pairs])
        by_key = {pair.key: assessment for pair, assessment in zip(live_pairs, assessments, strict=True)}
        return [
            ResourceWithHealth(pair.key, pair.desired, pair.live, by_key.get(pair.key)) for pair in comparison.pairs
        ]

    def _find_orphans(
        self,
        app: Application,
        project: Project,
        live: Mapping[ResourceKey, Manifest],
        settings: ReconcilerSettings,
        is_allowed: IsAllowed,
    ) -> list[ResourceNode]:
        if project.orphans is None:
            return []

        def exists(instance: str) -> bool:
            namespace, _, name = instance.rpartition("_")
            key = app.key._replace(namespace=namespace or settings.control_namespace, name=name)
            return self._applications.get(key) is not None

        namespace, rule = app.destination.namespace, project.orphans
        return find_orphans(
            self.cache, rule, namespace, live, settings.tracking, application_exists=exists, is_permitted=is_allowed
        )


def _add_managed_namespace(
    app: Application, desired: DesiredState, live: Mapping[ResourceKey, Manifest]
) -> Sequence[Manifest]:
    """argo: a namespace that the Application tracks and manages is not pruned when its manifest leaves Git."""
    key = ResourceKey(*NAMESPACE, "", app.destination.namespace)
    is_managed = desired.is_known and app.policy.namespace_metadata is not None and key in live
    return [*desired.manifests, build_namespace(app)] if is_managed and key not in desired.keys else desired.manifests


async def evaluate_jq(
    settings: ReconcilerSettings, diff_options: DiffOptions, jq_questions: Iterable[JqQuestion]
) -> JqResults:
    """Run the jq expressions that only the real jq can evaluate."""
    if settings.evaluate_jq is None or not needs_real_jq(diff_options):
        return NO_JQ_RESULTS
    return JqResults(*await settings.evaluate_jq(jq_questions))
