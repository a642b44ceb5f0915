"""Which cluster a command talks to, and how to open it.

In: flags and the environment. Out: a connection and its name for people. Never: writes anything.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.app.choosing import chosen_folder, find_run
from argosy.app.folder import DEFAULT_NAME, DEMO_NAME, DataFolder, Run, state_home
from argosy.app.loading import administrator, running
from argosy.cluster.kubeconfig import environment_paths, load_kubeconfig

if TYPE_CHECKING:
    from argosy.cluster.connection import Connection
    from argosy.cluster.kube import KubeCluster


@dataclass(frozen=True)
class TargetOptions:
    context: str = ""
    kubeconfig: Path | None = None
    data_dir: Path | None = None


@dataclass(frozen=True)
class Target:
    connection: Connection
    where: str  # for people: "the sandbox (https://127.0.0.1:40123)"
    is_embedded: bool = False


def find_target(options: TargetOptions) -> Target:
    """Choose the cluster: flags, else ARGOSY_CONTEXT, KUBECONFIG, a running sandbox or demo, ~/.kube/config."""
    if options.data_dir is not None:
        folder = DataFolder(options.data_dir)
        return _sandbox(folder, running(folder))
    # A flag goes before the variable: in the file that --kubeconfig names, the current context is meant.
    context = options.context or ("" if options.kubeconfig else os.environ.get("ARGOSY_CONTEXT", ""))
    if context or options.kubeconfig is not None:
        connection = load_kubeconfig([options.kubeconfig] if options.kubeconfig else None, context or None)
        return Target(connection, f"context {connection.name} ({connection.server})")
    if not environment_paths():
        folder = chosen_folder(None)
        if run := folder.running():
            return _sandbox(folder, run)
    connection = load_kubeconfig()
    if found := find_run(connection.server):
        # The kubeconfig may be another user's: its credentials are used, not the administrator's.
        return Target(connection, _name_of(*found), is_embedded=True)
    return Target(connection, f"context {connection.name} ({connection.server})")


def _sandbox(folder: DataFolder, run: Run) -> Target:
    return Target(administrator(folder, run), _name_of(folder, run), is_embedded=True)


def _name_of(folder: DataFolder, run: Run) -> str:
    is_usual = folder.root in (state_home() / DEFAULT_NAME, state_home() / DEMO_NAME)
    name = f"the {run.name}" if is_usual else f"the {run.name} in {folder.root}"  # there may be several
    return f"{name} ({run.api})"


@asynccontextmanager
async def open_target(options: TargetOptions) -> AsyncIterator[tuple[KubeCluster, Target]]:
    """The cluster of this command, open until the end."""
    from argosy.cluster.kube import connect

    target = find_target(options)
    cluster = await connect(target.connection)
    try:
        yield cluster, target
    finally:
        await cluster.close()
