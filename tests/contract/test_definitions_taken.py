"""The definitions that come with argosy mean the same to every server, a real one too."""

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
EXAMPLES = [each for file in sorted(DATA.glob("*.yaml")) for each in read_manifests(file.read_text(), where=file.name)]
WANTED = {"NamesAccepted": "True", "Established": "True"}  # and nothing such as NonStructuralSchema


@pytest.fixture
async def furnished(own_cluster: Cluster) -> AsyncIterator[Cluster]:
    """With all definitions, for the time of one test."""
    made: list[ResourceKey] = []
    try:
        for each in load_definitions():
            await own_cluster.create(each)
            made.append(key_of(each))
        yield own_cluster
    finally:
        for key in made:
            await own_cluster.delete(key)


def definition_key(name: str) -> ResourceKey:
    return ResourceKey("apiextensions.k8s.io", "CustomResourceDefinition", "", name)


async def conditions(cluster: Cluster, name: str) -> dict[str, str]:
    found = await cluster.get(definition_key(name))
    assert found is not None
    return {each["type"]: each["status"] for each in found["status"].get("conditions") or ()}


async def kept(cluster: Cluster, manifest: Manifest) -> Manifest:
    key = key_of(manifest)

    async def served() -> bool:
        return key.group_kind in await cluster.kinds()

    await eventually(served)
    await cluster.create(manifest)
    if "status" in manifest and "status" in (await cluster.kinds())[key.group_kind].subresources:
        await cluster.patch(key, {"status": manifest["status"]}, subresource="status")
    found = await cluster.get(key)
    assert found is not None
    return found


def holds(given: Any, found: Any) -> bool:
    """Is all that was given there? What a server adds are defaults."""
    if isinstance(given, dict):
        return isinstance(found, dict) and all(key in found and holds(given[key], found[key]) for key in given)
    if isinstance(given, list):
        return isinstance(found, list) and len(given) == len(found) and all(map(holds, given, found))
    return bool(given == found)


@pytest.mark.parametrize(
    "flavour", ["embedded", pytest.param("wire", marks=pytest.mark.tier("all")), REAL], indirect=True
)
async def test_a_server_takes_every_definition_and_keeps_what_the_examples_say(
    furnished: Cluster, namespace: str
) -> None:
    for name in list_definition_names():

        async def settled(name: str = name) -> bool:
            return await conditions(furnished, name) == WANTED

        await eventually(settled)
    for example in EXAMPLES:
        place = {"namespace": namespace} if "namespace" in example["metadata"] else {}
        manifest = {**example, "metadata": {"name": example["metadata"]["name"], **place}}
        found = await kept(furnished, manifest)
        # Which version of a kind is shown without asking is a matter of discovery, not of the definition.
        assert holds({**manifest, "apiVersion": found["apiVersion"]}, found), key_of(manifest)
