"""Whether an engine works: what speaks against it, on a real one whose clock leaps."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from argosy.gitops.engine.engine import Engine, EngineOptions, count_workers
from argosy.gitops.engine.liveness import ENDED, Vitals
from argosy.kube.controller.leader_election import Election, Terms
from argosy.kube.names import ResourceKey
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, config_map, engine_room

WORKERS = count_workers(EngineOptions.workers)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with engine_room(tmp_path) as found:
        yield found


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while not holds():
            await asyncio.sleep(0.01)


async def test_each_reason_is_a_sentence_of_its_own(room: Room) -> None:
    vitals = Vitals(WORKERS, stuck=600.0, clock=room.clock)
    assert vitals.unready() and vitals.troubles() == []
    vitals.engine = room.engine
    await until(lambda: not vitals.unready())
    room.repository.push({"app/settings.yaml": config_map(a="1")})
    await room.deliver()
    await room.until(lambda status: status["sync"]["status"] == "OutOfSync")
    room.clock.leap(10)
    await until(lambda: not vitals.troubles())
    room.clock.leap(200)
    (silent,) = vitals.troubles()
    assert silent.startswith("no event from the cluster for 2")
    assert vitals.stuck() == []  # a new process would hear nothing either
    await until(lambda: not vitals.troubles())  # it asked which kinds there are
    room.clock.leap(1000)
    await until(lambda: not room.engine.is_silent())
    still = [each for each in vitals.troubles() if each.startswith("the watch of Secret has received nothing for 1")]
    assert still and set(still) <= set(vitals.stuck())
    few = Vitals(WORKERS + 1, clock=room.clock)
    few.engine = room.engine
    assert f"{WORKERS} of {WORKERS + 1} workers are alive" in few.troubles()
    assert f"{WORKERS} of {WORKERS + 1} workers are alive" in few.stuck()


async def test_a_slow_cluster_is_told_and_does_not_end_the_controller_of_all_others(room: Room) -> None:
    vitals, engine = Vitals(WORKERS, stuck=600.0, clock=room.clock), room.engine
    vitals.engine = engine
    await until(lambda: not vitals.unready())
    far, here = (ResourceKey("argoproj.io", "Application", CONTROL, name) for name in ("far", "here"))
    admission = engine.grounds._admission
    admission.open("prod", lambda: False)
    assert admission.enter("prod", far)
    engine.queue._working[far] = room.clock.monotonic()
    room.clock.leap(200)
    engine.queue._working[here] = room.clock.monotonic()
    room.clock.leap(450)
    await until(lambda: not engine.is_silent())
    (told,) = vitals.troubles()
    assert told.startswith(f"Application {CONTROL}/far has been reconciling for 6")
    assert told.endswith(" s, in its destination cluster") and vitals.stuck() == []
    room.clock.leap(200)
    await until(lambda: not engine.is_silent())
    (told,) = vitals.stuck()
    assert told.startswith(f"Application {CONTROL}/here has been reconciling for 6")
    admission.leave("prod", far)
    (told,) = vitals.stuck()
    assert told.startswith(f"Application {CONTROL}/far has been reconciling for 8")


async def test_a_leader_needs_its_lease_and_a_candidate_an_answer(room: Room) -> None:
    vitals = Vitals(WORKERS, clock=room.clock)
    key = ResourceKey("coordination.k8s.io", "Lease", CONTROL, "lead")
    election = Election(room.cluster, key, "me", Terms(), room.clock)
    vitals.stands(election)
    assert vitals.unready() == [] and vitals.troubles() == []
    await election.win()
    election.leads = True
    assert vitals.troubles() == []
    room.clock.leap(20)
    (late,) = vitals.troubles()
    told = re.fullmatch(r"its Lease as the leader expired (\d+) s ago without renewal", late)
    assert told and int(told[1]) >= 5
    assert vitals.stuck() == []
    election.leads = False
    assert vitals.troubles() == []
    room.clock.leap(20)
    (unheard,) = vitals.troubles()
    told = re.fullmatch(r"no answer from the API server for (\d+) s: the leader is unknown", unheard)
    assert told and int(told[1]) >= 40
    assert vitals.stuck() == []


async def test_an_engine_does_not_go_on_without_its_workers(room: Room) -> None:
    vitals = Vitals(WORKERS, clock=room.clock)
    vitals.engine = room.engine
    await until(lambda: not vitals.unready())
    (running,) = (each for each in asyncio.all_tasks() if each.get_coro().__qualname__ == Engine.run.__qualname__)
    await until(lambda: room.engine.queue.workers == WORKERS)
    (one,) = (each for each in asyncio.all_tasks() if each.get_name() == f"{room.engine.controller.name} 0")
    one.cancel()
    await until(lambda: room.engine.queue.is_closed)
    assert not any("workers" in each for each in vitals.stuck())  # it may be told to stop just now
    room.clock.leap(ENDED + 1)
    assert any(each.startswith("the workers ended 6") for each in vitals.stuck())
    await asyncio.wait({running}, timeout=HANG_SECONDS)
    assert running.done() and "ended unexpectedly" in repr(running.exception())
