"""Liveness and readiness problems of a real engine whose clock is moved forward."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from argosy.gitops.engine.engine import Engine, EngineOptions, compute_total_workers
from argosy.gitops.engine.liveness import SHUTDOWN_SECONDS, ControllerHealth
from argosy.kube.controller.leader_election import LeaderElection, LeaderElectionConfig
from argosy.kube.resource_key import ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, config_map, engine_room

WORKERS = compute_total_workers(EngineOptions.workers)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with engine_room(tmp_path) as opened_room:
        yield opened_room


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not holds():
            await asyncio.sleep(0.01)


async def test_liveness_reports_silent_cluster_stale_watch_and_missing_workers(room: Room) -> None:
    vitals = ControllerHealth(WORKERS, stuck_seconds=600.0, clock=room.clock)
    assert vitals.list_readiness_problems() and vitals.list_problems() == []
    vitals.engine = room.engine
    await until(lambda: not vitals.list_readiness_problems())
    room.repository.push({"app/settings.yaml": config_map(a="1")})
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    room.clock.leap(10)
    await until(lambda: not vitals.list_problems())
    room.clock.leap(200)
    (silent,) = vitals.list_problems()
    assert silent.startswith("no event from the cluster for 2")
    assert vitals.list_restartable_problems() == []  # a new process would get no events either
    await until(lambda: not vitals.list_problems())  # discovery requests got an answer
    room.clock.leap(1000)
    await until(lambda: not room.engine.is_silent())
    still = [
        problem
        for problem in vitals.list_problems()
        if problem.startswith("the watch of Secret has received nothing for 1")
    ]
    assert still and set(still) <= set(vitals.list_restartable_problems())
    few = ControllerHealth(WORKERS + 1, clock=room.clock)
    few.engine = room.engine
    assert f"{WORKERS} of {WORKERS + 1} workers are alive" in few.list_problems()
    assert f"{WORKERS} of {WORKERS + 1} workers are alive" in few.list_restartable_problems()


async def test_slow_destination_cluster_is_reported_but_not_restartable(room: Room) -> None:
    vitals, engine = ControllerHealth(WORKERS, stuck_seconds=600.0, clock=room.clock), room.engine
    vitals.engine = engine
    await until(lambda: not vitals.list_readiness_problems())
    far, here = (ResourceKey("argoproj.io", "Application", CONTROL, name) for name in ("far", "here"))
    admission = engine.clusters._concurrency
    admission.add_cluster("prod", lambda: False)
    assert admission.try_acquire("prod", far)
    engine.queue._processing[far] = room.clock.monotonic()
    room.clock.leap(200)
    engine.queue._processing[here] = room.clock.monotonic()
    room.clock.leap(450)
    await until(lambda: not engine.is_silent())
    (problem,) = vitals.list_problems()
    assert problem.startswith(f"Application {CONTROL}/far has been reconciling for 6")
    assert problem.endswith(" s, in its destination cluster") and vitals.list_restartable_problems() == []
    room.clock.leap(200)
    await until(lambda: not engine.is_silent())
    (reason,) = vitals.list_restartable_problems()
    assert reason.startswith(f"Application {CONTROL}/here has been reconciling for 6")
    admission.release("prod", far)
    (restart_problem,) = vitals.list_restartable_problems()
    assert restart_problem.startswith(f"Application {CONTROL}/far has been reconciling for 8")


async def test_liveness_reports_expired_leader_lease_and_silent_api_server(room: Room) -> None:
    vitals = ControllerHealth(WORKERS, clock=room.clock)
    key = ResourceKey("coordination.k8s.io", "Lease", CONTROL, "lead")
    election = LeaderElection(room.cluster, key, "me", LeaderElectionConfig(), room.clock)
    vitals.register_election(election)
    assert vitals.list_readiness_problems() == [] and vitals.list_problems() == []
    await election.acquire()
    election.is_leader = True
    assert vitals.list_problems() == []
    room.clock.leap(20)
    (late,) = vitals.list_problems()
    late_match = re.fullmatch(r"its Lease as the leader expired (\d+) s ago without renewal", late)
    assert late_match and int(late_match[1]) >= 5
    assert vitals.list_restartable_problems() == []
    election.is_leader = False
    assert vitals.list_problems() == []
    room.clock.leap(20)
    (unheard,) = vitals.list_problems()
    unheard_match = re.fullmatch(r"no answer from the API server for (\d+) s: the leader is unknown", unheard)
    assert unheard_match and int(unheard_match[1]) >= 40
    assert vitals.list_restartable_problems() == []


async def test_engine_stops_when_a_worker_ends_unexpectedly(room: Room) -> None:
    vitals = ControllerHealth(WORKERS, clock=room.clock)
    vitals.engine = room.engine
    await until(lambda: not vitals.list_readiness_problems())
    (running,) = (task for task in asyncio.all_tasks() if task.get_coro().__qualname__ == Engine.run.__qualname__)
    await until(lambda: room.engine.queue.worker_count == WORKERS)
    (one,) = (task for task in asyncio.all_tasks() if task.get_name() == f"{room.engine.controller.name} 0")
    one.cancel()
    await until(lambda: room.engine.queue.is_closed)
    assert not any("workers" in problem for problem in vitals.list_restartable_problems())  # it may be shutting down
    room.clock.leap(SHUTDOWN_SECONDS + 1)
    assert any(problem.startswith("the workers ended 6") for problem in vitals.list_restartable_problems())
    await asyncio.wait({running}, timeout=HANG_SECONDS)
    assert running.done() and "ended unexpectedly" in repr(running.exception())
