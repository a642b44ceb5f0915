"""Tests the cluster client that connects on first use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from argosy.errors import Forbidden
from argosy.gitops.application_client.lazy_cluster_client import LazyClusterClient
from argosy.kube.client import Cluster, User
from argosy.kube.client.connection_settings import Connection
from argosy.kube.resource_key import ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

pytestmark = pytest.mark.anyio
KEY = ResourceKey("", "ConfigMap", "default", "settings")
ACCOUNT, OTHER = (User(f"system:serviceaccount:default:{name}") for name in ("deployer", "other"))
RBAC = "rbac.authorization.k8s.io"


class Remote:
    """A cluster with RBAC that counts how often it is opened and closed."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster, self.opened, self.closed = cluster, 0, 0

    @asynccontextmanager
    async def open(self, _: Connection) -> AsyncIterator[Cluster]:
        self.opened += 1
        yield self.cluster
        self.closed += 1


@pytest.fixture
async def remote() -> AsyncIterator[Remote]:
    async with EmbeddedCluster.open(rbac=True) as cluster:
        metadata = {"name": "settings", "namespace": "default"}
        await cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}})
        role = {"name": "deployer", "namespace": "default"}
        rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch", "delete"]}
        subject = {"kind": "ServiceAccount", "name": "deployer", "namespace": "default"}
        reference = {"apiGroup": RBAC, "kind": "Role", "name": "deployer"}
        await cluster.create({"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": role, "rules": [rule]})
        binding = {"apiVersion": f"{RBAC}/v1", "kind": "RoleBinding", "metadata": role}
        await cluster.create({**binding, "subjects": [subject], "roleRef": reference})
        yield Remote(cluster)


async def test_impersonated_account_has_only_its_own_rights_in_remote_cluster(remote: Remote) -> None:
    late = LazyClusterClient(Connection(server="https://remote.example"), remote.open)
    account, other = late.acting_as(ACCOUNT), late.acting_as(OTHER)
    assert remote.opened == 0, "nobody has asked yet"
    assert (await account.patch(KEY, {"data": {"a": "2"}}))["data"] == {"a": "2"}
    with pytest.raises(Forbidden, match=OTHER.name):
        await other.patch(KEY, {"data": {"a": "3"}})
    with pytest.raises(Forbidden, match=OTHER.name):
        await account.acting_as(OTHER).delete(KEY)
    assert await late.get(KEY), "reads keep the rights of the connection"
    await account.delete(KEY)
    assert await late.get(KEY) is None and remote.opened == 1
    await late.close()
    assert remote.closed == 1
