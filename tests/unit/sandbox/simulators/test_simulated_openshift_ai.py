"""Simulated OpenShift AI operators, which write into objects of other owners, on the embedded cluster."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import DATA_SCIENCE_CLUSTER
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators import DEFAULT_KINDS, OPENSHIFT_AI_KINDS, make
from support.deadlines import HANG_SECONDS
from support.simulators import DEPLOYMENT, NAMESPACE, fail, simulated

pytestmark = pytest.mark.anyio
GATEWAY, DOCLING = GroupKind("networking.istio.io", "Gateway"), GroupKind("docling.io", "DoclingServe")
VARIANT = "DataScienceCluster+DoclingServe"
OURS = ResourceKey(*DATA_SCIENCE_CLUSTER, "", "default-dsc")


def cluster_with(state: str = "Managed") -> Manifest:
    kserve = {"managementState": "Managed", "serving": {"managementState": state, "name": NAMESPACE}}
    return {
        "apiVersion": "datasciencecluster.opendatahub.io/v1",
        "kind": "DataScienceCluster",
        "metadata": {"name": "default-dsc"},
        "spec": {"components": {"kserve": kserve, "ray": {"managementState": "Removed"}}},
    }


def gateway(name: str) -> Manifest:
    port = {"name": "http", "number": 80, "protocol": "HTTP"}
    return {
        "apiVersion": "networking.istio.io/v1",
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"selector": {"istio": "ingressgateway"}, "servers": [{"hosts": ["a.example.com"], "port": port}]},
    }


def docling(**spec: Any) -> Manifest:
    return {
        "apiVersion": "docling.io/v1alpha1",
        "kind": "DoclingServe",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": spec,
    }


def owners(live: Manifest, field: str) -> list[str]:
    return [entry["manager"] for entry in live["metadata"]["managedFields"] if f"f:{field}" in str(entry["fieldsV1"])]


async def test_operator_rewrites_its_own_gateways_and_no_others(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster, VARIANT) as world:
        await cluster.create(gateway("knative-local-gateway"))
        await cluster.create(gateway("of-a-team"))
        await cluster.create(cluster_with())
        rewritten = {"knative": "ingressgateway"}
        live = await world.becomes(
            GATEWAY, lambda manifest: manifest["spec"]["selector"] == rewritten, "knative-local-gateway"
        )
        await world.patch(GATEWAY, {"spec": {"selector": {"istio": "mine"}}}, "knative-local-gateway")
        await world.becomes(
            GATEWAY, lambda manifest: manifest["spec"]["selector"] == rewritten, "knative-local-gateway"
        )
        team_gateway = await world.get(GATEWAY, "of-a-team")
    assert live["spec"]["servers"][0]["hosts"] == ["*"] and "opendatahub-operator" in owners(live, "servers")
    assert team_gateway["spec"] == gateway("of-a-team")["spec"]


async def test_gateways_are_left_alone_if_serving_is_unmanaged(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster, VARIANT) as world:
        await cluster.create(gateway("knative-local-gateway"))
        await cluster.create(cluster_with("Unmanaged"))
        await _becomes(cluster, "Ready")
        await world.settled()
        live = await world.get(GATEWAY, "knative-local-gateway")
    assert live["spec"] == gateway("knative-local-gateway")["spec"]


async def test_data_science_cluster_is_ready_unless_a_fault_is_injected(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster, VARIANT):
        await cluster.create(cluster_with())
        live = await _becomes(cluster, "Ready")
        assert live["status"]["installedComponents"] == {"kserve": True, "ray": False}
        assert live["status"]["conditions"][0]["message"] == "simulated by argosy"
        await cluster.patch(OURS, {"metadata": {"annotations": fail("NotReady")}})
        await _becomes(cluster, "Not Ready")


async def test_docling_operator_sets_and_owns_a_minimum_of_two_replicas(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster, VARIANT + "+Deployment+ReplicaSet+Pod") as world:
        await cluster.create(docling(replicas=1))
        live = await world.becomes(DOCLING, lambda manifest: manifest["status"]["phase"] == "Ready")
        live_deployment = await world.get(DEPLOYMENT)
        await world.patch(DOCLING, {"spec": {"replicas": 3}})
        await world.becomes(DOCLING, lambda manifest: manifest["status"]["readyReplicas"] == 3)
    assert live["spec"]["replicas"] == 2 and "docling-operator" in owners(live, "replicas")
    assert (
        live_deployment["spec"]["replicas"] == 2
        and live_deployment["metadata"]["ownerReferences"][0]["kind"] == "DoclingServe"
    )


def test_only_the_ai_variant_has_these_operators() -> None:
    assert {DATA_SCIENCE_CLUSTER, DOCLING} == set(OPENSHIFT_AI_KINDS) - set(DEFAULT_KINDS)
    assert {definition["metadata"]["name"] for definition in make("ai").definitions} >= {
        "clusterpolicies.nvidia.com", "doclingserves.docling.io", "gateways.networking.istio.io"
    }  # fmt: skip


async def _becomes(cluster: EmbeddedCluster, phase: str) -> Manifest:
    async with asyncio.timeout(HANG_SECONDS):
        while True:
            live = await cluster.get(OURS) or {}
            if (live.get("status") or {}).get("phase") == phase:
                return live
            await asyncio.sleep(0.01)
