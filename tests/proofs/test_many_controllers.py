"""Three sharded controllers, many Applications, many kills, and an API that fails occasionally.

After any kill or pause: every Application converges to Git, no two controllers work on it at once, no hook is created
twice, nothing is changed on an expired Lease, and another controller takes over all Applications of the lost one. The
takeover times are printed. Full runs also check them, within one run: the first quartile after a stop, which
releases the Lease, is less than half of that after a kill. A short run has too few samples for that.
"""

from __future__ import annotations

import random
import signal
import statistics
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.controller.sharding.member_lease_format import ShardingConfig
from support import forked_commands
from support.deadlines import HANG_SECONDS
from support.proof_scale import is_full
from support.sharded_controllers import APPS, LEASES, Change, Controller, Proxy, SharedWork, shared_work

APPLICATIONS, KILLS, NAPS = 1000, 50, 4
TROUBLE = 0.02  # of all requests
AT_WORK = 20  # Applications that are asked to sync before each kill
MOST_OF_A_KILL = 0.5  # maximum takeover time after stops relative to kills, measured where the machine was least busy


class Handover:
    """The end or pause of one controller: the Applications it owned, and when others took them over."""

    def __init__(self, work: SharedWork, rng: random.Random, number: signal.Signals) -> None:
        self.work, self.number = work, number
        self.one = rng.choice(work.living)
        owned = {app: (claims[-1].member, len(claims)) for app in work.apps if (claims := list(work.claims(app)))}
        self.apps = {app: claims for app, (member, claims) in owned.items() if member == self.one.name}
        self.at = time.monotonic()
        if number is signal.SIGSTOP:
            self.one.pause()
        else:
            self.one.end(number)

    def times(self) -> list[float]:
        """Seconds until another controller claimed each Application; unclaimed ones are omitted."""
        delays = []
        for app, before in self.apps.items():
            later = (claim.done for claim in self.work.claims(app)[before:] if claim.member != self.one.name)
            if (done := next(later, None)) is not None:
                delays.append(max(0.0, done - self.at))  # some were already moving to another
        return sorted(delays)

    @property
    def is_over(self) -> bool:
        return len(self.times()) == len(self.apps)

    def after(self) -> None:
        """Replace a dead controller at once, as a cluster does; resume a paused one after all it owned is claimed."""
        limit = HANG_SECONDS + len(self.work.apps) / 5
        if self.number is not signal.SIGSTOP:
            self.work.start()
        self.work.until(limit, lambda: self.is_over, "what it had is another's")
        if self.number is signal.SIGSTOP:
            self.one.go_on()
        self.work.until(HANG_SECONDS, self.work.three_agree, "three members agree")


def describe_handovers(ends: list[Handover], number: signal.Signals) -> str:
    handover_times = [times for handover in ends if handover.number is number and (times := handover.times())]
    if not handover_times:
        return "none"
    every = sorted(second for times in handover_times for second in times)
    last = spread(last_times(ends, number))
    return f"{len(handover_times)} times, {len(every)} applications: {spread(every)}; the last of each time: {last}"


def last_times(ends: list[Handover], number: signal.Signals) -> list[float]:
    """For each ended controller, seconds until the last Application was claimed by another."""
    return sorted(times[-1] for handover in ends if handover.number is number and (times := handover.times()))


def spread(seconds: list[float]) -> str:
    late = seconds[min(len(seconds) - 1, round(0.95 * len(seconds)))]
    return f"median {statistics.median(seconds):.2f} s, p95 {late:.2f} s, at most {seconds[-1]:.2f} s"


def oldest_lease(changes: list[Change]) -> float:
    """The longest time in seconds between a member's Lease renewal and a change it sent before the next renewal."""
    renewed: dict[str, list[float]] = defaultdict(list)
    oldest = 0.0
    for sent_change in sorted(changes, key=lambda recorded_change: recorded_change.sent):
        if sent_change.status >= 300:
            continue
        if "/leases/" in sent_change.path:
            renewed[sent_change.member].append(sent_change.sent)
        elif times := renewed[sent_change.member]:
            oldest = max(oldest, sent_change.sent - times[bisect_right(times, sent_change.sent) - 1])
    return oldest


def check_changes(work: SharedWork) -> float:
    """No change to an Application claimed by another, none on an expired Lease, and no hook created twice."""
    oldest = oldest_lease(work.proxy.changes)
    assert not (faults := work.faults()), f"changed by two: {faults}"
    assert not (twice := work.hooks_made_twice()), f"made twice: {twice}"
    assert oldest < ShardingConfig().lease_duration - ShardingConfig().request_margin, (
        f"changed on a Lease of {oldest:.1f} s"
    )
    return oldest


def _find_quartile(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 4]


def check_handovers(stopped: list[float], killed: list[float]) -> None:
    """Takeover after a stop does not wait for the Lease to expire. Compares seconds until the last Application was
    taken over with those after kills in the same run. Other load delays both alike, soon by more than a Lease duration:
    the fastest quarter of each shows whether a takeover waited for a Lease."""
    share = _find_quartile(stopped) / _find_quartile(killed)
    assert share < MOST_OF_A_KILL, f"a stop takes {share:.0%} of the time that a kill takes"


@pytest.mark.tier("test", "prove")
def test_killed_controllers_hand_over_apps(size: Callable[[int], int], rng: random.Random, memory_path: Path) -> None:
    applications = size(APPLICATIONS if is_full() else APPLICATIONS // 2)
    kills = max(2, size(KILLS))
    numbers = [(signal.SIGKILL, signal.SIGTERM)[index % 2] for index in range(kills)]
    numbers += [signal.SIGSTOP] * size(NAPS)
    rng.shuffle(numbers)
    ends: list[Handover] = []
    began = time.monotonic()
    with shared_work(memory_path, applications, trouble=TROUBLE) as work:
        print(f"{applications} applications delivered after {time.monotonic() - began:.0f} s")
        for number in numbers:
            for app in rng.sample(work.apps, min(AT_WORK, applications)):
                work.sync(app)
            time.sleep(rng.random() * 2.0)
            ends.append(Handover(work, rng, number))
            ends[-1].after()
            print(f"{time.monotonic() - began:.0f} s: {number.name}: {spread(ends[-1].times() or [0.0])}", flush=True)
        work.proxy.trouble = 0.0
        head = work.push("last")
        seconds = work.until(HANG_SECONDS + applications, lambda: work.are_synced(head), "every application converges")
        changes, faults = len(work.proxy.changes), dict(work.proxy.struck)
        print(f"{kills} kills, faults {faults}, {changes} changes; converged after {seconds:.0f} s")
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):
            print(f"{number.name}: {describe_handovers(ends, number)}")
        oldest = check_changes(work)
        print(f"oldest Lease that something was changed on: {oldest:.1f} s; {time.monotonic() - began:.0f} s in all")
        if is_full():
            check_handovers(last_times(ends, signal.SIGTERM), last_times(ends, signal.SIGKILL))


class Forgetful(Controller):
    """Renews its Lease only until the members agree, then assumes that each renewal succeeds."""

    def _started(self, words: Sequence[object], env: Mapping[str, str], errors: int, source: str) -> Any:
        return forked_commands.start(words, env=env, stderr=errors, bug=NEVER_RENEWED)


NEVER_RENEWED = """
from argosy.kube.controller.sharding.membership import ShardMembership
renew = ShardMembership._renew_lease

async def pretend(self):
    if not self._is_settled or not self._confirmed_roster:
        return await renew(self)
    self._renewed_at = self._clock.monotonic()

ShardMembership._renew_lease = pretend
"""


@pytest.mark.tier("test", "prove")
def test_proof_detects_controllers_that_do_not_renew_their_leases(memory_path: Path) -> None:
    longest = ShardingConfig().lease_duration - ShardingConfig().request_margin
    with shared_work(memory_path, 4, controllers=2, made_by=Forgetful) as work:

        def is_changed_too_late() -> bool:
            for app in work.apps:
                work.sync(app)
            return oldest_lease(list(work.proxy.changes)) > longest

        work.until(HANG_SECONDS, is_changed_too_late, "something is changed on an old Lease")
        with pytest.raises(AssertionError, match=r"changed on a Lease of|changed by two"):
            check_changes(work)


LEASE, APP, JOB = f"{LEASES}/c0", f"{APPS}/app-1", "/apis/batch/v1/namespaces/ml/jobs/hook-app-1"
SETTINGS = "/api/v1/namespaces/ml/configmaps/app-1"


def change(at: float, member: str, path: str, *, fence: str = "", mark: str = "") -> Change:
    return Change(member, "POST" if mark else "PATCH", path, at, at + 0.1, 201 if mark else 200, fence, mark)


RECORD = [
    change(0, "c0", LEASE),
    change(1, "c0", APP, fence="1/c0"),
    change(2, "c0", JOB, mark="operation-1"),
    change(3, "c0", SETTINGS),
    change(20, "c1", APP, fence="2/c1"),  # c0 was killed
    change(21, "c1", SETTINGS),
]
TOO_LATE = [change(22, "c0", LEASE), change(23, "c0", SETTINGS)]
SAME_FENCE = [change(30, "c0", LEASE), change(31, "c0", APP, fence="2/c0")]
ONCE_MORE = [change(22, "c1", JOB, mark="operation-1")]


@pytest.mark.tier("test", "prove")
@pytest.mark.parametrize(
    ("wrong", "finding"),
    [
        (TOO_LATE, "changed by two: .*PATCH by c0 after c1 had 2/c1"),
        (SAME_FENCE, r"changed by two: .*fences \[1, 2, 2\]"),
        (ONCE_MORE, "made twice: .*operation-1: 2"),
        ([change(19, "c0", SETTINGS)], "changed on a Lease of 19.0 s"),
    ],
)
def test_proof_detects_forbidden_changes(tmp_path: Path, wrong: list[Change], finding: str) -> None:
    """In recorded changes: a late write after a pause, two equal fences, a repeated hook, a write on an old Lease."""
    recorded = SharedWork(tmp_path, None, Proxy("", "", _loop=None), None)  # type: ignore[arg-type]
    recorded.proxy.changes[:] = RECORD
    check_changes(recorded)
    recorded.proxy.changes += wrong
    with pytest.raises(AssertionError, match=finding):
        check_changes(recorded)


@pytest.mark.tier("test", "prove")
def test_proof_detects_a_stop_that_keeps_its_lease() -> None:
    check_handovers(stopped=[1.1, 1.9, 12.0, 13.0], killed=[9.2, 10.6, 11.7, 21.0])
    with pytest.raises(AssertionError, match="a stop takes 93% of the time that a kill takes"):
        check_handovers(stopped=[8.9, 9.9, 10.2, 11.0], killed=[9.2, 10.6, 11.7, 21.0])
