"""Installs argosy in a cluster, or uninstalls it.

In: options and target flags. Out: the executed plan. Never: writes before the user confirmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from argosy.cli.cluster_target import TargetOptions, open_target
from argosy.features.install.live_state import load_install_state, load_uninstall_state
from argosy.features.install.manifests import build_manifests
from argosy.features.install.options import DEFAULT_IMAGE, InstallOptions
from argosy.features.install.plan import InstallPlan, InstallStep, build_install_plan
from argosy.features.install.plan_execution import OnStepDone, execute_plan
from argosy.features.install.uninstall_plan import build_uninstall_plan
from argosy.features.setup.delivery.cluster_setup_plan import ChangeVerb
from argosy.gitops.application.argosy_component_labels import DEFAULT_INSTALL_NAMESPACE
from argosy.gitops.coexistence.argocd_detection import detect_engines, detect_engines_or_unknown
from argosy.kube.client.whoami import whoami
from argosy.kube.controller.object_condition_wait import WaitTimeout
from argosy.kube.objects import Manifest, dump_yaml

__all__ = [
    "DEFAULT_IMAGE",
    "DEFAULT_INSTALL_NAMESPACE",
    "ChangeVerb",
    "InstallOptions",
    "InstallPlan",
    "InstallStep",
    "PlannedInstall",
    "WaitTimeout",
]


@dataclass(frozen=True)
class PlannedInstall:
    plan: InstallPlan
    options: InstallOptions
    where: str
    user: str


@dataclass(frozen=True)
class InstallCallbacks:
    """Callbacks to the user interface. `confirm` raises UserError if the user declines."""

    confirm: Callable[[PlannedInstall], None]
    done: OnStepDone


def render_manifests(options: InstallOptions) -> str:
    return "---\n".join(dump_yaml(manifest) for manifest in build_manifests(options))


def build_list(options: InstallOptions) -> Manifest:
    return {"apiVersion": "v1", "kind": "List", "items": build_manifests(options)}


def install(target_options: TargetOptions, options: InstallOptions, callbacks: InstallCallbacks) -> PlannedInstall:
    async def run() -> PlannedInstall:
        async with open_target(target_options) as (cluster, target):
            plan = build_install_plan(options, await load_install_state(cluster, options))
            if engine_note := (await detect_engines_or_unknown(cluster, options.namespace)).describe_for_namespace(
                options.namespace
            ):
                plan = replace(plan, notes=(*plan.notes, engine_note))
            planned = PlannedInstall(plan, options, target.display_name, await whoami(cluster))
            callbacks.confirm(planned)
            await execute_plan(cluster, plan, callbacks.done, 0.0)
            return planned

    return asyncio.run(run())


def uninstall(
    target_options: TargetOptions,
    options: InstallOptions,
    callbacks: InstallCallbacks,
    *,
    with_applications: bool,
    is_forced: bool,
    deletion_timeout_seconds: float,
) -> PlannedInstall:
    async def run() -> PlannedInstall:
        async with open_target(target_options) as (cluster, target):
            engines = await detect_engines(cluster, options.namespace)
            state = await load_uninstall_state(cluster, options, engines)
            plan = build_uninstall_plan(options, state, with_applications=with_applications, is_forced=is_forced)
            planned = PlannedInstall(plan, options, target.display_name, await whoami(cluster))
            callbacks.confirm(planned)
            await execute_plan(cluster, plan, callbacks.done, deletion_timeout_seconds)
            return planned

    return asyncio.run(run())
