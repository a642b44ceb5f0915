"""Waits until objects of a cluster satisfy a condition.

In: objects, a condition, a timeout. Out: True if the condition was met in time. Never: polls if it can watch (it lists
once, then watches); gives up because a watch ended or is forbidden.
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
UNWATCHED = ""  # the resourceVersion of a listing that cannot be watched


class TooLate(UserError):
    """The condition was not met in time."""


async def until(
    cluster: ClusterReader, key: ResourceKey, is_done: Callable[[Manifest | None], bool], seconds: float
) -> bool:
    """Wait for one object; the condition gets None while it does not exist. Permission to get that object is enough."""

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
    """Wait for all objects of a kind in a namespace; the condition gets them by name."""

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
                await sleep(clock, AGAIN.delay(rounds))  # do not flood a server that ends watches at once
                with contextlib.suppress(TransientError):
                    listing = await look()
    except TimeoutError:
        return False
    return True


async def _watched(
    cluster: ClusterReader, kind: GroupKind, namespace: str, listing: Listing, is_done: Callable[[Named], bool]
) -> bool:
    """Return True when the condition is met; False if the watch ended before, or is forbidden."""
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
