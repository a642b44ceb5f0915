"""Executes a setup plan, step by step.

In: a cluster and a plan. Out: a callback per change. Never: writes an object that is not in the plan; overwrites a
change that was made after the plan.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from argosy.annotations import PART_OF
from argosy.errors import Conflict, UserError
from argosy.features.health_checks.argocd_install.health_settings_object import MAX_WRITE_ATTEMPTS, load_health_settings
from argosy.features.health_checks.argocd_install.installed_checks_annotation import build_install_patch
from argosy.features.health_checks.argocd_install.merge import RequestedHealthCheck, list_missing_checks
from argosy.features.setup.delivery import desired_manifests, rbac_policy
from argosy.features.setup.delivery.cluster_setup_plan import (
    ChangeVerb,
    SetupChange,
    SetupPart,
    SetupPlan,
    SetupRequest,
)
from argosy.gitops.coexistence.argocd_settings_location import ArgoCDInstallation
from argosy.kube.client import Cluster
from argosy.kube.controller.clock import SYSTEM_CLOCK, sleep
from argosy.kube.controller.object_condition_wait import RETRY_BACKOFF, wait_for_object
from argosy.kube.objects import Manifest

APPLY_ORDER: Final = list(SetupPart)

OnChangeDone = Callable[[SetupChange, ChangeVerb], None]


async def apply_plan(cluster: Cluster, plan: SetupPlan, request: SetupRequest, on_change_done: OnChangeDone) -> None:
    """Execute the plan; call `on_change_done` for each change, including unchanged objects."""
    if plan.problems:
        raise UserError(plan.problems[0])
    if request.unread and any(change.part is SetupPart.REPOSITORY for change in plan.to_write):
        raise UserError(f"{request.unread[0]}; set it, and run the command again")
    for change in sorted(plan.changes, key=lambda item: APPLY_ORDER.index(item.part)):
        on_change_done(change, await _write_change(cluster, change, request, plan.installation))


async def _write_change(
    cluster: Cluster, change: SetupChange, request: SetupRequest, installation: ArgoCDInstallation
) -> ChangeVerb:
    if change.verb is ChangeVerb.UNCHANGED:
        return ChangeVerb.UNCHANGED
    if change.part is SetupPart.HEALTH:
        return await _write_checks(cluster, installation, request.checks)
    if change.part is SetupPart.POLICY:
        return await _write_policy(cluster, installation, request)
    try:
        if change.verb is ChangeVerb.CREATE:
            await cluster.create(change.manifest)
        else:
            metadata = {**(change.manifest.get("metadata") or {}), "resourceVersion": change.version}
            await cluster.patch(change.key, {**change.manifest, "metadata": metadata})
    except Conflict as error:
        raise build_conflict_error(change) from error
    return change.verb


def build_conflict_error(change: SetupChange) -> UserError:
    problem = "was created" if change.verb is ChangeVerb.CREATE else "was changed"
    advice = "run the command again for a new plan"
    return UserError(f"{problem} by someone else since the plan; {advice}", where=str(change.key))


async def _write_checks(
    cluster: Cluster, installation: ArgoCDInstallation, checks: Sequence[RequestedHealthCheck]
) -> ChangeVerb:
    """Write the checks; read the object before each attempt, because other writers change it too."""
    async for _ in iterate_attempts():
        patch = build_install_patch(await load_health_settings(cluster, installation), checks)
        if patch is None:
            return ChangeVerb.UNCHANGED
        try:
            await cluster.patch(installation.settings_target, patch)
            return ChangeVerb.UPDATE
        except Conflict:
            continue
    raise build_write_conflict_error(str(installation.settings_target))


async def _write_policy(cluster: Cluster, installation: ArgoCDInstallation, request: SetupRequest) -> ChangeVerb:
    rbac, owner = request.delivery.rbac, request.delivery.product
    assert rbac is not None
    return await change_policy(cluster, installation, lambda texts: rbac_policy.merge_policy(texts, rbac, owner))


async def change_policy(
    cluster: Cluster,
    installation: ArgoCDInstallation,
    transform: Callable[[rbac_policy.PolicyTexts], rbac_policy.PolicyTexts],
) -> ChangeVerb:
    key = rbac_policy.policy_object_key(installation)
    async for _ in iterate_attempts():
        live = await cluster.get(key)
        before = rbac_policy.read_policy_texts(installation, live)
        patch = rbac_policy.build_policy_patch(installation, before, transform(before))
        if patch is None:
            return ChangeVerb.UNCHANGED
        try:
            if live is None:
                await cluster.create(_build_policy_config_map(installation, patch))
                return ChangeVerb.CREATE
            await cluster.patch(key, {"metadata": {"resourceVersion": live["metadata"]["resourceVersion"]}, **patch})
            return ChangeVerb.UPDATE
        except Conflict:
            continue
    raise build_write_conflict_error(str(key))


def _build_policy_config_map(installation: ArgoCDInstallation, patch: Manifest) -> Manifest:
    labels = {"app.kubernetes.io/name": rbac_policy.RBAC_CONFIG_MAP, PART_OF: "argocd"}
    metadata = {
        "name": rbac_policy.RBAC_CONFIG_MAP,
        "namespace": installation.namespace,
        "labels": {**labels, desired_manifests.MANAGED_BY: desired_manifests.MANAGED_BY_SETUP},
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, **patch}


async def iterate_attempts() -> AsyncIterator[int]:
    """Yield attempt numbers, with a backoff between attempts so that a concurrent writer can finish."""
    for number in range(MAX_WRITE_ATTEMPTS):
        if number:
            await sleep(SYSTEM_CLOCK, RETRY_BACKOFF.delay(number))
        yield number


def build_write_conflict_error(object_name: str) -> UserError:
    problem = f"gave up after {MAX_WRITE_ATTEMPTS} write conflicts"
    return UserError(f"{problem}; find out who changes it, then run the command again", where=object_name)


async def wait_for_settings(
    cluster: Cluster, plan: SetupPlan, request: SetupRequest, timeout_seconds: float
) -> list[str]:
    """Wait for the operator; list the settings that it did not write into Argo CD's ConfigMaps in time."""
    installation, rbac = plan.installation, request.delivery.rbac
    missing_settings = []
    if request.checks and not await wait_for_object(
        cluster,
        installation.config_map_key,
        lambda live: live is not None and not list_missing_checks(live.get("data") or {}, request.checks),
        timeout_seconds,
    ):
        missing_settings.append(f"{installation.config_map_key} does not hold the health checks")
    policy = rbac_policy.rbac_config_map_key(installation)
    if rbac and not await wait_for_object(
        cluster,
        policy,
        lambda live: live is not None and rbac_policy.has_policy(live.get("data") or {}, rbac),
        timeout_seconds,
    ):
        missing_settings.append(f"{policy} does not hold the policy")
    return missing_settings
