"""Custom subresources of a CRD, implemented by an add-on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import ClusterError, Forbidden, UserError
from argosy.kube.client import Cluster, SubresourceExtension, SubresourceRequest, User
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

pytestmark = pytest.mark.anyio
BELL = GroupKind("example.com", "Bell")
KEY = ResourceKey("example.com", "Bell", "default", "it")
SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "bells.example.com", "annotations": {"sandbox.argosy.dev/actions": "ring=Stroke"}},
    "spec": {
        "group": "example.com",
        "names": {"plural": "bells", "singular": "bell", "kind": "Bell", "listKind": "BellList"},
        "scope": "Namespaced",
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": SCHEMA}}],
    },
}
STROKE = {"apiVersion": "example.com/v1", "kind": "Stroke", "times": 2}


@pytest.fixture
async def cluster() -> AsyncIterator[EmbeddedCluster]:
    async with EmbeddedCluster.open(rbac=True) as embedded_cluster:
        await embedded_cluster.create(DEFINITION)
        metadata = {"name": "it", "namespace": "default"}
        await embedded_cluster.create({"apiVersion": "example.com/v1", "kind": "Bell", "metadata": metadata})
        yield embedded_cluster


async def ring(request: SubresourceRequest, cluster: Cluster) -> Manifest:
    if request.body["times"] > 12:
        raise UserError("it rings at most 12 times; ask for less")
    return {**request.body, "heard": [request.live["metadata"]["name"], request.dry_run]}


async def test_custom_subresource_is_handled_by_the_registered_extension(cluster: EmbeddedCluster) -> None:
    with cluster.register_subresources([SubresourceExtension(BELL, "ring", ring)]):
        assert (await cluster.kinds())[BELL].subresources == ("ring",)
        assert (await cluster.create(STROKE, subresource_of=KEY))["heard"] == ["it", False]
        assert (await cluster.create(STROKE, subresource_of=KEY, dry_run=True))["heard"] == ["it", True]
    with pytest.raises(ClusterError, match="ring is not available: no running add-on implements it"):
        await cluster.create(STROKE, subresource_of=KEY)


@pytest.mark.parametrize(
    ("sent", "key", "code", "why"),
    [
        ({**STROKE, "times": 13}, KEY, 400, "at most 12 times"),
        ({**STROKE, "apiVersion": "example.com/v2"}, KEY, 400, "needs a Stroke in version example.com/v1"),
        (STROKE, KEY._replace(name="other"), 404, 'bells.example.com "other" not found'),
    ],
)
async def test_invalid_subresource_request_is_rejected_with_the_reason(
    cluster: EmbeddedCluster, sent: dict[str, Any], key: ResourceKey, code: int, why: str
) -> None:
    with (
        cluster.register_subresources([SubresourceExtension(BELL, "ring", ring)]),
        pytest.raises(ClusterError, match=why) as refused,
    ):
        await cluster.create(sent, subresource_of=key)
    assert refused.value.code == code


async def test_subresource_request_without_permission_is_forbidden(cluster: EmbeddedCluster) -> None:
    with (
        cluster.register_subresources([SubresourceExtension(BELL, "ring", ring)]),
        pytest.raises(Forbidden, match="bells/ring"),
    ):
        await cluster.acting_as(User("ann")).create(STROKE, subresource_of=KEY)
