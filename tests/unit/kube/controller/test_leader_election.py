"""Leader election: at most one leader at a time, regardless of clocks and network faults."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.errors import TransientError
from argosy.kube.client import Cluster
from argosy.kube.client.before_write_hook import BEFORE_WRITE
from argosy.kube.controller.leader_election import LeaderElection, LeaderElectionConfig, run_as_leader
from argosy.kube.controller.write_fence import NotOwner, run_write
from argosy.kube.resource_key import ResourceKey
from support.faulty_client import Faulty
from support.loop_clock import turns

pytestmark = pytest.mark.anyio


class Candidate:
    """One process with its own clock and cluster connection; records when it leads."""

    def __init__(self, name: str, cluster: Cluster, namespace: str, clock: Any) -> None:
        self.name, self.clock, self.line = name, clock, Faulty(cluster)
        self.leads = False
        self.lost = 0
        self.told: list[str] = []
        self.until = ""
        self.finish = asyncio.Event()
        self.task = asyncio.create_task(
            run_as_leader(
                self._work,
                self.line,
                namespace=namespace,
                name="argosy",  # type: ignore[arg-type]
                identity=name,
                on_lost=self._lose,
                clock=clock,
                on_election=self._stand,
            )
        )

    def _stand(self, election: LeaderElection) -> None:
        election.on_leader_change = self._hear

    def _hear(self, leader: str, until: str) -> None:
        self.told.append(leader)
        self.until = until

    async def _work(self) -> None:
        self.leads, self.inside = True, contextvars.copy_context()
        try:
            await self.finish.wait()
        finally:
            self.leads = False

    def change(self, call: Callable[[], Awaitable[str]]) -> asyncio.Task[str]:
        """Run a write in the context of the leader's work."""
        return asyncio.get_running_loop().create_task(run_write(call, "change"), context=self.inside)

    def _lose(self) -> None:
        self.lost += 1

    def cut_off(self, *, writes_only: bool = False) -> None:
        verbs = ("create", "replace") if writes_only else ("get", "create", "replace")
        self.line.fault = lambda verb: TransientError("no route") if verb in verbs else None

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def passing(seconds: float, *candidates: Candidate, step: float = 0.25) -> list[set[str]]:
    """Advance all clocks and return the leaders at each step; check that there is at most one."""
    history = []
    for _ in range(round(seconds / step)):
        for candidate in candidates:
            candidate.clock.advance(step)
        await turns(50)
        leaders = {candidate.name for candidate in candidates if candidate.leads}
        assert len(leaders) <= 1, leaders
        history.append(leaders)
    return history


@pytest.fixture
async def two(cluster: Cluster, namespace: str, make_clock: Any) -> Any:
    """Two candidates whose wall clocks are a day apart, which must not matter."""
    candidates = [
        Candidate("one", cluster, namespace, make_clock()),
        Candidate("two", cluster, namespace, make_clock(datetime(2029, 12, 31, tzinfo=UTC))),
    ]
    yield candidates
    for candidate in candidates:
        await candidate.stop()


def other(candidates: list[Candidate]) -> tuple[Candidate, Candidate]:
    """Return the leader and the waiting candidate."""
    first, second = candidates
    return (first, second) if first.leads else (second, first)


async def lease(cluster: Cluster, namespace: str) -> dict[str, Any]:
    manifest = await cluster.get(ResourceKey("coordination.k8s.io", "Lease", namespace, "argosy"))
    assert manifest is not None
    return dict(manifest["spec"])


@pytest.mark.parametrize("jump", [-30 * 86400, -3600, 3600, 30 * 86400])
@pytest.mark.parametrize("clock_owner", ["the leader's", "the other's", "both"])
async def test_clock_jump_neither_ends_the_leadership_nor_blocks_a_takeover(
    two: list[Candidate], jump: int, clock_owner: str
) -> None:
    await passing(5, *two)
    leader, waiting = other(two)
    for candidate in {"the leader's": [leader], "the other's": [waiting], "both": two}[clock_owner]:
        candidate.clock.set_by(jump)
    assert set.union(*await passing(40, *two)) == {leader.name}
    assert leader.lost == 0
    leader.cut_off()
    history = await passing(30, *two)
    assert history[-1] == {waiting.name}
    assert set() in history  # the first leader stopped before the second started
    assert len([leaders for leaders in history if leaders == {waiting.name}]) >= 10 / 0.25


async def test_leader_keeps_leading_while_it_renews_its_lease(
    cluster: Cluster, namespace: str, two: list[Candidate]
) -> None:
    await passing(5, *two)
    leader, _ = other(two)
    first = await lease(cluster, namespace)
    assert set.union(*await passing(60, *two)) == {leader.name}
    later = await lease(cluster, namespace)
    assert (first["holderIdentity"], first["leaseDurationSeconds"], first["leaseTransitions"]) == (leader.name, 15, 0)
    assert later["renewTime"] > first["renewTime"] and later["acquireTime"] == first["acquireTime"]
    assert leader.lost == 0


async def test_stopped_leader_hands_over_at_once(cluster: Cluster, namespace: str, two: list[Candidate]) -> None:
    await passing(5, *two)
    leader, next_one = other(two)
    await leader.stop()
    assert (await lease(cluster, namespace))["holderIdentity"] == ""
    assert (await passing(4, *two))[-1] == {next_one.name}
    assert (await lease(cluster, namespace))["leaseTransitions"] == 1


async def test_leader_change_is_reported_once(two: list[Candidate]) -> None:
    await passing(30, *two)
    leader, next_one = other(two)
    assert (leader.told, next_one.told) == ([""], [leader.name])
    await leader.stop()
    await passing(4, *two)
    assert next_one.told == [leader.name, ""]


async def test_waiting_candidate_is_notified_when_the_lease_ends(two: list[Candidate]) -> None:
    await passing(2, *two)
    leader, next_one = other(two)
    now = next_one.clock.now().astimezone(UTC)
    ends = [f"{now + timedelta(seconds=seconds):%H:%M:%S} UTC" for seconds in range(10, 17)]
    assert next_one.until in ends and leader.until == ""


async def test_finished_work_ends_the_leadership(cluster: Cluster, namespace: str, two: list[Candidate]) -> None:
    await passing(5, *two)
    leader, next_one = other(two)
    leader.finish.set()
    await passing(4, *two)
    assert leader.task.done() and leader.lost == 0 and next_one.leads


@pytest.mark.parametrize("writes_only", [True, False])
async def test_disconnected_leader_stops_before_another_starts(two: list[Candidate], writes_only: bool) -> None:
    await passing(5, *two)
    leader, next_one = other(two)
    leader.cut_off(writes_only=writes_only)
    moments = await passing(30, *two)
    assert leader.lost == 1 and moments[-1] == {next_one.name}
    stopped = moments.index(set())
    taken = moments.index({next_one.name})
    assert stopped * 0.25 <= 10.5 and taken * 0.25 >= 12  # 15 s after the last observed renewal
    leader.line.fault = lambda verb: None
    assert set.union(*await passing(20, *two)) == {next_one.name}


async def test_hanging_renewal_does_not_extend_the_leadership(two: list[Candidate]) -> None:
    await passing(5, *two)
    leader, next_one = other(two)

    async def hang(*_: object, **__: object) -> None:
        await asyncio.Event().wait()

    leader.line.replace = hang  # type: ignore[method-assign]
    moments = await passing(30, *two)
    assert leader.lost == 1 and moments[-1] == {next_one.name}


async def test_leader_that_sleeps_past_its_lease_cannot_write_when_it_wakes(two: list[Candidate]) -> None:
    """Its writes are refused before it detects that it lost the leadership."""
    await passing(5, *two)
    leader, next_one = other(two)
    sent, connected = asyncio.Event(), asyncio.Event()

    async def call() -> str:
        BEFORE_WRITE.get()()
        sent.set()
        return "done"

    async def connects_first() -> str:
        await connected.wait()  # the process is suspended here
        return await call()

    assert await leader.change(call) == "done"
    late = leader.change(connects_first)
    await turns()
    sent.clear()
    assert (await passing(20, next_one))[-1] == {next_one.name}
    leader.clock._time += 20.0  # none of its timers has run
    connected.set()
    for change in (late, leader.change(call)):
        with pytest.raises(NotOwner):
            await change
    assert leader.leads and not sent.is_set()
    await passing(1, leader)
    assert not leader.leads and leader.lost == 1


async def test_writes_without_a_permit_are_fenced_but_the_election_is_not(two: list[Candidate]) -> None:
    """An add-on writes to its cluster without knowing of permits."""
    await passing(5, *two)
    leader, next_one = other(two)
    write_checks = set()  # the BEFORE_WRITE hook at each call of the election
    leader.line.fault = lambda verb: write_checks.add(BEFORE_WRITE.get(None))

    def send() -> None:
        leader.inside[BEFORE_WRITE]()

    send()
    await passing(20, next_one)
    leader.clock._time += 20.0  # it was suspended and resumes
    with pytest.raises(NotOwner):
        send()
    await passing(1, leader)
    await next_one.stop()
    await passing(4, leader)
    send()  # it leads again
    assert write_checks == {None}


async def test_call_of_a_leader_ends_only_with_its_lease(two: list[Candidate]) -> None:
    await passing(5, *two)
    leader, _ = other(two)

    async def hang() -> str:
        return str(await asyncio.Event().wait())

    hanging = leader.change(hang)
    await passing(40, *two)
    assert not hanging.done()  # the Lease under it is renewed
    leader.cut_off()
    await passing(11, *two)
    assert leader.lost == 1 and not hanging.done()
    await passing(4, *two)
    with pytest.raises(NotOwner):
        await hanging


async def test_candidate_with_a_fast_clock_waits_for_a_living_leader(
    cluster: Cluster, namespace: str, two: list[Candidate]
) -> None:
    await passing(5, *two)
    leader, hasty = other(two)
    for _ in range(60):
        hasty.clock.advance(0.25)  # four times as fast, but it sees every renewal
        assert set.union(*await passing(0.5, *two)) == {leader.name}


async def test_foreign_write_to_the_lease_does_not_end_the_leadership(
    cluster: Cluster, namespace: str, two: list[Candidate]
) -> None:
    await passing(5, *two)
    leader, _ = other(two)
    key = ResourceKey("coordination.k8s.io", "Lease", namespace, "argosy")
    for number in range(20):
        await cluster.patch(key, {"metadata": {"labels": {"n": str(number)}}})
        assert set.union(*await passing(1, *two)) == {leader.name}


async def test_only_one_of_many_candidates_takes_an_expired_lease(cluster: Cluster, namespace: str, clock: Any) -> None:
    await cluster.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "argosy", "namespace": namespace},
            "spec": {"holderIdentity": "gone", "leaseDurationSeconds": 15},
        }
    )
    candidates = [Candidate(f"c{number}", cluster, namespace, clock) for number in range(5)]
    moments = []
    for _ in range(100):
        clock.advance(0.25)
        await turns(50)
        moments.append({candidate.name for candidate in candidates if candidate.leads})
        assert len(moments[-1]) <= 1
    assert len(moments[-1]) == 1 and moments[50] == set()
    for candidate in candidates:
        await candidate.stop()


def test_election_config_that_allows_two_leaders_is_rejected() -> None:
    with pytest.raises(ValueError, match="retry < renew_deadline < lease"):
        LeaderElectionConfig(lease_duration=10, renew_deadline=10)
