"""Opens the application service of the cluster that a command uses.

In: flags that choose a cluster. Out: open services. Never: reads more from a cluster than the location of its settings.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from argosy.cli.cluster_target import TargetOptions, find_target, open_target
from argosy.cli.running_sandbox_selection import find_instance_by_url
from argosy.cli.sandbox_data_folder_and_lock import DataFolder
from argosy.errors import UserError
from argosy.gitops.application_client.application_service import ApplicationService, ServiceOpener
from argosy.gitops.application_client.control_namespace import find_control_namespace
from argosy.kube.client import Cluster
from argosy.kube.client.connection_settings import Connection


@asynccontextmanager
async def open_service(options: TargetOptions, namespace: str = "") -> AsyncIterator[ApplicationService]:
    async with open_target(options) as (cluster, target):
        likely_namespaces = [candidate for candidate in (namespace, target.connection.namespace) if candidate]
        control = await find_control_namespace(cluster, likely_namespaces)
        yield ApplicationService(cluster, target.display_name, control, namespace or control, opener=open_cluster)


@asynccontextmanager
async def open_cluster(connection: Connection) -> AsyncIterator[Cluster]:
    """Open any cluster by its connection."""
    from argosy.kube.client.cluster_client import connect

    cluster = await connect(connection)
    try:
        yield cluster
    finally:
        await cluster.close()


def load_context_connection(context: str, kubeconfig: Path | None) -> Connection:
    """Load the connection of a kubeconfig context."""
    from argosy.kube.client.kubeconfig import load_kubeconfig

    return load_kubeconfig([kubeconfig] if kubeconfig else None, context)


def build_service_opener(options: TargetOptions) -> ServiceOpener:
    return partial(open_service, options)


def find_demo_repository(options: TargetOptions) -> Path | None:
    """Return the repository of the demo that the options choose; None if they choose another cluster."""
    if options.data_dir is not None:
        run = DataFolder(options.data_dir).find_running_instance()
    else:
        try:
            running_instance = find_instance_by_url(find_target(options).connection.server)
        except UserError:
            return None
        run = running_instance[1] if running_instance else None
    return Path(run.repository) if run and run.repository else None
