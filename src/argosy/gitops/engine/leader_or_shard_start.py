"""Starts an engine: alone behind a leader Lease, or as one of several that share the Applications.

In: a cluster and options. Out: nothing until it ends. Never: two engines that do not know of each other.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Final

from argosy.errors import ClusterError, TransientError, UserError
from argosy.gitops.application_client.control_namespace import LEADER_LEASE_NAME
from argosy.gitops.engine.engine import Engine, EngineOptions, compute_total_workers
from argosy.gitops.engine.liveness import ControllerHealth
from argosy.gitops.engine.shard_application_takeover import wait_for_no_leader, wait_for_no_members
from argosy.kube.client import Cluster
from argosy.kube.controller import run_as_leader
from argosy.kube.controller.sharding.membership import ShardMembership
from argosy.kube.controller.startup_retry import retry_until_reachable

log = logging.getLogger(__name__)
RETRY_SECONDS: Final = 1.0  # until the leader Lease is read again
SHARDED_GRACE_SECONDS: Final = 0.5  # seconds: other replicas wait for our Applications


async def run_leading_engine(
    cluster: Cluster,
    options: EngineOptions,
    namespace: str,
    *,
    identity: str = "",
    health: ControllerHealth | None = None,
) -> None:
    """Run an engine while it leads this cluster. A restart with the same `identity` need not wait for the Lease."""
    controller_health = health or ControllerHealth(compute_total_workers(options.workers))

    async def run_engine() -> None:
        await retry_until_reachable(lambda: wait_for_no_members(cluster, namespace))
        await controller_health.run_engine(Engine(cluster, options, namespace))

    await run_as_leader(
        run_engine,
        cluster,
        namespace=namespace,
        name=LEADER_LEASE_NAME,
        identity=identity,
        on_election=controller_health.register_election,
    )


async def run_sharded_engine(
    cluster: Cluster, options: EngineOptions, namespace: str, health: ControllerHealth | None = None
) -> None:
    """Run an engine as one of several; it owns the Applications that no other member owns."""
    controller_health = health or ControllerHealth(compute_total_workers(options.workers))

    stale_version = await retry_until_reachable(lambda: wait_for_no_leader(cluster, namespace))

    async def check_no_leader() -> None:
        while True:
            try:
                await wait_for_no_leader(cluster, namespace, stale_version)
                return
            except (ClusterError, TransientError) as error:  # a running engine must not stop for that
                log.info("cannot read the leader Lease: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    members = ShardMembership(cluster, namespace)
    members.check_before_joining = check_no_leader  # checked again after joining, when a new leader can see this member
    try:
        await controller_health.run_engine(
            Engine(cluster, replace(options, grace_seconds=SHARDED_GRACE_SECONDS), namespace, members=members)
        )
    except BaseExceptionGroup as group:
        refused = group.subgroup(UserError)
        raise (refused.exceptions[0] if refused else group) from None
