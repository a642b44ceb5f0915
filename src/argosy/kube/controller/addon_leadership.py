"""Add-ons on a real cluster: run until the end, in one process of all that would.

In: add-ons, a cluster. Out: running controllers. Never: what only an embedded cluster can bear; a kind changed that
somebody else installed and that we may not touch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from argosy.errors import ArgosyError, UserError
from argosy.kube.client import Cluster
from argosy.kube.controller import AddOn, lead
from argosy.kube.controller.addon_loader import load_addons, running
from argosy.kube.controller.leader_election import Election

LEASE: Final = "argosy-addons"


def chosen_addons(names: str, *, is_embedded: bool) -> list[AddOn]:
    """Raises UserError for those that play what a real cluster does by itself."""
    found = load_addons(names)
    for each in found:
        if each.embedded_only and not is_embedded:
            raise UserError(f"{each.name} plays what a real cluster does itself; leave it out", where="--addons")
    return found


async def work(
    addons: Sequence[AddOn],
    cluster: Cluster,
    namespace: str,
    *,
    elects: bool,
    stands: Callable[[Election], None] = lambda election: None,
) -> None:
    """Ends by being cancelled, or by an error. `stands`: see `lead`."""

    async def duty() -> None:
        ended = asyncio.Event()
        async with running(addons, cluster, on_failure=ended.set):
            await ended.wait()
        raise ArgosyError("the add-ons ended; see the log")

    if elects:
        await lead(duty, cluster, namespace=namespace, name=LEASE, stands=stands)
    else:
        await duty()
