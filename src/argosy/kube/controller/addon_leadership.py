"""Runs add-ons on a real cluster, in one process at a time.

In: add-ons, a cluster. Out: running controllers. Never: runs add-ons for embedded clusters only; changes an installed
CRD without permission.
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
    """Load the add-ons. Raises UserError for those that simulate parts of a real cluster."""
    found = load_addons(names)
    for each in found:
        if each.embedded_only and not is_embedded:
            raise UserError(f"{each.name} simulates a part that a real cluster has; omit it", where="--addons")
    return found


async def work(
    addons: Sequence[AddOn],
    cluster: Cluster,
    namespace: str,
    *,
    elects: bool,
    stands: Callable[[Election], None] = lambda election: None,
) -> None:
    """Run the add-ons until cancelled or failed. `on_candidate`: see `run_as_leader`."""

    async def duty() -> None:
        ended = asyncio.Event()
        async with running(addons, cluster, on_failure=ended.set):
            await ended.wait()
        raise ArgosyError("the add-ons ended; see the log")

    if elects:
        await lead(duty, cluster, namespace=namespace, name=LEASE, stands=stands)
    else:
        await duty()
