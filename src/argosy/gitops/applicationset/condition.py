"""Tells on an ApplicationSet that no controller expands it; argosy itself does not.

In: the cache. Out: a condition of the ApplicationSet, in Argo CD's form. Never: a condition where a controller of an
Argo CD is there, or where workloads cannot be seen; touches the conditions of others.
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
NOT_READABLE_SECONDS: Final = 1.0  # until a kind that was just defined may be listed
RETRY_SECONDS: Final = 30.0  # also how late another member of the same installation takes one over


class ApplicationSetReporter:
    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        namespace: str,
        now: Callable[[], datetime],
        reads: Callable[[GroupKind], bool],
    ) -> None:
        """`reads`: whether all objects of a kind are in the cache."""
        self._cluster, self._cache, self._namespace = cluster, cache, namespace
        self._now, self._reads = now, reads
        self._changed = asyncio.Event()
        self.claims: Claims | None = None  # where several controllers share the work

    def notice(self, manifest: Manifest | None) -> None:
        if manifest is not None and (manifest.get("kind") == APPLICATION_SET.kind or is_expander(manifest)):
            self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            seconds = RETRY_SECONDS if self._is_readable() else NOT_READABLE_SECONDS
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
            self._changed.clear()
            await self.report()

    def _is_readable(self) -> bool:
        return all(map(self._reads, (APPLICATION_SET, *WORKLOADS)))

    async def report(self) -> None:
        """Writes the condition on each ApplicationSet of the installation that lacks it and needs it."""
        if not self._is_readable():
            return
        workloads = [each for kind in WORKLOADS for each in self._cache.list(kind)]
        for application_set in self._cache.list(APPLICATION_SET, namespace=self._namespace):
            if not has_own_condition(application_set) and not is_expanded(application_set, workloads):
                await self._write(application_set)

    async def _write(self, application_set: Manifest) -> None:
        """Write the condition, unless the ApplicationSet has changed since it was cached."""
        key = key_of(application_set)
        # k8s: a merge patch replaces the whole list, with what others have written into it meanwhile
        version = {"resourceVersion": application_set["metadata"].get("resourceVersion")}
        patch = {"metadata": version, "status": {"conditions": [build_condition(written(self._now()))]}}
        with self.claims.step(key) if self.claims else contextlib.nullcontext(Standing.OURS) as standing:
            if standing is not Standing.OURS:
                return
            try:
                await self._cluster.patch(key, patch, subresource="status")
            except Conflict:  # the watch event of that change causes another look
                log.debug("an ApplicationSet changed since it was cached", extra={"object": key.name})
            except ArgosyError as error:  # it is tried again
                log.warning("cannot write the condition of an ApplicationSet: %s", error, extra={"object": key.name})
