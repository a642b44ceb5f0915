"""Leader election with a Lease.

In: a cluster, a name, work. Out: the work runs in at most one process at a time. Never: compares the clocks of two
machines.

A candidate waits until *it* has seen the Lease unchanged for the whole lease duration; the leader stops before that,
counted from before it sent its last renewal. All writes carry the resourceVersion that was read, so if two candidates
take the Lease at once, one gets a Conflict.

A process that was suspended does not notice at once that it lost the lead, so every write of the work needs a permit,
checked at the latest when the request is sent. No permit is given once the Lease should have been renewed, and no call
of `run_write` continues after the Lease has expired.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import socket
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Any

from argosy.errors import ArgosyError, ClusterError, Conflict
from argosy.kube.client import Cluster
from argosy.kube.client.reachability_log import choose_log_level
from argosy.kube.controller.clock import BOOT_CLOCK, Backoff, Clock, run_with_timeout, sleep
from argosy.kube.controller.write_fence import FencedStep, require_permit_for_all_requests
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import LEASE

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaderElectionConfig:
    """Durations in seconds. k8s: client-go's defaults. The leader has `lease - renew_deadline` to stop working."""

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    def __post_init__(self) -> None:
        if not self.retry_period < self.renew_deadline < self.lease_duration:
            raise ValueError("leader election needs retry < renew_deadline < lease")


def build_identity() -> str:
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


async def run_as_leader(
    work: Callable[[], Awaitable[None]],
    cluster: Cluster,
    *,
    namespace: str,
    name: str,
    identity: str = "",
    on_lost: Callable[[], None] = lambda: None,
    on_election: Callable[[LeaderElection], None] = lambda election: None,
    config: LeaderElectionConfig = LeaderElectionConfig(),
    clock: Clock = BOOT_CLOCK,
) -> None:
    """Run `work` while this process leads. Ends when `work` ends or on cancellation; both release the Lease.

    If leadership is lost, `work` is cancelled, `on_lost` is called, and this process is a candidate again.
    `on_election` is called once with the election before it starts, to observe it.
    """
    key = ResourceKey(*LEASE, namespace, name)
    election = LeaderElection(cluster, key, identity or build_identity(), config, clock)
    on_election(election)
    while True:
        await election.acquire()
        election.is_leader = True
        log.info("became leader: lease=%s identity=%s", key, election.identity)
        permit = FencedStep(
            str(key), election.is_valid, election.lease_ends_at, config.lease_duration - config.renew_deadline, clock
        )
        with require_permit_for_all_requests(permit):  # not the renewal, which must continue
            work_task = asyncio.ensure_future(work())
        renew_task = asyncio.create_task(election.renew_until_lost())
        try:
            await asyncio.wait({work_task, renew_task}, return_when=asyncio.FIRST_COMPLETED)
            if renew_task.done():
                log.warning("lost leadership: lease=%s identity=%s", key, election.identity)
                permit.revoke()
                on_lost()
        finally:
            await _cancel(work_task)  # the Lease is renewed until the work has ended
            await _cancel(renew_task)
            election.is_leader = False
            if renew_task.cancelled():  # the Lease is still held
                await election.release()
        if renew_task.cancelled():
            return work_task.result()
        renew_task.result()  # raises an unexpected error


async def _cancel(task: asyncio.Future[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class LeaderElection:
    def __init__(
        self, cluster: Cluster, key: ResourceKey, identity: str, config: LeaderElectionConfig, clock: Clock
    ) -> None:
        self._cluster, self._key, self._config, self._clock = cluster, key, config, clock
        self._observed_lease: Manifest | None = None
        self._observed_at = 0.0
        self._renewed_at = 0.0
        self._last_read_at = clock.monotonic()
        self.identity = identity
        self.is_leader = False
        # Called when the leader changes: its identity (empty: this process), and when its Lease can be taken.
        self.on_leader_change: Callable[[str, str], None] = lambda leader, until: None
        self._leader: str | None = None

    def seconds_until_free(self) -> float:
        """Return the seconds until another's Lease can be taken if it is not renewed; 0 if no other holds it."""
        if self._observed_lease is None or _read_holder(self._observed_lease) in ("", self.identity):
            return 0.0
        return max(0.0, self._observed_at + self._read_lease_duration(self._observed_lease) - self._clock.monotonic())

    def format_free_time(self) -> str:
        """Format the wall-clock time at which another's Lease can be taken."""
        time = self._clock.now().astimezone(UTC) + timedelta(seconds=math.ceil(self.seconds_until_free()))
        return f"{time:%H:%M:%S} UTC"

    def is_valid(self) -> bool:
        """True if a call that starts now has enough time before our Lease ends."""
        return self._seconds_left() > 0.0

    def lease_ends_at(self) -> float:
        """Return the monotonic time at which our Lease expires."""
        return self._renewed_at + self._config.lease_duration

    def seconds_since_expiry(self) -> float:
        """Return the seconds since our Lease expired; 0 while it is valid."""
        return max(0.0, self._clock.monotonic() - self.lease_ends_at())

    def seconds_since_read(self) -> float:
        """Return the seconds since the Lease was last read."""
        return self._clock.monotonic() - self._last_read_at

    async def acquire(self) -> None:
        """Return when this process holds the Lease."""
        backoff = Backoff(first_seconds=self._config.retry_period, max_seconds=self._config.retry_period, jitter=0.2)
        while True:
            try:
                if await run_with_timeout(self._clock, self._config.renew_deadline, self._try_acquire_or_renew()):
                    self._report_leader("")
                    return
                if (holder := _read_holder(self._observed_lease or {})) not in ("", self.identity):
                    self._report_leader(holder)
            except (ArgosyError, TimeoutError) as error:
                self._log_failure("acquire", error)
            await sleep(self._clock, backoff.delay(1))

    def _report_leader(self, leader: str) -> None:
        if leader != self._leader:
            self._leader = leader
            self.on_leader_change(leader, self.format_free_time() if leader else "")
            if leader:
                message = "waiting for the lead: lease=%s leader=%s identity=%s expires_unless_renewed=%s"
                log.info(message, self._key, leader, self.identity, self.format_free_time())

    async def renew_until_lost(self) -> None:
        """Renew the Lease until it is lost: taken by another process, or not renewed in time."""
        while True:
            await sleep(self._clock, min(self._config.retry_period, self._seconds_left()))
            if self._seconds_left() <= 0:
                return
            try:
                if not await run_with_timeout(self._clock, self._seconds_left(), self._try_acquire_or_renew()):
                    return
            except (ArgosyError, TimeoutError) as error:
                self._log_failure("renew", error)

    def _log_failure(self, action: str, error: BaseException) -> None:
        log.log(
            choose_log_level(error, logging.INFO),
            "cannot %s the Lease: lease=%s error=%s",
            action,
            self._key,
            str(error) or "no answer in time",
        )

    def _seconds_left(self) -> float:
        return self._renewed_at + self._config.renew_deadline - self._clock.monotonic()

    async def release(self) -> None:
        """Release the Lease, so that another process can lead at once. If that fails, the Lease expires."""
        if self._observed_lease is None or _read_holder(self._observed_lease) != self.identity:
            return
        spec = {
            **self._observed_lease["spec"],
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "renewTime": self._format_now(),
        }
        try:
            await run_with_timeout(
                self._clock, self._config.retry_period, self._cluster.replace({**self._observed_lease, "spec": spec})
            )
        except (ArgosyError, TimeoutError) as error:
            log.info("cannot release the Lease: lease=%s error=%s", self._key, str(error) or "no answer in time")

    async def _try_acquire_or_renew(self) -> bool:
        """Create, take over or renew the Lease if allowed. False: another process leads."""
        started_at = self._clock.monotonic()
        live = await self._cluster.get(self._key)
        self._last_read_at = self._clock.monotonic()
        if live is None:
            written = await self._cluster.create(self._build_lease())
        else:
            self._observe(live)
            if not self._can_take(live):
                return False
            try:
                written = await self._cluster.replace({**live, "spec": self._build_spec(live)})
            except Conflict:
                return False if _read_holder(live) != self.identity else await self._check_holder_after_conflict()
        self._observe(written)
        self._renewed_at = started_at
        return True

    async def _check_holder_after_conflict(self) -> bool:
        """After a write conflict: raise if the Lease is still ours (the next try renews it), else return False."""
        live = await self._cluster.get(self._key)
        if live is None or _read_holder(live) == self.identity:
            raise ClusterError("the Lease was changed by another client", code=409, key=self._key)
        return False

    def _can_take(self, live: Manifest) -> bool:
        if _read_holder(live) in ("", self.identity):
            return True
        return self._clock.monotonic() >= self._observed_at + self._read_lease_duration(live)

    def _read_lease_duration(self, live: Manifest) -> float:
        return float((live.get("spec") or {}).get("leaseDurationSeconds") or self._config.lease_duration)

    def _observe(self, live: Manifest) -> None:
        if self._observed_lease is None or (self._observed_lease.get("spec") or {}) != (live.get("spec") or {}):
            self._observed_at = self._clock.monotonic()
        self._observed_lease = live

    def _build_lease(self) -> Manifest:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._key.name, "namespace": self._key.namespace},
            "spec": self._build_spec({}),
        }

    def _build_spec(self, live: Manifest) -> dict[str, Any]:
        spec = live.get("spec") or {}
        now = self._format_now()
        is_holder = _read_holder(live) == self.identity
        transitions = int(spec.get("leaseTransitions") or 0) + (1 if live and not is_holder else 0)
        return {
            **spec,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._config.lease_duration),
            "acquireTime": (is_holder and spec.get("acquireTime")) or now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    def _format_now(self) -> str:
        return f"{self._clock.now().astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def _read_holder(lease: Manifest) -> str:
    return (lease.get("spec") or {}).get("holderIdentity") or ""
