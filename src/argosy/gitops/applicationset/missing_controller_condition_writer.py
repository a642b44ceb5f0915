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
from argosy.gitops.policy.applicationset_controller_detection import (
    build_no_controller_condition,
    has_own_condition,
    is_applicationset_controller,
    is_expanded,
)
from argosy.gitops.reconciler.ownership.application_claim_fence import ApplicationClaims
from argosy.kube.client import Cluster
from argosy.kube.controller import ChangeWatch, InformerCache
from argosy.kube.controller.sharding.membership import KeyOwnership
from argosy.kube.objects import Manifest, key_of
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import APPLICATION_SET, DEPLOYMENT, POD, STATEFUL_SET

log = logging.getLogger(__name__)
WORKLOAD_KINDS: Final = (DEPLOYMENT, STATEFUL_SET, POD)
UNREADABLE_RETRY_SECONDS: Final = 1.0  # wait for the first list of a new kind
REPORT_INTERVAL_SECONDS: Final = 30.0  # also the delay before another replica takes an ApplicationSet over


class ApplicationSetReporter:
    def __init__(
        self,
        cluster: Cluster,
        cache: InformerCache,
        namespace: str,
        now: Callable[[], datetime],
        is_fully_cached: Callable[[GroupKind], bool],
    ) -> None:
        """`is_fully_cached` returns True if all objects of a kind are in the cache."""
        self._cluster, self._cache, self._namespace = cluster, cache, namespace
        self._now, self._is_fully_cached = now, is_fully_cached
        self._changed = asyncio.Event()
        self.claims: ApplicationClaims | None = None  # set if several controllers share the work

    @property
    def watches(self) -> tuple[ChangeWatch, ...]:
        return (
            ChangeWatch((APPLICATION_SET,), lambda before, after: self._changed.set()),
            ChangeWatch(WORKLOAD_KINDS, self._on_workload_change),
        )

    def _on_workload_change(self, before: Manifest | None, after: Manifest | None) -> None:
        if is_applicationset_controller(after or before or {}):
            self._changed.set()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            seconds = REPORT_INTERVAL_SECONDS if self._has_all_kinds_cached() else UNREADABLE_RETRY_SECONDS
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)
            self._changed.clear()
            await self.report()

    def _has_all_kinds_cached(self) -> bool:
        return all(map(self._is_fully_cached, (APPLICATION_SET, *WORKLOAD_KINDS)))

    async def report(self) -> None:
        """Write the condition on each ApplicationSet of the installation that needs it and lacks it."""
        if not self._has_all_kinds_cached():
            return
        workloads = [workload for kind in WORKLOAD_KINDS for workload in self._cache.list(kind)]
        for application_set in self._cache.list(APPLICATION_SET, namespace=self._namespace):
            if not has_own_condition(application_set) and not is_expanded(application_set, workloads):
                await self._write_condition(application_set)

    async def _write_condition(self, application_set: Manifest) -> None:
        """Write the condition, unless the ApplicationSet has changed since it was cached."""
        key = key_of(application_set)
        # k8s: a merge patch replaces the whole list; the resourceVersion protects concurrent writes of others
        version = {"resourceVersion": application_set["metadata"].get("resourceVersion")}
        patch = {
            "metadata": version,
            "status": {"conditions": [build_no_controller_condition(format_timestamp(self._now()))]},
        }
        with self.claims.hold_ownership(key) if self.claims else contextlib.nullcontext(KeyOwnership.OURS) as ownership:
            if ownership is not KeyOwnership.OURS:
                return
            try:
                await self._cluster.patch(key, patch, subresource="status")
            except Conflict:  # the watch event of that change triggers the next report
                log.debug("an ApplicationSet changed since it was cached", extra={"object": key.name})
            except ArgosyError as error:  # the next report tries again
                log.warning("cannot write the condition of an ApplicationSet: %s", error, extra={"object": key.name})
