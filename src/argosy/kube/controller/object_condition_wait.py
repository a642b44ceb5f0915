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
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey

ManifestsByName = Mapping[str, Manifest]
ListObjects = Callable[[], Awaitable[Listing]]

RETRY_BACKOFF = Backoff(first_seconds=0.1, max_seconds=5.0, jitter=0.2)
UNWATCHABLE_VERSION = ""  # the resourceVersion of a listing that cannot be watched


class WaitTimeout(UserError):
    """The condition was not met in time."""


async def wait_for_object(
    cluster: ClusterReader, key: ResourceKey, is_done: Callable[[Manifest | None], bool], timeout_seconds: float
) -> bool:
    """Wait for one object; the condition gets None while it does not exist. Permission to get that object is enough."""

    async def list_object() -> Listing:
        try:
            # k8s: a permission by name covers a list of that name only
            return await cluster.list(key.group_kind, namespace=key.namespace, fields=f"metadata.name={key.name}")
        except Forbidden:
            live = await cluster.get(key)
            return Listing([live] if live else [], UNWATCHABLE_VERSION)

    return await _wait(
        cluster,
        key.group_kind,
        key.namespace,
        list_object,
        lambda manifests: is_done(manifests.get(key.name)),
        timeout_seconds,
    )


async def wait_for_objects(
    cluster: ClusterReader,
    kind: GroupKind,
    namespace: str,
    is_done: Callable[[ManifestsByName], bool],
    timeout_seconds: float,
) -> bool:
    """Wait for all objects of a kind in a namespace; the condition gets them by name."""

    async def list_objects() -> Listing:
        return await cluster.list(kind, namespace=namespace)

    return await _wait(cluster, kind, namespace, list_objects, is_done, timeout_seconds)


async def _wait(
    cluster: ClusterReader,
    kind: GroupKind,
    namespace: str,
    list_objects: ListObjects,
    is_done: Callable[[ManifestsByName], bool],
    timeout_seconds: float,
    *,
    clock: Clock = SYSTEM_CLOCK,
) -> bool:
    listing = await list_objects()
    rounds = 0
    try:
        async with asyncio.timeout(timeout_seconds):
            while not await _watch_until_done(cluster, kind, namespace, listing, is_done):
                rounds += 1
                await sleep(clock, RETRY_BACKOFF.delay(rounds))  # do not flood a server that ends watches at once
                with contextlib.suppress(TransientError):
                    listing = await list_objects()
    except TimeoutError:
        return False
    return True


async def _watch_until_done(
    cluster: ClusterReader,
    kind: GroupKind,
    namespace: str,
    listing: Listing,
    is_done: Callable[[ManifestsByName], bool],
) -> bool:
    """Return True when the condition is met; False if the watch ended before, or is forbidden."""
    manifests = {manifest["metadata"]["name"]: manifest for manifest in listing.items}
    if is_done(manifests):
        return True
    if listing.version == UNWATCHABLE_VERSION:
        return False
    events = cluster.watch(kind, since=listing.version, namespace=namespace)
    async with contextlib.AsyncExitStack() as stack:
        if hasattr(events, "aclose"):
            stack.push_async_callback(events.aclose)
        with contextlib.suppress(Gone, TransientError, Forbidden):
            async for event in events:
                if event.type == "DELETED":
                    manifests.pop(event.manifest["metadata"]["name"], None)
                elif event.type != "BOOKMARK":
                    manifests[event.manifest["metadata"]["name"]] = event.manifest
                if is_done(manifests):
                    return True
    return False
