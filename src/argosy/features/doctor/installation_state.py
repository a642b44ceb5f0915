"""Reads the installation: the Argo CD, the owner of its settings, its health checks and its controllers.

In: a cluster, the control namespace. Out: InstallationState: a SettingsView, and violations of scripts and settings.
Never: writes; shows a value of a Secret.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Final

from argosy.annotations import LAST_APPLIED
from argosy.errors import ArgosyError
from argosy.features.doctor.forbidden_tolerant_reads import OptionalReads
from argosy.features.doctor.reverted_settings_edits import list_reverted_edits
from argosy.features.health_checks.argocd_install.health_settings_object import HealthSettings as ChecksPlace
from argosy.features.health_checks.argocd_install.installed_health_check_verification import HealthVerification
from argosy.features.health_checks.argocd_install.merge import HEALTH_KEY_PREFIX
from argosy.features.health_checks.lint import CONFLICT_RULE, lint_settings
from argosy.features.health_checks.located_manifests import ManifestText
from argosy.features.setup.openshift_gitops_preparation import OPERATOR_NAMESPACES
from argosy.gitops.analysis.live_view import InstallationView, OperatorHealth
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation
from argosy.gitops.analysis.rules.live.stalled_and_repeated_syncs import find_last_spec_write_time
from argosy.gitops.application_client.control_namespace import LEADER_LEASE_NAME, keep_held_leases, list_member_leases
from argosy.gitops.coexistence.argocd_detection import detect_engines_or_unknown
from argosy.gitops.coexistence.argocd_settings_location import SETTINGS_CONFIG_MAP_NAME, ArgoCDInstallation
from argosy.gitops.health.bundled_rules import list_profiles, load_bundled_rules, load_profile_rules
from argosy.gitops.health.setting_kind_names import render_key_kind, render_kind
from argosy.gitops.health.settings import read_config_maps, read_manifests
from argosy.gitops.policy.applicationset_controller_detection import is_expanded
from argosy.gitops.reconciler.setting_error_messages import RESTRICTING_KEYS, describe_fallback
from argosy.gitops.status.status_json_conversions import as_mapping, as_mappings
from argosy.kube.objects import Manifest, dump_yaml, get_annotation
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import (
    APPLICATION_SET,
    ARGOCD,
    CONFIG_MAP,
    DEPLOYMENT,
    LEASE,
    NOTEBOOK_JOB,
    POD,
    SECRET,
    STATEFUL_SET,
)
from argosy.web.auth.oidc_provider_settings import (
    PLACEHOLDER,
    find_secret_value,
    list_referenced_secrets,
    read_provider,
)

OPERATOR: Final = "gitops-operator"
CONTROLLER: Final = "application-controller"
OPERATOR_FIELD_MANAGERS: Final = ("gitops-operator", "argocd-operator", "manager")
MAX_LOG_LINES: Final = 200
LOG_TIMEOUT_SECONDS: Final = 3.0


# -- settings ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InstallationState:
    view: InstallationView
    violations: Mapping[str, tuple[Violation, ...]]
    resource: Manifest | None = None
    config: Manifest | None = None


async def read_installation(reads: OptionalReads, control: str) -> InstallationState:
    resources, config, lease, members, engines, unexpanded = await asyncio.gather(
        reads.list_kind(ARGOCD, control),
        reads.get(ResourceKey(*CONFIG_MAP, control, SETTINGS_CONFIG_MAP_NAME)),
        reads.get(ResourceKey(*LEASE, control, LEADER_LEASE_NAME)),
        list_member_leases(reads.cluster, control),
        detect_engines_or_unknown(reads.cluster, control),
        _list_unexpanded_appsets(reads, control),
    )
    resource = resources[0] if len(resources) == 1 else None
    leases = keep_held_leases((lease, *members))
    data = {str(key): str(value) for key, value in as_mapping((config or {}).get("data")).items()}
    view = InstallationView(
        namespace=control,
        data=data if config is not None else None,
        has_configmap=config is not None or CONFIG_MAP in reads.unread,
        kinds_with_check=_list_notebook_job_if_checked(data),
        is_delivered_by_argosy=bool(leases)
        and not engines.list_watching_controllers(control),  # an Argo CD in this namespace takes precedence
        has_argosy=bool(leases),
        has_argocd=any(item.namespace == control for item in engines.controllers) if engines.is_known else None,
        engines=engines,
        unexpanded_sets=unexpanded,
        sso_fault=await _find_sso_fault(reads, control, data),
        has_released_lease=lease is not None and not leases,
        can_read_leases=LEASE not in reads.unread,
        renewed_at=max((str(as_mapping(item["spec"]).get("renewTime") or "") for item in leases), default=""),
        lease_seconds=max((_lease_seconds(item) for item in leases), default=0.0),
    )
    view = replace(view, owner=str(resource["metadata"]["name"]) if resource else _find_owning_argocd(config))
    if resource is not None and config is not None:
        view = await _add_operator_state(reads, view, resource, data)
    violations = _list_violations(view, resource, config)
    if resource is not None:
        known_fields = {violation.field for violation in violations.get(CONFLICT_RULE, ())}
        edits = await list_reverted_edits(reads, view, known_fields)
        violations |= {CONFLICT_RULE: (*violations.get(CONFLICT_RULE, ()), *edits)} if edits else {}
    return InstallationState(view, violations, resource, config)


async def _find_sso_fault(reads: OptionalReads, control: str, settings: Mapping[str, str]) -> str:
    """Return why sign-in with the identity provider fails; Secrets that are not readable count as valid."""
    names = sorted(list_referenced_secrets(settings))
    secrets = await asyncio.gather(*(reads.get(ResourceKey(*SECRET, control, name)) for name in names))
    if SECRET in reads.unread:
        return read_provider(settings, lambda _: PLACEHOLDER)[1]
    secret_by_name = dict(zip(names, secrets, strict=True))
    return read_provider(settings, lambda reference: find_secret_value(reference, secret_by_name.get))[1]


def _lease_seconds(lease: Manifest) -> float:
    return float(as_mapping(lease["spec"]).get("leaseDurationSeconds") or 0)


async def _list_unexpanded_appsets(reads: OptionalReads, control: str) -> tuple[str, ...]:
    """List ApplicationSets that no controller expands; empty if they or the workloads are not readable."""
    if APPLICATION_SET not in await reads.kinds():
        return ()
    application_sets = await reads.list_kind(APPLICATION_SET, control)
    if not application_sets:
        return ()
    kinds = (DEPLOYMENT, STATEFUL_SET, POD)
    listings = await asyncio.gather(*(reads.list_kind(kind, control) for kind in kinds))
    if not reads.unread.isdisjoint(kinds):
        return ()
    workloads = [item for listing in listings for item in listing]
    return tuple(str(item["metadata"]["name"]) for item in application_sets if not is_expanded(item, workloads))


def _find_owning_argocd(config: Manifest | None) -> str:
    """Find the ArgoCD resource by the owner reference, even if the resource itself is not readable."""
    references = as_mappings(((config or {}).get("metadata") or {}).get("ownerReferences"))
    return next((str(reference.get("name")) for reference in references if reference.get("kind") == ARGOCD.kind), "")


def _list_notebook_job_if_checked(data: Mapping[str, str]) -> frozenset[GroupKind]:
    patterns = [check.pattern for check in read_config_maps(data).checks]
    return frozenset(
        {NOTEBOOK_JOB} if any(fnmatchcase(render_kind(*NOTEBOOK_JOB), pattern) for pattern in patterns) else ()
    )


async def _add_operator_state(
    reads: OptionalReads, view: InstallationView, resource: Manifest, data: Mapping[str, str]
) -> InstallationView:
    location = ChecksPlace(ArgoCDInstallation(view.namespace, view.owner), resource)
    verification = HealthVerification(location, data, tuple(location.scripts))
    keys = [HEALTH_KEY_PREFIX + render_key_kind(*of) for of in verification.unpropagated_kinds]
    missing = tuple(key for key in keys if key not in location.data)  # extraConfig wins, so that is no operator problem
    return replace(
        view,
        requested_scripts=location.scripts,
        missing_keys=missing,
        overridden_keys=tuple(key for key in keys if key in location.data),
        extra_keys=tuple(verification.stray_keys),
        changed_at=find_last_spec_write_time(resource, ignored_managers=OPERATOR_FIELD_MANAGERS)
        or str(resource["metadata"].get("creationTimestamp") or ""),
        phase=str(as_mapping(resource.get("status")).get("phase") or ""),
        operator=await _read_operator_state(reads, is_needed=bool(missing)),
    )


async def _read_operator_state(reads: OptionalReads, *, is_needed: bool) -> OperatorHealth:
    """Read the operator's Pods and log errors, only if settings have not arrived."""
    if not is_needed:
        return OperatorHealth()
    for namespace in reversed(OPERATOR_NAMESPACES):
        kinds = (DEPLOYMENT, POD)
        listings = await asyncio.gather(*(reads.list_kind(kind, namespace) for kind in kinds))
        workloads, pods = ([item for item in listing if OPERATOR in item["metadata"]["name"]] for listing in listings)
        if workloads or pods:
            descriptions = [f"Deployment {item['metadata']['name']} {_render_replicas(item)}" for item in workloads]
            descriptions += [f"{item['metadata']['name']} {_render_pod_state(item)}" for item in pods]
            errors = await fetch_log_errors(reads, pods[0]) if pods else []
            return OperatorHealth(
                namespace, tuple(descriptions), any(_is_pod_ready(item) for item in pods), tuple(errors)
            )
    is_seen = POD not in reads.unread
    return OperatorHealth(OPERATOR_NAMESPACES[-1], (), False if is_seen else None)


def _render_replicas(deployment: Manifest) -> str:
    ready = as_mapping(deployment.get("status")).get("readyReplicas") or 0
    return f"{ready}/{as_mapping(deployment.get('spec')).get('replicas', 1)} ready"


def _render_pod_state(pod: Manifest) -> str:
    phase = str(as_mapping(pod.get("status")).get("phase") or "Unknown")
    return f"{phase}, {'ready' if _is_pod_ready(pod) else 'not ready'}"


def _is_pod_ready(pod: Manifest) -> bool:
    conditions = as_mappings(as_mapping(pod.get("status")).get("conditions"))
    return any((condition.get("type"), condition.get("status")) == ("Ready", "True") for condition in conditions)


async def fetch_health_check_errors(reads: OptionalReads, control: str) -> tuple[str, ...]:
    """Fetch log errors of the application controller about health checks; empty if the log is not readable."""
    pods = [item for item in await reads.list_kind(POD, control) if CONTROLLER in item["metadata"]["name"]]
    errors = await fetch_log_errors(reads, pods[0]) if pods else []
    return tuple(item for item in errors if "lua" in item.lower() or "health" in item.lower())


async def fetch_log_errors(reads: OptionalReads, pod: Manifest) -> list[str]:
    """Fetch the last log lines that contain "error"."""
    key = ResourceKey(*POD, str(pod["metadata"]["namespace"]), str(pod["metadata"]["name"]))
    errors: list[str] = []
    try:
        async with asyncio.timeout(LOG_TIMEOUT_SECONDS):
            lines = reads.cluster.logs(key, tail=MAX_LOG_LINES)
            errors += [line.strip()[:200] async for line in lines if "error" in line.lower()]
    except (ArgosyError, TimeoutError):
        reads.add_note(f"the log of {key.name} cannot be read")
    return errors[-3:]


def _list_violations(
    view: InstallationView, resource: Manifest | None, config: Manifest | None
) -> dict[str, tuple[Violation, ...]]:
    violations: dict[str, list[Violation]] = {}
    for manifest in (resource, config if not view.owner else None):
        for rule, violation in _lint_manifest(manifest) if manifest is not None else ():
            violations.setdefault(rule, []).append(violation)
    location = FileLocation(f"ConfigMap/{SETTINGS_CONFIG_MAP_NAME}")
    fix = "expected behaviour, use the CR: argosy health apply"
    for key in view.extra_keys:
        text = (
            f"{key} is in {SETTINGS_CONFIG_MAP_NAME}, but not in the ArgoCD CR {view.owner}: the operator will "
            "remove it"
        )
        violations.setdefault(CONFLICT_RULE, []).append(
            Violation(location, text, fix, f"ConfigMap/{SETTINGS_CONFIG_MAP_NAME}", key)
        )
    for key in view.overridden_keys:
        text = f"spec.extraConfig of ArgoCD {view.owner} holds {key}, which wins over spec.resourceHealthChecks"
        name = f"ArgoCD/{view.owner}"
        violations.setdefault(CONFLICT_RULE, []).append(
            Violation(FileLocation(name), text, "remove it from spec.extraConfig", name, key)
        )
    for key in _list_removed_keys(view, config) if resource is not None else ():
        text = (
            f"{key} was applied to {SETTINGS_CONFIG_MAP_NAME} by hand, and the operator has removed it: the "
            "ArgoCD CR lacks it"
        )
        violations.setdefault(CONFLICT_RULE, []).append(
            Violation(location, text, fix, f"ConfigMap/{SETTINGS_CONFIG_MAP_NAME}", key)
        )
    return {rule: tuple(sights) for rule, sights in violations.items()}


def _lint_manifest(manifest: Manifest) -> list[tuple[str, Violation]]:
    kind, name = manifest["kind"], manifest["metadata"]["name"]
    reduced = {**manifest, "metadata": {part: manifest["metadata"][part] for part in ("name", "namespace")}}
    try:
        remarks = lint_settings(ManifestText(f"{kind}/{name}", dump_yaml(reduced)).list_manifests()).remarks
    except ArgosyError:
        return []
    location, own_checks = FileLocation(f"{kind}/{name}"), find_unmodified_bundled_checks(manifest)
    return [
        (
            remark.rule,
            Violation(
                location,
                f"{remark.place}: {remark.message}",
                remark.advice or "correct it",
                f"{kind}/{name}",
                remark.place,
                Severity(remark.severity),
            ),
        )
        for remark in remarks
        if remark.severity != "info" and remark.rule != CONFLICT_RULE and remark.place not in own_checks
    ]


def list_setting_violations(
    faults: Iterable[str], known_violations: Mapping[str, tuple[Violation, ...]], namespace: str
) -> tuple[Violation, ...]:
    """List invalid settings, except those that a health check rule already reports."""
    known_fields = {
        violation.field for violations in known_violations.values() for violation in violations if violation.field
    }
    violations = []
    for fault in faults:
        owner, _, remainder = fault.partition(": ")
        key = remainder.partition(": ")[0]
        if key in known_fields or fault.endswith(tuple(f"({rule})" for rule in known_violations)):
            continue
        subject = owner.replace(" ", "/", 1) if owner.startswith("AppProject ") else f"ConfigMap/{owner}"
        until = describe_fallback(fault)
        fix = f"correct it: argosy kubectl edit {subject.lower()} -n {namespace}; until then {until}"
        severity = Severity.ERROR if key in RESTRICTING_KEYS else None
        violations.append(Violation(FileLocation(subject), fault, fix, subject, key, severity))
    return tuple(violations)


def _list_removed_keys(view: InstallationView, config: Manifest | None) -> list[str]:
    """List keys in kubectl's last-applied annotation that no longer exist."""
    if not view.owner or config is None:
        return []
    try:
        applied = as_mapping(as_mapping(json.loads(get_annotation(config, LAST_APPLIED) or "{}")).get("data"))
    except ValueError:
        return []
    return sorted(key for key in applied if key.startswith(HEALTH_KEY_PREFIX) and key not in (view.data or {}))


__all__ = ["InstallationState", "list_setting_violations", "read_installation"]


def find_unmodified_bundled_checks(manifest: Manifest) -> frozenset[str]:
    """Return the places of checks that argosy installed, as remarks name them."""
    checks = read_manifests([manifest]).checks
    return frozenset(check.where for check in checks if check.script.strip() in _bundled_scripts(check.pattern))


@cache
def _bundled_scripts(pattern: str) -> frozenset[str]:
    rules = (load_bundled_rules(), *(load_profile_rules(profile) for profile in list_profiles()))
    return frozenset(
        rule.script.strip() for by_kind in rules for kind, rule in by_kind.items() if render_kind(*kind) == pattern
    )
