"""The CRDs bundled with argosy mean the same to every server, including a real one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of, read_manifests
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import list_definition_names, load_definitions
from support.contract_manifests import eventually
from support.real_server import REAL

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parents[1] / "data" / "definitions"
EXAMPLES = [
    document for file in sorted(DATA.glob("*.yaml")) for document in read_manifests(file.read_text(), where=file.name)
]
WANTED = {"NamesAccepted": "True", "Established": "True"}  # and no other condition, such as NonStructuralSchema


@pytest.fixture
async def furnished(own_cluster: Cluster) -> AsyncIterator[Cluster]:
    """A cluster with all bundled CRDs, for one test."""
    created_keys: list[ResourceKey] = []
    try:
        for definition in load_definitions():
            await own_cluster.create(definition)
            created_keys.append(key_of(definition))
        yield own_cluster
    finally:
        for key in created_keys:
            await own_cluster.delete(key)


def definition_key(name: str) -> ResourceKey:
    return ResourceKey("apiextensions.k8s.io", "CustomResourceDefinition", "", name)


async def conditions(cluster: Cluster, name: str) -> dict[str, str]:
    definition = await cluster.get(definition_key(name))
    assert definition is not None
    return {condition["type"]: condition["status"] for condition in definition["status"].get("conditions") or ()}


async def create_and_read(cluster: Cluster, manifest: Manifest) -> Manifest:
    key = key_of(manifest)

    async def served() -> bool:
        return key.group_kind in await cluster.kinds()

    await eventually(served)
    await cluster.create(manifest)
    if "status" in manifest and "status" in (await cluster.kinds())[key.group_kind].subresources:
        await cluster.patch(key, {"status": manifest["status"]}, subresource="status")
    stored_manifest = await cluster.get(key)
    assert stored_manifest is not None
    return stored_manifest


def holds(sent: Any, stored: Any) -> bool:
    """True if everything that was sent is stored; a server adds defaults."""
    if isinstance(sent, dict):
        return isinstance(stored, dict) and all(key in stored and holds(sent[key], stored[key]) for key in sent)
    if isinstance(sent, list):
        return isinstance(stored, list) and len(sent) == len(stored) and all(map(holds, sent, stored))
    return bool(sent == stored)


@pytest.mark.parametrize(
    "flavour", ["embedded", pytest.param("wire", marks=pytest.mark.tier("all")), REAL], indirect=True
)
async def test_server_accepts_every_bundled_crd_and_stores_the_examples(furnished: Cluster, namespace: str) -> None:
    for name in list_definition_names():

        async def settled(name: str = name) -> bool:
            return await conditions(furnished, name) == WANTED

        await eventually(settled)
    for example in EXAMPLES:
        namespace_metadata = {"namespace": namespace} if "namespace" in example["metadata"] else {}
        manifest = {**example, "metadata": {"name": example["metadata"]["name"], **namespace_metadata}}
        stored_manifest = await create_and_read(furnished, manifest)
        # The version in which a kind is returned by default depends on discovery, not on the CRD.
        assert holds({**manifest, "apiVersion": stored_manifest["apiVersion"]}, stored_manifest), key_of(manifest)
