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
from argosy.gitops.diff import CompareSettings, UpdateFilter
from argosy.gitops.live import CacheReader, owner
from argosy.gitops.reconciler.settings_watch import Settings
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

log = logging.getLogger(__name__)


class _Update(NamedTuple):
    before: Manifest
    after: Manifest
    concerned: Collection[ResourceKey]
    there: CacheReader | None


class Updates:
    """Assesses health in batches a moment later, because an assessment may need a confined process."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._filter: tuple[CompareSettings, UpdateFilter] | None = None
        self._held: asyncio.Queue[_Update] = asyncio.Queue()

    def holds_back(
        self,
        before: Manifest | None,
        after: Manifest | None,
        concerned: Collection[ResourceKey],
        there: CacheReader | None = None,
    ) -> bool:
        """True if the update needs no pass unless health changed; it is then queued for the health check.

        `cache` is that of another cluster, if the update happened there: health may depend on other objects there.
        """
        if before is None or after is None or not concerned or not self._may_be_ignored(after):
            return False
        if not self._filtering().is_same(before, after):
            return False
        self._held.put_nowait(_Update(before, after, concerned, there))
        return True

    def _may_be_ignored(self, manifest: Manifest) -> bool:
        """argo: tracked objects, and objects that request it by annotation, such as children."""
        annotations = manifest["metadata"].get("annotations") or {}
        if annotations.get(names.IGNORE_RESOURCE_UPDATES) == "true":
            return True
        return bool(owner(manifest, self._settings.rules().tracking))

    def _filtering(self) -> UpdateFilter:
        compare = self._settings.rules().compare
        if self._filter is None or self._filter[0] is not compare:
            self._filter = compare, UpdateFilter(compare)
        return self._filter[1]

    async def run(self, wake: Callable[[ResourceKey], None]) -> None:
        """Check queued updates until cancelled."""
        while True:
            held = [await self._held.get()]
            while not self._held.empty():
                held.append(self._held.get_nowait())
            for there in {each.there for each in held}:
                for key in await self._changed([each for each in held if each.there is there], there):
                    wake(key)

    async def _changed(self, held: Collection[_Update], there: CacheReader | None) -> set[ResourceKey]:
        try:
            said = await self._settings.assess([side for each in held for side in (each.before, each.after)], there)
        except Exception:  # the pass will report the error
            log.exception("cannot compare health before and after an update")
            return {key for each in held for key in each.concerned}
        pairs = zip(held, said[::2], said[1::2], strict=True)
        return {key for each, one, other in pairs if _may_differ(one, other) for key in each.concerned}


def _may_differ(one: Assessment | None, other: Assessment | None) -> bool:
    """argo: only the health status counts, not its message. A failed assessment may be anything."""
    if one is None or other is None:
        return one is not other
    return bool(one.fault or other.fault) or one.health is not other.health
