"""The steps of `argosy health apply`: install health checks into an Argo CD and wait for them.

In: a cluster and a request. Out: an outcome, and a message for each step. Never: prints; changes a check that was
not requested; reports success before argocd-cm holds every complete script.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from argosy.annotations import RESTARTED_AT, TRACKING_ID
from argosy.features.health_checks.argocd_install.health_settings_object import (
    HEALTH_CHECKS_FIELD,
    HealthSettings,
    load_health_settings,
    render_target_flags,
    write_checks,
)
from argosy.features.health_checks.argocd_install.merge import (
    KSERVE_GROUP,
    RequestedHealthCheck,
    list_affected_kinds,
    list_changes,
    list_missing_checks,
)
from argosy.gitops.coexistence.application_refresh import (
    build_status_table,
    list_applications_to_show,
    request_refreshes,
    select_affected,
    wait_until_refreshed,
)
from argosy.gitops.coexistence.argocd_settings_location import (
    OPENSHIFT_GITOPS,
    SETTINGS_CONFIG_MAP_NAME,
    ArgoCDInstallation,
    ArgoCDNotFound,
    find_argocd,
)
from argosy.gitops.coexistence.multi_step_command_output import AskUser, PrintStep, build_banner
from argosy.gitops.health.setting_kind_names import render_kind
from argosy.kube.client import Cluster
from argosy.kube.controller.object_condition_wait import wait_for_object
from argosy.kube.objects import Manifest, get_annotation
from argosy.kube.well_known_kinds import INFERENCE_SERVICE

CONTINUE_QUESTION: Final = "Do you want to continue? (y/n)"
ARGOCD_PROFILE: Final = "argocd"  # the profile that equals Argo CD's built-in check


class ApplyOutcome(enum.Enum):
    DONE = "done"
    ABORTED = "aborted"
    NOT_PROPAGATED = "not propagated"


@dataclass(frozen=True)
class HealthApplyRequest:
    checks: tuple[RequestedHealthCheck, ...]
    namespace: str = ""
    name: str = ""
    is_forced: bool = False
    is_dry_run: bool = False
    timeout_seconds: float = 120.0  # seconds until argocd-cm must hold the checks
    refresh_timeout_seconds: float = 30.0  # seconds until applications must be refreshed


async def apply_health_checks(
    cluster: Cluster, request: HealthApplyRequest, print_step: PrintStep, ask: AskUser
) -> ApplyOutcome:
    location = await _find_installation(cluster, request, print_step)
    is_rerun = _report_if_checks_exist(location, request.checks, print_step)
    if request.is_dry_run:
        _report_dry_run(location, request.checks, print_step)
        return ApplyOutcome.DONE
    if overridden_checks := location.list_overridden_checks(request.checks):
        _report_overridden(location.installation, overridden_checks, print_step)
        return ApplyOutcome.NOT_PROPAGATED
    has_entries = location.installation.has_operator and bool(location.entries)
    if (is_rerun or has_entries) and not _should_continue(location, request, print_step, ask):
        return ApplyOutcome.ABORTED
    await _write_and_report(cluster, location, request.checks, print_step, is_rerun=is_rerun)
    if not await _wait_for_propagation(cluster, location.installation, request, print_step):
        return ApplyOutcome.NOT_PROPAGATED
    await _refresh_applications(cluster, location.installation.namespace, request, print_step)
    applications = await list_applications_to_show(cluster, location.installation.namespace)
    _report_summary(location.installation, applications, request.checks, print_step)
    return ApplyOutcome.DONE


async def _find_installation(cluster: Cluster, request: HealthApplyRequest, print_step: PrintStep) -> HealthSettings:
    try:
        installation = await find_argocd(cluster, request.namespace, request.name)
        location = await load_health_settings(cluster, installation)
    except ArgoCDNotFound:
        _report_start("ArgoCD CR", print_step)
        raise
    if installation.has_operator:
        _report_start("ArgoCD CR", print_step)
        print_step("✓ ArgoCD CR found")
        reason = f"the operator generates {SETTINGS_CONFIG_MAP_NAME} from it and removes other keys"
        print_step(
            f"  {installation.name} in namespace {installation.namespace}; checks go into its "
            f"spec.{HEALTH_CHECKS_FIELD}: {reason}"
        )
    else:
        _report_start(SETTINGS_CONFIG_MAP_NAME, print_step)
        print_step("✓ Argo CD without an operator found")
        print_step(
            f"  no ArgoCD CR owns {SETTINGS_CONFIG_MAP_NAME} in namespace {installation.namespace}, so checks "
            "go directly into it"
        )
    return location


def _report_start(target_name: str, print_step: PrintStep) -> None:
    for line in (
        *build_banner(f"Applying Custom Health Checks to {target_name}"),
        "",
        f"Step 1: Checking if {target_name} exists...",
    ):
        print_step(line)


def _report_if_checks_exist(
    location: HealthSettings, requested_checks: Sequence[RequestedHealthCheck], print_step: PrintStep
) -> bool:
    """Report the existing checks; return True if the request touches any of them."""
    print_step("\nStep 2: Checking if health checks are already configured...")
    target_name = "ArgoCD CR" if location.installation.has_operator else SETTINGS_CONFIG_MAP_NAME
    is_kserve_only = {check.group_kind.group for check in requested_checks} == {KSERVE_GROUP}
    if affected_kinds := list_affected_kinds(location.scripts, requested_checks):
        print_step(
            f"⚠ Health checks for {'KServe' if is_kserve_only else 'these kinds'} already exist in {target_name}"
        )
    elif location.installation.has_operator and location.entries is None:
        print_step(f"✓ No existing {HEALTH_CHECKS_FIELD} found")
        print_step(f"  Will create the list with {_render_names(requested_checks)}")
    else:
        settings_name = HEALTH_CHECKS_FIELD if location.installation.has_operator else SETTINGS_CONFIG_MAP_NAME
        missing_text = "KServe health checks" if is_kserve_only else "health checks for these kinds"
        print_step(f"✓ {settings_name} found, but no {missing_text} detected")
        print_step(f"  Will add {_render_names(requested_checks)} and keep the others")
    for line in _list_warnings(location, requested_checks):
        print_step(line)
    return bool(affected_kinds)


def _list_warnings(location: HealthSettings, requested_checks: Sequence[RequestedHealthCheck]) -> Iterator[str]:
    """Warn about settings that override the checks and about an Application that may revert them."""
    for check in location.list_overridden_checks(requested_checks):
        yield f"⚠ spec.extraConfig holds {check.key}, which overrides spec.{HEALTH_CHECKS_FIELD}; remove it there"
    if application := get_annotation(location.live, TRACKING_ID).partition(":")[0]:
        export_format = "cr" if location.installation.has_operator else "configmap"
        yield f"⚠ Application {application} syncs this object from Git and may revert the checks"
        yield f"  Add the checks to Git as well: argosy health export --as {export_format}"


def _report_overridden(
    installation: ArgoCDInstallation, overridden_checks: Sequence[RequestedHealthCheck], print_step: PrintStep
) -> None:
    keys = " and ".join(check.key for check in overridden_checks)
    print_step("✗ Nothing was written, because these checks would have no effect.")
    print_step(f"  Remove {keys} from spec.extraConfig of ArgoCD {installation.name}, then run the command again")


def _render_names(requested_checks: Sequence[RequestedHealthCheck]) -> str:
    return ", ".join(check.name for check in requested_checks)


def _should_continue(
    location: HealthSettings, request: HealthApplyRequest, print_step: PrintStep, ask: AskUser
) -> bool:
    _report_changes(location, request.checks, print_step)
    if request.is_forced:
        print_step("  Force detected (--force): continuing without a prompt")
        return True
    if ask(CONTINUE_QUESTION).strip() in ("y", "Y"):
        return True
    print_step("Aborted by user.")
    return False


def _report_changes(
    location: HealthSettings, requested_checks: Sequence[RequestedHealthCheck], print_step: PrintStep
) -> None:
    for change in list_changes(location.scripts, requested_checks):
        print_step(f"  {change.description}")
    requested_kinds = {check.group_kind for check in requested_checks}
    for group_kind in location.scripts:
        if group_kind not in requested_kinds:
            print_step(f"  {render_kind(*group_kind)}: not requested, kept unchanged")


def _report_dry_run(
    location: HealthSettings, requested_checks: Sequence[RequestedHealthCheck], print_step: PrintStep
) -> None:
    print_step(f"\nDry run: changes to {location.installation.settings_target}")
    _report_changes(location, requested_checks, print_step)
    print_step(
        "Nothing was written" + ("." if location.build_patch(requested_checks) else ": it is already up to date.")
    )


async def _write_and_report(
    cluster: Cluster,
    location: HealthSettings,
    requested_checks: Sequence[RequestedHealthCheck],
    print_step: PrintStep,
    *,
    is_rerun: bool,
) -> None:
    print_step(
        f"\nStep 3: Patching {'ArgoCD CR' if location.installation.has_operator else SETTINGS_CONFIG_MAP_NAME}..."
    )
    if await write_checks(cluster, location, requested_checks):
        print_step(f"✓ Health checks {'updated' if is_rerun else 'applied'}: {_render_names(requested_checks)}")
    else:
        print_step("✓ Health checks are already up to date; no patch was sent")


async def _wait_for_propagation(
    cluster: Cluster, installation: ArgoCDInstallation, request: HealthApplyRequest, print_step: PrintStep
) -> bool:
    if installation.has_operator:
        print_step(
            f"\nStep 4: Waiting for the operator to update ConfigMap {SETTINGS_CONFIG_MAP_NAME} (at most "
            f"{request.timeout_seconds:g} s)..."
        )
    else:
        print_step("\nStep 4: Waiting for an operator is not needed here")
    last_seen: list[Manifest | None] = [None]

    def holds_all(live: Manifest | None) -> bool:
        last_seen[0] = live
        return live is not None and not list_missing_checks(live.get("data") or {}, request.checks)

    is_propagated = await wait_for_object(cluster, installation.config_map_key, holds_all, request.timeout_seconds)
    print_step("\nStep 5: Verifying that the health checks are in ConfigMap...")
    if is_propagated:
        print_step("✓ Health check found in ConfigMap")
        return True
    print_step("✗ Health check not found in ConfigMap. Manual verification needed.")
    data = (last_seen[0] or {}).get("data") or {}
    for check in list_missing_checks(data, request.checks):
        print_step(f"  {check.key}: {'holds another script' if check.key in data else 'not found'}")
    if installation.has_operator:
        for line in _render_operator_advice(installation):
            print_step(line)
    return False


def _render_operator_advice(installation: ArgoCDInstallation) -> list[str]:
    timestamp_command = '"$(date +%Y-%m-%dT%H:%M:%S%z)"'
    name, namespace = installation.name, installation.namespace
    return [
        "  The CR has the checks, but its operator has not reconciled it. Check the operator, then trigger it:",
        f"    kubectl get pods -n {OPENSHIFT_GITOPS}-operator",
        f"    kubectl annotate argocd {name} -n {namespace} --overwrite {RESTARTED_AT}={timestamp_command}",
    ]


async def _refresh_applications(
    cluster: Cluster, namespace: str, request: HealthApplyRequest, print_step: PrintStep
) -> None:
    print_step("\nStep 6: Refreshing ArgoCD applications...")
    applications = await list_applications_to_show(cluster, namespace)
    refresh_result = await request_refreshes(
        cluster, select_affected(applications, {check.group_kind for check in request.checks})
    )
    for name in refresh_result.requested:
        print_step(f"✓ {name}")
    for name in refresh_result.gone:
        print_step(f"  {name}: skipped, it was deleted")
    for name in refresh_result.forbidden:
        print_step(f"⚠ {name}: you are not allowed to refresh it; it is refreshed at its next reconciliation")
    if not (refresh_result.requested or refresh_result.gone or refresh_result.forbidden):
        reason = "has such a resource" if applications else f"is in namespace {namespace}, or you may not see them"
        print_step(f"  No application {reason}: nothing to refresh")
    if not refresh_result.requested:
        print_step("\nStep 7: Waiting for health status to update is not needed")
        return
    print_step(f"\nStep 7: Waiting for health status to update (at most {request.refresh_timeout_seconds:g} s)...")
    if await wait_until_refreshed(cluster, namespace, refresh_result.requested, request.refresh_timeout_seconds):
        print_step("✓ Argo CD has refreshed them")
    else:
        print_step("⚠ Argo CD has not completed every refresh yet; the status below may be outdated")


def _report_summary(
    installation: ArgoCDInstallation,
    applications: Sequence[Manifest],
    requested_checks: Sequence[RequestedHealthCheck],
    print_step: PrintStep,
) -> None:
    print_step("")
    for line in build_banner("Current Application Status:"):
        print_step(line)
    print_step(build_status_table(applications) if applications else "  No applications found")
    print_step("")
    for line in build_banner("Done!"):
        print_step(line)
    print_step("\nNext steps:")
    print_step(
        "  Verify the result:   argosy health "
        f"verify{render_target_flags(installation, [check.group_kind for check in requested_checks])}"
    )
    print_step(f"  Watch applications:  kubectl get applications.argoproj.io -n {installation.namespace} -w")
    for check in requested_checks:
        if check.group_kind == INFERENCE_SERVICE and check.profile != ARGOCD_PROFILE:
            reason = "newer Argo CD versions have a built-in check for InferenceService, which this check replaces"
            print_step(f"  Note: {reason}; compare them: argosy health diff isvc --profile {check.profile}")
