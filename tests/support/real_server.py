"""A private real API server that is wiped before each test.

In: the programs of `make realcluster`. Out: a cluster client; objects of the previous test are deleted. Never: connects
to a shared server, because all its objects are deleted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import pytest

from argosy.errors import ClusterError
from argosy.kube.client import Catalog, Cluster
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.kubeconfig import load_kubeconfig
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from support import control_plane as realcluster
from support.deadlines import HANG_SECONDS

LASTING = ("argocd", "ml")  # namespaces that are kept: a real server takes many seconds to delete one
BY_CONTROLLERS = {GroupKind("", "ConfigMap"): "kube-root-ca.crt", GroupKind("", "ServiceAccount"): "default"}
# For tests that simulate the other controllers, and decide whether a Job succeeds.
FEW = realcluster.CONTROLLERS_OF_THE_SANDBOX


REAL = pytest.param("real", marks=pytest.mark.tier("realcluster"))  # a fixture parameter


@dataclass
class WipedServer:
    running: realcluster.RealCluster
    at_first: set[ResourceKey] = field(default_factory=set)

    @contextlib.asynccontextmanager
    async def opened(self) -> AsyncIterator[Cluster]:
        async with await connect(load_kubeconfig([self.running.kubeconfig])) as cluster:
            if self.at_first:
                await self._wipe(cluster)
            else:
                await self._begin(cluster)
            yield cluster

    async def _begin(self, cluster: Cluster) -> None:
        await until_there(cluster, ResourceKey("", "Namespace", "", "kube-node-lease"))
        self.at_first = {key_of(manifest) for manifest in await _everything(cluster, await cluster.kinds())}

    async def _wipe(self, cluster: Cluster) -> None:
        """Delete until no object of a test remains; repeat, because controllers may create objects meanwhile."""
        async with asyncio.timeout(HANG_SECONDS):
            kinds = await cluster.kinds()
            while remaining := [manifest for manifest in await _everything(cluster, kinds) if self._goes(manifest)]:
                await asyncio.gather(*(_end(cluster, manifest) for manifest in remaining))
                if any(manifest["kind"] == "CustomResourceDefinition" for manifest in remaining):
                    kinds = await cluster.kinds()

    def _goes(self, manifest: Manifest) -> bool:
        key = key_of(manifest)
        if key in self.at_first or (key.namespace or "").startswith("kube-") or key.namespace == "default":
            return False
        if (key.kind == "Namespace" and key.name in LASTING) or key.name.endswith(".argoproj.io"):
            return False
        return BY_CONTROLLERS.get(key.group_kind) != key.name


async def _everything(cluster: Cluster, kinds: Catalog) -> list[Manifest]:
    async def listed(kind: GroupKind) -> list[Manifest]:
        try:
            items = (await cluster.list(kind)).items
        except ClusterError as error:
            if error.code in (404, 405):  # the CRD of this kind is being deleted
                return []
            raise
        api = f"{kind.group}/{kinds[kind].version}".lstrip("/")
        return [{"apiVersion": api, "kind": kind.kind, **manifest} for manifest in items]

    deletable_kinds = [kind for kind, info in kinds.items() if {"list", "delete"} <= set(info.verbs)]
    return [manifest for manifests in await asyncio.gather(*map(listed, deletable_kinds)) for manifest in manifests]


async def _end(cluster: Cluster, manifest: Manifest) -> None:
    key = key_of(manifest)
    try:
        if manifest["metadata"].get("finalizers"):
            await cluster.patch(key, {"metadata": {"finalizers": None}})
        if not manifest["metadata"].get("deletionTimestamp"):
            await cluster.delete(key, grace=0)
    except ClusterError as error:
        if error.code not in (404, 409):
            raise


async def until_there(cluster: Cluster, key: ResourceKey) -> None:
    async with asyncio.timeout(HANG_SECONDS):
        while await cluster.get(key) is None:
            await asyncio.sleep(0.05)


@contextlib.contextmanager
def wiped_server(*, controllers: str = "*") -> Iterator[WipedServer]:
    """Start a real server; skip the test if it is not built."""
    if realcluster.programs() is None:
        pytest.skip(f"a real server: it is not in {realcluster.CACHE} (make realcluster)")
    with realcluster.real_cluster_with(controllers) as started:
        yield WipedServer(started)
