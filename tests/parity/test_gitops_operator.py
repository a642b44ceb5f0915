"""The simulated operator of OpenShift GitOps, compared with what the real argocd-operator made of the same resources.

tests/data/argocd-operator has the ArgoCD resources (shapes), what somebody edits by hand, what the real operator made
of both (recorded.json), and the differences that are kept, with their reasons. tests/argocd/test_gitops_operator.py
runs both operators; record.py in tests/support/argocd_operator records again.
"""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.openshift_gitops import make
from support.argocd_operator.facts import Facts, encode_changes, list_facts
from support.argocd_operator.kept_differences import compare_facts, find_unexplained, load_kept_differences
from support.argocd_operator.record import load_recorded_shapes
from support.argocd_operator.site import (
    ALL_KINDS,
    NAME,
    OWNER,
    RECORDED,
    Edit,
    hide_namespace,
    load_edits,
    load_shapes,
    name_namespace,
)
from support.loop_clock import until_still

pytestmark = pytest.mark.anyio
NEEDED_DEFINITIONS = ("argocds.argoproj.io", "routes.route.openshift.io", "appprojects.argoproj.io")


class SimulatedSite:
    """The embedded cluster with the simulated operator; every case has a namespace of its own."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster

    async def install(self, namespace: str, spec: dict[str, Any]) -> None:
        await self.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        manifest = {"apiVersion": "argoproj.io/v1beta1", "kind": "ArgoCD", "spec": spec}
        await self.cluster.create({**manifest, "metadata": {"name": NAME, "namespace": namespace}})

    async def edit(self, namespace: str, edit: Edit) -> None:
        key = ResourceKey(*find_kind(edit.kind), namespace, edit.object_name)
        if await self.cluster.get(key) is None:
            return  # this operator does not make the object
        if edit.patch is None:
            await self.cluster.delete(key)
            return
        owner = await self.cluster.get(ResourceKey("", "ConfigMap", namespace, OWNER))
        assert owner is not None
        await self.cluster.patch(key, json.loads(json.dumps(edit.patch).replace("<uid>", owner["metadata"]["uid"])))

    async def read_settled(self) -> dict[str, Facts]:
        await until_still(lambda: self.cluster.plane.store.revision)
        objects: dict[str, dict[str, list[Any]]] = {}
        for kind in ALL_KINDS:
            for item in (await self.cluster.list(find_kind(kind))).items:
                objects.setdefault(item["metadata"]["namespace"], {}).setdefault(kind, []).append(item)
        return {namespace: hide_namespace(list_facts(kinds), namespace) for namespace, kinds in objects.items()}


def find_kind(kind: str) -> GroupKind:
    parts = ALL_KINDS[kind].split("/")
    return GroupKind(parts[2] if parts[1] == "apis" else "", kind)


@contextlib.asynccontextmanager
async def run_simulated_site(cluster: EmbeddedCluster) -> AsyncIterator[SimulatedSite]:
    addon = make("")
    definitions = [item for item in addon.definitions if item["metadata"]["name"] in NEEDED_DEFINITIONS]
    async with run_addons(
        [replace(addon, definitions=definitions, initial_manifests=[])], cluster, on_failure=lambda: None
    ):
        yield SimulatedSite(cluster)


async def compare_shapes(site: SimulatedSite, shapes: dict[str, Facts], used: Counter[str]) -> list[str]:
    specs = load_shapes()
    assert specs.keys() == shapes.keys()
    for shape, spec in specs.items():
        await site.install(name_namespace(shape), spec)
    settled = await site.read_settled()
    differences = []
    for shape, real in shapes.items():
        simulated = settled[name_namespace(shape)]
        differences += [f"{shape}: {item}" for item in find_unexplained(shape, compare_facts(real, simulated), used)]
    return differences


async def compare_edits(site: SimulatedSite, effects: dict[str, Facts], used: Counter[str]) -> list[str]:
    spec, edits = load_edits()
    assert {edit.name for edit in edits} == effects.keys()
    namespaces = {edit.name: f"edited-{number}" for number, edit in enumerate(edits)}
    for namespace in namespaces.values():
        await site.install(namespace, spec)
    before = await site.read_settled()
    for edit in edits:
        await site.edit(namespaces[edit.name], edit)
    after = await site.read_settled()
    differences = []
    for edit in edits:
        namespace = namespaces[edit.name]
        simulated = encode_changes(before[namespace], after[namespace])
        unexplained = find_unexplained(edit.name, compare_facts(effects[edit.name], simulated), used)
        differences += [f"{edit.name}: {item}" for item in unexplained]
    return differences


async def test_simulated_operator_differs_from_the_real_one_only_for_listed_reasons(cluster: EmbeddedCluster) -> None:
    recorded = json.loads(RECORDED.read_text())
    used: Counter[str] = Counter()
    async with run_simulated_site(cluster) as site:
        differences = await compare_shapes(site, load_recorded_shapes(recorded), used)
        differences += await compare_edits(site, recorded["edits"], used)
    assert not differences, "\n".join(differences)
    assert {entry.name for entry in load_kept_differences()} == set(used), "an entry of the table explains nothing"
