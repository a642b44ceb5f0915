"""Publishes which projects exceed their budget of worker time while work waits, so that users can see why.

In: usage and waiting work by project. Out: this controller's entry in one ConfigMap of the installation. Never: writes
more often than every REPORT_SECONDS; writes while no project exceeds its budget; names a project that does not exist;
changes the entry of another controller that may be running.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Protocol

from argosy.errors import ArgosyError, ClusterError, Conflict
from argosy.fair_share import Budget
from argosy.gitops.application.project_spec import BUDGETS_CONFIG_MAP
from argosy.gitops.status.projects_over_worker_budget_configmap import (
    BUDGETS_LABELS,
    BudgetUse,
    budget_uses_to_wire,
    is_abandoned,
)
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.client import Cluster, PatchKind
from argosy.kube.controller import InformerCache
from argosy.kube.controller.clock import Backoff, Clock, sleep
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import CONFIG_MAP

log = logging.getLogger(__name__)
REPORT_SECONDS: Final = 5.0
REPORTS_UNTIL_RENEWAL: Final = 6  # an unchanged entry is renewed before it expires
REPORTS_UNTIL_REMOVAL: Final = 6  # reports in a row; an empty queue for a moment changes nothing
RETRY_BACKOFF: Final = Backoff(first_seconds=2 * REPORT_SECONDS, max_seconds=300.0)
MAX_PROJECTS: Final = 200  # the largest users: a ConfigMap holds one MiB


class QueueDepths(Protocol):
    def list_depths(self) -> Mapping[str, int]: ...


class BudgetedWorkers(QueueDepths, Protocol):
    def list_over_budget(self) -> Mapping[str, tuple[float, Budget]]: ...


class BudgetReporter:
    def __init__(
        self,
        cluster: Cluster,
        cache: InformerCache,
        namespace: str,
        identity: str,
        clock: Clock,
        workers: Collection[BudgetedWorkers],
        queue: QueueDepths,
        list_projects: Callable[[], Collection[str]],
    ) -> None:
        """`identity` names this controller's entry.

        `workers` have budgets; `queue` holds work that has not reached them.
        """
        self._cluster, self._cache, self._identity, self._clock = cluster, cache, identity, clock
        self._workers, self._queue, self._list_projects = workers, queue, list_projects
        self._key = ResourceKey(*CONFIG_MAP, namespace, BUDGETS_CONFIG_MAP)
        self._uses: dict[str, BudgetUse] = {}
        self._missed_reports: dict[str, int] = {}
        self._written_projects: frozenset[str] = frozenset()
        self._reports_since_write = self._failures = 0
        self._logged_error = ""

    async def run(self) -> None:
        """Report until cancelled."""
        while True:
            try:
                await self.report()
            except ArgosyError as error:
                self._failures += 1
                if str(error) != self._logged_error:
                    self._logged_error = str(error)
                    log.warning("cannot publish project budgets: error=%s", error)
            await sleep(self._clock, RETRY_BACKOFF.delay(self._failures) if self._failures else REPORT_SECONDS)

    async def report(self) -> None:
        """Write the projects that wait because of their budgets, if they changed or the entry is due for renewal."""
        self._update_budget_uses()
        now, entries = self._clock.now(), as_mapping((self._cache.get(self._key) or {}).get("data"))
        data: dict[str, str | None] = {identity: None for identity, text in entries.items() if is_abandoned(text, now)}
        self._reports_since_write += 1
        if not self._uses and self._identity in entries:
            data[self._identity] = None
        elif self._uses and (
            self._written_projects != self._uses.keys() or self._reports_since_write >= REPORTS_UNTIL_RENEWAL
        ):
            data[self._identity] = budget_uses_to_wire(self._uses, now)
        if not data:
            return
        await self._patch_or_create(data)
        self._written_projects = frozenset(self._uses)
        self._reports_since_write = self._failures = 0
        self._logged_error = ""

    def _update_budget_uses(self) -> None:
        """Take over the projects that wait now, and forget those that have not waited for several reports."""
        waiting = self._find_waiting()
        missed = {project: self._missed_reports.get(project, 0) + 1 for project in self._uses.keys() - waiting.keys()}
        self._missed_reports = {project: count for project, count in missed.items() if count < REPORTS_UNTIL_REMOVAL}
        uses = {project: self._uses[project] for project in self._missed_reports} | waiting
        largest = sorted(uses, key=lambda project: -uses[project].used)[:MAX_PROJECTS]
        self._uses = {project: uses[project] for project in largest}

    def _find_waiting(self) -> dict[str, BudgetUse]:
        uses: dict[str, BudgetUse] = {}
        existing = self._list_projects()
        for workers in self._workers:
            for project, (used, budget) in workers.list_over_budget().items():
                is_more = project not in uses or uses[project].used < used
                if is_more and project in existing and self._is_waiting(project):
                    uses[project] = BudgetUse(used, budget.seconds, budget.window)
        return uses

    def _is_waiting(self, project: str) -> bool:
        return any(queue.list_depths().get(project) for queue in (self._queue, *self._workers))

    async def _patch_or_create(self, data: Mapping[str, str | None]) -> None:
        try:
            await self._patch(data)
        except ClusterError as error:
            if error.code != 404:
                raise
            await self._create({identity: text for identity, text in data.items() if text is not None})

    async def _create(self, data: Mapping[str, str]) -> None:
        if not data:
            return
        metadata = {"namespace": self._key.namespace, "name": self._key.name, "labels": BUDGETS_LABELS}
        try:
            await self._cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        except Conflict:  # another controller created it meanwhile
            await self._patch(data)

    async def _patch(self, data: Mapping[str, str | None]) -> None:
        patch: dict[str, Any] = {"metadata": {"labels": BUDGETS_LABELS}, "data": dict(data)}
        await self._cluster.patch(self._key, patch, kind_of_patch=PatchKind.MERGE)
