"""Waiting for a cluster to become as it should be.

In: what to look at, when it is done, how long at most. Out: whether it came to be. Never: asks every few seconds
where it may watch (it lists once, then watches); gives up because a watch ended or is not allowed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

from argosy.errors import Forbidden, Gone, TransientError, UserError
from argosy.kube.client import ClusterReader, Listing
from argosy.kube.controller.clock import SYSTEM_CLOCK, Backoff, Clock, sleep
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

Named = Mapping[str, Manifest]
Look = Callable[[], Awaitable[Listing]]

AGAIN = Backoff(first=0.1, most=5.0, jitter=0.2)
UNWATCHED = ""  # the version of a listing that no watch can go on from


class TooLate(UserError):
    """What was waited for did not come in time."""


async def until(
    cluster: ClusterReader, key: ResourceKey, is_done: Callable[[Manifest | None], bool], seconds: float
) -> bool:
    """One object; None while it does not exist. Who may see that object, and no other, may wait for it."""

    async def look() -> Listing:
        try:
            # k8s: a permission by name covers a list of that name only
            return await cluster.list(key.group_kind, namespace=key.namespace, fields=f"metadata.name={key.name}")
        except Forbidden:
            live = await cluster.get(key)
            return Listing([live] if live else [], UNWATCHED)

    return await _in_time(
        cluster, key.group_kind, key.namespace, look, lambda found: is_done(found.get(key.name)), seconds
    )


async def until_all(
    cluster: ClusterReader, kind: GroupKind, namespace: str, is_done: Callable[[Named], bool], seconds: float
) -> bool:
    """All objects of a kind in a namespace, by name."""

    async def look() -> Listing:
        return await cluster.list(kind, namespace=namespace)

    return await _in_time(cluster, kind, namespace, look, is_done, seconds)


async def _in_time(
    cluster: ClusterReader,
    kind: GroupKind,
    namespace: str,
    look: Look,
    is_done: Callable[[Named], bool],
    seconds: float,
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> bool:
    listing = await look()
    rounds = 0
    try:
        async with asyncio.timeout(seconds):
            while not await _watched(cluster, kind, namespace, listing, is_done):
                rounds += 1
                await sleep(clock, AGAIN.delay(rounds))  # a server that ends watches at once must not be hammered
                with contextlib.suppress(TransientError):
                    listing = await look()
    except TimeoutError:
        return False
    return True


async def _watched(
    cluster: ClusterReader, kind: GroupKind, namespace: str, listing: Listing, is_done: Callable[[Named], bool]
) -> bool:
    """False where the watch ended first, or is not allowed."""
    found = {manifest["metadata"]["name"]: manifest for manifest in listing.items}
    if is_done(found):
        return True
    if listing.version == UNWATCHED:
        return False
    events = cluster.watch(kind, since=listing.version, namespace=namespace)
    async with contextlib.AsyncExitStack() as stack:
        if hasattr(events, "aclose"):
            stack.push_async_callback(events.aclose)
        with contextlib.suppress(Gone, TransientError, Forbidden):
            async for event in events:
                if event.type == "DELETED":
                    found.pop(event.manifest["metadata"]["name"], None)
                elif event.type != "BOOKMARK":
                    found[event.manifest["metadata"]["name"]] = event.manifest
                if is_done(found):
                    return True
    return False
