"""Opens the application service of the cluster that a command uses.

In: flags that choose a cluster. Out: open services. Never: reads more from a cluster than the location of its settings.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from argosy.cli.data_folder import DataFolder
from argosy.cli.running_instances import find_run
from argosy.cli.target import TargetOptions, find_target, open_target
from argosy.errors import UserError
from argosy.gitops.application_client.client import Desk, Opening
from argosy.gitops.application_client.control_namespace import control_namespace
from argosy.kube.client import Cluster
from argosy.kube.client.connection import Connection


@asynccontextmanager
async def open_desk(options: TargetOptions, namespace: str = "") -> AsyncIterator[Desk]:
    async with open_target(options) as (cluster, target):
        near = [each for each in (namespace, target.connection.namespace) if each]
        control = await control_namespace(cluster, near)
        yield Desk(cluster, target.where, control, namespace or control, opener=opened)


@asynccontextmanager
async def opened(connection: Connection) -> AsyncIterator[Cluster]:
    """Open any cluster by its connection."""
    from argosy.kube.client.http import connect

    cluster = await connect(connection)
    try:
        yield cluster
    finally:
        await cluster.close()


def of_context(context: str, kubeconfig: Path | None) -> Connection:
    """Load the connection of a kubeconfig context."""
    from argosy.kube.client.kubeconfig import load_kubeconfig

    return load_kubeconfig([kubeconfig] if kubeconfig else None, context)


def opening(options: TargetOptions) -> Opening:
    return partial(open_desk, options)


def demo_repository(options: TargetOptions) -> Path | None:
    """Return the repository of the demo that the options choose; None if they choose another cluster."""
    if options.data_dir is not None:
        run = DataFolder(options.data_dir).running()
    else:
        try:
            found = find_run(find_target(options).connection.server)
        except UserError:
            return None
        run = found[1] if found else None
    return Path(run.repository) if run and run.repository else None
