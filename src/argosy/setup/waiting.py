"""Waiting for a cluster to become as it should be.

In: what to look at, when it is done, how long at most. Out: whether it came to be. Never: asks every few seconds (it
lists once, then watches); gives up because a watch ended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from argosy.cluster import ClusterReader, Listing
from argosy.model.errors import Gone, TransientError
from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind, ResourceKey
from argosy.runtime.clock import SYSTEM_CLOCK, Backoff, Clock, sleep

Named = Mapping[str, Manifest]

AGAIN = Backoff(first=0.1, most=5.0, jitter=0.2)


async def until(
    cluster: ClusterReader, key: ResourceKey, is_done: Callable[[Manifest | None], bool], seconds: float
) -> bool:
    """One object; None while it does not exist."""
    return await until_all(cluster, key.group_kind, key.namespace, lambda found: is_done(found.get(key.name)), seconds)


async def until_all(
    cluster: ClusterReader,
    kind: GroupKind,
    namespace: str,
    is_done: Callable[[Named], bool],
    seconds: float,
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> bool:
    """All objects of a kind in a namespace, by name."""
    listing = await cluster.list(kind, namespace=namespace)
    try:
        async with asyncio.timeout(seconds):
            await _follow(cluster, kind, namespace, listing, is_done, clock)
    except TimeoutError:
        return False
    return True


async def _follow(
    cluster: ClusterReader,
    kind: GroupKind,
    namespace: str,
    listing: Listing,
    is_done: Callable[[Named], bool],
    clock: Clock,
) -> None:
    rounds = 0
    while not await _watched(cluster, kind, namespace, listing, is_done):
        rounds += 1
        await sleep(clock, AGAIN.delay(rounds))  # a server that ends watches at once must not be hammered
        with contextlib.suppress(TransientError):
            listing = await cluster.list(kind, namespace=namespace)


async def _watched(
    cluster: ClusterReader, kind: GroupKind, namespace: str, listing: Listing, is_done: Callable[[Named], bool]
) -> bool:
    """False where the watch ended first."""
    found = {manifest["metadata"]["name"]: manifest for manifest in listing.items}
    if is_done(found):
        return True
    events = cluster.watch(kind, since=listing.version, namespace=namespace)
    async with contextlib.AsyncExitStack() as stack:
        if hasattr(events, "aclose"):
            stack.push_async_callback(events.aclose)
        with contextlib.suppress(Gone, TransientError):
            async for event in events:
                if event.type == "DELETED":
                    found.pop(event.manifest["metadata"]["name"], None)
                elif event.type != "BOOKMARK":
                    found[event.manifest["metadata"]["name"]] = event.manifest
                if is_done(found):
                    return True
    return False
