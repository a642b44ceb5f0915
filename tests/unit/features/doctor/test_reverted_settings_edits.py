"""`argosy doctor` on the settings of an Argo CD with operator: reverted edits, and health checks of argosy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

import pytest

from argosy.features.doctor.forbidden_tolerant_reads import OptionalReads
from argosy.features.doctor.installation_state import read_installation
from argosy.features.health_checks.argocd_install.apply_steps import (
    ApplyOutcome,
    HealthApplyRequest,
    apply_health_checks,
)
from argosy.features.health_checks.argocd_install.merge import DEFAULT_KINDS, build_requested_checks
from argosy.gitops.analysis.rule_violation import Violation
from argosy.gitops.health.bundled_rules import load_profile_rules
from argosy.kube.controller.addon_loader import run_addons
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.sandbox.apiserver.in_process_client import EmbeddedCluster
from argosy.sandbox.simulators.openshift_gitops import make as make_operator
from support.deadlines import wait_until_async

pytestmark = pytest.mark.anyio
GITOPS = "openshift-gitops"
RESOURCE = ResourceKey("argoproj.io", "ArgoCD", GITOPS, GITOPS)
SETTINGS = ResourceKey("", "ConfigMap", GITOPS, "argocd-cm")
POLICY = ResourceKey("", "ConfigMap", GITOPS, "argocd-rbac-cm")
KEY = "resource.customizations.health.PersistentVolumeClaim"
MODEL_KEY = "resource.customizations.health.serving.kserve.io_InferenceService"
KINDS = (*DEFAULT_KINDS, GroupKind("mlops.mlops.dev", "NotebookValidationJob"), GroupKind("", "PersistentVolumeClaim"))


async def data(cluster: EmbeddedCluster, key: ResourceKey = SETTINGS) -> dict[str, str]:
    return dict(((await cluster.get(key)) or {}).get("data") or {})


@pytest.fixture
async def operated(cluster: EmbeddedCluster) -> AsyncIterator[EmbeddedCluster]:
    async with run_addons([make_operator("")], cluster, on_failure=lambda: None):
        await wait_until_async(lambda: _is_written(cluster))
        yield cluster


async def _is_written(cluster: EmbeddedCluster) -> bool:
    status = ((await cluster.get(RESOURCE)) or {}).get("status") or {}
    return status.get("phase") == "Available" and bool(await data(cluster)) and bool(await data(cluster, POLICY))


async def examine(cluster: EmbeddedCluster) -> Mapping[str, tuple[Violation, ...]]:
    return (await read_installation(OptionalReads(cluster), GITOPS)).violations


async def edit(cluster: EmbeddedCluster, values: Mapping[str, str], key: ResourceKey = SETTINGS) -> None:
    """Edit like `oc patch` or `oc edit`, which leave no trace in the object; wait until the operator reverts it."""
    before = await data(cluster, key)
    await cluster.patch(key, {"data": values}, manager="kubectl-edit")

    async def is_taken_back() -> bool:
        return await data(cluster, key) == before

    await wait_until_async(is_taken_back)


async def install(cluster: EmbeddedCluster, profile: str = "strict") -> None:
    request = HealthApplyRequest(build_requested_checks(KINDS, profile), is_forced=True, refresh_timeout_seconds=0)
    assert await apply_health_checks(cluster, request, lambda line: None, lambda question: "y") is ApplyOutcome.DONE


async def wait_for_findings(cluster: EmbeddedCluster, count: int = 1) -> list[tuple[str, str]]:
    async def is_told() -> bool:
        return len((await examine(cluster)).get("AGY405", ())) >= count

    await wait_until_async(is_told)
    return [(sight.message, sight.fix) for sight in (await examine(cluster))["AGY405"]]


async def test_reverted_edit_of_argocd_cm_is_explained_and_points_to_the_cr(
    operated: EmbeddedCluster,
) -> None:
    await edit(operated, {KEY: "return {}"})
    [(cause, way)] = await wait_for_findings(operated)
    assert cause == (
        f"{KEY} of argocd-cm was edited by hand, and the operator has taken the edit back: it writes argocd-cm"
        f" from the ArgoCD CR {GITOPS}"
    )
    assert (
        way == f"expected behaviour, use the CR: argosy health apply, or spec.resourceHealthChecks of ArgoCD {GITOPS}"
    )


@pytest.mark.tier("all")
async def test_reverted_edits_of_health_check_and_url_are_explained(operated: EmbeddedCluster) -> None:
    await install(operated)
    await edit(operated, {MODEL_KEY: "return {}", "url": "https://elsewhere.example.com"})
    remedies = dict(await wait_for_findings(operated, count=2))
    assert {cause.partition(" of ")[0] for cause in remedies} == {MODEL_KEY, "url"}
    assert f"expected behaviour, use the CR: spec.extraConfig of ArgoCD {GITOPS}" in remedies.values()


@pytest.mark.tier("all")
async def test_reverted_edit_of_argocd_rbac_cm_is_explained(operated: EmbeddedCluster) -> None:
    await edit(operated, {"policy.default": "role:admin"}, POLICY)
    [(cause, way)] = await wait_for_findings(operated)
    assert cause.startswith("policy.default of argocd-rbac-cm was edited by hand")
    assert way == f"expected behaviour, use the CR: spec.rbac of ArgoCD {GITOPS}"


async def test_change_of_the_argocd_cr_is_not_reported_as_manual_edit(operated: EmbeddedCluster) -> None:
    await install(operated)
    await operated.patch(RESOURCE, {"spec": {"resourceHealthChecks": None}})

    async def is_gone() -> bool:
        return MODEL_KEY not in await data(operated)

    await wait_until_async(is_gone)
    assert (await examine(operated)).get("AGY405", ()) == ()


@pytest.mark.parametrize("profile", ["strict", "lenient"])
async def test_health_checks_installed_by_argosy_cause_no_findings(operated: EmbeddedCluster, profile: str) -> None:
    await install(operated, profile)
    assert dict(await examine(operated)) == {}


async def test_modified_argosy_health_check_is_reported(operated: EmbeddedCluster) -> None:
    changed = load_profile_rules("lenient")[DEFAULT_KINDS[0]].script + "-- ours\n"
    entry = {"group": "serving.kserve.io", "kind": "InferenceService", "check": changed}
    await operated.patch(RESOURCE, {"spec": {"resourceHealthChecks": [entry]}})
    assert "AGY402" in await examine(operated)


@pytest.mark.tier("all")
async def test_only_modified_argosy_checks_in_plain_argocd_cm_are_reported(cluster: EmbeddedCluster) -> None:
    async with run_addons([make_operator("plain")], cluster, on_failure=lambda: None):
        await install(cluster, "lenient")
        assert dict((await read_installation(OptionalReads(cluster), "argocd")).violations) == {}
        key = ResourceKey("", "ConfigMap", "argocd", "argocd-cm")
        await cluster.patch(key, {"data": {MODEL_KEY: 'return {status = "Healthy"}'}})
        assert "AGY402" in (await read_installation(OptionalReads(cluster), "argocd")).violations
