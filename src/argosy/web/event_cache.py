"""Short-lived cache of Events. Events are not watched, and every open page needs them.

In: a cluster, namespaces. Out: their Events, and a message if they are stale or missing. Never: raises, because pages
work without Events; drops cached Events while the cluster is unreachable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from argosy.errors import ClusterError, TransientError
from argosy.gitops.application_client.application_service import utc_now
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest
from argosy.kube.well_known_kinds import EVENT

LIST_TIMEOUT_SECONDS: Final = 4.0  # timeout of one list request
# A list stays valid for longer, the more Events it returned.
MIN_CACHE_SECONDS: Final = 0.5
MAX_CACHE_SECONDS: Final = 10.0
CACHE_SECONDS_PER_THOUSAND_EVENTS: Final = 2.0
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


@dataclass(frozen=True, slots=True)
class EventListing:
    events: list[Manifest]
    error: str = ""


class EventCache:
    """Events of one cluster by namespace."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._entries: dict[str, NamespaceEvents] = {}  # most recently used last

    async def list_all(self) -> EventListing:
        return await self._get_events("")

    async def list_namespace_events(self, namespaces: Iterable[str], *, is_fresh: bool = False) -> EventListing:
        """List Events of namespaces; "" means cluster-scoped objects. `is_fresh` bypasses the cache (page load)."""
        requested = sorted({namespace or CLUSTER_SCOPED_EVENTS_NAMESPACE for namespace in namespaces})
        listings = await asyncio.gather(*(self._get_events(namespace, is_fresh=is_fresh) for namespace in requested))
        errors = dict.fromkeys(listing.error for listing in listings if listing.error)
        return EventListing([event for listing in listings for event in listing.events], "; ".join(errors))

    async def _get_events(self, namespace: str, *, is_fresh: bool = False) -> EventListing:
        time = asyncio.get_running_loop().time
        entry = self._entries.pop(namespace, None) or NamespaceEvents()
        self._entries[namespace] = entry
        while len(self._entries) > MAX_CACHED_NAMESPACES:
            del self._entries[next(iter(self._entries))]
        requested_at = time()
        async with entry.lock:
            if requested_at - entry.listed_at >= (0 if is_fresh else entry.cache_seconds):
                entry.listed_at = time()
                await self._refresh_events(namespace, entry)
        return EventListing(entry.events, entry.error)

    async def _refresh_events(self, namespace: str, entry: NamespaceEvents) -> None:
        try:
            async with asyncio.timeout(LIST_TIMEOUT_SECONDS):
                entry.events = list((await self._cluster.list(EVENT, namespace=namespace)).items)
        except (ClusterError, TransientError, TimeoutError) as error:
            reason = "the cluster does not answer" if isinstance(error, TimeoutError) else str(error).partition("; ")[0]
            freshness = f"showing those read at {entry.read_at:%H:%M:%S}" if entry.read_at else "showing none"
            entry.error = f"cannot read Events ({reason}): {freshness}"
            return
        entry.read_at, entry.error = utc_now(), ""
