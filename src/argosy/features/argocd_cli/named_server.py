"""`argocd --server HOST`, `argocd login HOST` and argocd's own configuration: only a server of the chosen cluster.

In: parsed flags and an address. Out: nothing, or a UserError. Never: talks to the server that was named.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from argosy.cli.target_flags import target_options
from argosy.errors import UserError

OPTIONS: Final = "ARGOCD_OPTS"  # argo: flags for every command
SERVER: Final = "ARGOCD_SERVER"  # argo: as --server
OWN_SERVER: Final = ("login", "relogin", "logout", "context")  # the current context of the file does not matter to them
ADVICE: Final = "leave it out to go on there, choose another cluster with --kube-context, or use Argo CD's own CLI"

CONFIG_ADVICE: Final = (
    "add --core to go on there, choose another cluster with --kube-context, name another file with --config, "
    "or use Argo CD's own CLI"
)


def options_of_environment() -> list[str]:
    """Read the flags in ARGOCD_OPTS."""
    try:
        return shlex.split(os.environ.get(OPTIONS, ""))
    except ValueError as error:
        raise UserError(f"cannot be read: {error}; correct or unset it", where=OPTIONS) from error


class NamedServer(NamedTuple):
    """The server that a command line means; an empty address: none is named."""

    address: str
    file: str = ""  # Argo CD's own configuration, where its current context names the server


def named_server(command: str, arguments: Sequence[str]) -> NamedServer | None:
    """Return the server of flags, the environment or Argo CD's own file; None if the cluster is asked directly.

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
    if server := flags.get("--server") or os.environ.get(SERVER, ""):
        return NamedServer(server)
    context = flags.get("--argocd-context", "")
    return _configured_server(flags.get("--config", ""), context, is_read=bool(context) or command not in OWN_SERVER)


def _configured_server(file: str, context: str, *, is_read: bool) -> NamedServer | None:
    from argosy.features.argocd_cli.config_file import find_config_file, load_server

    path = Path(file).expanduser() if file else find_config_file()
    found = load_server(path, context) if is_read else None
    if found is None:
        return NamedServer(context)
    return None if found.is_core else NamedServer(found.address, str(path))


def check_server(chosen: argparse.Namespace, server: NamedServer) -> None:
    """Raise a UserError if the server is not one of the cluster that this command goes to."""
    import asyncio

    asyncio.run(_check(chosen, server))


async def _check(chosen: argparse.Namespace, server: NamedServer) -> None:
    from argosy.cli.target import open_target
    from argosy.features.serve.local_login import pages_of
    from argosy.gitops.application_client.control_namespace import control_namespace
    from argosy.gitops.coexistence.argocd_server_addresses import is_same_address, list_server_addresses

    async with open_target(target_options(chosen)) as (cluster, target):
        connection = target.connection
        namespace = await control_namespace(cluster, [connection.namespace])
        own = [*await list_server_addresses(cluster, namespace), *pages_of(connection.server)]
        addresses = (*own, connection.server)
        if server.address == connection.name or any(is_same_address(server.address, known) for known in addresses):
            return
    known = f"whose servers are {', '.join(own)}" if own else "of which no server is known"
    origin = f", which the context in {server.file} names," if server.file else ""
    advice = CONFIG_ADVICE if server.file else ADVICE
    raise UserError(f"{server.address}{origin} is not a server of {target.where}, {known}; {advice}")
