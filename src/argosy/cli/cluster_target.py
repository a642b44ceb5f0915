"""Selects the cluster of a command and opens it.

In: flags and the environment. Out: a connection and its display name. Never: writes anything.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from argosy.cli.running_sandbox_selection import (
    build_admin_connection,
    find_instance_by_url,
    require_running_instance,
    select_folder,
)
from argosy.cli.sandbox_data_folder_and_lock import (
    DEFAULT_NAME,
    DEMO_NAME,
    DataFolder,
    RunningInstance,
    get_state_folder,
)
from argosy.errors import UserError
from argosy.kube.client.kubeconfig import list_environment_paths, load_kubeconfig

if TYPE_CHECKING:
    from argosy.kube.client.cluster_client import KubeCluster
    from argosy.kube.client.connection_settings import Connection

CONTEXT_VARIABLE: Final = "ARGOSY_CONTEXT"


@dataclass(frozen=True)
class TargetOptions:
    context: str = ""
    kubeconfig: Path | None = None
    data_dir: Path | None = None


@dataclass(frozen=True)
class ClusterTarget:
    connection: Connection
    display_name: str  # display name: "the sandbox (https://127.0.0.1:40123)"
    is_embedded: bool = False


def find_target(options: TargetOptions) -> ClusterTarget:
    """Choose the cluster: flags, else ARGOSY_CONTEXT, KUBECONFIG, a running sandbox or demo, ~/.kube/config."""
    if options.data_dir is not None:
        folder = DataFolder(options.data_dir)
        return _build_sandbox_target(folder, require_running_instance(folder))
    # Flags take precedence over the variable: --kubeconfig means the current context of that file.
    if options.context or options.kubeconfig is not None:
        connection = load_kubeconfig([options.kubeconfig] if options.kubeconfig else None, options.context or None)
        return ClusterTarget(connection, f"context {connection.name} ({connection.server})")
    if context := os.environ.get(CONTEXT_VARIABLE, ""):
        with mention_context_variable_in_error(context):
            connection = load_kubeconfig(context=context)
        return ClusterTarget(connection, f"context {connection.name} ({connection.server})")
    if not list_environment_paths():
        folder = select_folder(None)
        if run := folder.find_running_instance():
            return _build_sandbox_target(folder, run)
    connection = load_kubeconfig()
    if running_instance := find_instance_by_url(connection.server):
        # The kubeconfig may belong to another user: use its credentials, not the administrator's.
        return ClusterTarget(connection, describe_run(*running_instance), is_embedded=True)
    return ClusterTarget(connection, f"context {connection.name} ({connection.server})")


@contextmanager
def mention_context_variable_in_error(context: str) -> Iterator[None]:
    """Mention ARGOSY_CONTEXT in an error about the context that it selects."""
    try:
        yield
    except UserError as error:
        problem, _, advice = str(error).partition("; ")
        setting = f"{CONTEXT_VARIABLE} is set to {context!r}"
        raise UserError(f"{problem} ({setting}); correct or unset {CONTEXT_VARIABLE}, or {advice}") from error


def find_sandbox(data_dir: Path | None = None) -> tuple[DataFolder, RunningInstance]:
    """Choose the sandbox or demo to act on; refuse if ARGOSY_CONTEXT or KUBECONFIG selects another cluster."""
    if data_dir is None and (variable := find_target_variable()):
        target = find_target(TargetOptions())
        if running_instance := find_instance_by_url(target.connection.server):
            return running_instance
        advice = f"select the sandbox with --data-dir, or unset {variable}"
        raise UserError(f"{variable} selects {target.display_name}, which is not a running sandbox; {advice}")
    folder = select_folder(data_dir, DEFAULT_NAME)
    return folder, require_running_instance(folder)


def describe_other_selected_cluster(folder: DataFolder) -> str:
    """Describe the cluster that ARGOSY_CONTEXT or KUBECONFIG selects, if it is not the one of this folder."""
    variable = find_target_variable()
    if not variable:
        return ""
    try:
        target = find_target(TargetOptions())
    except UserError as error:
        return f"{variable} is invalid: {str(error).partition('; ')[0]}"
    running_instance = find_instance_by_url(target.connection.server)
    return (
        ""
        if running_instance and running_instance[0].root == folder.root
        else f"{variable} selects another cluster: {target.display_name}"
    )


def find_target_variable() -> str:
    """Return the environment variable that selects a cluster, if one is set."""
    if os.environ.get(CONTEXT_VARIABLE):
        return CONTEXT_VARIABLE
    return "KUBECONFIG" if list_environment_paths() else ""


def _build_sandbox_target(folder: DataFolder, run: RunningInstance) -> ClusterTarget:
    return ClusterTarget(build_admin_connection(folder, run), describe_run(folder, run), is_embedded=True)


def describe_run(folder: DataFolder, run: RunningInstance) -> str:
    """Return the display name of a running instance, with its folder unless that is the default."""
    is_usual = folder.root in (get_state_folder() / DEFAULT_NAME, get_state_folder() / DEMO_NAME)
    name = f"the {run.name}" if is_usual else f"the {run.name} in {folder.root}"  # there may be several
    return f"{name} ({run.api})"


@asynccontextmanager
async def open_target(options: TargetOptions) -> AsyncIterator[tuple[KubeCluster, ClusterTarget]]:
    """Open the cluster of this command."""
    from argosy.kube.client.cluster_client import connect

    target = find_target(options)
    cluster = await connect(target.connection)
    try:
        yield cluster, target
    finally:
        await cluster.close()
