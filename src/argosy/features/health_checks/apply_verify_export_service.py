"""Entry points of `argosy health apply`, `verify` and `export`.

In: command line values and the target cluster. Out: outcome and step messages. Never: implements a step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from argosy.cli.cluster_target import TargetOptions, open_target
from argosy.errors import UserError
from argosy.features.health_checks.argocd_install.apply_steps import (
    ApplyOutcome,
    HealthApplyRequest,
    apply_health_checks,
)
from argosy.features.health_checks.argocd_install.export import render_export
from argosy.features.health_checks.argocd_install.installed_health_check_verification import (
    HealthVerification,
    render_verification,
    verify_health_checks,
)
from argosy.features.health_checks.argocd_install.merge import (
    DEFAULT_KINDS,
    RequestedHealthCheck,
    build_requested_checks,
)
from argosy.features.health_checks.kind_name_lookup import find_kind, list_known_kinds
from argosy.gitops.coexistence.argocd_settings_location import ArgoCDNotFound
from argosy.gitops.coexistence.multi_step_command_output import AskUser, PrintStep, StepOutput
from argosy.gitops.health.bundled_rules import DEFAULT_INSTALL_PROFILE
from argosy.gitops.health.settings import Customizations
from argosy.kube.resource_key import GroupKind
from argosy.kube.well_known_kinds import INFERENCE_SERVICE

__all__ = [
    "ApplyOutcome",
    "ArgoCDNotFound",
    "HealthInstallOptions",
    "StepOutput",
    "apply_checks",
    "export_checks",
    "render_verification",
    "verify_checks",
]


@dataclass(frozen=True)
class HealthInstallOptions:
    """The options of `argosy health apply|verify|export` as typed."""

    kinds: str = ""  # comma-separated; empty: the default kinds
    profiles: Sequence[str] = ()
    namespace: str = ""
    name: str = ""
    is_forced: bool = False
    is_dry_run: bool = False
    timeout_seconds: float = 120.0
    refresh_timeout_seconds: float = 30.0


def apply_checks(
    options: TargetOptions,
    install_options: HealthInstallOptions,
    print_step: PrintStep,
    ask: AskUser,
    report_target: Callable[[str], None],
) -> ApplyOutcome:
    """Apply the checks; call `where` with the target before the first request to it."""
    request = HealthApplyRequest(
        _build_checks(install_options),
        install_options.namespace,
        install_options.name,
        install_options.is_forced,
        install_options.is_dry_run,
        install_options.timeout_seconds,
        install_options.refresh_timeout_seconds,
    )

    async def run() -> ApplyOutcome:
        async with open_target(options) as (cluster, target):
            report_target(target.display_name)
            return await apply_health_checks(cluster, request, print_step, ask)

    return asyncio.run(run())


def verify_checks(
    options: TargetOptions, install_options: HealthInstallOptions, report_target: Callable[[str], None]
) -> HealthVerification:
    """Verify the checks; `where` gets the target, because without KUBECONFIG a sandbox precedes ~/.kube/config."""
    kinds = _parse_kinds(install_options.kinds) or (INFERENCE_SERVICE,)

    async def run() -> HealthVerification:
        async with open_target(options) as (cluster, target):
            report_target(target.display_name)
            return await verify_health_checks(cluster, install_options.namespace, install_options.name, kinds)

    return asyncio.run(run())


def export_checks(install_options: HealthInstallOptions, export_format: str) -> str:
    return render_export(
        export_format, _build_checks(install_options), namespace=install_options.namespace, name=install_options.name
    )


def _build_checks(install_options: HealthInstallOptions) -> tuple[RequestedHealthCheck, ...]:
    profiles = list(dict.fromkeys(install_options.profiles)) or [DEFAULT_INSTALL_PROFILE]
    if len(profiles) > 1:
        problem = f"{' and '.join(profiles)} cannot be used together, because Argo CD has one health check per kind"
        raise UserError(f"{problem}; choose one of them", where="--profile")
    return build_requested_checks(_parse_kinds(install_options.kinds) or DEFAULT_KINDS, profiles[0])


def _parse_kinds(kinds_text: str) -> tuple[GroupKind, ...]:
    kinds = list_known_kinds(Customizations())
    return tuple(find_kind(word, kinds) for part in kinds_text.split(",") if (word := part.strip()))
