"""The controller publishes which projects wait because they used up their budgets."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from argosy.cluster import Cluster
from argosy.cluster.counted import Counted
from argosy.controllers.budget_reporter import RENEW_REPORTS, BudgetReporter
from argosy.model.fairness import Budget, Shares
from argosy.model.names import ResourceKey
from argosy.report.project_budgets import (
    BUDGETS_CONFIG_MAP,
    VALID_SECONDS,
    BudgetUse,
    budget_use_to_wire,
    read_budget_uses,
)
from argosy.runtime import Cache

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BUDGET = Budget(60.0, 300.0)


class Workers:
    """Shares of one worker with a clock that the test moves, and work that the test says is waiting."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.shares = Shares(1, reserve=1, clock=lambda: self.seconds)
        self.waiting: dict[str, int] = {}

    def use(self, project: str, seconds: float) -> None:
        self.shares.start(project, BUDGET)
        self.shares.finish(project, seconds)

    def list_over_budget(self) -> Mapping[str, tuple[float, Budget]]:
        return self.shares.list_over_budget()

    def depths(self) -> Mapping[str, int]:
        return self.waiting


class Scene:
    """A reporter on a cluster that counts writes; its cache has what was written before each report."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster, self.cache, self.workers, self.queue = cluster, Cache(), Workers(), Workers()
        self.key = ResourceKey("", "ConfigMap", namespace, BUDGETS_CONFIG_MAP)
        self.writes, self.now, self.projects = 0, NOW, {"hostile", "shops"}
        counted = Counted(cluster, self.count)
        self.reporter = BudgetReporter(
            counted, self.cache, namespace, lambda: self.now, [self.workers], self.queue, lambda: self.projects
        )

    def count(self, answered: object) -> None:
        self.writes += getattr(answered, "verb", "") in ("create", "patch") and getattr(answered, "code", 0) == 200

    async def report(self) -> dict[str, BudgetUse]:
        await self.reporter.report()
        written = await self.cluster.get(self.key)
        if written is not None:
            self.cache.put({"apiVersion": "v1", "kind": "ConfigMap", **written})
        return read_budget_uses(written, self.now)


@pytest.fixture
def scene(cluster: Cluster, namespace: str) -> Scene:
    return Scene(cluster, namespace)


async def test_a_project_over_its_budget_is_published_while_its_work_waits(scene: Scene) -> None:
    scene.workers.use("hostile", 75.0)
    scene.workers.use("shops", 30.0)
    scene.queue.waiting = {"hostile": 40, "shops": 1}
    assert await scene.report() == {"hostile": BudgetUse(75.0, 60.0, 300.0)}
    scene.workers.seconds = 300.0  # it has used little of late
    assert await scene.report() == {}
    assert (await scene.cluster.get(scene.key) or {}).get("data", {}) == {}


async def test_nothing_is_written_while_no_project_waits_for_its_budget(scene: Scene) -> None:
    scene.workers.use("shops", 30.0)
    scene.queue.waiting = {"shops": 3}
    scene.workers.use("hostile", 75.0)  # and nothing of it waits
    assert await scene.report() == {} and scene.writes == 0
    assert await scene.cluster.get(scene.key) is None


async def test_a_project_that_does_not_exist_keeps_no_other_from_being_published(scene: Scene) -> None:
    for project in ("hostile", "not a name!"):
        scene.workers.use(project, 75.0)
        scene.workers.waiting[project] = 1
    assert await scene.report() == {"hostile": BudgetUse(75.0, 60.0, 300.0)}


async def test_an_unchanged_report_is_written_again_only_before_it_grows_old(scene: Scene) -> None:
    scene.workers.use("hostile", 75.0)
    scene.workers.waiting = {"hostile": 1}
    for _ in range(RENEW_REPORTS):
        await scene.report()
    assert scene.writes == 1
    scene.now += timedelta(seconds=VALID_SECONDS / 2)
    assert "hostile" in await scene.report() and scene.writes == 2
    scene.now += timedelta(seconds=VALID_SECONDS - 1)
    assert "hostile" in read_budget_uses(await scene.cluster.get(scene.key), scene.now)


async def test_what_a_stopped_controller_published_is_ignored_and_removed_and_that_of_another_stays(
    scene: Scene,
) -> None:
    use = BudgetUse(80.0, 60.0, 300.0)
    data = {
        "hostile": budget_use_to_wire(use, NOW - timedelta(seconds=VALID_SECONDS + 1)),
        "shops": budget_use_to_wire(use, NOW),
        "nonsense": "[1",
    }
    metadata = {"namespace": scene.key.namespace, "name": scene.key.name}
    written = await scene.cluster.create(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    )
    scene.cache.put(written)
    assert read_budget_uses(written, NOW) == {"shops": use}
    assert await scene.report() == {"shops": use}
    assert (await scene.cluster.get(scene.key) or {})["data"].keys() == {"shops"}
    await scene.report()
    assert scene.writes == 1


HUGE = '{"observedAt": "2026-01-01T00:00:00Z", "usedSeconds": 1' + "0" * 400 + "}"


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "1e999", HUGE, "[" * 100_000])
def test_an_entry_that_cannot_be_read_is_left_out(text: str) -> None:
    assert read_budget_uses({"data": {"hostile": text}}, NOW) == {}
