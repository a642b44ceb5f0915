"""Shard membership on a real API server: key ownership when members join, leave, die, sleep or disagree."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from argosy import annotations as names
from argosy.errors import TransientError
from argosy.gitops.application_client.control_namespace import has_engine
from argosy.kube.client import Cluster
from argosy.kube.controller.sharding.member_lease_format import MEMBER_SELECTOR, build_lease_key
from argosy.kube.controller.sharding.membership import KeyOwnership, ShardMembership
from argosy.kube.controller.write_fence import NotOwner, run_write
from argosy.kube.well_known_kinds import LEASE
from support.faulty_client import Faulty
from support.loop_clock import turns

pytestmark = pytest.mark.anyio
KEYS = [f"argocd/app-{number}" for number in range(30)]


class Member:
    """One process with its own clock and its own connection to the cluster."""

    def __init__(self, name: str, cluster: Cluster, namespace: str, clock: Any) -> None:
        self.clock, self.line = clock, Faulty(cluster)
        self.members = ShardMembership(self.line, namespace, identity=name, clock=clock)  # type: ignore[arg-type]
        self.task = asyncio.create_task(self.members.run())

    def has(self) -> set[str]:
        return {key for key in KEYS if self.members.find_ownership(key) is KeyOwnership.OURS}

    async def kill(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    async def stop(self) -> None:
        await self.kill()
        leaving = asyncio.create_task(self.members.leave())
        while not leaving.done():
            self.clock.advance(0.1)
            await turns(50)


async def passing(seconds: float, *those: Member, step: float = 0.1) -> None:
    """Advance the clocks of all members; check that no key has two owners."""
    for _ in range(round(seconds / step)):
        for member in those:
            member.clock.advance(step)
        await turns(50)
        has = [member.has() for member in those]
        assert sum(map(len, has)) == len(set().union(*has)), "one key for two"


@pytest.fixture
async def three(cluster: Cluster, namespace: str, make_clock: Any) -> AsyncIterator[list[Member]]:
    members = [Member(name, cluster, namespace, make_clock()) for name in ("one", "two", "three")]
    await passing(3, *members)
    yield members
    for member in members:
        await member.kill()


def all_of(those: list[Member]) -> set[str]:
    return set().union(*(member.has() for member in those))


async def test_all_keys_are_owned_and_each_lease_has_the_roster(
    three: list[Member], cluster: Cluster, namespace: str
) -> None:
    assert all_of(three) == set(KEYS) and all(member.has() for member in three)
    leases = (await cluster.list(LEASE, namespace=namespace, labels=MEMBER_SELECTOR)).items
    those = {f"argosy-member-{name}" for name in ("one", "two", "three")}
    assert {lease["metadata"]["name"] for lease in leases} == those
    assert {lease["metadata"]["annotations"][names.ROSTER] for lease in leases} == {"one,three,two"}
    assert await has_engine(cluster, namespace) and not await has_engine(cluster, "default")


async def test_leaving_member_hands_over_its_keys_at_once(three: list[Member]) -> None:
    gone = three.pop()
    await gone.stop()
    await passing(1, *three)
    assert all_of(three) == set(KEYS) and not gone.has()


async def test_leaving_member_retries_the_deletion_of_its_lease(three: list[Member]) -> None:
    gone = three.pop()
    faults = iter([TransientError("connection reset"), TransientError("connection reset")])
    gone.line.fault = lambda verb: next(faults, None) if verb == "delete" else None
    await gone.stop()
    await passing(1, *three)
    assert all_of(three) == set(KEYS)


async def test_keys_of_a_dead_member_move_after_its_lease_expires(three: list[Member]) -> None:
    gone = three.pop()
    had = gone.has()
    await gone.kill()
    await passing(9, *three)
    assert all_of(three) == set(KEYS) - had
    await passing(3, *three)
    assert all_of(three) == set(KEYS)


async def test_member_that_wakes_after_its_lease_expired_cannot_write(three: list[Member]) -> None:
    sleeper = three.pop()
    key = next(iter(sleeper.has()))
    done = []

    async def change() -> None:
        done.append(key)

    with sleeper.members.begin_step(key) as standing:
        assert standing is KeyOwnership.OURS
        await run_write(change, "change")
        sleeper.line.fault = lambda verb: TransientError("asleep")
        await passing(14, *three)  # the sleeper and its own clock stand still
        assert all_of(three) == set(KEYS)
        sleeper.clock._time += 14
        with pytest.raises(NotOwner):
            await run_write(change, "change")
    sleeper.line.fault = lambda verb: None
    await passing(4, *three, sleeper)
    assert done == [key]
    assert sleeper.has() and all_of([*three, sleeper]) == set(KEYS)


async def test_unavailable_api_server_pauses_members_and_keeps_ownership(three: list[Member]) -> None:
    had = [member.has() for member in three]
    for member in three:
        member.line.fault = lambda verb: TransientError("no route")
    await passing(20, *three)
    assert not all_of(three), "nothing begins while nobody can renew"
    for member in three:
        member.line.fault = lambda verb: None
    await passing(4, *three)
    assert [member.has() for member in three] == had


async def test_wall_clock_jumps_do_not_change_ownership(three: list[Member]) -> None:
    had = [member.has() for member in three]
    three[0].clock._start += timedelta(days=1)
    three[1].clock._start -= timedelta(days=1)
    await passing(30, *three)
    assert [member.has() for member in three] == had


@pytest.mark.parametrize("jumps", [(86400, -86400), (-3600, 3600), (3600, 3600), (-86400, -86400)])
async def test_keys_of_a_dead_member_move_on_time_despite_clock_jumps(
    three: list[Member], jumps: tuple[float, float]
) -> None:
    gone = three.pop()
    had = gone.has()
    await gone.kill()
    for member, jump in zip(three, jumps, strict=True):
        member.clock.set_by(jump)
    await passing(9, *three)
    assert all_of(three) == set(KEYS) - had, "not before its Lease has ended"
    for member, jump in zip(three, jumps, strict=True):
        member.clock.set_by(-2 * jump)
    await passing(3, *three)
    assert all_of(three) == set(KEYS)


@pytest.mark.parametrize("jump", [-30 * 86400, -3600, 3600, 30 * 86400])
async def test_member_with_a_wrong_clock_joins_and_leaves(
    three: list[Member], cluster: Cluster, namespace: str, make_clock: Any, jump: float
) -> None:
    clock = make_clock()
    clock.set_by(jump)
    fourth = Member("four", cluster, namespace, clock)
    await passing(8, *three, fourth)
    assert all_of([*three, fourth]) == set(KEYS) and fourth.has()
    await fourth.stop()
    await passing(1, *three)
    assert all_of(three) == set(KEYS)


async def test_no_member_owns_keys_that_another_roster_claims(
    three: list[Member], cluster: Cluster, namespace: str
) -> None:
    """The stranger's Lease is created by hand, as of a member that has not seen the others for a long time."""
    key = build_lease_key(namespace, "stranger")
    metadata = {"name": key.name, "namespace": namespace, "labels": {names.MEMBER: "true"}}
    await cluster.create(
        {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {**metadata, "annotations": {names.ROSTER: "stranger"}},
            "spec": {"holderIdentity": "stranger", "leaseDurationSeconds": 12},
        }
    )
    await passing(3, *three)
    assert not all_of(three), "it claims all"
    await passing(14, *three)
    assert all_of(three) == set(KEYS), "it is dead"


async def test_running_step_delays_a_handover_only_for_a_short_time(
    three: list[Member], cluster: Cluster, namespace: str, make_clock: Any
) -> None:
    steps = [(member, member.members.begin_step(key)) for member in three for key in member.has()]
    for _, step in steps:
        step.__enter__()
    fourth = Member("four", cluster, namespace, make_clock())
    await passing(0.9, *three, fourth)
    assert not fourth.has(), "all that it is to have is worked on"
    await passing(3, *three, fourth)
    assert fourth.has() and all_of([*three, fourth]) == set(KEYS)
    for _, step in steps:
        step.__exit__(None, None, None)
    await fourth.kill()


async def test_joining_member_waits_until_the_keys_of_a_leaver_are_taken(
    three: list[Member], cluster: Cluster, namespace: str, make_clock: Any
) -> None:
    for member in three:
        member.members.can_grow = lambda: False
    gone = three.pop()
    fourth = Member("four", cluster, namespace, make_clock())
    await passing(3, *three, fourth)
    await gone.stop()
    await passing(1, *three, fourth)
    assert all_of(three) == set(KEYS) and not fourth.has(), "it keeps nobody from what was left"
    for member in three:
        member.members.can_grow = lambda: True
        member.members.wake()
    await passing(1, *three, fourth)
    assert fourth.has() and all_of([*three, fourth]) == set(KEYS)
    await fourth.kill()


async def test_member_leases_of_older_and_newer_versions_are_read(
    three: list[Member], cluster: Cluster, namespace: str
) -> None:
    """Leases without newer fields, or with unknown ones, count as members until they expire."""
    for name, lease_annotations, spec in (
        ("older", {}, {"holderIdentity": "older"}),
        ("newer", {names.ROSTER: "", "argosy.dev/later": "{}"}, {"leaseDurationSeconds": 14, "leaseTransitions": 3}),
    ):
        key = build_lease_key(namespace, name)
        metadata = {"name": key.name, "namespace": namespace, "labels": {names.MEMBER: "true", "later": "yes"}}
        lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
        await cluster.create({**lease, "metadata": {**metadata, "annotations": lease_annotations}})
    await passing(3, *three)
    assert three[0].members.roster == {"one", "two", "three", "older", "newer"}
    await passing(9, *three)
    assert three[0].members.roster == {"one", "two", "three", "newer"}, "a Lease that does not say how long it lasts"
    await passing(5, *three)
    assert three[0].members.roster == {"one", "two", "three"} and all_of(three) == set(KEYS)


async def test_foreign_metadata_on_our_lease_is_kept(three: list[Member], cluster: Cluster, namespace: str) -> None:
    had, key = three[0].has(), build_lease_key(namespace, "one")
    await cluster.patch(key, {"metadata": {"annotations": {"argosy.dev/later": "{}"}, "labels": {"later": "yes"}}})
    await passing(5, *three)
    lease = await cluster.get(key)
    assert lease is not None and lease["metadata"]["annotations"]["argosy.dev/later"] == "{}"
    assert lease["metadata"]["labels"]["later"] == "yes" and three[0].has() == had
