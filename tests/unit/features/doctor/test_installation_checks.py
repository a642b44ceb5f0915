"""Installation checks of `argosy doctor`: which controller delivers, ApplicationSets and confinement."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from argosy.annotations import SIMULATED
from argosy.features.doctor.forbidden_tolerant_reads import OptionalReads
from argosy.features.doctor.installation_checks import CheckState, InstallationCheck, run_installation_checks
from argosy.features.doctor.installation_state import read_installation
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.control_namespace import LEADER_LEASE_NAME
from argosy.gitops.policy.applicationset_controller_detection import build_no_controller_condition
from argosy.isolation.confinement_requirement import render_refusal
from argosy.kube.client import Cluster
from argosy.kube.resource_key import ResourceKey
from argosy.kube.schema.bundled_crds import load_definition
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster

CONTROL = "argocd"
NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)
CONTROLLER = "argocd-application-controller"


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with EmbeddedCluster.open() as opened:
        await opened.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROL}})
        yield opened


async def create_lease(cluster: Cluster, holder: str, ago: float) -> None:
    """Create the leader Lease; no holder means that the controller has stopped and released it."""
    spec: dict[str, Any] = {"leaseDurationSeconds": 15, "renewTime": written(ago, "microseconds")}
    if holder:
        spec["holderIdentity"] = holder
    metadata = {"name": LEADER_LEASE_NAME, "namespace": CONTROL}
    await cluster.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})


async def create_argocd(cluster: Cluster, *, is_simulated: bool) -> None:
    labels = {"app.kubernetes.io/name": CONTROLLER}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "argocd:v3.2.4"}]}}
    spec = {"serviceName": "x", "selector": {"matchLabels": labels}, "template": template}
    annotations = {SIMULATED: "argocd_operator"} if is_simulated else {}
    metadata = {"name": CONTROLLER, "namespace": CONTROL, "labels": labels, "annotations": annotations}
    await cluster.create({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec})
    key = ResourceKey("apps", "StatefulSet", CONTROL, CONTROLLER)
    await cluster.patch(key, {"status": {"replicas": 1, "readyReplicas": 1}}, subresource="status")


def written(ago: float, parts: str = "seconds") -> str:
    return (NOW - timedelta(seconds=ago)).isoformat(timespec=parts).replace("+00:00", "Z")


def application(reconciled: float) -> Application:
    source = {"repoURL": "https://git.example.com/a.git", "path": "a"}
    spec = {"source": source, "destination": {"namespace": "ml"}, "project": "default"}
    metadata = {"name": "models", "namespace": CONTROL}
    return read_application({"metadata": metadata, "spec": spec, "status": {"reconciledAt": written(reconciled)}})


async def controllers(cluster: Cluster, *apps: Application) -> InstallationCheck:
    asking = OptionalReads(cluster)
    view = (await read_installation(asking, CONTROL)).view
    return next(
        check for check in await run_installation_checks(asking, view, NOW, apps) if check.name == "controllers"
    )


async def create_application_set(cluster: Cluster) -> None:
    await cluster.create(load_definition("applicationsets.argoproj.io"))
    spec = {"generators": [{"list": {"elements": []}}], "template": {"metadata": {"name": "x"}, "spec": {}}}
    metadata = {"name": "teams", "namespace": CONTROL}
    api = "argoproj.io/v1alpha1"
    await cluster.create({"apiVersion": api, "kind": "ApplicationSet", "metadata": metadata, "spec": spec})


async def unexpanded(cluster: Cluster) -> tuple[str, ...]:
    return (await read_installation(OptionalReads(cluster), CONTROL)).view.unexpanded_sets


async def test_applicationset_without_a_controller_is_reported(cluster: Cluster) -> None:
    assert await unexpanded(cluster) == ()
    await create_application_set(cluster)
    assert await unexpanded(cluster) == ("teams",)
    key = ResourceKey("argoproj.io", "ApplicationSet", CONTROL, "teams")
    own = {"conditions": [build_no_controller_condition("2026-01-01T00:00:00Z")]}
    await cluster.patch(key, {"status": own}, subresource="status")
    assert await unexpanded(cluster) == ("teams",), "what argosy writes itself is no sign of a controller"
    labels = {"app.kubernetes.io/name": "argocd-applicationset-controller"}
    pod = {"containers": [{"name": "main", "image": "argocd:v3.2.4"}]}
    metadata = {"name": "argocd-applicationset-controller-1", "namespace": CONTROL, "labels": labels}
    await cluster.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})
    assert await unexpanded(cluster) == ()


async def test_simulated_argocd_does_not_count_as_an_engine(cluster: Cluster) -> None:
    await create_argocd(cluster, is_simulated=True)
    check = await controllers(cluster)
    assert check.mark is CheckState.BAD
    assert check.text == (
        "no engine delivers: the Argo CD here is simulated, and no argosy controller runs; start argosy controller"
    )


async def test_released_lease_means_no_engine_delivers(cluster: Cluster) -> None:
    await create_lease(cluster, "", 30)
    check = await controllers(cluster, application(40))
    assert check.mark is CheckState.BAD
    assert check.text == "no engine delivers: no argosy controller and no Argo CD runs; start argosy controller"


async def test_cluster_without_any_engine_suggests_starting_a_controller(cluster: Cluster) -> None:
    check = await controllers(cluster)
    assert (check.mark, "start argosy controller" in check.text) == (CheckState.BAD, True)


async def test_killed_controller_is_bad_and_suggests_a_restart(cluster: Cluster) -> None:
    await create_lease(cluster, "killed", 420)
    check = await controllers(cluster)
    assert (check.mark, check.text) == (
        CheckState.BAD, "argosy's controller gave its last sign 7m00s ago: start argosy controller",
    )  # fmt: skip


async def test_controller_with_missed_lease_renewals_is_unknown(cluster: Cluster) -> None:
    await create_lease(cluster, "killed", 25)
    check = await controllers(cluster)
    assert check.mark is CheckState.UNKNOWN
    assert check.text == ("no sign of life from argosy's controller for 25s: does it run? Else start argosy controller")


@pytest.mark.parametrize("is_simulated", [True, False])
async def test_controller_holding_the_lease_delivers_beside_simulated_argocd(
    cluster: Cluster, is_simulated: bool
) -> None:
    await create_lease(cluster, "me", 1)
    if is_simulated:
        await create_argocd(cluster, is_simulated=True)
    check = await controllers(cluster)
    assert (check.mark, check.text) == (CheckState.OK, "argosy delivers")


async def test_real_argocd_delivers(cluster: Cluster) -> None:
    await create_argocd(cluster, is_simulated=False)
    await create_lease(cluster, "", 30)
    check = await controllers(cluster)
    assert (check.mark, check.text) == (CheckState.OK, "Argo CD 3.2.4 runs")


async def test_recent_reconcile_time_indicates_an_unseen_controller(
    cluster: Cluster,
) -> None:
    check = await controllers(cluster, application(40))
    assert (check.mark, check.text) == (CheckState.OK, "a controller runs (last sign 40s ago)")


SAID = f"chart: Helm cannot be run: {render_refusal(['files'])}"


@pytest.mark.parametrize(
    "status",
    [
        {"conditions": [{"type": "ComparisonError", "message": SAID}]},
        {"resources": [{"health": {"status": "Unknown", "message": SAID}}]},
    ],
)
async def test_missing_confinement_is_bad_and_names_the_setting(cluster: Cluster, status: dict[str, Any]) -> None:
    well = application(10.0)
    asking = OptionalReads(cluster)
    view = (await read_installation(asking, CONTROL)).view
    assert not [
        check for check in await run_installation_checks(asking, view, NOW, [well]) if check.name == "confinement"
    ]
    ill = replace(well, status={**well.status, **status})
    (check,) = [
        check for check in await run_installation_checks(asking, view, NOW, [ill]) if check.name == "confinement"
    ]
    assert check.mark is CheckState.BAD and check.text.startswith(
        "argosy's controller refuses untrusted code of models: "
    )
    assert "cannot confine files" in check.text and "ARGOSY_CONFINE=best-effort" in check.text
