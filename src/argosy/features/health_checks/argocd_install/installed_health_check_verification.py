"""Verification that health checks are installed in an Argo CD, with the status of its applications.

In: a cluster, an Argo CD, kinds. Out: a verification and its messages. Never: writes; compares only the beginning of a
script.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from argosy.errors import ClusterError, Forbidden
from argosy.features.health_checks.argocd_install.health_settings_object import (
    HEALTH_CHECKS_FIELD,
    HealthSettings,
    load_health_settings,
    render_target_flags,
)
from argosy.features.health_checks.argocd_install.merge import (
    HEALTH_KEY_PREFIX,
    find_profile_of_script,
    read_entry_kind,
)
from argosy.gitops.coexistence.application_refresh import build_status_table, list_applications_to_show, read_statuses
from argosy.gitops.coexistence.argocd_settings_location import SETTINGS_CONFIG_MAP_NAME, find_argocd
from argosy.gitops.coexistence.multi_step_command_output import StepOutput, TextTable, build_banner
from argosy.gitops.health.lint import LintFinding, lint_script
from argosy.gitops.health.lua.syntax import LuaSyntaxError, parse
from argosy.gitops.health.setting_kind_names import render_key_kind, render_kind
from argosy.gitops.health.settings import CustomHealthCheck, read_config_maps
from argosy.kube.client import ClusterReader
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import INFERENCE_SERVICE, NAMESPACE

DEFAULT_ENVIRONMENT_NAMESPACES: Final = ("llmops-dev", "llmops-staging", "llmops-prod")
APPLY_COMMAND: Final = "argosy health apply"


@dataclass(frozen=True)
class InferenceServiceRow:
    """The status of an InferenceService."""

    name: str
    url: str
    ready: str


@dataclass(frozen=True)
class HealthVerification:
    location: HealthSettings
    data: Mapping[str, str]  # of argocd-cm
    kinds: tuple[GroupKind, ...]
    applications: Sequence[Manifest] = ()
    services: Mapping[str, Sequence[InferenceServiceRow]] | None = None  # by existing namespace

    @property
    def unconfigured_kinds(self) -> list[GroupKind]:
        """Kinds without a configured health check."""
        return [group_kind for group_kind in self.kinds if group_kind not in self.location.scripts]

    @property
    def unpropagated_kinds(self) -> list[GroupKind]:
        """Kinds whose exact script is not in argocd-cm."""
        scripts = self.location.scripts
        return [
            group_kind
            for group_kind in self.kinds
            if group_kind in scripts and self.data.get(_build_settings_key(group_kind)) != scripts[group_kind]
        ]

    @cached_property
    def script_errors(self) -> dict[str, LintFinding]:
        """Errors of active scripts by location. Argo CD reports Unknown for objects of such a kind.

        For kinds that were not requested, only syntax errors are listed.
        """
        requested_patterns = {render_kind(*group_kind) for group_kind in self.kinds}
        errors = {check.where: _find_first_error(check) for check in read_config_maps(self.data).checks
                 if check.pattern in requested_patterns or not _is_parseable(check)}  # fmt: skip
        return {where: error for where, error in errors.items() if error is not None}

    @property
    def stray_keys(self) -> list[str]:
        """Keys in argocd-cm that the operator will remove, because the ArgoCD resource does not list them."""
        if not self.location.installation.has_operator:
            return []
        kept_keys = {*self.location.data, *map(_build_settings_key, self.location.scripts)}
        return sorted(key for key in self.data if key.startswith(HEALTH_KEY_PREFIX) and key not in kept_keys)

    @property
    def duplicate_kinds(self) -> list[GroupKind]:
        """Kinds that the ArgoCD resource lists more than once."""
        listed_kinds = [group_kind for entry in self.location.entries or () if (group_kind := read_entry_kind(entry))]
        return [group_kind for group_kind in dict.fromkeys(listed_kinds) if listed_kinds.count(group_kind) > 1]

    @property
    def is_ok(self) -> bool:
        return not (self.unconfigured_kinds or self.unpropagated_kinds or self.script_errors)

    def to_wire(self) -> dict[str, Any]:
        installation, scripts = self.location.installation, self.location.scripts
        checks = [
            {
                "group": group_kind.group,
                "kind": group_kind.kind,
                "configured": group_kind in scripts,
                "profile": find_profile_of_script(group_kind, scripts.get(group_kind, "")),
                "propagated": group_kind in scripts and group_kind not in self.unpropagated_kinds,
                "error": _render_error(self.script_errors[_build_settings_key(group_kind)])
                if _build_settings_key(group_kind) in self.script_errors
                else "",
            }
            for group_kind in self.kinds
        ]
        apps = [
            dict(
                zip(
                    ("name", "sync", "health"),
                    (application["metadata"]["name"], *read_statuses(application)),
                    strict=True,
                )
            )
            for application in self.applications
        ]
        services = [
            {"namespace": namespace, **vars(service)}
            for namespace, namespace_services in (self.services or {}).items()
            for service in namespace_services
        ]
        return {
            "kind": "HealthVerification",
            "ok": self.is_ok,
            "argocd": {"namespace": installation.namespace, "name": installation.name},
            "operated": installation.has_operator,
            "checks": checks,
            "strayKeys": self.stray_keys,
            "applications": apps,
            "inferenceServices": services,
        }


def _build_settings_key(group_kind: GroupKind) -> str:
    return HEALTH_KEY_PREFIX + render_key_kind(*group_kind)


def _find_first_error(check: CustomHealthCheck) -> LintFinding | None:
    return next(
        (finding for finding in lint_script(check.script, open_libs=check.open_libs) if finding.severity == "error"),
        None,
    )


def _is_parseable(check: CustomHealthCheck) -> bool:
    try:
        parse(check.script)
    except LuaSyntaxError:
        return False
    return True


def _render_error(error: LintFinding) -> str:
    return f"line {error.line}: {error.message}; {error.advice}"


async def verify_health_checks(
    cluster: ClusterReader, namespace: str, name: str, kinds: tuple[GroupKind, ...]
) -> HealthVerification:
    installation = await find_argocd(cluster, namespace, name)
    location = await load_health_settings(cluster, installation)
    settings = await cluster.get(installation.config_map_key) or {}
    applications = await list_applications_to_show(cluster, installation.namespace)
    services = await _load_services(cluster, applications)
    return HealthVerification(location, settings.get("data") or {}, kinds, applications, services)


async def _load_services(
    cluster: ClusterReader, applications: Sequence[Manifest]
) -> dict[str, list[InferenceServiceRow]]:
    """List InferenceServices of the existing default environments and of other destinations that have one."""
    default_namespaces = [name for name in DEFAULT_ENVIRONMENT_NAMESPACES if await _namespace_exists(cluster, name)]
    destinations = ((entry.get("spec") or {}).get("destination") or {} for entry in applications)
    other_namespaces = [str(entry.get("namespace") or "") for entry in destinations]
    services = {}
    for namespace in dict.fromkeys([*default_namespaces, *filter(None, other_namespaces)]):
        namespace_services = await _list_services(cluster, namespace)
        if namespace_services or namespace in default_namespaces:
            services[namespace] = namespace_services
    return services


async def _namespace_exists(cluster: ClusterReader, namespace: str) -> bool:
    """Return False if access is forbidden: then the namespace has no visible objects either."""
    try:
        return await cluster.get(ResourceKey(*NAMESPACE, "", namespace)) is not None
    except Forbidden:
        return False


async def _list_services(cluster: ClusterReader, namespace: str) -> list[InferenceServiceRow]:
    try:
        listing = await cluster.list(INFERENCE_SERVICE, namespace=namespace)
    except ClusterError as error:
        if error.code in (403, 404):  # forbidden, or KServe is not installed
            return []
        raise
    return [_read_service_status(manifest) for manifest in listing.items]


def _read_service_status(live: Manifest) -> InferenceServiceRow:
    status = live.get("status") or {}
    ready_statuses = [
        condition.get("status") for condition in status.get("conditions") or () if condition.get("type") == "Ready"
    ]
    return InferenceServiceRow(
        live["metadata"]["name"], status.get("url") or "", ready_statuses[0] if ready_statuses else ""
    )


def render_verification(verification: HealthVerification) -> Iterator[StepOutput]:
    """Yield the messages of the steps in order; stop after the first step that fails."""
    yield from build_banner("Verifying ArgoCD Health Check Configuration")
    yield from _render_configuration(verification)
    if verification.unconfigured_kinds:
        return
    yield from _render_propagation(verification)
    if verification.script_errors:
        yield from _render_script_errors(verification)
    if verification.unpropagated_kinds or verification.script_errors:
        return
    yield "\nStep 3: Checking ArgoCD application health status...\n"
    yield build_status_table(verification.applications) if verification.applications else "  No applications found"
    yield "\nStep 4: Checking InferenceService status..."
    yield from _render_inference_services(verification)
    yield ""
    yield from build_banner("Verification Complete")


def _render_configuration(verification: HealthVerification) -> Iterator[str]:
    is_operated = verification.location.installation.has_operator
    target_name = "ArgoCD CR" if is_operated else "ConfigMap"
    yield f"\nStep 1: Checking if health check is in {target_name}..."
    apply_advice = (
        "  Run: "
        f"{APPLY_COMMAND}{render_target_flags(verification.location.installation, verification.unconfigured_kinds)}"
    )
    if is_operated and verification.location.entries is None:
        yield f"✗ {HEALTH_CHECKS_FIELD} NOT found in ArgoCD CR"
        yield apply_advice
        return
    if is_operated:
        yield f"✓ {HEALTH_CHECKS_FIELD} found in ArgoCD CR"
    for group_kind in verification.kinds:
        result = "NOT found" if group_kind in verification.unconfigured_kinds else "found"
        yield (
            f"{'✗' if group_kind in verification.unconfigured_kinds else '✓'} {group_kind.kind} health check "
            f"{result} in {target_name}"
        )
    for group_kind in verification.duplicate_kinds:
        yield (
            f"⚠ {render_kind(*group_kind)} is listed more than once; the last entry wins; {APPLY_COMMAND} "
            "--force keeps one"
        )
    if verification.unconfigured_kinds:
        yield apply_advice


def _render_propagation(verification: HealthVerification) -> Iterator[str]:
    yield "\nStep 2: Checking if health check propagated to ConfigMap..."
    if not verification.unpropagated_kinds:
        yield "✓ Health check successfully propagated to ConfigMap"
    else:
        yield "⚠ Health check not yet in ConfigMap"
        for group_kind in verification.unpropagated_kinds:
            problem = "holds another script" if _build_settings_key(group_kind) in verification.data else "not found"
            override_note = (
                "; spec.extraConfig overrides this key"
                if _build_settings_key(group_kind) in verification.location.data
                else ""
            )
            yield f"  {_build_settings_key(group_kind)}: {problem}{override_note}"
        overridden_kinds = [
            group_kind
            for group_kind in verification.unpropagated_kinds
            if _build_settings_key(group_kind) in verification.location.data
        ]
        if overridden_kinds:
            yield (
                f"  Remove it from spec.extraConfig of ArgoCD {verification.location.installation.name}, then "
                "run this again"
            )
        if overridden_kinds != verification.unpropagated_kinds:
            yield "  Wait 10 seconds for the operator, then run this again"
    for key in verification.stray_keys:
        yield f"⚠ {key} is in {SETTINGS_CONFIG_MAP_NAME}, but not in the ArgoCD CR"
        yield "  The operator will remove it: this is expected behaviour, use the CR"


def _render_script_errors(verification: HealthVerification) -> Iterator[str]:
    for where, error in verification.script_errors.items():
        yield f"✗ {where} in {SETTINGS_CONFIG_MAP_NAME} fails: {_render_error(error)}"
    yield "  Argo CD reports health Unknown for objects that use it"
    broken_kinds = [
        group_kind for group_kind in verification.kinds if _build_settings_key(group_kind) in verification.script_errors
    ]
    if broken_kinds:
        yield (
            f"  Correct it there, or replace it: {APPLY_COMMAND} "
            f"--force{render_target_flags(verification.location.installation, broken_kinds)}"
        )


def _render_inference_services(verification: HealthVerification) -> Iterator[StepOutput]:
    for namespace, services in (verification.services or {}).items():
        yield f"\nNamespace: {namespace}"
        if services:
            yield TextTable(
                ("NAME", "URL", "READY"), [[service.name, service.url, service.ready] for service in services]
            )
        else:
            yield "  No InferenceServices found"
    if not verification.services:
        yield "  No InferenceServices found"
