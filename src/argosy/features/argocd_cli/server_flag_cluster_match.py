"""Check that the server named by flags, environment or argocd's configuration belongs to the selected cluster.

In: parsed flags and an address. Out: nothing, or a UserError. Never: connects to the named server.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from argosy.cli.cluster_flags import read_target_options
from argosy.errors import UserError

OPTIONS_VARIABLE: Final = "ARGOCD_OPTS"  # argo: flags for every command
SERVER_VARIABLE: Final = "ARGOCD_SERVER"  # argo: same as --server
# These ignore the current context of the file.
COMMANDS_WITHOUT_CONTEXT: Final = ("login", "relogin", "logout", "context")
ADVICE: Final = "remove it to use that cluster, choose another cluster with --kube-context, or use Argo CD's own CLI"

CONFIG_ADVICE: Final = (
    "add --core to use that cluster, choose another cluster with --kube-context, choose another file with --config, "
    "or use Argo CD's own CLI"
)


def read_environment_options() -> list[str]:
    """Read the flags in ARGOCD_OPTS."""
    try:
        return shlex.split(os.environ.get(OPTIONS_VARIABLE, ""))
    except ValueError as error:
        raise UserError(f"invalid value: {error}; correct or unset it", where=OPTIONS_VARIABLE) from error


class NamedServer(NamedTuple):
    """The server named by a command line; an empty address means none."""

    address: str
    file: str = ""  # argocd's configuration file, if its current context names the server


def find_named_server(command: str, arguments: Sequence[str]) -> NamedServer | None:
    """Return the server of flags, environment or argocd's file; None if the command uses the cluster directly.

    argo: --core, --port-forward and a context of `argocd login --core` need no server.
    """
    flags: dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        name, has_value, value = word.partition("=")
        if name in ("--core", "--port-forward") and value != "false":
            return None
        if name == "--port-forward-namespace":
            return None
        if name in ("--server", "--argocd-context", "--config"):
            flags[name] = value if has_value else next(words, "")
    if server := flags.get("--server") or os.environ.get(SERVER_VARIABLE, ""):
        return NamedServer(server)
    context = flags.get("--argocd-context", "")
    return _configured_server(
        flags.get("--config", ""), context, is_read=bool(context) or command not in COMMANDS_WITHOUT_CONTEXT
    )


def _configured_server(file: str, context: str, *, is_read: bool) -> NamedServer | None:
    from argosy.features.argocd_cli.argocd_config_server_address import find_config_file, load_server

    path = Path(file).expanduser() if file else find_config_file()
    configured = load_server(path, context) if is_read else None
    if configured is None:
        return NamedServer(context)
    return None if configured.is_core else NamedServer(configured.address, str(path))


def check_server_of_cluster(args: argparse.Namespace, server: NamedServer) -> None:
    """Raise a UserError if the server does not belong to the cluster of this command."""
    import asyncio

    asyncio.run(_check_server_of_cluster(args, server))


async def _check_server_of_cluster(args: argparse.Namespace, server: NamedServer) -> None:
    from argosy.cli.cluster_target import open_target
    from argosy.features.serve.running_server_login_urls import list_web_urls_of_cluster
    from argosy.gitops.application_client.control_namespace import find_control_namespace
    from argosy.gitops.coexistence.argocd_server_addresses import is_same_address, list_server_addresses

    async with open_target(read_target_options(args)) as (cluster, target):
        connection = target.connection
        namespace = await find_control_namespace(cluster, [connection.namespace])
        server_addresses = [
            *await list_server_addresses(cluster, namespace),
            *list_web_urls_of_cluster(connection.server),
        ]
        addresses = (*server_addresses, connection.server)
        if server.address == connection.name or any(
            is_same_address(server.address, servers_text) for servers_text in addresses
        ):
            return
    servers_text = (
        f"whose servers are {', '.join(server_addresses)}" if server_addresses else "which has no known server"
    )
    origin = f", named by the context in {server.file}," if server.file else ""
    advice = CONFIG_ADVICE if server.file else ADVICE
    raise UserError(f"{server.address}{origin} is not a server of {target.display_name}, {servers_text}; {advice}")
