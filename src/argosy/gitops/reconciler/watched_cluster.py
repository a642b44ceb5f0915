"""The objects of a cluster, watched into one cache; for a controller also a client that knows its own writes.

In: a client of the cluster, settings, declared watches. Out: cache, client, one call of each watch for each change of
its kinds. Never: decides what a change means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from argosy.gitops.live import ApplicationCachePolicy, TrackingSettings, build_indexes
from argosy.gitops.reconciler.read_your_writes import ReadYourWritesClient
from argosy.kube.client import Cluster, ClusterReader
from argosy.kube.client.call_metrics import RecordCall, RecordingCluster
from argosy.kube.controller import ChangeWatch, Clock, InformerCache
from argosy.kube.controller.informer_set import CachePolicy, InformerSet, IsWatched
from argosy.kube.objects import Manifest, key_of
from argosy.kube.well_known_kinds import CRD

ChooseReader = Callable[[Cluster], ClusterReader]  # from the recorded client to the one that lists and watches


class WatchedObjects:
    """A cache that informers fill, indexed by the tracking settings. Changes go to the watches in order."""

    def __init__(
        self,
        reader: ClusterReader,
        cache: InformerCache,
        tracking: Callable[[], TrackingSettings],
        is_watched: IsWatched,
        clock: Clock,
        *,
        cache_policy: CachePolicy | None = None,
    ) -> None:
        """`tracking` returns the settings in force."""
        self.cache, self._tracking_in_force = cache, tracking
        self._watches: tuple[ChangeWatch, ...] = ()
        self.informers = InformerSet(
            reader,
            is_watched,
            cache,
            self.on_change,
            definition_kinds=[CRD],
            clock=clock,
            cache_policy=cache_policy,
        )
        self.tracking = tracking()
        self._add_indexes()

    def add_watches(self, watches: Iterable[ChangeWatch]) -> None:
        """Call these on changes, after those that were added before. Add them before the informers run."""
        added = tuple(watches)
        self._watches += added
        self.informers.require_kinds(kind for watch in added if watch.is_required for kind in watch.kinds)

    def on_change(self, before: Manifest | None, after: Manifest | None) -> None:
        """Handle a change of the cache."""
        kind = key_of(after or before or {}).group_kind
        for watch in self._watches:
            if watch.covers(kind):
                watch.on_change(before, after)

    def apply_tracking(self) -> bool:
        """Index by the tracking settings in force; return True if they are new."""
        if self.tracking == self._tracking_in_force():
            return False
        self.tracking = self._tracking_in_force()
        self._add_indexes()
        return True

    def _add_indexes(self) -> None:
        index_by_tracking(self.cache, self.tracking)


def index_by_tracking(cache: InformerCache, tracking: TrackingSettings) -> None:
    """Index the cache so that the objects of an Application are found in it; replaces earlier indexes."""
    for name, index in build_indexes(tracking).items():
        cache.add_index(name, index)


class WatchedCluster(WatchedObjects):
    """A cluster for a controller: its cache keeps what a controller needs, its client knows its own writes."""

    def __init__(
        self,
        cluster: Cluster,
        cache: InformerCache,
        tracking: Callable[[], TrackingSettings],
        is_watched: IsWatched,
        record: RecordCall,
        clock: Clock,
        *,
        choose_reader: ChooseReader = lambda client: client,
    ) -> None:
        """`record` is called for each request; `choose_reader` returns the client that lists and watches."""
        self.recorder = RecordingCluster(cluster, record, clock.monotonic)
        policy = ApplicationCachePolicy(tracking)
        self.client = ReadYourWritesClient(self.recorder, cache.get, clock.monotonic, policy.trim)
        policy.deduplicate = self.client.reuse_own_write
        reader = choose_reader(self.recorder)
        super().__init__(reader, cache, tracking, is_watched, clock, cache_policy=policy)

    def on_change(self, before: Manifest | None, after: Manifest | None) -> None:
        self.client.on_watch_event(before, after)
        super().on_change(before, after)
