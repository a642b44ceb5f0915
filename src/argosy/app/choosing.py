"""Which of the sandboxes and demos that run here is meant.

In: a folder or a name, and $KUBECONFIG. Out: a folder; what $KUBECONFIG leads to. Never: opens a connection; fails
because of a kubeconfig that cannot be read.
"""

from __future__ import annotations

import os
from pathlib import Path

from argosy.app.folder import DataFolder, Run, running_folders
from argosy.cluster.connection import Connection
from argosy.cluster.kubeconfig import load_kubeconfig
from argosy.model.errors import UserError


def chosen_folder(data_dir: Path | None, name: str = "") -> DataFolder:
    """The one that is named; else, of those that run, one of that name: $KUBECONFIG's, the usual one, or the latest."""
    if data_dir is not None:
        return DataFolder(data_dir)
    found = running_folders()
    fitting = [folder for folder in found if _name(folder) == name] or found
    return _of_kubeconfig(fitting) or next(iter(fitting), DataFolder())


def _name(folder: DataFolder) -> str:
    run = folder.running()
    return run.name if run else ""


def _of_kubeconfig(folders: list[DataFolder]) -> DataFolder | None:
    """By where its current context leads, else by the file: somebody else's context may be current in it."""
    if len(folders) < 2 or not os.environ.get("KUBECONFIG"):
        return None
    connection = kubeconfig_connection()
    files = {Path(each).absolute() for each in os.environ["KUBECONFIG"].split(os.pathsep) if each}
    runs = [(folder, run) for folder in folders if (run := folder.running())]
    by_server = [folder for folder, run in runs if connection and connection.server == run.api]
    by_file = [folder for folder, run in runs if Path(run.kubeconfig) in files]
    return next(iter([*by_server, *by_file]), None)


def kubeconfig_connection() -> Connection | None:
    """Where $KUBECONFIG leads; None where it is not set, or leads nowhere."""
    if not os.environ.get("KUBECONFIG"):
        return None
    try:
        return load_kubeconfig()
    except UserError:
        return None


def other_than(run: Run, where: str) -> str:
    """What to tell whoever has a kubeconfig of another cluster in $KUBECONFIG; empty: nobody can mean that one."""
    other = kubeconfig_connection()
    if other is None and (named := os.environ.get("KUBECONFIG")):
        return f"this asks {where}; KUBECONFIG leads nowhere ({named}): correct or unset it"
    if other is None or other.server == run.api:
        return ""
    advice = f"ask that one with --context {other.name} or ARGOSY_CONTEXT={other.name}"
    return f"this asks {where}; KUBECONFIG leads to {other.name} ({other.server}): {advice}"
