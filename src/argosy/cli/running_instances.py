"""Which of the sandboxes and demos that run here is meant.

In: a folder, a name or an address, and $KUBECONFIG. Out: a folder. Never: opens a connection; fails because of a
kubeconfig that cannot be read.
"""

from __future__ import annotations

from pathlib import Path

from argosy.cli.data_folder import DataFolder, Run, running_folders
from argosy.errors import UserError
from argosy.kube.client.connection import Connection
from argosy.kube.client.kubeconfig import environment_paths, load_kubeconfig


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
    paths = environment_paths()
    if len(folders) < 2 or not paths:
        return None
    connection = _kubeconfig_connection()
    files = {path.absolute() for path in paths}
    runs = [(folder, run) for folder in folders if (run := folder.running())]
    by_server = [folder for folder, run in runs if connection and connection.server == run.api]
    by_file = [folder for folder, run in runs if Path(run.kubeconfig) in files]
    return next(iter([*by_server, *by_file]), None)


def _kubeconfig_connection() -> Connection | None:
    """Return the connection of $KUBECONFIG's current context, or None if it cannot be read."""
    try:
        return load_kubeconfig()
    except UserError:
        return None


def find_run(server: str) -> tuple[DataFolder, Run] | None:
    """Find the running sandbox or demo whose API is at this address."""
    for folder in running_folders():
        run = folder.running()
        if run and run.api == server:
            return folder, run
    return None


def running(folder: DataFolder) -> Run:
    run = folder.running()
    if run is None:
        raise UserError("no sandbox is running; start one with: argosy sandbox start", where=str(folder.root))
    return run


def administrator(folder: DataFolder, run: Run) -> Connection:
    """Straight to this sandbox: a kubeconfig that others write to may lead to another cluster by now."""
    authority = str(folder.tls / "ca.crt")
    return Connection(run.api, f"the {run.name}", ca_file=authority, token_file=str(folder.admin_token))
