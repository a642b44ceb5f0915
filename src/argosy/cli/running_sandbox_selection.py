"""Selects one of the running sandboxes and demos.

In: a folder, a name or a URL, and $KUBECONFIG. Out: a folder. Never: opens a connection; fails because of an unreadable
kubeconfig.
"""

from __future__ import annotations

from pathlib import Path

from argosy.cli.sandbox_data_folder_and_lock import DataFolder, RunningInstance, list_running_folders
from argosy.errors import UserError
from argosy.kube.client.connection_settings import Connection
from argosy.kube.client.kubeconfig import list_environment_paths, load_kubeconfig


def select_folder(data_dir: Path | None, name: str = "") -> DataFolder:
    """Return the given folder; else a running one of that name: $KUBECONFIG's, the default one, or the latest."""
    if data_dir is not None:
        return DataFolder(data_dir)
    running = list_running_folders()
    matching = [folder for folder in running if _get_instance_name(folder) == name] or running
    return _find_by_kubeconfig(matching) or next(iter(matching), DataFolder())


def _get_instance_name(folder: DataFolder) -> str:
    run = folder.find_running_instance()
    return run.name if run else ""


def _find_by_kubeconfig(folders: list[DataFolder]) -> DataFolder | None:
    """Select by the server of the current context, else by file: the file's current context may be another cluster."""
    paths = list_environment_paths()
    if len(folders) < 2 or not paths:
        return None
    connection = _load_kubeconfig_connection()
    files = {path.absolute() for path in paths}
    runs = [(folder, run) for folder in folders if (run := folder.find_running_instance())]
    by_server = [folder for folder, run in runs if connection and connection.server == run.api]
    by_file = [folder for folder, run in runs if Path(run.kubeconfig) in files]
    return next(iter([*by_server, *by_file]), None)


def _load_kubeconfig_connection() -> Connection | None:
    """Return the connection of $KUBECONFIG's current context; None if it is unreadable."""
    try:
        return load_kubeconfig()
    except UserError:
        return None


def find_instance_by_url(server: str) -> tuple[DataFolder, RunningInstance] | None:
    """Find the running sandbox or demo with this API URL."""
    for folder in list_running_folders():
        run = folder.find_running_instance()
        if run and run.api == server:
            return folder, run
    return None


def require_running_instance(folder: DataFolder) -> RunningInstance:
    run = folder.find_running_instance()
    if run is None:
        raise UserError("no sandbox is running; start one with: argosy sandbox start", where=str(folder.root))
    return run


def build_admin_connection(folder: DataFolder, run: RunningInstance) -> Connection:
    """Return an administrator connection to this sandbox; a shared kubeconfig may point to another cluster by now."""
    authority = str(folder.tls / "ca.crt")
    return Connection(run.api, f"the {run.name}", ca_file=authority, token_file=str(folder.admin_token))
