"""Null values in metadata: built-in and custom kinds decode them as a real API server does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from argosy.errors import Invalid
from argosy.kube.client import Cluster
from argosy.kube.objects import key_of
from argosy.kube.resource_key import GroupKind
from support.contract_manifests import definition, eventually

pytestmark = pytest.mark.anyio

GROUP = "decoding.contract.argosy.dev"


@pytest.fixture
async def kinds(own_cluster: Cluster) -> AsyncIterator[dict[str, str]]:
    """Maps each kind to create to its apiVersion: one built-in kind and one custom kind."""
    custom = definition(GROUP)
    await own_cluster.create(custom)
    kind = custom["spec"]["names"]["kind"]
    version = custom["spec"]["versions"][0]["name"]

    async def is_served() -> bool:
        return GroupKind(GROUP, kind) in await own_cluster.kinds()

    await eventually(is_served)
    yield {"ConfigMap": "v1", kind: f"{GROUP}/{version}"}
    await own_cluster.delete(key_of(custom))


REFUSED = [
    ({"finalizers": [None]}, "name part must be non-empty"),
    ({"finalizers": ["example.com/a", None]}, "name part must be non-empty"),
    ({"ownerReferences": [None]}, "uid must not be empty"),
]


async def test_null_in_metadata_decodes_to_the_empty_value_of_its_type(
    own_cluster: Cluster, namespace: str, kinds: dict[str, str]
) -> None:
    for kind, api_version in kinds.items():
        metadata: dict[str, Any] = {"name": "nulls", "namespace": namespace, "labels": {"a": None}}
        metadata |= {"annotations": {"b": None}, "finalizers": None}
        created = await own_cluster.create({"apiVersion": api_version, "kind": kind, "metadata": metadata})
        assert created["metadata"]["labels"] == {"a": ""}
        assert created["metadata"]["annotations"] == {"b": ""}
        assert "finalizers" not in created["metadata"]


@pytest.mark.parametrize(("metadata", "complaint"), REFUSED)
async def test_null_finalizer_or_owner_reference_is_rejected(
    own_cluster: Cluster, namespace: str, kinds: dict[str, str], metadata: dict[str, Any], complaint: str
) -> None:
    for kind, api_version in kinds.items():
        names = {"name": "nulls", "namespace": namespace}
        manifest = {"apiVersion": api_version, "kind": kind, "metadata": {**names, **metadata}}
        with pytest.raises(Invalid, match=complaint):
            await own_cluster.create(manifest)
