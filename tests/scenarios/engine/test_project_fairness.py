"""Fairness: Applications of one project that never finish do not block those of another project."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from argosy.errors import LimitError
from argosy.fair_share import Budget
from argosy.gitops.application_client.application_service import ApplicationService
from argosy.gitops.application_client.delay_reasons import describe_delays
from argosy.isolation.trusted_process_pool import ProcessPool
from support.deadlines import wait_until_async
from support.engine import CONTROL, Room, config_map, engine_room
from support.remote_clusters import far_cluster

pytestmark = pytest.mark.anyio
AUTOMATED = {"automated": {}}


class StuckCrew(ProcessPool):
    """A process pool in which renders of project `hostile` hold their worker until released."""

    def __init__(self) -> None:
        super().__init__(workers=2)
        self.release, self.error = asyncio.Event(), LimitError("it takes longer than 60 s")
        self.error.exhaustion_reason = "timed out"

    async def run(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:  # type: ignore[override]
        if args[1].project != "hostile":
            return await super().run(function, *args, **options)
        self._bind_to_loop()
        async with self._slots.hold():
            await self.release.wait()
            raise self.error


class Stalled:
    """A room in which 20 Applications of project `hostile` hold every slot that one project may hold."""

    def __init__(self, room: Room, crew: StuckCrew) -> None:
        self.room, self.crew = room, crew

    @property
    def at_work(self) -> set[str]:
        return {key.name for key in self.room.engine.queue.processing_seconds if key.name.startswith("hostile")}


@pytest.fixture
async def stalled(tmp_path: Path) -> AsyncIterator[Stalled]:
    crew = StuckCrew()
    async with engine_room(tmp_path, crew=crew) as room:
        for project in ("hostile", "team"):
            await room.project(project)
        room.repository.push({"app/settings.yaml": config_map(a="one"), "slow/x.yaml": config_map("slow")})
        for number in range(20):
            await room.deliver(f"hostile-{number}", "slow", project="hostile")
        stalled_room = Stalled(room, crew)
        passes = room.engine.options.workers
        await wait_until_async(
            lambda: len(stalled_room.at_work) == passes and crew.list_depths() == {"hostile": passes - 2}
        )
        yield stalled_room
        crew.release.set()
    await crew.close()


async def test_refresh_and_sync_finish_while_another_project_holds_all_its_workers(
    stalled: Stalled,
) -> None:
    room, before = stalled.room, stalled.at_work
    await room.deliver(project="team", syncPolicy=AUTOMATED)
    await room.until_synced()
    await room.annotate(refresh="hard")
    await wait_until_async(lambda: "team" not in room.engine.queue.list_depths())
    await room.settled()
    revision = room.repository.push({"app/settings.yaml": config_map(a="two")})
    await room.until_synced(revision)
    assert stalled.at_work == before and not stalled.crew.release.is_set()
    assert stalled.crew.list_depths() == {"hostile": len(before) - 2}


async def test_delay_reason_names_the_exhausted_project_budget(stalled: Stalled) -> None:
    room, shares = stalled.room, stalled.crew._slots.scheduler
    desk = ApplicationService(room.cluster, "here", CONTROL, CONTROL)
    shares.start_turn("hostile", Budget(60.0, 300.0))
    shares.finish_turn("hostile", 1e6)  # far over the budget, even on a slow machine
    hostile = {f"hostile-{number}" for number in range(20)}

    async def has_delayed_all() -> bool:
        delays = {key.name: text for key, text in (await describe_delays(desk, await desk.list_applications())).items()}
        return delays.keys() == hostile and "project 'hostile' is over its budget" in delays["hostile-19"]

    await room.deliver("of-a-team", project="team")
    await wait_until_async(has_delayed_all)


async def test_timed_out_render_waits_for_its_next_try_or_a_hard_refresh(stalled: Stalled) -> None:
    room, crew = stalled.room, stalled.crew
    crew.release.set()
    message = await room.until_condition("ComparisonError", "hostile-0")
    assert "it takes longer than 60 s; render timed out (1st time); next try " in message
    assert "; retry now: argosy app get hostile-0 --hard-refresh" in message
    await wait_until_async(lambda: not stalled.at_work)
    count = room.engine.reconciler.desired_states.renders.render_count
    await room.settled("hostile-0")
    assert room.engine.reconciler.desired_states.renders.render_count == count
    await room.annotate("hostile-0", refresh="hard")
    await wait_until_async(lambda: room.engine.reconciler.desired_states.renders.render_count > count)


@pytest.mark.tier("all")
async def test_application_is_synced_while_another_project_holds_the_cluster_slots(tmp_path: Path) -> None:
    crew = StuckCrew()
    async with engine_room(tmp_path, crew=crew) as room, far_cluster(tmp_path) as far:
        await far.declare(room)
        for project in ("hostile", "team"):
            await room.project(project)
        room.repository.push({"app/settings.yaml": config_map(a="one"), "slow/x.yaml": config_map("slow")})
        there = {"name": far.name, "namespace": "ml"}
        for number in range(20):
            await room.deliver(f"hostile-{number}", "slow", project="hostile", destination=there)
        stalled, slots = Stalled(room, crew), room.engine.options.workers // 2
        await wait_until_async(lambda: len(stalled.at_work) == slots and crew.list_depths() == {"hostile": slots - 2})
        before = stalled.at_work
        await room.deliver(project="team", syncPolicy=AUTOMATED, destination=there)
        await room.until_synced()
        assert await far.get("ConfigMap", "settings") is not None
        assert stalled.at_work == before and not crew.release.is_set()
        crew.release.set()
    await crew.close()
