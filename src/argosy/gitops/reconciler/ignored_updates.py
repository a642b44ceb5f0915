"""Filters updates of live objects that change only ignored fields.

In: manifests before and after an update, and the Applications it concerns. Out: those keys, if health changed. Never:
drops a visible change.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection
from typing import NamedTuple

from argosy import annotations as names
from argosy.gitops.application.step_results import Assessment
from argosy.gitops.diff import DiffSettings, UpdateFilter
from argosy.gitops.live import CacheReader, read_instance_name
from argosy.gitops.reconciler.settings_watch import SettingsWatcher
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey

log = logging.getLogger(__name__)


class _Update(NamedTuple):
    before: Manifest
    after: Manifest
    affected: Collection[ResourceKey]
    cache: CacheReader | None


class IgnoredUpdateFilter:
    """Assesses health in batches a moment later, because an assessment may need a confined process."""

    def __init__(self, settings_watcher: SettingsWatcher) -> None:
        self._settings_watcher = settings_watcher
        self._filter: tuple[DiffSettings, UpdateFilter] | None = None
        self._queue: asyncio.Queue[_Update] = asyncio.Queue()

    def hold_if_ignorable(
        self,
        before: Manifest | None,
        after: Manifest | None,
        affected: Collection[ResourceKey],
        cache: CacheReader | None = None,
    ) -> bool:
        """True if the update needs no pass unless health changed; it is then queued for the health check.

        `cache` is that of another cluster, if the update happened there: health may depend on other objects there.
        """
        if before is None or after is None or not affected or not self._may_be_ignored(after):
            return False
        if not self._current_filter().is_irrelevant(before, after):
            return False
        self._queue.put_nowait(_Update(before, after, affected, cache))
        return True

    def _may_be_ignored(self, manifest: Manifest) -> bool:
        """argo: tracked objects, and objects that request it by annotation, such as children."""
        annotations = manifest["metadata"].get("annotations") or {}
        if annotations.get(names.IGNORE_RESOURCE_UPDATES) == "true":
            return True
        return bool(read_instance_name(manifest, self._settings_watcher.current_settings().tracking))

    def _current_filter(self) -> UpdateFilter:
        compare = self._settings_watcher.current_settings().diff
        if self._filter is None or self._filter[0] is not compare:
            self._filter = compare, UpdateFilter(compare)
        return self._filter[1]

    async def run(self, enqueue: Callable[[ResourceKey], None]) -> None:
        """Check queued updates until cancelled."""
        while True:
            updates = [await self._queue.get()]
            while not self._queue.empty():
                updates.append(self._queue.get_nowait())
            for cache in {update.cache for update in updates}:
                for key in await self._find_health_changes(
                    [update for update in updates if update.cache is cache], cache
                ):
                    enqueue(key)

    async def _find_health_changes(self, updates: Collection[_Update], cache: CacheReader | None) -> set[ResourceKey]:
        try:
            assessments = await self._settings_watcher.assess_health(
                [side for update in updates for side in (update.before, update.after)], cache
            )
        except Exception:  # the pass will report the error
            log.exception("cannot compare health before and after an update")
            return {key for update in updates for key in update.affected}
        pairs = zip(updates, assessments[::2], assessments[1::2], strict=True)
        return {key for update, before, after in pairs if _may_health_differ(before, after) for key in update.affected}


def _may_health_differ(before: Assessment | None, after: Assessment | None) -> bool:
    """argo: only the health status counts, not its message. A failed assessment may be anything."""
    if before is None or after is None:
        return before is not after
    return bool(before.fault or after.fault) or before.health is not after.health
