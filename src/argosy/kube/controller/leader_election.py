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
from argosy.kube.client.reachability import loudness
from argosy.kube.controller.clock import BOOT_CLOCK, Backoff, Clock, sleep, within
from argosy.kube.controller.write_fence import Step, wholly_under
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Terms:
    """Durations in seconds. k8s: client-go's defaults. The leader has `lease - renew_deadline` to stop working."""

    lease: float = 15.0
    renew_deadline: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.retry < self.renew_deadline < self.lease:
            raise ValueError("leader election needs retry < renew_deadline < lease")


def own_identity() -> str:
    return f"{socket.gethostname()}_{os.getpid()}_{uuid.uuid4().hex[:8]}"


async def lead(
    work: Callable[[], Awaitable[None]],
    cluster: Cluster,
    *,
    namespace: str,
    name: str,
    identity: str = "",
    on_lost: Callable[[], None] = lambda: None,
    stands: Callable[[Election], None] = lambda election: None,
    terms: Terms = Terms(),
    clock: Clock = BOOT_CLOCK,
) -> None:
    """Run `work` while this process leads. Ends when `work` ends or on cancellation; both release the Lease.

    If leadership is lost, `work` is cancelled, `on_lost` is called, and this process is a candidate again.
    `on_election` is called once with the election before it starts, to observe it.
    """
    key = ResourceKey("coordination.k8s.io", "Lease", namespace, name)
    election = Election(cluster, key, identity or own_identity(), terms, clock)
    stands(election)
    while True:
        await election.win()
        election.leads = True
        log.info("became leader: lease=%s identity=%s", key, election.identity)
        permit = Step(str(key), election.is_valid, election.ends, terms.lease - terms.renew_deadline, clock)
        with wholly_under(permit):  # not the renewal, which must continue
            working = asyncio.ensure_future(work())
        keeping = asyncio.create_task(election.keep())
        try:
            await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
            if keeping.done():
                log.warning("lost leadership: lease=%s identity=%s", key, election.identity)
                permit.take_away()
                on_lost()
        finally:
            await _cancelled(working)  # the Lease is renewed until the work has ended
            await _cancelled(keeping)
            election.leads = False
            if keeping.cancelled():  # the Lease is still held
                await election.release()
        if keeping.cancelled():
            return working.result()
        keeping.result()  # raises an unexpected error


async def _cancelled(task: asyncio.Future[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


class Election:
    def __init__(self, cluster: Cluster, key: ResourceKey, identity: str, terms: Terms, clock: Clock) -> None:
        self._cluster, self._key, self._terms, self._clock = cluster, key, terms, clock
        self._seen: Manifest | None = None
        self._seen_at = 0.0
        self._renewed_at = 0.0
        self._heard_at = clock.monotonic()
        self.identity = identity
        self.leads = False
        # Called when the leader changes: its identity (empty: this process), and when its Lease can be taken.
        self.told: Callable[[str, str], None] = lambda leader, until: None
        self._leader: str | None = None

    def free_in(self) -> float:
        """Return the seconds until another's Lease can be taken if it is not renewed; 0 if no other holds it."""
        if self._seen is None or _holder(self._seen) in ("", self.identity):
            return 0.0
        return max(0.0, self._seen_at + self._lease_seconds(self._seen) - self._clock.monotonic())

    def free_at(self) -> str:
        """Format the wall-clock time at which another's Lease can be taken."""
        at = self._clock.now().astimezone(UTC) + timedelta(seconds=math.ceil(self.free_in()))
        return f"{at:%H:%M:%S} UTC"

    def is_valid(self) -> bool:
        """True if a call that starts now has enough time before our Lease ends."""
        return self._left() > 0.0

    def ends(self) -> float:
        """Return the monotonic time at which our Lease expires."""
        return self._renewed_at + self._terms.lease

    def overdue(self) -> float:
        """Return the seconds since our Lease expired; 0 while it is valid."""
        return max(0.0, self._clock.monotonic() - self.ends())

    def silence(self) -> float:
        """Return the seconds since the Lease was last read."""
        return self._clock.monotonic() - self._heard_at

    async def win(self) -> None:
        """Return when this process holds the Lease."""
        spread = Backoff(first=self._terms.retry, most=self._terms.retry, jitter=0.2)
        while True:
            try:
                if await within(self._clock, self._terms.renew_deadline, self._take()):
                    self._tell("")
                    return
                if (holder := _holder(self._seen or {})) not in ("", self.identity):
                    self._tell(holder)
            except (ArgosyError, TimeoutError) as error:
                self._fail("acquire", error)
            await sleep(self._clock, spread.delay(1))

    def _tell(self, leader: str) -> None:
        if leader != self._leader:
            self._leader = leader
            self.told(leader, self.free_at() if leader else "")
            if leader:
                waits = "waiting for the lead: lease=%s leader=%s identity=%s expires_unless_renewed=%s"
                log.info(waits, self._key, leader, self.identity, self.free_at())

    async def keep(self) -> None:
        """Renew the Lease until it is lost: taken by another process, or not renewed in time."""
        while True:
            await sleep(self._clock, min(self._terms.retry, self._left()))
            if self._left() <= 0:
                return
            try:
                if not await within(self._clock, self._left(), self._take()):
                    return
            except (ArgosyError, TimeoutError) as error:
                self._fail("renew", error)

    def _fail(self, what: str, error: BaseException) -> None:
        log.log(
            loudness(error, logging.INFO),
            "cannot %s the Lease: lease=%s error=%s",
            what,
            self._key,
            str(error) or "no answer in time",
        )

    def _left(self) -> float:
        return self._renewed_at + self._terms.renew_deadline - self._clock.monotonic()

    async def release(self) -> None:
        """Release the Lease, so that another process can lead at once. If that fails, the Lease expires."""
        if self._seen is None or _holder(self._seen) != self.identity:
            return
        spec = {**self._seen["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._stamp()}
        try:
            await within(self._clock, self._terms.retry, self._cluster.replace({**self._seen, "spec": spec}))
        except (ArgosyError, TimeoutError) as error:
            log.info("cannot release the Lease: lease=%s error=%s", self._key, str(error) or "no answer in time")

    async def _take(self) -> bool:
        """Create, take over or renew the Lease if allowed. False: another process leads."""
        began = self._clock.monotonic()
        live = await self._cluster.get(self._key)
        self._heard_at = self._clock.monotonic()
        if live is None:
            written = await self._cluster.create(self._fresh())
        else:
            self._observe(live)
            if not self._may_take(live):
                return False
            try:
                written = await self._cluster.replace({**live, "spec": self._spec(live)})
            except Conflict:
                return False if _holder(live) != self.identity else await self._still_ours()
        self._observe(written)
        self._renewed_at = began
        return True

    async def _still_ours(self) -> bool:
        """After a write conflict: raise if the Lease is still ours (the next try renews it), else return False."""
        live = await self._cluster.get(self._key)
        if live is None or _holder(live) == self.identity:
            raise ClusterError("the Lease was changed by another client", code=409, key=self._key)
        return False

    def _may_take(self, live: Manifest) -> bool:
        if _holder(live) in ("", self.identity):
            return True
        return self._clock.monotonic() >= self._seen_at + self._lease_seconds(live)

    def _lease_seconds(self, live: Manifest) -> float:
        return float((live.get("spec") or {}).get("leaseDurationSeconds") or self._terms.lease)

    def _observe(self, live: Manifest) -> None:
        if self._seen is None or (self._seen.get("spec") or {}) != (live.get("spec") or {}):
            self._seen_at = self._clock.monotonic()
        self._seen = live

    def _fresh(self) -> Manifest:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._key.name, "namespace": self._key.namespace},
            "spec": self._spec({}),
        }

    def _spec(self, live: Manifest) -> dict[str, Any]:
        spec = live.get("spec") or {}
        now = self._stamp()
        ours = _holder(live) == self.identity
        transitions = int(spec.get("leaseTransitions") or 0) + (1 if live and not ours else 0)
        return {
            **spec,
            "holderIdentity": self.identity,
            "leaseDurationSeconds": math.ceil(self._terms.lease),
            "acquireTime": (ours and spec.get("acquireTime")) or now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }

    def _stamp(self) -> str:
        return f"{self._clock.now().astimezone(UTC):%Y-%m-%dT%H:%M:%S.%f}Z"


def _holder(lease: Manifest) -> str:
    return (lease.get("spec") or {}).get("holderIdentity") or ""
