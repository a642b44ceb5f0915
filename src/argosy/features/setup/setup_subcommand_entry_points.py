"""Entry points of `argosy setup argocd`, `apps` and `credentials`, which the scripts of a repository call.

In: a folder of Applications and target flags. Out: step messages. Never: prints.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from argosy.cli.cluster_target import TargetOptions, open_target
from argosy.features.setup import application_apply, gitea_admin_secrets, openshift_gitops_preparation
from argosy.features.setup.argosy_yaml_loader import RequiredFileMissing, load_applications
from argosy.features.setup.openshift_gitops_preparation import ArgoCDNotReady, PreparationOptions
from argosy.gitops.coexistence.argocd_settings_location import ArgoCDNotFound
from argosy.gitops.coexistence.multi_step_command_output import PrintStep, StepOutput, TextTable
from argosy.kube.client.cluster_client import KubeCluster

__all__ = ["ArgoCDNotFound", "ArgoCDNotReady", "RequiredFileMissing", "StepOutput", "TextTable"]

ClusterWork = Callable[[KubeCluster, str], Awaitable[None]]  # with the namespace of the context


def prepare_argocd(
    options: TargetOptions,
    folder: Path,
    print_step: PrintStep,
    report_target: PrintStep,
    *,
    shows_password: bool,
    timeout_seconds: float,
) -> None:
    namespaces = application_apply.list_destination_namespaces(load_applications(folder))
    preparation = PreparationOptions(namespaces, shows_password, timeout_seconds)
    _run_with_cluster(
        options,
        report_target,
        lambda cluster, _: openshift_gitops_preparation.prepare_cluster(cluster, preparation, print_step),
    )


def apply_applications(options: TargetOptions, folder: Path, print_step: PrintStep, report_target: PrintStep) -> None:
    manifests = load_applications(folder)
    _run_with_cluster(
        options, report_target, lambda cluster, _: application_apply.apply_applications(cluster, manifests, print_step)
    )


def write_gitea_credentials(
    options: TargetOptions, namespace: str, print_step: PrintStep, report_target: PrintStep
) -> None:
    _run_with_cluster(
        options,
        report_target,
        lambda cluster, usual: gitea_admin_secrets.write_credentials(cluster, namespace or usual, print_step),
    )


def _run_with_cluster(options: TargetOptions, report_target: PrintStep, work: ClusterWork) -> None:
    """Open the cluster, report the target first, and run the work."""

    async def run() -> None:
        async with open_target(options) as (cluster, target):
            report_target(target.display_name)
            await work(cluster, target.connection.namespace)

    asyncio.run(run())
