"""Removal of the objects that setup created.

In: a cluster and a setup request. Out: a plan of deletions, and its execution. Never: removes foreign objects; removes
a namespace without --namespaces; reports an object as deleted that still exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from argosy.errors import ClusterError, Conflict
from argosy.features.health_checks.argocd_install.health_settings_object import HealthSettings, load_health_settings
from argosy.features.health_checks.argocd_install.installed_checks_annotation import build_uninstall_patch
from argosy.features.setup.delivery import desired_manifests, rbac_policy
from argosy.features.setup.delivery.apply import (
    OnChangeDone,
    build_conflict_error,
    build_write_conflict_error,
    change_policy,
    iterate_attempts,
)
from argosy.features.setup.delivery.cluster_setup_plan import (
    ChangeVerb,
    SetupChange,
    SetupPart,
    SetupPlan,
    SetupRequest,
    SetupState,
)
from argosy.gitops.coexistence.argocd_settings_location import ArgoCDInstallation
from argosy.kube.client import Cluster
from argosy.kube.controller.object_condition_wait import WaitTimeout, wait_for_object
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey
from argosy.kube.well_known_kinds import APPLICATION, NAMESPACE

# Applications first, because pruning their resources needs Argo CD's permissions.
REMOVAL_ORDER: Final = (
    SetupPart.APPLICATION,
    SetupPart.HEALTH,
    SetupPart.POLICY,
    SetupPart.REPOSITORY,
    SetupPart.ROLE_BINDING,
    SetupPart.NAMESPACE,
)


def build_removal_plan(request: SetupRequest, live: SetupState, *, with_namespaces: bool) -> SetupPlan:
    """Plan the deletions, with a note for each object that stays."""
    changes: list[SetupChange] = []
    notes: list[str] = []
    in_use = _list_foreign_app_namespaces(live)
    for environment, part, live_object in _list_candidates(request, live):
        key = key_of(live_object)
        namespace = key.name if part is SetupPart.NAMESPACE else key.namespace
        if not desired_manifests.is_created_by_setup(live_object):
            notes.append(f"{key} stays: setup did not create it")
        elif part in (SetupPart.ROLE_BINDING, SetupPart.NAMESPACE) and namespace in in_use:
            notes.append(f"{key} stays: {in_use[namespace]} deploys there, and setup did not create it")
        elif part is SetupPart.NAMESPACE and not with_namespaces:
            notes.append(f"{key} stays, with everything in it; --namespaces removes it")
        elif key not in {change.key for change in changes}:
            metadata = live_object["metadata"]
            version, uid = metadata["resourceVersion"], metadata.get("uid", "")
            changes.append(SetupChange(environment, part, key, ChangeVerb.DELETE, {}, (), version, uid))
    changes += _plan_settings_removal(request, live)
    rbac = request.delivery.rbac
    if rbac and (rbac.default_role or rbac.scopes):
        notes.append("the policy's default role and scopes stay: their previous values are unknown")
    ordered = sorted(changes, key=lambda change: REMOVAL_ORDER.index(change.part))
    return SetupPlan(live.installation, tuple(ordered), tuple(dict.fromkeys(notes)))


def _list_foreign_app_namespaces(live: SetupState) -> dict[str, str]:
    """Map namespaces to the foreign Applications that deploy there and need the permissions for their deletion."""
    applications = {key: manifest for key, manifest in live.live_objects.items() if key.group_kind == APPLICATION}
    return {
        namespace: f"Application {key.name}"
        for key, manifest in applications.items()
        if not desired_manifests.is_created_by_setup(manifest)
        and (namespace := desired_manifests.read_destination_namespace(manifest))
    }


def _list_candidates(request: SetupRequest, live: SetupState) -> Iterator[tuple[str, SetupPart, Manifest]]:
    for environment in request.delivery.environments:
        application = key_of(desired_manifests.build_application(request.delivery, environment, live.installation))
        for part, key in (
            (SetupPart.APPLICATION, application),
            (
                SetupPart.ROLE_BINDING,
                ResourceKey(*desired_manifests.ROLE_BINDING, environment.namespace, desired_manifests.BINDING_NAME),
            ),
            (SetupPart.NAMESPACE, ResourceKey(*NAMESPACE, "", environment.namespace)),
        ):
            if live_object := live.live_objects.get(key):
                yield environment.name, part, live_object
    repository_key = desired_manifests.build_repository_key(request.delivery, live.installation)
    for secret in live.repositories:
        if key_of(secret) == repository_key:
            yield "", SetupPart.REPOSITORY, secret


def _plan_settings_removal(request: SetupRequest, live: SetupState) -> Iterator[SetupChange]:
    key = live.installation.settings_target
    if removed := build_uninstall_patch(HealthSettings(live.installation, live.live_objects[key]), request.checks):
        patch, kinds = removed
        differences = tuple(f"- {group_kind}" for group_kind in kinds)
        yield SetupChange("", SetupPart.HEALTH, key, ChangeVerb.UPDATE, patch, differences)
    policy = rbac_policy.policy_object_key(live.installation)
    before = rbac_policy.read_policy_texts(live.installation, live.live_objects.get(policy))
    after = rbac_policy.remove_policy(before, request.delivery.product)
    if patch_of_policy := rbac_policy.build_policy_patch(live.installation, before, after):
        differences = tuple(rbac_policy.describe_policy_changes(before, after))
        yield SetupChange("", SetupPart.POLICY, policy, ChangeVerb.UPDATE, patch_of_policy, differences)


async def execute_removal(
    cluster: Cluster,
    plan: SetupPlan,
    request: SetupRequest,
    on_change_done: OnChangeDone,
    deletion_timeout_seconds: float,
) -> None:
    for change in plan.changes:
        if change.part is SetupPart.HEALTH:
            await _remove_health_checks(cluster, plan.installation, request)
        elif change.part is SetupPart.POLICY:
            owner = request.delivery.product
            await change_policy(cluster, plan.installation, lambda texts: rbac_policy.remove_policy(texts, owner))  # noqa: B023
        else:
            await _delete_object(cluster, change)
        if change.key.group_kind == APPLICATION:
            await _wait_for_deletion(cluster, change.key, deletion_timeout_seconds)
        on_change_done(change, change.verb)


async def _delete_object(cluster: Cluster, change: SetupChange) -> None:
    try:
        await cluster.delete(change.key, uid=change.uid or None)
    except Conflict as error:
        raise build_conflict_error(change) from error
    except ClusterError as error:
        if error.code != 404:  # already deleted
            raise


async def _wait_for_deletion(cluster: Cluster, key: ResourceKey, timeout_seconds: float) -> None:
    """Wait for the deletion of an Application, because pruning its resources needs Argo CD's permissions."""
    if await wait_for_object(cluster, key, lambda live: live is None, timeout_seconds):
        return
    live = await cluster.get(key) or {}
    finalizers = (live.get("metadata") or {}).get("finalizers")
    finalizers_text = f", blocked by {', '.join(finalizers)}" if finalizers else ""
    problem = f"{key.kind} {key.name} is still being deleted after {timeout_seconds:g} s{finalizers_text}"
    raise WaitTimeout(
        f"{problem}; check that Argo CD runs, then run the command again: other objects are not removed yet"
    )


async def _remove_health_checks(cluster: Cluster, installation: ArgoCDInstallation, request: SetupRequest) -> None:
    async for _ in iterate_attempts():
        removed = build_uninstall_patch(await load_health_settings(cluster, installation), request.checks)
        if removed is None:
            return
        try:
            await cluster.patch(installation.settings_target, removed[0])
            return
        except Conflict:
            continue
    raise build_write_conflict_error(str(installation.settings_target))
