"""Who may not read workloads does not take an Argo CD for absent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from argocd_at_work import controller, scale
from engine_room import CONTROL, LeapingClock

from argosy.apiserver.embedded import EmbeddedCluster
from argosy.apiserver.plane import Plane
from argosy.cluster import Cluster, User
from argosy.desk.beside import SETTLING, Beside, find_engines
from argosy.policy.engines import Deliverer

RULES = [
    {"apiGroups": ["apps"], "resources": ["statefulsets", "deployments"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
]
REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "looks"}


@asynccontextmanager
async def enforcing() -> AsyncIterator[tuple[Cluster, Cluster]]:
    """A cluster that enforces roles: as its administrator, and as somebody who was given nothing yet."""
    async with Plane.open(rbac=True) as plane:
        admin = EmbeddedCluster(plane)
        await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROL}})
        yield admin, admin.acting_as(User("ada"))


async def may_look(admin: Cluster) -> None:
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1"}
    metadata = {"name": "looks", "namespace": CONTROL}
    await admin.create({**kind, "kind": "Role", "metadata": metadata, "rules": RULES})
    subjects = [{"kind": "User", "name": "ada", "apiGroup": "rbac.authorization.k8s.io"}]
    await admin.create({**kind, "kind": "RoleBinding", "metadata": metadata, "roleRef": REF, "subjects": subjects})


async def test_what_may_not_be_read_is_not_taken_for_absent() -> None:
    async with enforcing() as (_, ada):
        engines = await find_engines(ada, CONTROL)
        assert not engines.is_known
        assert engines.deliverer({}) is Deliverer.UNKNOWN
        beside = Beside(ada, CONTROL, lambda: None)
        work = asyncio.create_task(beside.run())
        await asyncio.wait_for(beside.synced(), 10)
        assert beside.engines == engines
        work.cancel()


async def test_who_may_look_in_the_control_namespace_alone_looks_there() -> None:
    async with enforcing() as (admin, ada):
        await may_look(admin)
        assert (await find_engines(ada, CONTROL)).deliverer({}) is Deliverer.ARGOSY
        clock, changes = LeapingClock(), list[bool]()
        beside = Beside(ada, CONTROL, lambda: changes.append(bool(beside.engines.argocd)), clock)
        work = asyncio.create_task(beside.run())
        await asyncio.wait_for(beside.synced(), 10)
        await admin.create(controller())
        await scale(admin, 0)
        async with asyncio.timeout(10):
            while not beside.is_leaving:
                await asyncio.sleep(0.01)
            clock.leap(SETTLING)
            while len(changes) < 3:
                await asyncio.sleep(0.01)
        assert changes == [False, True, False]
        work.cancel()
