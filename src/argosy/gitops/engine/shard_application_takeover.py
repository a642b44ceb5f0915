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
from argosy.gitops.application_client.control_namespace import LEADER_LEASE_NAME
from argosy.gitops.reconciler.application_controller import ApplicationController
from argosy.gitops.reconciler.ownership.application_claim_fence import ApplicationClaims
from argosy.gitops.reconciler.ownership.claim_before_reconcile_queue import ClaimQueue
from argosy.kube.client import Cluster
from argosy.kube.controller import SYSTEM_CLOCK, Clock, InformerCache, WorkQueue
from argosy.kube.controller.clock import sleep
from argosy.kube.controller.sharding.member_lease_format import LEASE_NAME_PREFIX, MEMBER_SELECTOR
from argosy.kube.controller.sharding.membership import ShardMembership
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, LEASE

LEASE_POLL_SECONDS: Final = 0.5  # seconds between reads of a Lease that may be stale
DEFAULT_LEASE_SECONDS: Final = 15.0


class EngineSharding:
    """Runs the membership of one engine; `run` when the cache is filled, `leave` when no reconciliation is running."""

    def __init__(
        self, members: ShardMembership, controller: ApplicationController, queue: WorkQueue, cache: InformerCache
    ) -> None:
        self.members, self._controller, self._queue, self._cache = members, controller, queue, cache
        self._claims = controller.claims = ApplicationClaims(members, controller.handover.memos)
        self._takeover = controller.claim_queue = ClaimQueue(controller.claim, self._enqueue)
        members.on_change, members.can_grow = self._on_members_changed, self._takeover.is_drained
        self._takeover.on_drained = members.wake
        self._membership_task: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Run until cancelled; cancellation keeps the membership, so that running work ends under our Lease."""
        self._membership_task = asyncio.create_task(self.members.run(), name="membership")
        takeover_task = asyncio.create_task(self._takeover.run(), name="takeover")
        try:
            finished, _ = await asyncio.wait(
                {self._membership_task, takeover_task}, return_when=asyncio.FIRST_COMPLETED
            )
            for task in finished:
                task.result()
        finally:
            self._takeover.close()  # at once: running takeovers end, and none starts
            takeover_task.cancel()
            await asyncio.gather(takeover_task, return_exceptions=True)

    async def leave(self) -> None:
        if self._membership_task is not None:
            self._membership_task.cancel()
            with contextlib.suppress(asyncio.CancelledError, UserError):
                await self._membership_task
            await self.members.leave()

    def _on_members_changed(self) -> None:
        gained, lost = self._claims.update_owned(self._cache.keys(APPLICATION))
        for key in lost:
            self._takeover.remove(key)
            self._controller.on_ownership_lost(key)
        self._takeover.add(sorted(gained, key=lambda key: not self._has_operation(key)))  # running operations first

    def _enqueue(self, key: ResourceKey) -> None:
        self._queue.add(key, is_urgent=self._has_operation(key))

    def _has_operation(self, key: ResourceKey) -> bool:
        return "operation" in (self._cache.get(key) or {})


async def wait_for_no_leader(
    cluster: Cluster, namespace: str, stale_version: str = "", clock: Clock = SYSTEM_CLOCK
) -> str:
    """Wait for a stale leader Lease to expire and return its version; raises UserError if a leader is alive."""
    lease = await cluster.get(ResourceKey(*LEASE, namespace, LEADER_LEASE_NAME))
    version = str(lease["metadata"].get("resourceVersion") or "") if lease is not None else ""
    if lease is not None and version != stale_version and await _is_any_renewed([lease], cluster, clock):
        raise UserError(
            f"an unsharded controller runs on this cluster (Lease {namespace}/{LEADER_LEASE_NAME}); stop it, "
            "or start it with "
            "--shards auto too",
            where="--shards",
        )
    return version


async def wait_for_no_members(cluster: Cluster, namespace: str, clock: Clock = SYSTEM_CLOCK) -> None:
    """Wait for stale member Leases and delete them; raises UserError if a member is alive."""
    try:
        leases = (await cluster.list(LEASE, namespace=namespace, labels=MEMBER_SELECTOR)).items
    except Forbidden:
        return  # without permission for Leases no controller could share the work
    if await _is_any_renewed(leases, cluster, clock):
        raise UserError(
            f"sharded controllers run on this cluster (Leases {LEASE_NAME_PREFIX}… in namespace {namespace}); "
            "stop them, or "
            "start this one with --shards auto too"
        )
    for lease in leases:
        with contextlib.suppress(ClusterError):  # a member that renews it now sees the leader and ends
            await cluster.delete(
                key_of(lease), uid=lease["metadata"].get("uid"), version=lease["metadata"].get("resourceVersion")
            )


async def _is_any_renewed(leases: Sequence[Manifest], cluster: Cluster, clock: Clock) -> bool:
    """Return True if any Lease is renewed within its duration."""
    held_leases = [lease for lease in leases if _read_spec(lease).get("holderIdentity")]
    duration_seconds = max(
        (float(_read_spec(lease).get("leaseDurationSeconds") or DEFAULT_LEASE_SECONDS) for lease in held_leases),
        default=0.0,
    )
    deadline = clock.monotonic() + duration_seconds
    while held_leases and clock.monotonic() < deadline:
        await sleep(clock, LEASE_POLL_SECONDS)
        for lease in tuple(held_leases):
            current = await cluster.get(key_of(lease))
            if current is None or not _read_spec(current).get("holderIdentity"):
                held_leases.remove(lease)
            elif current["metadata"].get("resourceVersion") != lease["metadata"].get("resourceVersion"):
                return True
    return False


def _read_spec(lease: Manifest) -> Manifest:
    return lease.get("spec") or {}
