"""Which cluster a command talks to, and how to open it.

In: flags and the environment. Out: a connection and its name for people. Never: writes anything.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.app.choosing import chosen_folder, other_than
from argosy.app.folder import DEFAULT_NAME, DEMO_NAME, DataFolder, Run, state_home
from argosy.app.loading import administrator, running
from argosy.cluster.kubeconfig import load_kubeconfig

if TYPE_CHECKING:
    from argosy.cluster.connection import Connection
    from argosy.cluster.kube import KubeCluster


@dataclass(frozen=True)
class TargetOptions:
    context: str = ""
    kubeconfig: Path | None = None
    data_dir: Path | None = None
    tell: Callable[[str], None] | None = None  # whom to tell that another cluster than kubectl's is asked


@dataclass(frozen=True)
class Target:
    connection: Connection
    where: str  # for people: "the sandbox (https://127.0.0.1:40123)"
    is_embedded: bool = False


def find_target(options: TargetOptions) -> Target:
    """Flags first, then ARGOSY_CONTEXT, then what runs here, then KUBECONFIG or ~/.kube/config."""
    if options.data_dir is not None:
        return _sandbox(DataFolder(options.data_dir), running(DataFolder(options.data_dir)))
    context = options.context or os.environ.get("ARGOSY_CONTEXT", "")
    if not context and options.kubeconfig is None:
        folder = chosen_folder(None)
        if run := folder.running():
            found = _sandbox(folder, run)
            if options.tell and (notice := other_than(run, found.where)):
                options.tell(notice)
            return found
    connection = load_kubeconfig([options.kubeconfig] if options.kubeconfig else None, context or None)
    return Target(connection, f"context {connection.name} ({connection.server})")


def _sandbox(folder: DataFolder, run: Run) -> Target:
    is_usual = folder.root in (state_home() / DEFAULT_NAME, state_home() / DEMO_NAME)
    name = f"the {run.name}" if is_usual else f"the {run.name} in {folder.root}"  # there may be several
    return Target(administrator(folder, run), f"{name} ({run.api})", is_embedded=True)


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
