"""`argocd --server HOST` and `argocd login HOST`: only for a server of the cluster that commands go to.

In: parsed flags and an address. Out: nothing, or a UserError. Never: talks to the server that was named.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from typing import Final

from argosy.cli.target_flags import target_options
from argosy.model.errors import UserError

OPTIONS: Final = "ARGOCD_OPTS"  # argo: flags for every command
SERVER: Final = "ARGOCD_SERVER"  # argo: as --server
ADVICE: Final = "leave it out to go on there, choose another cluster with --kube-context, or use Argo CD's own CLI"


def options_of_environment() -> list[str]:
    """Read the flags in ARGOCD_OPTS."""
    try:
        return shlex.split(os.environ.get(OPTIONS, ""))
    except ValueError as error:
        raise UserError(f"cannot be read: {error}; correct or unset it", where=OPTIONS) from error


def named_server(arguments: Sequence[str]) -> str | None:
    """Return the server that flags or the environment name; None with --core or --port-forward, which need none."""
    server = os.environ.get(SERVER, "")
    words = iter(arguments)
    for word in words:
        name, has_value, value = word.partition("=")
        if name in ("--core", "--port-forward") and value != "false":
            return None
        if name == "--port-forward-namespace":
            return None
        if name in ("--server", "--argocd-context"):
            server = value if has_value else next(words, "")
    return server


def check_server(chosen: argparse.Namespace, server: str) -> None:
    """Raise a UserError if the server is not one of the cluster that this command goes to."""
    import asyncio

    asyncio.run(_check(chosen, server))


async def _check(chosen: argparse.Namespace, server: str) -> None:
    from argosy.app.entering import pages_of
    from argosy.app.target import open_target
    from argosy.desk.control import control_namespace
    from argosy.desk.server_addresses import is_same_address, list_server_addresses

    async with open_target(target_options(chosen)) as (cluster, target):
        connection = target.connection
        namespace = await control_namespace(cluster, [connection.namespace])
        own = [*await list_server_addresses(cluster, namespace), *pages_of(connection.server)]
        if server == connection.name or any(is_same_address(server, known) for known in (*own, connection.server)):
            return
    known = f"whose servers are {', '.join(own)}" if own else "of which no server is known"
    raise UserError(f"{server} is not a server of {target.where}, {known}; {ADVICE}")
