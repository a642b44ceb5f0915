"""Remote clusters of an engine: sandboxes in their own processes, declared by cluster Secrets.

In: a folder, and a Room to declare the cluster in. Out: a Far to inspect and to pause. Never: mocks a cluster.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from argosy.kube.client import Cluster
from argosy.kube.client.cluster_client import connect
from argosy.kube.client.kubeconfig import load_kubeconfig
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import ResourceKey
from support import clusters
from support.deadlines import HANG_SECONDS
from support.engine import CONTROL, Room, furnish


def encoded(values: dict[str, str]) -> dict[str, str]:
    return {name: base64.b64encode(text.encode()).decode() for name, text in values.items()}


class Far:
    """A remote cluster and its client."""

    def __init__(self, name: str, sandbox: clusters.Sandbox, cluster: Cluster) -> None:
        self.name, self.sandbox, self.cluster = name, sandbox, cluster
        self.server = sandbox.address
        self.authority = base64.b64encode(load_kubeconfig([sandbox.kubeconfig]).ca_data).decode()

    def config(self, **changed: Any) -> str:
        tls = {"caData": self.authority, **changed.pop("tls", {})}
        return json.dumps({"bearerToken": self.sandbox.endpoint.token, "tlsClientConfig": tls, **changed})

    async def declare(self, room: Room, config: str = "", **values: str) -> None:
        """Create or update the cluster Secret of this cluster."""
        data = encoded({"name": self.name, "server": self.server, "config": config or self.config(), **values})
        key = ResourceKey("", "Secret", CONTROL, f"cluster-{self.name}")
        if await room.cluster.get(key) is not None:
            await room.cluster.patch(key, {"data": data})
            return
        labels = {"argocd.argoproj.io/secret-type": "cluster"}
        metadata = {"name": key.name, "namespace": CONTROL, "labels": labels}
        await room.cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})

    async def get(self, kind: str, name: str, namespace: str = "ml") -> Manifest | None:
        group, _, plain = kind.rpartition("/")
        return await self.cluster.get(ResourceKey(group, plain, namespace, name))

    async def until(self, kind: str, name: str, namespace: str = "ml", *, gone: bool = False) -> Manifest | None:
        async with asyncio.timeout(HANG_SECONDS):
            while ((live := await self.get(kind, name, namespace)) is None) != gone:
                await asyncio.sleep(0.05)
        return live

    async def account(self, name: str = "argocd-manager") -> str:
        """Create a service account with the role cluster-admin; return its token."""
        metadata = {"name": name, "namespace": "kube-system"}
        await self.cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
        await self.cluster.create(
            {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": name},
                "roleRef": role,
                "subjects": [{"kind": "ServiceAccount", **metadata}],
            }
        )
        token_request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": 36000},
        }
        key = ResourceKey("", "ServiceAccount", "kube-system", name)
        return str((await self.cluster.create(token_request, subresource_of=key))["status"]["token"])

    def freeze(self) -> None:
        os.kill(self.sandbox.process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        os.kill(self.sandbox.process.pid, signal.SIGCONT)


@contextlib.asynccontextmanager
async def far_cluster(folder: Path, name: str = "far", *flags: str) -> AsyncIterator[Far]:
    with clusters.sandbox(folder / name, *flags, home=folder) as sandbox:
        connection = load_kubeconfig([sandbox.kubeconfig])
        async with await connect(connection) as cluster:
            await furnish(cluster, "ml")
            far = Far(name, sandbox, cluster)
            try:
                yield far
            finally:
                with contextlib.suppress(ProcessLookupError):
                    far.thaw()
