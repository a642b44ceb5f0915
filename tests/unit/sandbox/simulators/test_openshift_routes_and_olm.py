"""Simulated OpenShift Routes and operators from OLM catalogs on the embedded cluster."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import CLUSTER_SERVICE_VERSION, ROUTE, SUBSCRIPTION
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.serving_manifests import PLAN, assess_health, modelled, operator_group, route, subscription
from support.simulators import WHOLE, fail, key, simulated

pytestmark = pytest.mark.anyio
OPERATORS = (SUBSCRIPTION, PLAN, CLUSTER_SERVICE_VERSION)
NAME = "rhods-operator.v1.0.0"


def admitted(live: Manifest) -> Manifest:
    condition: Manifest = live["status"]["ingress"][0]["conditions"][0]
    return condition


async def test_route_without_a_host_gets_a_generated_host(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, ROUTE) as world:
        created = await cluster.create(route())
        assert created["spec"]["host"] == "web-default.apps.argosy.invalid"
        live = await world.becomes(ROUTE, lambda manifest: admitted(manifest)["status"] == "True")
    assert assess_health(live) == ("Healthy", "Route is admitted")
    assert "simulated" in admitted(live)["message"]
    owners = [entry["manager"] for entry in live["metadata"]["managedFields"] if "f:host" in str(entry["fieldsV1"])]
    assert "openshift-apiserver" in owners


async def test_route_keeps_its_generated_host_when_it_is_replaced(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, ROUTE) as world:
        await cluster.create(route())
        live = await world.becomes(ROUTE, lambda manifest: admitted(manifest)["status"] == "True")
        again = {**live, "spec": {"to": {"kind": "Service", "name": "other"}}}
        changed = await cluster.replace(again)
    assert changed["spec"]["host"] == "web-default.apps.argosy.invalid" and changed["spec"]["to"]["name"] == "other"


async def test_newer_route_with_a_taken_host_is_rejected_until_the_host_is_free(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, ROUTE) as world:
        await cluster.create(route("one", host="models.example.com"))
        await world.becomes(ROUTE, lambda manifest: admitted(manifest)["status"] == "True", "one")
        await cluster.create(route("two", host="models.example.com"))
        live = await world.becomes(ROUTE, lambda manifest: admitted(manifest)["status"] == "False", "two")
        assert assess_health(live)[0] == "Degraded" and "already exposes models.example.com" in assess_health(live)[1]
        await cluster.delete(key(ROUTE, "one"))
        await world.becomes(ROUTE, lambda manifest: admitted(manifest)["status"] == "True", "two")


async def test_subscription_installs_its_operator(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *OPERATORS) as world:
        await cluster.create(operator_group())
        await cluster.create(subscription())
        live = await world.becomes(SUBSCRIPTION, lambda manifest: manifest["status"]["state"] == "AtLatestKnown")
        version = await world.get(CLUSTER_SERVICE_VERSION, NAME)
        plan = await world.get(PLAN, live["status"]["installPlanRef"]["name"])
        before = await world.settled()
        assert await world.settled() == before
    assert assess_health(live) == ("Healthy", f"Installed: {NAME}")
    assert assess_health(version) == ("Healthy", "install strategy completed with no errors (simulated by argosy)")
    assert assess_health(plan) == ("Healthy", "InstallPlan is complete")


async def test_subscription_installs_its_starting_csv(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *OPERATORS) as world:
        await cluster.create(operator_group())
        await cluster.create(subscription(startingCSV="rhods-operator.2.10.0"))
        live = await world.becomes(SUBSCRIPTION, lambda manifest: manifest["status"]["installedCSV"])
        assert assess_health(live) == ("Healthy", "Installed: rhods-operator.2.10.0")
        assert (await world.get(CLUSTER_SERVICE_VERSION, "rhods-operator.2.10.0"))["spec"]["version"] == "2.10.0"


async def test_install_plan_waits_for_manual_approval(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *OPERATORS) as world:
        await cluster.create(operator_group())
        await cluster.create(subscription(installPlanApproval="Manual"))
        live = await world.becomes(
            SUBSCRIPTION, lambda manifest: "RequiresApproval" in str(manifest["status"]["conditions"])
        )
        name = live["status"]["installPlanRef"]["name"]
        plan = await world.becomes(
            PLAN, lambda install_plan: install_plan["status"]["phase"] == "RequiresApproval", name
        )
        assert assess_health(plan) == ("Suspended", "InstallPlan waits for approval")
        assert assess_health(live)[0] == "Progressing"
        await world.patch(PLAN, {"spec": {"approved": True}}, name)
        await world.becomes(SUBSCRIPTION, lambda manifest: manifest["status"]["state"] == "AtLatestKnown")


async def test_subscription_installs_nothing_without_an_operator_group(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *OPERATORS) as world:
        await cluster.create(subscription())
        live = await world.becomes(
            SUBSCRIPTION, lambda manifest: "InstallPlanFailed" in str(manifest["status"]["conditions"])
        )
        assert assess_health(live)[0] == "Degraded" and "no operator group found" in assess_health(live)[1]
        await cluster.create(operator_group())
        await world.becomes(SUBSCRIPTION, lambda manifest: manifest["status"]["state"] == "AtLatestKnown")


async def test_failed_operator_is_degraded_until_the_fault_is_removed(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *OPERATORS) as world:
        await cluster.create(operator_group())
        await cluster.create(subscription(fail("CrashLoop")))
        version = await world.becomes(
            CLUSTER_SERVICE_VERSION, lambda service_version: service_version["status"]["phase"] == "Failed", NAME
        )
        assert assess_health(version)[0] == "Degraded" and "simulated by argosy" in assess_health(version)[1]
        await world.patch(SUBSCRIPTION, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(SUBSCRIPTION, lambda manifest: manifest["status"]["state"] == "AtLatestKnown")


async def test_plain_cluster_has_no_routes(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster, "plain"):
        assert ROUTE not in await cluster.kinds()


async def test_whole_simulator_set_serves_the_openshift_kinds(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster, WHOLE):
        kinds = await cluster.kinds()
        assert {ROUTE, SUBSCRIPTION, CLUSTER_SERVICE_VERSION} <= set(kinds)


async def test_unknown_simulator_kind_error_suggests_kinds(cluster: EmbeddedCluster) -> None:
    with pytest.raises(UserError, match=r"no simulator for kind Rout;.*Route"):
        async with simulated(cluster, "Rout"):
            pass
