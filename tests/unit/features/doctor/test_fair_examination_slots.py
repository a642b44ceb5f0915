"""Fair slots for concurrent work: a total limit, reserved slots for other projects, first in, first out."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from argosy.features.doctor.fair_examination_slots import RESERVED_SLOTS, ProjectSlots
from support.deadlines import wait_until_async

pytestmark = pytest.mark.anyio
COUNT = 4


class Work:
    """Tasks that hold slots until `end` is called."""

    def __init__(self) -> None:
        self.places, self.begun = ProjectSlots(COUNT), list[str]()
        self._ends, self.tasks = dict[str, asyncio.Event](), dict[str, asyncio.Task[None]]()

    async def begin(self, *names: str) -> None:
        for name in names:
            self._ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._hold(name))
        await settle()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self.tasks[name]
        await settle()

    async def _hold(self, name: str) -> None:
        async with self.places.hold(name.partition("-")[0]):
            self.begun.append(name)
            await self._ends[name].wait()


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.fixture
async def work() -> AsyncIterator[Work]:
    work = Work()
    yield work
    for task in work.tasks.values():
        task.cancel()
    await asyncio.gather(*work.tasks.values(), return_exceptions=True)


async def test_total_slots_are_limited_for_many_projects(work: Work) -> None:
    names = [f"p{number}-1" for number in range(300)]
    await work.begin(*names)
    assert work.begun == names[: COUNT + RESERVED_SLOTS]
    await work.end(names[2])
    assert work.begun == names[: COUNT + RESERVED_SLOTS + 1]


async def test_one_project_cannot_use_the_reserved_slots(work: Work) -> None:
    await work.begin(*(f"loop-{number}" for number in range(9)), "shop-1", "shop-2", "web-1")
    assert work.begun == ["loop-0", "loop-1", "loop-2", "loop-3", "shop-1", "web-1"]
    await work.end("shop-1")
    assert work.begun[6:] == ["shop-2"]


async def test_slots_are_granted_in_request_order(work: Work) -> None:
    await work.begin(*(f"a-{number}" for number in range(COUNT)), "a-late", "a-later")
    await work.end("a-0")
    await work.end("a-1")
    assert work.begun[COUNT:] == ["a-late", "a-later"]


async def test_cancelled_work_releases_its_slot(work: Work) -> None:
    await work.begin(*(f"a-{number}" for number in range(COUNT)), "a-waits", "a-granted", "a-last")
    work.tasks["a-waits"].cancel()
    work.tasks["a-0"].cancel()  # passes its slot to the next waiter, which is cancelled before it runs again
    with contextlib.suppress(asyncio.CancelledError):
        await work.tasks["a-0"]
    work.tasks["a-granted"].cancel()
    await wait_until_async(lambda: "a-last" in work.begun)
    work.tasks["a-1"].cancel()
    await work.begin("a-new")
    assert work.begun[-1] == "a-new"
