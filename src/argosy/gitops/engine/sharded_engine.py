"""Sharding of one engine: its Applications enter its queue, and it never runs beside an unsharded engine.

In: the members that share the Applications. Out: keys in a queue when they become ours. Never: keeps a key that another
member owns; lets sharded and unsharded engines work on one cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Final

from argosy.errors import ClusterError, Forbidden, UserError
from argosy.gitops.application_client.control_namespace import LEASE
from argosy.gitops.reconciler.application_controller import APPLICATION, ApplicationController
from argosy.gitops.reconciler.ownership.claim import Claims
from argosy.gitops.reconciler.ownership.takeover import Takeover
from argosy.kube.client import Cluster
from argosy.kube.controller import SYSTEM_CLOCK, Cache, Clock, WorkQueue
from argosy.kube.controller.clock import sleep
from argosy.kube.controller.sharding.leases import LABELS, PREFIX
from argosy.kube.controller.sharding.leases import LEASE as KIND
from argosy.kube.controller.sharding.members import Members
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

LOOK: Final = 0.5  # seconds between reads of a Lease that may be stale
USUAL_LEASE: Final = 15.0


class Sharing:
    """Runs the membership of one engine; `run` when the cache is filled, `leave` when no reconciliation is running."""

    def __init__(self, members: Members, controller: ApplicationController, queue: WorkQueue, cache: Cache) -> None:
        self.members, self._controller, self._queue, self._cache = members, controller, queue, cache
        self._claims = controller.claims = Claims(members)
        self._takeover = controller.takeover = Takeover(controller.claim, self._work_on)
        members.on_change, members.may_grow = self._changed, self._takeover.is_calm
        self._takeover.on_calm = members.look_again
        self._keeping: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Run until cancelled; cancellation keeps the membership, so that running work ends under our Lease."""
        self._keeping = asyncio.create_task(self.members.keep(), name="membership")
        taking = asyncio.create_task(self._takeover.run(), name="takeover")
        try:
            ended, _ = await asyncio.wait({self._keeping, taking}, return_when=asyncio.FIRST_COMPLETED)
            for each in ended:
                each.result()
        finally:
            self._takeover.close()  # at once: running takeovers end, and none starts
            taking.cancel()
            await asyncio.gather(taking, return_exceptions=True)

    async def end(self) -> None:
        if self._keeping is not None:
            self._keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError, UserError):
                await self._keeping
            await self.members.leave()

    def _changed(self) -> None:
        come, gone = self._claims.changed(self._cache.keys(APPLICATION))
        for key in gone:
            self._takeover.drop(key)
            self._controller.let_go(key)
        self._takeover.add(sorted(come, key=lambda key: not self._is_begun(key)))  # running operations first

    def _work_on(self, key: ResourceKey) -> None:
        self._queue.add(key, is_urgent=self._is_begun(key))

    def _is_begun(self, key: ResourceKey) -> bool:
        return "operation" in (self._cache.get(key) or {})


async def wait_for_no_leader(cluster: Cluster, namespace: str, dead: str = "", clock: Clock = SYSTEM_CLOCK) -> str:
    """Wait for a stale leader Lease to expire and return its version; raises UserError if a leader is alive."""
    found = await cluster.get(ResourceKey(*KIND, namespace, LEASE))
    version = str(found["metadata"].get("resourceVersion") or "") if found is not None else ""
    if found is not None and version != dead and await _is_alive([found], cluster, clock):
        raise UserError(
            f"an unsharded controller runs on this cluster (Lease {namespace}/{LEASE}); stop it, or start it with "
            "--shards auto too",
            where="--shards",
        )
    return version


async def wait_for_no_members(cluster: Cluster, namespace: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Wait for stale member Leases and delete them; raises UserError if a member is alive."""
    try:
        found = (await cluster.list(KIND, namespace=namespace, labels=LABELS)).items
    except Forbidden:
        return  # without permission for Leases no controller could share the work
    if await _is_alive(found, cluster, clock):
        raise UserError(
            f"sharded controllers run on this cluster (Leases {PREFIX}… in namespace {namespace}); stop them, or "
            "start this one with --shards auto too"
        )
    for each in found:
        with contextlib.suppress(ClusterError):  # a member that renews it now sees the leader and ends
            await cluster.delete(
                key_of(each), uid=each["metadata"].get("uid"), version=each["metadata"].get("resourceVersion")
            )


async def _is_alive(leases: Sequence[Manifest], cluster: Cluster, clock: Clock) -> bool:
    """Return True if any Lease is renewed within its duration."""
    held = [each for each in leases if _spec(each).get("holderIdentity")]
    lasts = max((float(_spec(each).get("leaseDurationSeconds") or USUAL_LEASE) for each in held), default=0.0)
    until = clock.monotonic() + lasts
    while held and clock.monotonic() < until:
        await sleep(clock, LOOK)
        for each in tuple(held):
            now = await cluster.get(key_of(each))
            if now is None or not _spec(now).get("holderIdentity"):
                held.remove(each)
            elif now["metadata"].get("resourceVersion") != each["metadata"].get("resourceVersion"):
                return True
    return False


def _spec(lease: Manifest) -> Manifest:
    return lease.get("spec") or {}
