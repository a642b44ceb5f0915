"""Simulated Services, Endpoints and Ingresses on the embedded cluster."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.endpoint_manifests import build_endpoint_slices, build_endpoints
from support.simulators import (
    DEPLOYMENT,
    World,
    build_manifest,
    condition,
    deployment,
    fail,
    health,
    leaping,
    simulated,
)

SERVICE, ENDPOINTS = GroupKind("", "Service"), GroupKind("", "Endpoints")
SLICE, INGRESS = GroupKind("discovery.k8s.io", "EndpointSlice"), GroupKind("networking.k8s.io", "Ingress")


def service(**spec: Any) -> Manifest:
    return build_manifest(
        "v1", "Service", {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}], **spec}
    )


def ingress(annotations: dict[str, str] | None = None) -> Manifest:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    manifest = build_manifest("networking.k8s.io/v1", "Ingress", {"defaultBackend": backend})
    manifest["metadata"]["annotations"] = annotations or {}
    return manifest


def addresses(endpoints: Manifest, field: str = "addresses") -> int:
    return sum(len(subset.get(field) or ()) for subset in endpoints.get("subsets") or ())


async def slices(world: World) -> list[Manifest]:
    return [
        endpoint_slice
        for endpoint_slice in await world.all(SLICE)
        if endpoint_slice["metadata"]["namespace"] == "default"
    ]


@pytest.mark.anyio
async def test_endpoints_follow_the_ready_pods_of_a_service(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(service())
        await world.becomes(ENDPOINTS, lambda manifest: manifest["metadata"]["name"] and not addresses(manifest))
        await cluster.create(deployment(3))
        endpoints = await world.becomes(ENDPOINTS, lambda manifest: addresses(manifest) == 3)
        (subset,) = endpoints["subsets"]
        assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]
        ips = {pod["status"]["podIP"] for pod in await world.pods()}
        assert {address["ip"] for address in subset["addresses"]} == ips
        assert endpoints["metadata"]["annotations"]["sandbox.argosy.dev/simulated"] == "simulated by argosy"
        await world.settled()
        (only,) = await slices(world)
        assert only["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
        assert [endpoint["conditions"]["ready"] for endpoint in only["endpoints"]] == [True] * 3
        await world.patch(DEPLOYMENT, {"metadata": {"annotations": fail("NotReady")}, "spec": {"replicas": 2}})
        await world.becomes(
            ENDPOINTS, lambda manifest: (addresses(manifest), addresses(manifest, "notReadyAddresses")) == (0, 2)
        )
        before = await world.settled()
        assert await world.settled() == before


@pytest.mark.anyio
async def test_endpoints_are_deleted_with_their_service_but_manual_ones_stay(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(service())
        await world.becomes(ENDPOINTS, lambda manifest: manifest["metadata"]["name"])
        bare = service(selector=None)
        bare["metadata"]["name"] = "bare"
        await cluster.create(bare)
        manual_endpoints = {
            "apiVersion": "v1",
            "kind": "Endpoints",
            "metadata": {"name": "bare", "namespace": "default"},
        }
        await cluster.create({**manual_endpoints, "subsets": [{"addresses": [{"ip": "192.0.2.99"}]}]})
        await cluster.delete(ResourceKey("", "Service", "default", "web"))
        await cluster.delete(ResourceKey("", "Service", "default", "bare"))
        await world.settled()
        names = [endpoints["metadata"]["name"] for endpoints in await world.all(ENDPOINTS)]
        assert names == ["bare"] and await slices(world) == []


@pytest.mark.anyio
async def test_load_balancer_service_gets_an_address_marked_as_simulated(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(service(type="LoadBalancer"))
        live = await world.becomes(SERVICE, lambda manifest: manifest["status"]["loadBalancer"]["ingress"])
        assert live["status"]["loadBalancer"]["ingress"][0]["ip"].startswith("203.0.113.")
        message = condition(live, "sandbox.argosy.dev/Simulated")["message"]
        assert message == "no load balancer serves this address (simulated by argosy)"
        assert health(live)[0] == "Healthy" and live["spec"]["clusterIP"].startswith("10.96.")
        await world.patch(SERVICE, {"spec": {"type": "ClusterIP"}})
        await world.becomes(SERVICE, lambda manifest: not manifest["status"]["loadBalancer"].get("ingress"))


@pytest.mark.anyio
async def test_faults_withhold_or_delay_external_addresses(cluster: EmbeddedCluster) -> None:
    async with leaping(cluster) as (world, clock):
        await cluster.create(ingress(fail("NotReady")))
        slow = service(type="LoadBalancer")
        slow["metadata"]["annotations"] = fail("Slow")
        await cluster.create(slow)
        await world.settled()
        assert health(await world.get(INGRESS))[0] == "Progressing" == health(await world.get(SERVICE))[0]
        clock.leap(31)
        await world.becomes(SERVICE, lambda manifest: health(manifest)[0] == "Healthy")
        assert health(await world.get(INGRESS))[0] == "Progressing"
        await world.patch(INGRESS, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(INGRESS, lambda manifest: health(manifest)[0] == "Healthy")


@pytest.mark.anyio
async def test_ingress_gets_an_address_marked_as_simulated(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster) as world:
        await cluster.create(ingress())
        live = await world.becomes(INGRESS, lambda manifest: health(manifest)[0] == "Healthy")
        (address,) = live["status"]["loadBalancer"]["ingress"]
        assert address["ip"].startswith("203.0.113.") and address["hostname"] == "simulated.sandbox.argosy.dev"
        await world.told("Sync: Scheduled for sync (simulated by argosy)")


# -- pure functions --------------------------------------------------------------------------------------------------


def served(**spec: Any) -> Manifest:
    manifest = service(**spec)
    manifest["metadata"] |= {"uid": "u", "labels": {"app": "web"}}
    return manifest


def running(name: str, *, ready: bool = True, port: str = "http", **spec: Any) -> Manifest:
    container = {"name": "main", "ports": [{"name": port, "containerPort": 9000}]}
    is_ready = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"containers": [container], "nodeName": "sandbox", **spec},
        "status": {"podIP": f"10.0.0.{len(name)}", "phase": "Running", "conditions": [is_ready]},
    }


def test_named_target_port_is_resolved_per_pod() -> None:
    named = served(ports=[{"name": "web", "port": 80, "targetPort": "http"}])
    endpoints = build_endpoints(named, [running("a"), running("bb", port="other")])
    assert [subset.get("ports") for subset in endpoints["subsets"]] == [
        None,
        [{"name": "web", "port": 9000, "protocol": "TCP"}],
    ]


def test_not_ready_pods_are_separate_unless_the_service_publishes_them() -> None:
    pods = [running("a"), running("bb", ready=False)]
    endpoints = build_endpoints(served(), pods)
    assert (addresses(endpoints), addresses(endpoints, "notReadyAddresses")) == (1, 1)
    assert addresses(build_endpoints(served(publishNotReadyAddresses=True), pods)) == 2


def test_terminating_stateful_pod_is_only_in_slices_with_its_hostname() -> None:
    dying = running("a", hostname="web-0", subdomain="web")
    dying["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert build_endpoints(served(), [dying])["subsets"] is None
    (only,) = build_endpoint_slices(served(clusterIP="None"), [dying])
    (endpoint,) = only["endpoints"]
    assert endpoint["conditions"] == {"ready": False, "serving": True, "terminating": True}
    assert endpoint["hostname"] == "web-0" and "service.kubernetes.io/headless" in only["metadata"]["labels"]


def test_endpoint_slices_hold_at_most_100_endpoints() -> None:
    made_for = build_endpoint_slices(served(), [running(f"p{number:03}") for number in range(250)])
    assert [len(endpoint_slice["endpoints"]) for endpoint_slice in made_for] == [100, 100, 50]
    assert len({endpoint_slice["metadata"]["name"] for endpoint_slice in made_for}) == 3
