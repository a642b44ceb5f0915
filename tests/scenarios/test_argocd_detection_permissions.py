"""Argo CD detection with limited RBAC: workloads that may not be read do not mean that Argo CD is absent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from argosy.gitops.coexistence.argocd_detection import REMOVAL_GRACE_SECONDS, ArgoCDDetector, detect_engines
from argosy.gitops.policy.application_delivery_engine_detection import Deliverer
from argosy.kube.client import Cluster, User
from argosy.sandbox.apiserver.control_plane import ControlPlane
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, LeapingClock
from support.simulated_argocd import controller, pod, scale

RULES = [
    {"apiGroups": ["apps"], "resources": ["statefulsets", "deployments"], "verbs": ["list", "watch"]},
    {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]},
]
GROUP = "rbac.authorization.k8s.io"


@asynccontextmanager
async def enforcing() -> AsyncIterator[tuple[Cluster, Cluster]]:
    """Open a cluster with RBAC; yield clients of its administrator and of a user without any permissions."""
    async with ControlPlane.open(rbac=True) as plane:
        admin = EmbeddedCluster(plane)
        await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROL}})
        yield admin, admin.acting_as(User("ada"))


async def may_look(admin: Cluster) -> None:
    await bind(admin, "looks", RULES, {"kind": "User", "name": "ada", "apiGroup": GROUP})


async def bind(admin: Cluster, name: str, rules: list[dict[str, Any]], subject: dict[str, str]) -> None:
    """Create a Role and its RoleBinding in the control namespace."""
    kind = {"apiVersion": f"{GROUP}/v1", "metadata": {"name": name, "namespace": CONTROL}}
    await admin.create({**kind, "kind": "Role", "rules": rules})
    reference = {"apiGroup": GROUP, "kind": "Role", "name": name}
    await admin.create({**kind, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})


async def test_forbidden_reads_leave_the_delivery_engine_unknown() -> None:
    async with enforcing() as (_, ada):
        engines = await detect_engines(ada, CONTROL)
        assert not engines.is_known
        assert engines.find_deliverer({}, CONTROL) is Deliverer.UNKNOWN
        beside = ArgoCDDetector(ada, CONTROL, lambda before: None)
        work = asyncio.create_task(beside.run())
        await asyncio.wait_for(beside.wait_until_detected(), HANG_SECONDS)
        assert beside.engines == engines
        work.cancel()


async def test_detection_works_with_read_access_to_the_control_namespace_only() -> None:
    async with enforcing() as (admin, ada):
        await may_look(admin)
        assert (await detect_engines(ada, CONTROL)).find_deliverer({}, CONTROL) is Deliverer.ARGOSY
        clock, changes = LeapingClock(), list[bool]()
        beside = ArgoCDDetector(
            ada, CONTROL, lambda before: changes.append(bool(beside.engines.controller_names)), clock
        )
        work = asyncio.create_task(beside.run())
        await asyncio.wait_for(beside.wait_until_detected(), HANG_SECONDS)
        await admin.create(controller())
        await scale(admin, 0)
        async with asyncio.timeout(HANG_SECONDS):
            while not beside.is_removal_pending:
                await asyncio.sleep(0.01)
            clock.leap(REMOVAL_GRACE_SECONDS)
            while len(changes) < 3:
                await asyncio.sleep(0.01)
        assert changes == [False, True, False]
        work.cancel()


async def test_controller_watches_another_namespace_only_if_its_account_may_patch_there() -> None:
    """A user who may run Pods can set any label and flag, but cannot grant permissions to their service account."""
    async with enforcing() as (admin, _):
        await admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "tenant"}})
        controller_pod = pod("tenant")
        flags = {**controller_pod["spec"]["containers"][0], "args": ["--application-namespaces", "*"]}
        account = {"serviceAccountName": "default", "containers": [flags]}
        await admin.create({**controller_pod, "spec": account})
        assert not (await detect_engines(admin, CONTROL)).list_watching_controllers(CONTROL)
        assert (await detect_engines(admin, CONTROL)).list_watching_controllers("tenant")
        rules = [{"apiGroups": ["argoproj.io"], "resources": ["applications"], "verbs": ["patch"]}]
        subject = {"kind": "ServiceAccount", "name": "default", "namespace": "tenant"}
        await bind(admin, "writes", rules, subject)
        engines = await detect_engines(admin, CONTROL)
        assert engines.list_watching_controllers(CONTROL) and not engines.list_watching_controllers("default")
