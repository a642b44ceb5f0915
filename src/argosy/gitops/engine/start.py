"""Starts an engine: alone behind a leader Lease, or as one of several that share the Applications.

In: a cluster and options. Out: nothing until it ends. Never: two engines that do not know of each other.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Final

from argosy.errors import ClusterError, TransientError, UserError
from argosy.gitops.application_client.control_namespace import LEASE
from argosy.gitops.engine.engine import Engine, EngineOptions, count_workers
from argosy.gitops.engine.liveness import Vitals
from argosy.gitops.engine.sharded_engine import wait_for_no_leader, wait_for_no_members
from argosy.kube.client import Cluster
from argosy.kube.controller import lead
from argosy.kube.controller.retry import insist
from argosy.kube.controller.sharding.members import Members

log = logging.getLogger(__name__)
RETRY_SECONDS: Final = 1.0  # until the leader Lease is read again
SHARED_GRACE: Final = 0.5  # seconds: other replicas wait for our Applications


async def lead_engine(
    cluster: Cluster, options: EngineOptions, namespace: str, *, identity: str = "", vitals: Vitals | None = None
) -> None:
    """Run an engine while it leads this cluster. A restart with the same `identity` need not wait for the Lease."""
    signs = vitals or Vitals(count_workers(options.workers))

    async def work() -> None:
        await insist(lambda: wait_for_no_members(cluster, namespace))
        await signs.kept(Engine(cluster, options, namespace))

    await lead(work, cluster, namespace=namespace, name=LEASE, identity=identity, stands=signs.stands)


async def share_engine(cluster: Cluster, options: EngineOptions, namespace: str, vitals: Vitals | None = None) -> None:
    """Run an engine as one of several; it owns the Applications that no other member owns."""
    signs = vitals or Vitals(count_workers(options.workers))

    dead = await insist(lambda: wait_for_no_leader(cluster, namespace))

    async def is_alone() -> None:
        while True:
            try:
                await wait_for_no_leader(cluster, namespace, dead)
                return
            except (ClusterError, TransientError) as error:  # a running engine must not stop for that
                log.info("cannot read the leader Lease: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    members = Members(cluster, namespace)
    members.before_joining = is_alone  # checked again after joining, when a new leader can see this member
    try:
        await signs.kept(Engine(cluster, replace(options, grace=SHARED_GRACE), namespace, members=members))
    except BaseExceptionGroup as group:
        refused = group.subgroup(UserError)
        raise (refused.exceptions[0] if refused else group) from None
