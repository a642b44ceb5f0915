"""An engine as one of several: what is its own comes into its queue, and it is never beside one that works alone.

In: the members that share the work. Out: keys in a queue as they become ours. Never: holds on to what another has; lets
engines that share and one that does not be at work on one cluster.
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

LOOK: Final = 0.5  # seconds between looks at a Lease that may be a dead one's
USUAL_LEASE: Final = 15.0


class Sharing:
    """`begin` when the cache is filled, `end` when nothing is worked on any more."""

    def __init__(self, members: Members, controller: ApplicationController, queue: WorkQueue, cache: Cache) -> None:
        self.members, self._controller, self._queue, self._cache = members, controller, queue, cache
        self._claims = controller.claims = Claims(members)
        self._takeover = controller.takeover = Takeover(controller.claim, self._work_on)
        members.on_change, members.may_grow = self._changed, self._takeover.is_calm
        self._takeover.on_calm = members.look_again
        self._keeping: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Until cancelled, which does not end the membership: what has begun ends under our Lease."""
        self._keeping = asyncio.create_task(self.members.keep(), name="membership")
        taking = asyncio.create_task(self._takeover.run(), name="takeover")
        try:
            ended, _ = await asyncio.wait({self._keeping, taking}, return_when=asyncio.FIRST_COMPLETED)
            for each in ended:
                each.result()
        finally:
            self._takeover.close()  # at once: what is under way ends, and nothing else begins
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
        self._takeover.add(sorted(come, key=lambda key: not self._is_begun(key)))  # what another has begun first

    def _work_on(self, key: ResourceKey) -> None:
        self._queue.add(key, is_urgent=self._is_begun(key))

    def _is_begun(self, key: ResourceKey) -> bool:
        return "operation" in (self._cache.get(key) or {})


async def wait_for_no_leader(cluster: Cluster, namespace: str, dead: str = "", clock: Clock = SYSTEM_CLOCK) -> str:
    """UserError while one engine works there alone; one that is dead is waited for. The version of its Lease then."""
    found = await cluster.get(ResourceKey(*KIND, namespace, LEASE))
    version = str(found["metadata"].get("resourceVersion") or "") if found is not None else ""
    if found is not None and version != dead and await _is_alive([found], cluster, clock):
        raise UserError(
            f"a controller works alone on this cluster (Lease {namespace}/{LEASE}); end it, or start it with "
            "--shards auto too",
            where="--shards",
        )
    return version


async def wait_for_no_members(cluster: Cluster, namespace: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """UserError while engines share the work there; those that are dead are waited for, and their Leases go."""
    try:
        found = (await cluster.list(KIND, namespace=namespace, labels=LABELS)).items
    except Forbidden:
        return  # who may not even see them shares its rights with them: there are none
    if await _is_alive(found, cluster, clock):
        raise UserError(
            f"controllers share the work of this cluster (Leases {PREFIX}… in namespace {namespace}); end them, or "
            "start this one with --shards auto too"
        )
    for each in found:
        with contextlib.suppress(ClusterError):  # whoever renews it now sees that somebody leads, and goes
            await cluster.delete(
                key_of(each), uid=each["metadata"].get("uid"), version=each["metadata"].get("resourceVersion")
            )


async def _is_alive(leases: Sequence[Manifest], cluster: Cluster, clock: Clock) -> bool:
    """Whether any of them is renewed while it is looked at, for as long as it may stand still."""
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
