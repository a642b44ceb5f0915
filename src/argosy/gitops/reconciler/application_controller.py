"""The controller of Applications: maps watch events to keys, reconciles them, and patches their status.

In: the key of an Application. Out: its status, Events, and when to reconcile again. Never: holds logic that belongs to
a step of the reconciler.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from argosy import annotations as names
from argosy.errors import ClusterError, Conflict, ManifestError
from argosy.fair_share import charge_work_to
from argosy.gitops.application import Application, read_application
from argosy.gitops.live import CacheReader, find_affected_applications
from argosy.gitops.reconciler import Reconciler, ReconcileResult
from argosy.gitops.reconciler.ignored_updates import IgnoredUpdateFilter
from argosy.gitops.reconciler.ownership.application_claim_fence import ApplicationClaims
from argosy.gitops.reconciler.ownership.claim_before_reconcile_queue import ClaimQueue
from argosy.gitops.reconciler.ownership.delivery_handover import DeliveryHandover
from argosy.gitops.reconciler.reconciler_settings import ReconcilerSettings
from argosy.gitops.reconciler.remote_cluster_connection import RemoteCluster
from argosy.gitops.reconciler.setting_error_messages import SettingFaultLog
from argosy.gitops.reconciler.settings_watch import HEALTH_FACT_KINDS, SETTINGS_KINDS, SettingsWatcher
from argosy.gitops.reconciler.unknown_state import read_compared_revisions
from argosy.gitops.status.application_event_manifests import ALL_EVENT_REASONS
from argosy.gitops.status.status_builder import build_unreadable_patch
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.controller import EVERY_KIND, ChangeWatch, ControllerContext, InformerCache, Requeue
from argosy.kube.controller.log_context import add_log_fields
from argosy.kube.controller.sharding.membership import KeyOwnership
from argosy.kube.controller.write_fence import NotOwner
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION

log = logging.getLogger(__name__)
MAX_PASSES_IN_A_ROW: Final = 20  # passes in a row; then other Applications get their turn
OWNERSHIP_RETRY_SECONDS: Final = 1.0  # seconds until ownership is checked again
OnPassFinished = Callable[[Application, ReconcileResult, float], None]  # with the seconds that it took


class ApplicationController:
    """Declares what it watches, and reconciles the keys that these watches enqueue."""

    name = "application"

    def __init__(
        self,
        reconciler: Reconciler,
        settings_watcher: SettingsWatcher,
        cache: InformerCache,
        handover: DeliveryHandover,
        enqueue: Callable[[ResourceKey], None],
        restart_turn: Callable[[ResourceKey], None],
        on_pass_finished: OnPassFinished,
        event_reasons: Collection[str] = ALL_EVENT_REASONS,
    ) -> None:
        """`cache`: of the cluster with the Applications. `restart_turn`: called when a pass begins to read the state
        of an Application. Events with other reasons are not written.
        """
        self.reconciler, self.settings_watcher = reconciler, settings_watcher
        self.cache, self.handover, self.memos = cache, handover, reconciler.memos
        self._enqueue, self._restart_turn = enqueue, restart_turn
        self._on_pass_finished, self._event_reasons = on_pass_finished, event_reasons
        self.claims: ApplicationClaims | None = None  # set if several replicas share the Applications
        self.claim_queue: ClaimQueue | None = None  # set together with `claims`
        self._fault_log, self._ignored_updates = SettingFaultLog(), IgnoredUpdateFilter(settings_watcher)
        # Applications that are being reconciled, with the newest event since they were read. Not in AppMemo, which may
        # be forgotten during a pass.
        self._in_progress: dict[ResourceKey, Manifest | None] = {}

    # -- watches ---------------------------------------------------------------------------------------------------

    @property
    def watches(self) -> tuple[ChangeWatch, ...]:
        """In this order: what an object means depends on the settings that are in force after a change."""
        return (
            ChangeWatch(SETTINGS_KINDS, self._on_settings_change, is_required=True),
            ChangeWatch(HEALTH_FACT_KINDS, self._on_settings_change),
            ChangeWatch(EVERY_KIND, self._on_object_change),
            ChangeWatch((APPLICATION,), self._on_application_change, is_required=True),
        )

    def build_remote_watches(self, remote: RemoteCluster) -> tuple[ChangeWatch, ...]:
        """Return what is watched in another cluster; it holds no settings or Applications."""

        def on_remote_change(before: Manifest | None, after: Manifest | None) -> None:
            if remote.destination is not None:  # otherwise every Application is enqueued when it opens
                self._enqueue_owners(remote.cache, before, after)

        return (ChangeWatch(EVERY_KIND, on_remote_change),)

    def _on_settings_change(self, before: Manifest | None, after: Manifest | None) -> None:
        if any(
            manifest is not None and self.settings_watcher.affects_settings(manifest) for manifest in (before, after)
        ):
            self.settings_watcher.invalidate()
            for key in self.cache.keys(APPLICATION):
                self._enqueue(key)

    def _on_object_change(self, before: Manifest | None, after: Manifest | None) -> None:
        """Enqueue the Applications that manage the object, or what it belongs to."""
        if not self.settings_watcher.affects_settings(after or before or {}):  # else all of them are enqueued
            self._enqueue_owners(self.cache, before, after)

    def _on_application_change(self, before: Manifest | None, after: Manifest | None) -> None:
        key = key_of(after or before or {})
        if after is None:
            self.handover.memos.forget(key)
        if after is None or not self._is_own_write(key, after):
            self._enqueue(key)

    async def run_ignored_update_checks(self) -> None:
        """Check updates of ignored fields for changes of health, until cancelled."""
        await self._ignored_updates.run(self._enqueue)

    def _enqueue_owners(self, cache: CacheReader, before: Manifest | None, after: Manifest | None) -> None:
        keys = {
            key
            for manifest in (before, after)
            if manifest is not None
            for key in self._find_tracking_apps(cache, manifest)
        }
        idle = set() if after is None else self._list_without_operation(keys)
        other_cache = None if cache is self.cache else cache
        if idle and self._ignored_updates.hold_if_ignorable(before, after, idle, other_cache):
            keys -= idle
        for key in keys:
            self._enqueue(key)

    def _is_own_write(self, key: ResourceKey, manifest: Manifest) -> bool:
        """True if the event only reports our own write, and nothing is left to do."""
        if self.reconciler.cluster.find_newest(key, manifest) is not manifest:
            return True  # our newer write came from a pass that read this version
        if "operation" in manifest or names.REFRESH in _annotations(manifest) or "status" not in manifest:
            # Revisions resolved after an older request may predate the push behind this one.
            self.memos[key].requested_at = time.monotonic()
        if key in self._in_progress:
            # The event may arrive before the response to our write, so it is checked at the end of the pass.
            self._in_progress[key] = manifest
            return True
        return self.reconciler.is_settled(manifest)

    def _find_tracking_apps(self, cache: CacheReader, manifest: Manifest) -> Iterable[ResourceKey]:
        settings = self.settings_watcher.current_settings()
        for concern in find_affected_applications(cache, manifest, settings.tracking):
            namespace, _, name = concern.instance.rpartition("_")
            app = ResourceKey(*APPLICATION, namespace or settings.control_namespace, name)
            if not concern.is_managed:
                self.reconciler.invalidate(app)
            yield app

    def _list_without_operation(self, keys: Iterable[ResourceKey]) -> set[ResourceKey]:
        """Return the keys without an operation; they may need no new pass."""
        newest = self.reconciler.cluster.find_newest
        return {key for key in keys if not (newest(key, self.cache.get(key)) or {}).get("operation")}

    # -- passes ----------------------------------------------------------------------------------------------------

    async def may_render_differently(self, key: ResourceKey) -> bool:
        """True if the sources may render differently than last time."""
        manifest = self.reconciler.cluster.find_newest(key, self.cache.get(key))
        memo = self.memos.find(key)
        parsed = None if memo is None else memo.parsed
        if manifest is None or parsed is None or not _is_same_version(parsed[0], manifest):
            return True
        settings = self.settings_watcher.current_settings()
        project = settings.projects.get(parsed[1].project)
        return project is None or await self.reconciler.desired_states.may_render_differently(
            parsed[1], project, settings
        )

    async def reconcile(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        """Run passes as long as the next one can start at once; each result is written before the next pass."""
        self._in_progress[key] = None
        try:
            return await self._run_passes(key, context)
        finally:
            self.reconciler.destinations.on_passes_finished(key)
            newest_event = self._in_progress.pop(key)
            if newest_event is not None and not self.reconciler.is_settled(newest_event):
                self._enqueue(key)

    async def _run_passes(self, key: ResourceKey, context: ControllerContext) -> Requeue | None:
        for _ in range(MAX_PASSES_IN_A_ROW):
            result = await self._run_pass_if_owned(key, context)
            if result is None or result.wait != 0.0:
                break
        if result is None:
            return None
        if result.wait is not None:
            return Requeue(result.wait)
        settings = self.settings_watcher.current_settings()
        periods = [
            period for period in (settings.reconciliation_seconds, settings.hard_reconciliation_seconds) if period > 0
        ]  # argo: 0 is never
        return Requeue(min(periods) + random.random() * settings.jitter_seconds) if periods else None  # noqa: S311 - spreads load

    async def _run_pass_if_owned(self, key: ResourceKey, context: ControllerContext) -> ReconcileResult | None:
        """Run one pass if this replica owns the Application. Others are watched too, because ownership may change."""
        if self.claims is None or self.claim_queue is None:
            return await self._run_pass(key, context)
        if not await self.claim_queue.wait_for_turn(key):
            return None
        try:
            with self.claims.hold_ownership(key) as ownership:
                if ownership is KeyOwnership.OURS:
                    return await self._run_pass(key, context)
        except NotOwner as error:
            log.info("ownership lost during a pass: app=%s error=%s", key, error)
            return ReconcileResult(wait=OWNERSHIP_RETRY_SECONDS)
        if ownership is KeyOwnership.LEASE_EXPIRED:
            self.memos[key].requested_at = None
            return ReconcileResult(wait=OWNERSHIP_RETRY_SECONDS)
        self.memos.forget(key)
        return None

    async def claim(self, key: ResourceKey) -> None:
        """Write our claim to the Application if it is to be reconciled; the passes follow later."""
        try:
            await self._claim_if_owned(key, self.reconciler.cluster.find_newest(key, self.cache.get(key)))
        except Conflict:  # the cached version is outdated
            await self._claim_if_owned(key, await self.reconciler.cluster.get(key))

    async def _claim_if_owned(self, key: ResourceKey, manifest: Manifest | None) -> None:
        if self.claims is None or manifest is None or self.handover.seconds_until_delivery(manifest) != 0.0:
            return
        try:
            destination = self.parse_application(manifest).destination
        except ManifestError:
            return  # reported by its pass
        if self.settings_watcher.current_settings().clusters.is_paused(destination):
            return
        with self.claims.hold_ownership(key) as ownership:
            if ownership is KeyOwnership.OURS:
                await self._ensure_claimed(manifest)

    def on_ownership_lost(self, key: ResourceKey) -> None:
        """Forget an Application that another replica owns now, because our state of it becomes outdated."""
        self.memos.forget(key)
        self.handover.memos.forget(key)

    async def _run_pass(self, key: ResourceKey, context: ControllerContext) -> ReconcileResult | None:
        self._restart_turn(key)  # changes that enqueued it before, such as those that the last pass made, are read now
        # Our own last write may be newer than the cached version.
        manifest = self.reconciler.cluster.find_newest(key, self.cache.get(key))
        self._in_progress[key] = None
        if manifest is None:
            self.memos.forget(key)
            self.handover.memos.forget(key)
            return None
        wait = self.handover.seconds_until_delivery(manifest)
        if wait is None:
            self.memos.forget(key)
        if wait != 0.0:
            self._record_ownership_gain(key)
            return None if wait is None else ReconcileResult(wait=wait)
        settings = self.settings_watcher.current_settings()
        self._fault_log.log_new(settings.faults)
        try:
            app = self.parse_application(manifest)
        except ManifestError as error:
            await self._report_unreadable(await self._ensure_claimed(manifest), error)
            return None
        add_log_fields(project=app.project, revision=",".join(read_compared_revisions(app)))
        if settings.clusters.is_paused(app.destination):
            return None
        app = self.parse_application(await self._ensure_claimed(manifest))
        memo = self.memos[key]
        requested_at, memo.requested_at = memo.requested_at, None
        started_at = context.clock.monotonic()
        with charge_work_to(settings.build_tenant(app.project)):
            result = await self.reconciler.reconcile(
                app, settings, requested_at, is_hard=self._is_hard_refresh_due(key, settings, context)
            )
        seconds = context.clock.monotonic() - started_at
        written_app = await self._write_result(app, result, self.reconciler.cluster)
        self._on_pass_finished(app, result, seconds)
        if written_app is not None and result.settled is not None:
            self.reconciler.mark_written(self.parse_application(written_app), result.settled)
        if result.failure is not None:
            raise result.failure
        return result

    def _record_ownership_gain(self, key: ResourceKey) -> None:
        """Ignore revisions resolved before now: the previous owner may have synced a newer commit."""
        memo = self.memos[key]
        memo.owned_since = memo.requested_at = time.monotonic()

    async def _ensure_claimed(self, manifest: Manifest) -> Manifest:
        if self.claims is None:
            return manifest
        claimed = await self.claims.claim(manifest, self.reconciler.cluster)
        if claimed is not manifest and names.FENCE in _annotations(manifest):  # otherwise it had no owner before
            self._record_ownership_gain(key_of(manifest))
        return claimed

    def _is_hard_refresh_due(self, key: ResourceKey, settings: ReconcilerSettings, context: ControllerContext) -> bool:
        """argo: after timeout.hard.reconciliation all sources are rendered again, as with a hard refresh."""
        now, memo = context.clock.monotonic(), self.memos[key]
        since = memo.hard_refreshed_at = now if memo.hard_refreshed_at is None else memo.hard_refreshed_at
        if settings.hard_reconciliation_seconds <= 0 or now - since < settings.hard_reconciliation_seconds:
            return False
        memo.hard_refreshed_at = now
        return True

    async def _report_unreadable(self, manifest: Manifest, error: ManifestError) -> None:
        """Write the parse error of an unreadable Application to its status, and keep the rest of the status."""
        status_patch = build_unreadable_patch(
            as_mapping(manifest.get("status")), str(error), format_timestamp(self.reconciler.now())
        )
        if status_patch is not None:
            version = manifest["metadata"].get("resourceVersion")
            patch = {"metadata": {"resourceVersion": version}, "status": status_patch}
            await self.reconciler.cluster.patch(key_of(manifest), patch, kind_of_patch=PatchKind.MERGE)

    def find_project(self, key: ResourceKey) -> str:
        """Return the project that a pass is accounted to; "" for all projects that do not exist."""
        manifest = self.cache.get(key)
        project = str(as_mapping((manifest or {}).get("spec")).get("project") or "default")
        return project if project in self.settings_watcher.current_settings().projects else ""

    def parse_application(self, manifest: Manifest) -> Application:
        """Parse an Application once per resourceVersion."""
        key = key_of(manifest)
        memo = self.memos[key]
        parsed = memo.parsed
        if parsed is not None and _is_same_version(parsed[0], manifest):
            return parsed[1]
        app = read_application(manifest, f"Application {key.namespace}/{key.name}", parsed[1] if parsed else None)
        memo.parsed = manifest, app
        return app

    async def _write_result(self, app: Application, result: ReconcileResult, cluster: Cluster) -> Manifest | None:
        """Write Events, then the patch: a repeated Event is deduplicated, but a lost one cannot be recovered."""
        for event in result.events:
            log.info("%s/%s: %s: %s", app.key.namespace, app.key.name, event["reason"], event["message"])
            if event["reason"] in self._event_reasons:
                await _create_event(event, cluster)
        for condition in (result.patch or {}).get("status", {}).get("conditions") or ():
            log.info("%s/%s: %s: %s", app.key.namespace, app.key.name, condition["type"], condition["message"])
        if result.patch is None:
            return None
        patch: dict[str, Any] = dict(result.patch)
        version = app.wire["metadata"].get("resourceVersion")
        # Only if it is still the version that was read; otherwise the user changed the request meanwhile.
        patch["metadata"] = {**patch.get("metadata", {}), "resourceVersion": version}
        try:
            return await cluster.patch(app.key, patch, kind_of_patch=PatchKind.MERGE)
        except ClusterError as error:
            if error.code != 404:  # it may have been deleted meanwhile
                raise
            return None


async def _create_event(event: Manifest, cluster: Cluster) -> None:
    try:
        await cluster.create(event)
    except ClusterError as error:
        if error.code != 409:
            log.warning("cannot create an Event: error=%s", error)


def _annotations(manifest: Manifest) -> Mapping[str, str]:
    return manifest["metadata"].get("annotations") or {}


def _is_same_version(manifest: Manifest, other: Manifest) -> bool:
    version = manifest["metadata"].get("resourceVersion")
    return manifest is other or bool(version and version == other["metadata"].get("resourceVersion"))
