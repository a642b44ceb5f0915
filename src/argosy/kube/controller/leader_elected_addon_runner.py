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
from argosy.kube.controller import AddOn, run_as_leader
from argosy.kube.controller.addon_loader import load_addons, run_addons
from argosy.kube.controller.leader_election import LeaderElection

ADDONS_LEASE_NAME: Final = "argosy-addons"


def load_allowed_addons(names: str, *, is_embedded: bool) -> list[AddOn]:
    """Load the add-ons. Raises UserError for those that simulate parts of a real cluster."""
    addons = load_addons(names)
    for addon in addons:
        if addon.embedded_only and not is_embedded:
            raise UserError(f"{addon.name} simulates a part that a real cluster has; omit it", where="--addons")
    return addons


async def run_addons_until_cancelled(
    addons: Sequence[AddOn],
    cluster: Cluster,
    namespace: str,
    *,
    use_leader_election: bool,
    on_candidate: Callable[[LeaderElection], None] = lambda election: None,
) -> None:
    """Run the add-ons until cancelled or failed. `on_candidate`: see `run_as_leader`."""

    async def run_as_holder() -> None:
        failed = asyncio.Event()
        async with run_addons(addons, cluster, on_failure=failed.set):
            await failed.wait()
        raise ArgosyError("the add-ons ended; see the log")

    if use_leader_election:
        await run_as_leader(
            run_as_holder, cluster, namespace=namespace, name=ADDONS_LEASE_NAME, on_election=on_candidate
        )
    else:
        await run_as_holder()
