"""Fair shares: waits are bounded, no usable slot stays empty, and a tenant over its budget goes last."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.fair_share import MAX_TURNS, Budget, FairShareScheduler, Tenant, charge_work_to
from argosy.isolation.fair_slots import FairSlots
from support.deadlines import HANG_SECONDS

pytestmark = pytest.mark.anyio
NAMES = "abcd"
NAMES_BESIDE = ("greedy", "b", "c")
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("come"), st.sampled_from(NAMES), st.integers(1, 5)),
        st.tuples(st.just("end"), st.integers(0, 20), st.floats(0, 100)),
        st.tuples(st.just("pass"), st.just(0), st.floats(0, 1000)),
    ),
    max_size=120,
)


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


class World:
    """A fair-share scheduler with its waiting and running tenants."""

    def __init__(self, slots: int, reserve: int, budget: Budget) -> None:
        self.clock = Clock()
        self.shares = FairShareScheduler(slots, reserve=reserve, clock=self.clock)
        self.slots, self.budget = slots, budget
        self.waiting: dict[str, int] = {}
        self.running: list[str] = []
        self.passed_over: dict[str, dict[str, int]] = {}  # by tenant: turns of others while it waited and ran nothing

    def step(self, event: tuple[str, str | int, float]) -> None:
        match event:
            case ("come", str(name), count):
                self.waiting[name] = self.waiting.get(name, 0) + int(count)
            case ("end", int(place), seconds) if self.running:
                self.clock.time += seconds
                self.shares.finish_turn(self.running.pop(place % len(self.running)), seconds)
            case ("pass", _, seconds):
                self.clock.time += seconds
        self.grant()

    def grant(self) -> None:
        while (name := self.shares.choose_next(self.waiting)) is not None:
            self.shares.start_turn(name, self.budget)
            self.running.append(name)
            self.waiting[name] -= 1
            if not self.waiting[name]:
                del self.waiting[name]
            for other in NAMES:
                if other in self.waiting and other not in self.running:
                    counts = self.passed_over.setdefault(other, {})
                    counts[name] = counts.get(name, 0) + 1
                else:
                    self.passed_over.pop(other, None)


@given(EVENTS, st.integers(1, 3), st.integers(1, 3), st.sampled_from([Budget(), Budget(5, 60), Budget(0.1, 10)]))
def test_waits_are_bounded_and_no_usable_slot_stays_empty(
    events: list[tuple[str, str | int, float]], slots: int, reserve: int, budget: Budget
) -> None:
    world = World(slots, reserve, budget)
    for event in events:
        world.step(event)
        assert len(world.running) <= slots + reserve
        for name in NAMES:
            assert world.running.count(name) <= slots
        most = MAX_TURNS * len(NAMES) + len(NAMES)
        assert all(count <= most for counts in world.passed_over.values() for count in counts.values())
        if len(world.waiting) == 1 and {*world.running} <= {*world.waiting}:
            assert len(world.running) >= slots, "an idle slot although only one tenant has work"
        if len(world.running) < slots + reserve:
            assert all(name in world.running for name in world.waiting), "a reserved slot was kept from a tenant"


def test_tenant_with_the_least_usage_goes_first_and_usage_decays() -> None:
    clock = Clock()
    shares = FairShareScheduler(1, reserve=0, clock=clock)
    for name, seconds in (("a", 30.0), ("b", 10.0)):
        shares.start_turn(name, Budget(window=60))
        shares.finish_turn(name, seconds)
    assert shares.choose_next({"a", "b"}) == "b"
    clock.time = 6000.0
    shares.start_turn("b", Budget(window=60))
    shares.finish_turn("b", 1.0)
    assert shares.choose_next({"a", "b"}) == "a"


def test_tenant_over_budget_gets_one_slot_beside_others_and_all_alone() -> None:
    clock = Clock()
    shares = FairShareScheduler(3, reserve=3, clock=clock)
    shares.start_turn("greedy", Budget(60, 300))
    shares.finish_turn("greedy", 61.0)
    assert shares.is_over_budget("greedy")
    shares.start_turn("greedy", Budget(60, 300))
    shares.start_turn("other", Budget(60, 300))
    assert shares.choose_next({"greedy"}) is None
    assert shares.choose_next({"greedy", "other"}) == "other"
    shares.finish_turn("other", 1.0)
    assert shares.choose_next({"greedy"}) == "greedy"
    clock.time = 300.0
    assert not shares.is_over_budget("greedy")


def test_heavy_tenant_is_not_starved_by_light_tenants() -> None:
    shares = FairShareScheduler(1, reserve=0, clock=Clock())
    shares.start_turn("greedy", Budget(60, 300))
    shares.finish_turn("greedy", 3600.0)
    turns: list[str] = []
    while turns.count("greedy") < 3:
        name = shares.choose_next(NAMES_BESIDE)
        assert name is not None
        turns.append(name)
        assert len(turns) <= 4 * MAX_TURNS * len(NAMES_BESIDE), "a tenant that waits never has its turn"
        shares.start_turn(name, Budget(60, 300))
        shares.finish_turn(name, 0.01)
    gaps = "".join("|" if name == "greedy" else "." for name in turns).split("|")[:-1]
    assert max(map(len, gaps)) <= MAX_TURNS * len(NAMES_BESIDE)


def test_idle_tenants_are_forgotten() -> None:
    clock = Clock()
    shares = FairShareScheduler(1, reserve=1, clock=clock)
    for number in range(1000):
        name = f"project-{number}"
        assert shares.choose_next({name}) == name
        shares.start_turn(name, Budget(window=10))
        shares.finish_turn(name, 0.001)
        clock.time += 100.0
    assert len(shares.list_usages()) <= 2


async def test_cancelled_caller_passes_its_slot_to_the_next() -> None:
    slots = FairSlots(1)
    order: list[str] = []

    async def work(name: str, release: asyncio.Event) -> None:
        with charge_work_to(Tenant("team")):
            async with slots.hold():
                order.append(name)
                await release.wait()

    first_ends, others_end = asyncio.Event(), asyncio.Event()
    others_end.set()
    tasks = [asyncio.create_task(work("first", first_ends))]
    tasks += [asyncio.create_task(work(name, others_end)) for name in ("second", "third", "fourth")]
    while slots.list_depths() != {"team": 3}:
        await asyncio.sleep(0)
    tasks[1].cancel()  # while it waits
    first_ends.set()
    await tasks[0]
    tasks[2].cancel()  # as it is granted its slot
    async with asyncio.timeout(HANG_SECONDS):
        await asyncio.gather(*tasks, return_exceptions=True)
    assert order[0] == "first" and order[-1] == "fourth" and "second" not in order
    assert slots.running == 0 and slots.list_depths() == {}


async def test_reserved_slot_serves_a_tenant_while_another_holds_all_others() -> None:
    slots = FairSlots(2)
    blocked = asyncio.Event()

    async def hold(name: str, until: asyncio.Event | None) -> None:
        with charge_work_to(Tenant(name)):
            async with slots.hold():
                if until is not None:
                    await until.wait()

    hostile = [asyncio.create_task(hold("hostile", blocked)) for _ in range(20)]
    while slots.running < 2:
        await asyncio.sleep(0)
    async with asyncio.timeout(HANG_SECONDS):
        await asyncio.gather(*(hold("team", None) for _ in range(20)))
    assert slots.running == 2 and slots.list_depths() == {"hostile": 18} and not any(task.done() for task in hostile)
    blocked.set()
    await asyncio.gather(*hostile)


async def test_tenants_take_turns_in_the_reserved_slot_while_another_holds_the_rest() -> None:
    slots = FairSlots(2)
    blocked = asyncio.Event()
    order: list[str] = []

    async def hold(name: str, until: asyncio.Event | None) -> None:
        with charge_work_to(Tenant(name)):
            async with slots.hold():
                assert slots.running <= 3
                order.append(name)
                if until is not None:
                    await until.wait()

    hostile = [asyncio.create_task(hold("hostile", blocked)) for _ in range(20)]
    while slots.running < 2:
        await asyncio.sleep(0)
    async with asyncio.timeout(HANG_SECONDS):
        await asyncio.gather(*(hold(name, None) for name in NAMES for _ in range(5)))
    turns = order[2:]
    assert sorted(turns) == sorted(NAMES * 5) and not any(task.done() for task in hostile)
    assert set(turns[: MAX_TURNS * len(NAMES)]) == set(NAMES), f"a tenant waited for all turns of another: {turns}"
    blocked.set()
    await asyncio.gather(*hostile)
