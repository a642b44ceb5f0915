"""Short-lived cache of Events. Events are not watched, and every open page needs them.

In: namespaces. Out: their Events, and a message if they are stale or missing. Never: raises, because pages work without
Events; drops cached Events while the cluster is unreachable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from argosy.errors import ClusterError, TransientError
from argosy.gitops.application_client.client import utc_now
from argosy.gitops.application_client.event_list import EVENT
from argosy.kube.objects import Manifest
from argosy.web.request import RequestContext

LIST_TIMEOUT_SECONDS: Final = 4.0  # timeout of one list request
MIN_CACHE_SECONDS, MAX_CACHE_SECONDS, CACHE_SECONDS_PER_THOUSAND_EVENTS = (
    0.5,
    10.0,
    2.0,
)  # seconds a list stays valid: longer, the more Events it returned
MAX_CACHED_NAMESPACES: Final = 100  # cached namespaces
CLUSTER_SCOPED_EVENTS_NAMESPACE: Final = "default"  # k8s: namespace that holds Events of cluster-scoped objects


@dataclass
class NamespaceEvents:
    events: list[Manifest] = field(default_factory=list)
    listed_at: float = -MAX_CACHE_SECONDS
    read_at: datetime | None = None
    error: str = ""
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def cache_seconds(self) -> float:
        return min(MIN_CACHE_SECONDS + CACHE_SECONDS_PER_THOUSAND_EVENTS * len(self.events) / 1000, MAX_CACHE_SECONDS)


class EventCache:
    def __init__(self) -> None:
        self.entries: dict[str, NamespaceEvents] = {}


@dataclass(frozen=True, slots=True)
class EventListing:
    events: list[Manifest]
    error: str = ""


async def list_all_events(request: RequestContext) -> EventListing:
    return await _get_events(request, "")


async def list_namespace_events(
    request: RequestContext, namespaces: Iterable[str], *, is_fresh: bool = False
) -> EventListing:
    """List Events of namespaces; "" means cluster-scoped objects. `is_fresh` bypasses the cache (page load)."""
    requested = sorted({listing or CLUSTER_SCOPED_EVENTS_NAMESPACE for listing in namespaces})
    listings = await asyncio.gather(*(_get_events(request, listing, is_fresh=is_fresh) for listing in requested))
    errors = dict.fromkeys(listing.error for listing in listings if listing.error)
    return EventListing([event for listing in listings for event in listing.events], "; ".join(errors))


async def _get_events(request: RequestContext, namespace: str, *, is_fresh: bool = False) -> EventListing:
    entries, time = request.site.get_module_state(EventCache).entries, asyncio.get_running_loop().time
    entry = entries.pop(namespace, None) or NamespaceEvents()
    entries[namespace] = entry  # most recently used last; the first is evicted
    while len(entries) > MAX_CACHED_NAMESPACES:
        del entries[next(iter(entries))]
    requested_at = time()
    async with entry.lock:
        if requested_at - entry.listed_at >= (0 if is_fresh else entry.cache_seconds):
            entry.listed_at = time()
            await _list_events(request, namespace, entry)
    return EventListing(entry.events, entry.error)


async def _list_events(request: RequestContext, namespace: str, entry: NamespaceEvents) -> None:
    try:
        async with asyncio.timeout(LIST_TIMEOUT_SECONDS):
            entry.events = list((await request.site.service.cluster.list(EVENT, namespace=namespace)).items)
    except (ClusterError, TransientError, TimeoutError) as error:
        reason = "the cluster does not answer" if isinstance(error, TimeoutError) else str(error).partition("; ")[0]
        freshness = f"showing those read at {entry.read_at:%H:%M:%S}" if entry.read_at else "showing none"
        entry.error = f"cannot read Events ({reason}): {freshness}"
        return
    entry.read_at, entry.error = utc_now(), ""
