"""Routes and operators from catalogs, as the simulators play OpenShift on the embedded cluster."""

from __future__ import annotations

import pytest

from argosy.errors import UserError
from argosy.kube.objects import Manifest
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from support.serving_manifests import (
    PLAN,
    ROUTE,
    SUBSCRIPTION,
    VERSION,
    judged,
    modelled,
    operator_group,
    route,
    subscription,
)
from support.simulators import WHOLE, fail, key, simulated

pytestmark = pytest.mark.anyio
OPERATORS = (SUBSCRIPTION, PLAN, VERSION)
NAME = "rhods-operator.v1.0.0"


def admitted(live: Manifest) -> Manifest:
    found: Manifest = live["status"]["ingress"][0]["conditions"][0]
    return found


async def test_a_route_without_a_host_gets_one_when_it_is_made(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, ROUTE) as world:
        made = await cluster.create(route())
        assert made["spec"]["host"] == "web-default.apps.argosy.invalid"
        live = await world.becomes(ROUTE, lambda it: admitted(it)["status"] == "True")
    assert judged(live) == ("Healthy", "Route is admitted")
    assert "simulated" in admitted(live)["message"]
    owners = [each["manager"] for each in live["metadata"]["managedFields"] if "f:host" in str(each["fieldsV1"])]
    assert "openshift-apiserver" in owners


async def test_a_route_keeps_the_host_that_it_was_given_when_it_is_applied_again(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, ROUTE) as world:
        await cluster.create(route())
        live = await world.becomes(ROUTE, lambda it: admitted(it)["status"] == "True")
        again = {**live, "spec": {"to": {"kind": "Service", "name": "other"}}}
        changed = await cluster.replace(again)
    assert changed["spec"]["host"] == "web-default.apps.argosy.invalid" and changed["spec"]["to"]["name"] == "other"


async def test_a_host_is_refused_to_the_younger_route_until_the_older_is_gone(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, ROUTE) as world:
        await cluster.create(route("one", host="models.example.com"))
        await world.becomes(ROUTE, lambda it: admitted(it)["status"] == "True", "one")
        await cluster.create(route("two", host="models.example.com"))
        live = await world.becomes(ROUTE, lambda it: admitted(it)["status"] == "False", "two")
        assert judged(live)[0] == "Degraded" and "already exposes models.example.com" in judged(live)[1]
        await cluster.delete(key(ROUTE, "one"))
        await world.becomes(ROUTE, lambda it: admitted(it)["status"] == "True", "two")


async def test_a_subscription_installs_its_operator(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *OPERATORS) as world:
        await cluster.create(operator_group())
        await cluster.create(subscription())
        live = await world.becomes(SUBSCRIPTION, lambda it: it["status"]["state"] == "AtLatestKnown")
        version = await world.get(VERSION, NAME)
        plan = await world.get(PLAN, live["status"]["installPlanRef"]["name"])
        before = await world.settled()
        assert await world.settled() == before
    assert judged(live) == ("Healthy", f"Installed: {NAME}")
    assert judged(version) == ("Healthy", "install strategy completed with no errors (simulated by argosy)")
    assert judged(plan) == ("Healthy", "InstallPlan is complete")


async def test_a_subscription_that_asks_for_a_version_gets_that_one(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *OPERATORS) as world:
        await cluster.create(operator_group())
        await cluster.create(subscription(startingCSV="rhods-operator.2.10.0"))
        live = await world.becomes(SUBSCRIPTION, lambda it: it["status"]["installedCSV"])
        assert judged(live) == ("Healthy", "Installed: rhods-operator.2.10.0")
        assert (await world.get(VERSION, "rhods-operator.2.10.0"))["spec"]["version"] == "2.10.0"


async def test_an_install_plan_waits_for_approval_where_that_is_manual(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *OPERATORS) as world:
        await cluster.create(operator_group())
        await cluster.create(subscription(installPlanApproval="Manual"))
        live = await world.becomes(SUBSCRIPTION, lambda it: "RequiresApproval" in str(it["status"]["conditions"]))
        name = live["status"]["installPlanRef"]["name"]
        plan = await world.becomes(PLAN, lambda it: it["status"]["phase"] == "RequiresApproval", name)
        assert judged(plan) == ("Suspended", "InstallPlan waits for approval")
        assert judged(live)[0] == "Progressing"
        await world.patch(PLAN, {"spec": {"approved": True}}, name)
        await world.becomes(SUBSCRIPTION, lambda it: it["status"]["state"] == "AtLatestKnown")


async def test_without_an_operator_group_nothing_is_installed(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *OPERATORS) as world:
        await cluster.create(subscription())
        live = await world.becomes(SUBSCRIPTION, lambda it: "InstallPlanFailed" in str(it["status"]["conditions"]))
        assert judged(live)[0] == "Degraded" and "no operator group found" in judged(live)[1]
        await cluster.create(operator_group())
        await world.becomes(SUBSCRIPTION, lambda it: it["status"]["state"] == "AtLatestKnown")


async def test_an_operator_that_fails_is_degraded_until_the_wish_is_gone(cluster: EmbeddedCluster) -> None:
    async with modelled(cluster, *OPERATORS) as world:
        await cluster.create(operator_group())
        await cluster.create(subscription(fail("CrashLoop")))
        version = await world.becomes(VERSION, lambda it: it["status"]["phase"] == "Failed", NAME)
        assert judged(version)[0] == "Degraded" and "simulated by argosy" in judged(version)[1]
        await world.patch(SUBSCRIPTION, {"metadata": {"annotations": {"sandbox.argosy.dev/fail": None}}})
        await world.becomes(SUBSCRIPTION, lambda it: it["status"]["state"] == "AtLatestKnown")


async def test_a_cluster_that_is_no_openshift_has_no_routes(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster, "plain"):
        assert ROUTE not in await cluster.kinds()


async def test_everything_together_says_what_it_plays(cluster: EmbeddedCluster) -> None:
    async with simulated(cluster, WHOLE):
        kinds = await cluster.kinds()
        assert {ROUTE, SUBSCRIPTION, VERSION} <= set(kinds)


async def test_an_unknown_kind_is_told_which_there_are(cluster: EmbeddedCluster) -> None:
    with pytest.raises(UserError, match=r"no simulator for kind Rout;.*Route"):
        async with simulated(cluster, "Rout"):
            pass
