"""Writes a condition on ApplicationSets that no controller expands; argosy itself does not expand them.

In: the cache. Out: a condition of the ApplicationSet, in Argo CD's form. Never: writes one if an ApplicationSet
controller runs, or if workloads cannot be read; changes conditions of other controllers.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Final

from argosy.errors import ArgosyError, Conflict
from argosy.gitops.policy.application_sets import (
    APPLICATION_SET,
    build_condition,
    has_own_condition,
    is_expanded,
    is_expander,
)
from argosy.gitops.reconciler.ownership.claim import Claims
from argosy.kube.client import Cluster
from argosy.kube.controller import Cache
from argosy.kube.controller.sharding.members import Standing
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps import written

log = logging.getLogger(__name__)
WORKLOADS: Final = (GroupKind("apps", "Deployment"), GroupKind("apps", "StatefulSet"), GroupKind("", "Pod"))
NOT_READABLE_SECONDS: Final = 1.0  # wait for the first list of a new kind
RETRY_SECONDS: Final = 30.0  # also the delay before another replica takes an ApplicationSet over


class ApplicationSetReporter:
    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        namespace: str,
        now: Callable[[], datetime],
        reads: Callable[[GroupKind], bool],
    ) -> None:
        """`is_fully_cached` returns True if all objects of a kind are in the cache."""
        self._cluster, self._cache, self._namespace = cluster, cache, namespace
        self._now, self._reads = now, reads
        self._changed = asyncio.Event()
        self.claims: Claims | None = None  # set if several controllers share the work

    def notice(self, manifest: Manifest | None) -> None:
        if manifest is not None and (manifest.get("kind") == APPLICATION_SET.kind or is_expander(manifest)):
            self._changed.set()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            seconds = RETRY_SECONDS if self._is_readable() else NOT_READABLE_SECONDS
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
            self._changed.clear()
            await self.report()

    def _is_readable(self) -> bool:
        return all(map(self._reads, (APPLICATION_SET, *WORKLOADS)))

    async def report(self) -> None:
        """Write the condition on each ApplicationSet of the installation that needs it and lacks it."""
        if not self._is_readable():
            return
        workloads = [each for kind in WORKLOADS for each in self._cache.list(kind)]
        for application_set in self._cache.list(APPLICATION_SET, namespace=self._namespace):
            if not has_own_condition(application_set) and not is_expanded(application_set, workloads):
                await self._write(application_set)

    async def _write(self, application_set: Manifest) -> None:
        """Write the condition, unless the ApplicationSet has changed since it was cached."""
        key = key_of(application_set)
        # k8s: a merge patch replaces the whole list; the resourceVersion protects concurrent writes of others
        version = {"resourceVersion": application_set["metadata"].get("resourceVersion")}
        patch = {"metadata": version, "status": {"conditions": [build_condition(written(self._now()))]}}
        with self.claims.step(key) if self.claims else contextlib.nullcontext(Standing.OURS) as standing:
            if standing is not Standing.OURS:
                return
            try:
                await self._cluster.patch(key, patch, subresource="status")
            except Conflict:  # the watch event of that change triggers the next report
                log.debug("an ApplicationSet changed since it was cached", extra={"object": key.name})
            except ArgosyError as error:  # the next report tries again
                log.warning("cannot write the condition of an ApplicationSet: %s", error, extra={"object": key.name})
