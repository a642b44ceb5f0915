"""Selects one of the running sandboxes and demos.

In: a folder, a name or a URL, and $KUBECONFIG. Out: a folder. Never: opens a connection; fails because of an unreadable
kubeconfig.
"""

from __future__ import annotations

from pathlib import Path

from argosy.cli.data_folder import DataFolder, Run, running_folders
from argosy.errors import UserError
from argosy.kube.client.connection import Connection
from argosy.kube.client.kubeconfig import environment_paths, load_kubeconfig


def chosen_folder(data_dir: Path | None, name: str = "") -> DataFolder:
    """Return the given folder; else a running one of that name: $KUBECONFIG's, the default one, or the latest."""
    if data_dir is not None:
        return DataFolder(data_dir)
    found = running_folders()
    fitting = [folder for folder in found if _name(folder) == name] or found
    return _of_kubeconfig(fitting) or next(iter(fitting), DataFolder())


def _name(folder: DataFolder) -> str:
    run = folder.running()
    return run.name if run else ""


def _of_kubeconfig(folders: list[DataFolder]) -> DataFolder | None:
    """Select by the server of the current context, else by file: the file's current context may be another cluster."""
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
    """Return the connection of $KUBECONFIG's current context; None if it is unreadable."""
    try:
        return load_kubeconfig()
    except UserError:
        return None


def find_run(server: str) -> tuple[DataFolder, Run] | None:
    """Find the running sandbox or demo with this API URL."""
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
    """Return an administrator connection to this sandbox; a shared kubeconfig may point to another cluster by now."""
    authority = str(folder.tls / "ca.crt")
    return Connection(run.api, f"the {run.name}", ca_file=authority, token_file=str(folder.admin_token))
