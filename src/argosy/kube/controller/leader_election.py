"""One leader of many, by a Lease. In: a cluster, a name, work. Out: the work runs in at most one process at a time.

Never: compares another machine's clock with ours. A candidate waits until *it* has seen the Lease unchanged for the
whole lease; the leader stops before that, counted from before its last renewal was sent. All writes carry the version
that was read, so of two who take at once one gets a Conflict.

A process that was stopped and goes on does not know at once that it leads no longer: so whatever the work changes
needs a permit, at the latest when it is sent to a server. None is given once the Lease should have been renewed, and no
call that was `carried` goes on when the Lease is over.
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
    """k8s: client-go's defaults. The gap between `lease` and `renew_deadline` is the leader's time to stop working."""

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
    """Run `work` whenever we lead. Ends when `work` ends by itself, or when cancelled; both release the Lease.

    Where leadership is lost, `work` is cancelled, `on_lost` is called, and we are a candidate again. `stands` is given
    the election before it begins, for who wants to know how it goes.
    """
    key = ResourceKey("coordination.k8s.io", "Lease", namespace, name)
    election = Election(cluster, key, identity or own_identity(), terms, clock)
    stands(election)
    while True:
        await election.win()
        election.leads = True
        log.info("%s: %s leads", key, election.identity)
        permit = Step(str(key), election.is_valid, election.ends, terms.lease - terms.renew_deadline, clock)
        with wholly_under(permit):  # but not the election, which must go on
            working = asyncio.ensure_future(work())
        keeping = asyncio.create_task(election.keep())
        try:
            await asyncio.wait({working, keeping}, return_when=asyncio.FIRST_COMPLETED)
            if keeping.done():
                log.warning("%s: %s lost the lead", key, election.identity)
                permit.take_away()
                on_lost()
        finally:
            await _cancelled(working)  # the Lease is kept while the work comes to its end
            await _cancelled(keeping)
            election.leads = False
            if keeping.cancelled():  # still ours
                await election.release()
        if keeping.cancelled():
            return working.result()
        keeping.result()  # whatever it did not expect


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
        # Who leads, when that changes (empty: this one), and when the Lease may be taken at the earliest.
        self.told: Callable[[str, str], None] = lambda leader, until: None
        self._leader: str | None = None

    def free_in(self) -> float:
        """Seconds until another's Lease may be taken, if its holder renews it no more; 0 if nobody else holds it."""
        if self._seen is None or _holder(self._seen) in ("", self.identity):
            return 0.0
        return max(0.0, self._seen_at + self._lease_seconds(self._seen) - self._clock.monotonic())

    def free_at(self) -> str:
        """The time of day of `free_in`, for people."""
        at = self._clock.now().astimezone(UTC) + timedelta(seconds=math.ceil(self.free_in()))
        return f"{at:%H:%M:%S} UTC"

    def is_valid(self) -> bool:
        """Whether a call that begins now has its time before our Lease ends."""
        return self._left() > 0.0

    def ends(self) -> float:
        """When our Lease does, by the clock, as it was renewed last."""
        return self._renewed_at + self._terms.lease

    def overdue(self) -> float:
        """For how many seconds our Lease should have been renewed; 0 while it is valid."""
        return max(0.0, self._clock.monotonic() - self.ends())

    def silence(self) -> float:
        """Seconds since the server last told who leads."""
        return self._clock.monotonic() - self._heard_at

    async def win(self) -> None:
        """Returns when the Lease is ours."""
        spread = Backoff(first=self._terms.retry, most=self._terms.retry, jitter=0.2)
        while True:
            try:
                if await within(self._clock, self._terms.renew_deadline, self._take()):
                    self._tell("")
                    return
                if (holder := _holder(self._seen or {})) not in ("", self.identity):
                    self._tell(holder)
            except (ArgosyError, TimeoutError) as error:
                self._fail("taken", error)
            await sleep(self._clock, spread.delay(1))

    def _tell(self, leader: str) -> None:
        if leader != self._leader:
            self._leader = leader
            self.told(leader, self.free_at() if leader else "")
            if leader:
                waits = "%s: %s leads, and %s waits until %s, when the Lease of the leader ends unless it is renewed"
                log.info(waits, self._key, leader, self.identity, self.free_at())

    async def keep(self) -> None:
        """Returns when the Lease is lost: taken by another, or not renewed in time."""
        while True:
            await sleep(self._clock, min(self._terms.retry, self._left()))
            if self._left() <= 0:
                return
            try:
                if not await within(self._clock, self._left(), self._take()):
                    return
            except (ArgosyError, TimeoutError) as error:
                self._fail("renewed", error)

    def _fail(self, what: str, error: BaseException) -> None:
        log.log(loudness(error, logging.INFO), "%s: not %s: %s", self._key, what, str(error) or "no answer in time")

    def _left(self) -> float:
        return self._renewed_at + self._terms.renew_deadline - self._clock.monotonic()

    async def release(self) -> None:
        """Let the next one lead at once. If it cannot be done, the Lease runs out by itself."""
        if self._seen is None or _holder(self._seen) != self.identity:
            return
        spec = {**self._seen["spec"], "holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._stamp()}
        try:
            await within(self._clock, self._terms.retry, self._cluster.replace({**self._seen, "spec": spec}))
        except (ArgosyError, TimeoutError) as error:
            log.info("%s: not released: %s", self._key, str(error) or "no answer in time")

    async def _take(self) -> bool:
        """Create, take over or renew, if the rules let us. False: another leads."""
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
        """Somebody wrote to our Lease, if only a label: who holds it decides; it is renewed by the next try."""
        live = await self._cluster.get(self._key)
        if live is None or _holder(live) == self.identity:
            raise ClusterError("the Lease was changed by another", code=409, key=self._key)
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
