"""Publishes which projects are over their budget of worker time while their work waits, so that users can see why.

In: usage and waiting work by project. Out: one ConfigMap of the installation. Never: writes more often than every
REPORT_SECONDS; writes while no project is over its budget; names a project that does not exist.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, Final, Protocol

from argosy.cluster import Cluster, PatchKind
from argosy.model.errors import ArgosyError, Conflict
from argosy.model.fairness import Budget
from argosy.model.names import ResourceKey
from argosy.report.project_budgets import BUDGETS_CONFIG_MAP, BudgetUse, budget_use_to_wire, read_budget_uses
from argosy.report.wire import mapping
from argosy.runtime import Cache

log = logging.getLogger(__name__)
REPORT_SECONDS: Final = 5.0
RENEW_REPORTS: Final = 6  # so many reports without a change, and an entry is written again before it grows old
MAX_PROJECTS: Final = 500  # those that are over their budgets the most: a ConfigMap holds one MiB


class Queue(Protocol):
    def depths(self) -> Mapping[str, int]: ...


class BudgetedWorkers(Queue, Protocol):
    def list_over_budget(self) -> Mapping[str, tuple[float, Budget]]: ...


class BudgetReporter:
    def __init__(
        self,
        cluster: Cluster,
        cache: Cache,
        namespace: str,
        now: Callable[[], datetime],
        workers: Collection[BudgetedWorkers],
        queue: Queue,
        projects: Callable[[], Collection[str]],
    ) -> None:
        """`workers` have budgets; `queue` has work that has not asked them yet; `projects`: those that exist."""
        self._cluster, self._cache, self._now = cluster, cache, now
        self._workers, self._queue, self._projects = workers, queue, projects
        self._key = ResourceKey("", "ConfigMap", namespace, BUDGETS_CONFIG_MAP)
        self._written: frozenset[str] = frozenset()
        self._unchanged = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            try:
                await self.report()
            except ArgosyError as error:
                log.warning("cannot publish budgets of projects: %s", error)
            await asyncio.sleep(REPORT_SECONDS)

    async def report(self) -> None:
        """Write the projects that wait because of their budgets, if they changed or the entries grow old."""
        uses, now = self._find_waiting(), self._now()
        published = mapping((self._cache.get(self._key) or {}).get("data"))
        valid = read_budget_uses(self._cache.get(self._key), now)
        # Own entries that are over, and those of controllers that have stopped.
        ended = {project for project in published if project not in uses and project not in valid} | (
            self._written - uses.keys()
        )
        self._unchanged += 1
        if not ended and self._written == uses.keys() and (not uses or self._unchanged < RENEW_REPORTS):
            return
        entries = {project: budget_use_to_wire(use, now) for project, use in uses.items()}
        await self._write({**dict.fromkeys(ended), **entries})
        self._written, self._unchanged = frozenset(uses), 0

    def _find_waiting(self) -> dict[str, BudgetUse]:
        uses: dict[str, BudgetUse] = {}
        exist = self._projects()
        for workers in self._workers:
            for project, (used, budget) in workers.list_over_budget().items():
                is_more = project not in uses or uses[project].used < used
                if is_more and project in exist and self._is_waiting(project):
                    uses[project] = BudgetUse(used, budget.seconds, budget.window)
        most = sorted(uses, key=lambda project: -uses[project].used)[:MAX_PROJECTS]
        return {project: uses[project] for project in most}

    def _is_waiting(self, project: str) -> bool:
        return any(queue.depths().get(project) for queue in (self._queue, *self._workers))

    async def _write(self, data: Mapping[str, str | None]) -> None:
        patch: dict[str, Any] = {"data": dict(data)}
        try:
            await self._cluster.patch(self._key, patch, kind_of_patch=PatchKind.MERGE)
        except ArgosyError as error:
            if getattr(error, "code", 0) != 404:
                raise
            metadata = {"namespace": self._key.namespace, "name": self._key.name}
            given = {project: text for project, text in data.items() if text is not None}
            manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": given}
            with suppress(Conflict):  # another controller created it: a later report adds these entries
                await self._cluster.create(manifest)
