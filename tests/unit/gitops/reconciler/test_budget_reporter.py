"""The controller publishes which projects wait because they exceed their budgets."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.errors import ClusterError
from argosy.fair_share import Budget, FairShareScheduler
from argosy.gitops.application.project_spec import BUDGETS_CONFIG_MAP
from argosy.gitops.reconciler.worker_time_budget_reporter import (
    REPORTS_UNTIL_REMOVAL,
    REPORTS_UNTIL_RENEWAL,
    BudgetReporter,
)
from argosy.gitops.status.projects_over_worker_budget_configmap import (
    ABANDONED_SECONDS,
    VALID_SECONDS,
    BudgetUse,
    budget_uses_to_wire,
    read_worst_budget_uses,
)
from argosy.kube.client import Cluster
from argosy.kube.client.call_metrics import RecordingCluster
from argosy.kube.controller import InformerCache
from argosy.kube.resource_key import ResourceKey

NOW = datetime(2026, 1, 1, tzinfo=UTC)
BUDGET = Budget(60.0, 300.0)


class Workers:
    """Shares of one worker, with a manual clock and waiting work that the test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.shares = FairShareScheduler(1, reserve=1, clock=lambda: self.seconds)
        self.waiting: dict[str, int] = {}

    def use(self, project: str, seconds: float) -> None:
        self.shares.start_turn(project, BUDGET)
        self.shares.finish_turn(project, seconds)

    def list_over_budget(self) -> Mapping[str, tuple[float, Budget]]:
        return self.shares.list_over_budget()

    def list_depths(self) -> Mapping[str, int]:
        return self.waiting


class ManualTime:
    """A manual clock; sleeps end at once and are recorded."""

    def __init__(self) -> None:
        self.time, self.sleeps = NOW, list[float]()

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return (self.time - NOW).total_seconds()

    def call_later(self, seconds: float, callback: Callable[[], None]) -> asyncio.Handle:
        self.sleeps.append(seconds)
        return asyncio.get_running_loop().call_soon(callback)


class Scene:
    """A reporter on a cluster that counts writes; its cache is updated before each report."""

    def __init__(self, cluster: Cluster, namespace: str, identity: str = "one") -> None:
        self.cluster, self.cache, self.workers, self.queue = cluster, InformerCache(), Workers(), Workers()
        self.key = ResourceKey("", "ConfigMap", namespace, BUDGETS_CONFIG_MAP)
        self.writes, self.clock, self.projects = 0, ManualTime(), {"hostile", "shops"}
        counted = RecordingCluster(cluster, self.count)
        self.reporter = BudgetReporter(
            counted, self.cache, namespace, identity, self.clock, [self.workers], self.queue, lambda: self.projects
        )

    def count(self, answered: object) -> None:
        self.writes += getattr(answered, "verb", "") in ("create", "patch") and getattr(answered, "code", 0) == 200

    def overload(self, project: str, seconds: float) -> None:
        self.workers.use(project, seconds)
        self.workers.waiting[project] = 1

    async def read(self) -> dict[str, str]:
        written = await self.cluster.get(self.key)
        if written is not None:
            self.cache.put({"apiVersion": "v1", "kind": "ConfigMap", **written})
        return dict((written or {}).get("data") or {})

    async def report(self) -> dict[str, BudgetUse]:
        await self.read()
        await self.reporter.report()
        await self.read()
        return read_worst_budget_uses(await self.cluster.get(self.key), self.clock.time)


@pytest.fixture
def scene(cluster: Cluster, namespace: str) -> Scene:
    return Scene(cluster, namespace)


async def test_a_project_over_its_budget_is_published_while_its_work_waits(scene: Scene) -> None:
    scene.workers.use("hostile", 75.0)
    scene.workers.use("shops", 30.0)
    scene.queue.waiting = {"hostile": 40, "shops": 1}
    assert await scene.report() == {"hostile": BudgetUse(75.0, 60.0, 300.0)}
    scene.workers.seconds = 300.0  # its recent use is low
    for _ in range(REPORTS_UNTIL_REMOVAL):
        await scene.report()
    assert await scene.report() == {}
    assert (await scene.cluster.get(scene.key) or {}).get("data", {}) == {}


async def test_nothing_is_written_while_no_project_waits_for_its_budget(scene: Scene) -> None:
    scene.workers.use("shops", 30.0)
    scene.queue.waiting = {"shops": 3}
    scene.workers.use("hostile", 75.0)  # but none of its work waits
    assert await scene.report() == {} and scene.writes == 0
    assert await scene.cluster.get(scene.key) is None


async def test_nonexistent_project_does_not_prevent_publishing_others(scene: Scene) -> None:
    for project in ("hostile", "not a name!"):
        scene.workers.use(project, 75.0)
        scene.workers.waiting[project] = 1
    assert await scene.report() == {"hostile": BudgetUse(75.0, 60.0, 300.0)}


async def test_unchanged_report_is_rewritten_only_before_it_expires(scene: Scene) -> None:
    scene.workers.use("hostile", 75.0)
    scene.workers.waiting = {"hostile": 1}
    for _ in range(REPORTS_UNTIL_RENEWAL):
        await scene.report()
    assert scene.writes == 1
    scene.clock.time += timedelta(seconds=VALID_SECONDS / 2)
    assert "hostile" in await scene.report() and scene.writes == 2
    scene.clock.time += timedelta(seconds=VALID_SECONDS - 1)
    assert "hostile" in read_worst_budget_uses(await scene.cluster.get(scene.key), scene.clock.time)


async def test_briefly_empty_queue_does_not_remove_an_entry(scene: Scene) -> None:
    scene.overload("hostile", 75.0)
    await scene.report()
    for _ in range(3):
        scene.workers.waiting = {}
        assert "hostile" in await scene.report()
        scene.workers.waiting = {"hostile": 1}
        await scene.report()
    assert scene.writes <= 2  # one of them renews the entry


async def test_controllers_keep_each_others_entries_and_readers_use_the_highest(
    cluster: Cluster, namespace: str
) -> None:
    one, two = Scene(cluster, namespace), Scene(cluster, namespace, "two")
    one.overload("hostile", 75.0)
    two.overload("hostile", 90.0)
    two.overload("shops", 80.0)
    await one.report()
    worst = {"hostile": BudgetUse(90.0, 60.0, 300.0), "shops": BudgetUse(80.0, 60.0, 300.0)}
    assert await two.report() == worst and await one.report() == worst
    two.workers.waiting = {}
    for _ in range(REPORTS_UNTIL_REMOVAL):
        await two.report()
    assert await one.report() == {"hostile": BudgetUse(75.0, 60.0, 300.0)}
    assert (await one.read()).keys() == {"one"}


async def test_controllers_that_create_the_config_map_together_are_in_it(cluster: Cluster, namespace: str) -> None:
    one, two = Scene(cluster, namespace), Scene(cluster, namespace, "two")
    one.overload("hostile", 75.0)
    two.overload("shops", 80.0)
    await asyncio.gather(one.reporter.report(), two.reporter.report())
    assert (await one.read()).keys() == {"one", "two"}


async def test_controllers_with_clock_skew_keep_each_others_entries(cluster: Cluster, namespace: str) -> None:
    one, two = Scene(cluster, namespace), Scene(cluster, namespace, "two")
    two.clock.time += timedelta(seconds=5 * VALID_SECONDS)
    for scene in (one, two):
        scene.overload("hostile", 75.0)
    for _ in range(3):
        await one.report()
        await two.report()
    assert (await one.read()).keys() == {"one", "two"}
    assert (one.writes, two.writes) == (1, 1)


async def test_expired_entries_are_ignored_and_abandoned_entries_are_removed(scene: Scene) -> None:
    use = {"shops": BudgetUse(80.0, 60.0, 300.0)}
    ages = {"stopped": VALID_SECONDS + 1, "abandoned": ABANDONED_SECONDS + 1, "at-work": 0.0}
    data = {name: budget_uses_to_wire(use, NOW - timedelta(seconds=age)) for name, age in ages.items()}
    metadata = {"namespace": scene.key.namespace, "name": scene.key.name}
    await scene.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    assert await scene.report() == use
    assert (await scene.read()).keys() == {"stopped", "at-work"}
    await scene.report()
    assert scene.writes == 1


async def test_own_entry_from_before_a_restart_is_removed(scene: Scene) -> None:
    data = {"one": budget_uses_to_wire({"shops": BudgetUse(80.0, 60.0, 300.0)}, NOW)}
    metadata = {"namespace": scene.key.namespace, "name": scene.key.name}
    await scene.cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
    assert await scene.report() == {}


async def test_deleted_config_map_is_not_recreated_to_remove_an_entry(scene: Scene) -> None:
    scene.overload("hostile", 75.0)
    await scene.report()
    labels = (await scene.cluster.get(scene.key) or {})["metadata"]["labels"]
    assert labels["app.kubernetes.io/part-of"] == "argosy"
    await scene.cluster.delete(scene.key)
    scene.workers.waiting = {}
    for _ in range(REPORTS_UNTIL_REMOVAL):
        await scene.reporter.report()  # its cache still has the ConfigMap
    assert await scene.cluster.get(scene.key) is None


async def test_refused_write_is_logged_once_and_retried_with_backoff(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        if len(scene.clock.sleeps) == 6:
            raise asyncio.CancelledError
        raise ClusterError("configmaps is forbidden", code=403)

    scene.overload("hostile", 75.0)
    monkeypatch.setattr(scene.reporter, "_patch", refuse)
    with caplog.at_level(logging.WARNING), suppress(asyncio.CancelledError):
        await scene.reporter.run()
    assert [record.getMessage() for record in caplog.records if "budgets" in record.getMessage()] == [
        "cannot publish project budgets: error=configmaps is forbidden (403)"
    ]
    sleeps = scene.clock.sleeps
    assert sleeps == sorted(sleeps) and sleeps[0] > 5.0 and sleeps[5] > 100.0


HUGE = '{"observedAt": "2026-01-01T00:00:00Z", "usedSeconds": 1' + "0" * 400 + "}"


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "1e999", HUGE, "[" * 100_000])
def test_unreadable_entry_is_ignored(text: str) -> None:
    assert read_worst_budget_uses({"data": {"hostile": text}}, NOW) == {}
