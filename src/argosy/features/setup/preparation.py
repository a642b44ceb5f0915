"""Entry points of `argosy setup argocd`, `apps` and `credentials`, which the scripts of a repository call.

In: a folder of Applications and target flags. Out: step messages. Never: prints.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from argosy.cli.target import TargetOptions, open_target
from argosy.features.setup import applications, gitea, openshift
from argosy.features.setup.openshift import NotReady, Preparation
from argosy.features.setup.requests import Missing, read_applications
from argosy.gitops.coexistence.argocd_settings import NotInstalled
from argosy.gitops.coexistence.step_messages import Said, Table, Tell
from argosy.kube.client.http import KubeCluster

__all__ = ["Missing", "NotInstalled", "NotReady", "Said", "Table"]

Work = Callable[[KubeCluster, str], Awaitable[None]]  # with the namespace of the context


def prepare_argocd(
    options: TargetOptions, folder: Path, tell: Tell, say_where: Tell, *, shows_password: bool, timeout: float
) -> None:
    namespaces = applications.destinations(read_applications(folder))
    wanted = Preparation(namespaces, shows_password, timeout)
    _with_cluster(options, say_where, lambda cluster, _: openshift.prepare(cluster, wanted, tell))


def apply_applications(options: TargetOptions, folder: Path, tell: Tell, say_where: Tell) -> None:
    wanted = read_applications(folder)
    _with_cluster(options, say_where, lambda cluster, _: applications.apply_applications(cluster, wanted, tell))


def write_gitea_credentials(options: TargetOptions, namespace: str, tell: Tell, say_where: Tell) -> None:
    _with_cluster(options, say_where, lambda cluster, usual: gitea.write_credentials(cluster, namespace or usual, tell))


def _with_cluster(options: TargetOptions, say_where: Tell, work: Work) -> None:
    """Open the cluster, report the target first, and run the work."""

    async def run() -> None:
        async with open_target(options) as (cluster, target):
            say_where(target.where)
            await work(cluster, target.connection.namespace)

    asyncio.run(run())
