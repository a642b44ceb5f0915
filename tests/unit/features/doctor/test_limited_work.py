"""Order and time limits of the doctor's comparisons when there are too many to finish in time."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from argosy.features.doctor.application_check import get_priority
from argosy.features.doctor.forbidden_tolerant_reads import OptionalReads
from argosy.features.doctor.time_limited_application_work import (
    MAX_CONCURRENT_COMPARISONS,
    WorkLimit,
    interleave_by_project,
    run_within_limit,
)
from argosy.gitops.application import read_application


def application(name: str, **status: Any) -> Any:
    return read_application({"metadata": {"name": name}, "spec": {}, "status": status})


def test_applications_with_errors_come_first_and_never_synced_last() -> None:
    apps = [
        application("a-new"),
        application("b-drifted", history=[{"id": 0}]),
        application("c-broken", conditions=[{"type": "ComparisonError", "message": "x"}]),
        application("d-warned", history=[{"id": 0}], conditions=[{"type": "SharedResourceWarning"}]),
    ]
    assert [app.name for app in sorted(apps, key=get_priority)] == ["c-broken", "b-drifted", "d-warned", "a-new"]


class Notes:
    def __init__(self) -> None:
        self.notes: list[str] = []

    def add_note(self, text: str) -> None:
        self.notes.append(text)


def test_names_are_interleaved_by_project_in_their_order() -> None:
    names = ["loop-1", "loop-2", "loop-3", "shop-1", "shop-2", "web-1"]
    assert interleave_by_project(names, lambda name: name.partition("-")[0]) == [
        "loop-1", "shop-1", "web-1", "loop-2", "shop-2", "loop-3",
    ]  # fmt: skip


@pytest.mark.anyio
async def test_hanging_comparisons_of_a_project_do_not_block_other_projects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    never, loops, finished_names = (
        asyncio.Event(),
        [f"loop-{number}" for number in range(MAX_CONCURRENT_COMPARISONS + 3)],
        set[str](),
    )
    now = [0.0]  # the test controls the clock, however slow the machine is
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: now[0])

    async def look(name: str) -> str:
        if name in loops:
            await never.wait()
        finished_names.add(name)
        return name

    names = [*loops, "shop-1", "shop-2", "web-1"]
    projects = {name: name.partition("-")[0] for name in names}
    asking = Notes()
    work = {name: look(name) for name in names}
    limit = WorkLimit(5.4, 9.0)
    looking = asyncio.create_task(run_within_limit(work, limit, "compared", cast(OptionalReads, asking), projects))
    for _ in range(1000):  # rounds of the event loop; a few are enough, and none takes time
        await asyncio.sleep(0)
    assert finished_names == {"shop-1", "shop-2", "web-1"} and not looking.done()
    now[0] += limit.seconds + 1
    results = await looking
    assert set(results) == {"shop-1", "shop-2", "web-1"}
    slow, waiting = asking.notes
    assert "takes longer: loop-0, loop-1" in slow and "before their turn: loop-4, loop-5, loop-6" in waiting
    assert "argosy doctor --timeout 60" in slow


def test_advice_after_a_long_timeout_is_to_check_a_single_application() -> None:
    assert WorkLimit(5.4, 9.0).build_timeout_advice(["loop-1"]) == "give it longer: argosy doctor --timeout 60"
    assert (
        WorkLimit(36.0, 60.0).build_timeout_advice(["loop-1"])
        == "look at one alone: argosy doctor loop-1 --timeout 120"
    )
