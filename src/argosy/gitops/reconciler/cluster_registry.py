"""Registry of destination clusters; each is connected when the first Application needs it.

In: cluster Secrets from the settings. Out: a DestinationCluster for an Application, or why there is none. Never: lets
one cluster use all workers; keeps an unused cluster open; returns an outdated cache.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from argosy.annotations import REFRESH
from argosy.gitops.application import Application, read_destination
from argosy.gitops.policy.destination_clusters import HERE, KnownCluster
from argosy.gitops.reconciler.application_controller import APPLICATION
from argosy.gitops.reconciler.destination import Ground, Shut
from argosy.gitops.reconciler.remote_cluster import Outpost
from argosy.gitops.reconciler.settings_watch import Settings
from argosy.gitops.status.wire_format import mapping
from argosy.kube.controller import Cache, Clock
from argosy.kube.controller.clock import within
from argosy.kube.controller.cluster_concurrency import Admission
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of

log = logging.getLogger(__name__)
UNUSED: Final = 600.0  # seconds without Applications until a cluster is closed
SWEPT: Final = 60.0  # seconds between sweeps


class Grounds:
    """A DestinationRegistry. `build_remote` builds a RemoteCluster from a Secret; `enqueue` enqueues an Application."""

    def __init__(
        self,
        here: Ground,
        settings: Settings,
        cache: Cache,
        clock: Clock,
        establish: Callable[[KnownCluster, Manifest], Outpost],
        wake: Callable[[ResourceKey], None],
        *,
        workers: int,
    ) -> None:
        """`cache`: the cache of the Applications' cluster."""
        self._here, self._settings, self._cache, self._clock = here, settings, cache, clock
        self._establish, self._wake, self._admission = establish, wake, Admission(workers, wake, clock.monotonic)
        self._outposts: dict[str, Outpost] = {}  # by Secret name
        self._marks: dict[str, object] = {}
        self._unused: dict[str, float] = {}  # since when
        self._work: dict[str, asyncio.Task[None]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._swept = asyncio.Event()
        self._context = contextvars.copy_context()

    @property
    def outposts(self) -> tuple[Outpost, ...]:
        """Destination clusters other than this one that are open or being opened."""
        return tuple(self._outposts.values())

    def grounds(self) -> Iterable[Ground]:
        yield self._here
        for each in self._outposts.values():
            if each.ground is not None:
                yield each.ground

    def entered(self, app: Application) -> AbstractContextManager[Ground | Shut]:
        known = self._settings.rules().clusters.find(app.destination)
        if known is not None and known.server == HERE:
            return nullcontext(self._here)
        outpost = None if known is None else self._outpost(known)
        if known is None or outpost is None:
            return nullcontext(Shut(f"cluster {app.destination.name or app.destination.server} is not configured"))
        return self._within(known.secret, outpost, app)

    def passed(self, app: ResourceKey) -> None:
        self._admission.ended(app)

    def is_inside(self, app: ResourceKey) -> bool:
        """True if the Application is being reconciled in another cluster."""
        return self._admission.is_inside(app)

    def _outpost(self, known: KnownCluster) -> Outpost | None:
        """Return the open cluster, unless its Secret changed."""
        secret = self._settings.cluster_secret(known.secret)
        if secret is None:
            return None
        mark = _mark(secret, self._settings.programs())
        if known.secret in self._outposts and self._marks[known.secret] != mark:
            log.info("cluster %s: reconnecting because its Secret changed", known.name)
            self._close(known.secret)
        if known.secret not in self._outposts:
            outpost = self._establish(known, secret)
            outpost.changed = lambda: self.wake_all(known.secret)
            self._outposts[known.secret], self._marks[known.secret] = outpost, mark
            self._admission.open(known.secret, lambda: outpost.is_slow)
            # Its task has no context of the first Application, and outlives that Application's reconciliation.
            self._work[known.secret] = asyncio.create_task(
                outpost.run(), name=f"cluster {known.name}", context=self._context.copy()
            )
        self._unused.pop(known.secret, None)
        return self._outposts[known.secret]

    @contextlib.contextmanager
    def _within(self, secret: str, outpost: Outpost, app: Application) -> Iterator[Ground | Shut]:
        ground = outpost.ground
        if ground is None:
            yield Shut(outpost.said)  # its Applications are enqueued when that changes
        elif not self._admission.enter(secret, app.key, app.project):
            yield Shut()
        else:
            try:
                yield ground
            finally:
                self._admission.leave(secret, app.key)

    def wake_all(self, secret: str) -> None:
        for app in self._goers().get(secret, ()):
            self._wake(app)

    def _goers(self) -> dict[str, list[ResourceKey]]:
        """Map Secrets of clusters to the Applications that deliver there."""
        clusters = self._settings.rules().clusters
        found: dict[str, list[ResourceKey]] = {}
        known: dict[tuple[str, str], str] = {}
        for manifest in self._cache.list(APPLICATION):
            place = mapping(mapping(manifest.get("spec")).get("destination"))
            named = str(place.get("server") or ""), str(place.get("name") or "")
            if named not in known:
                cluster = clusters.find(read_destination(*named))
                known[named] = cluster.secret if cluster is not None else ""
            if known[named]:
                found.setdefault(known[named], []).append(key_of(manifest))
        return found

    def look_again(self) -> None:
        """Sweep soon, because a Secret may have changed or gone."""
        self._swept.set()

    def follow_settings(self) -> None:
        for each in self._outposts.values():
            each.follow_settings()

    async def run(self) -> None:
        """Close unused clusters until cancelled. Others stay open for running work: see `close`."""
        self._context = contextvars.copy_context()
        while True:
            with contextlib.suppress(TimeoutError):
                await within(self._clock, SWEPT, self._swept.wait())
            self._swept.clear()
            self._sweep()

    async def close(self) -> None:
        """Close all clusters; call it when no reconciliation is running."""
        for secret in list(self._outposts):
            self._close(secret)
        await asyncio.gather(*self._ending, return_exceptions=True)

    def _sweep(self) -> None:
        goers, now = self._goers(), self._clock.monotonic()
        for secret in list(self._outposts):
            if self._settings.cluster_secret(secret) is None:
                self._close(secret)
            elif secret in goers:
                self._unused.pop(secret, None)
            elif now - self._unused.setdefault(secret, now) >= UNUSED:
                self._close(secret)

    def _close(self, secret: str) -> None:
        self._unused.pop(secret, None)
        self._marks.pop(secret, None)
        del self._outposts[secret]
        self._admission.close(secret)
        task = self._work.pop(secret)
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _mark(secret: Manifest, programs: frozenset[str]) -> object:
    """Return a value that changes when a cluster must be reconnected. argo: also on request by an annotation."""
    metadata = secret["metadata"]
    asked = (metadata.get("annotations") or {}).get(REFRESH)
    return metadata.get("uid"), asked, tuple(sorted((secret.get("data") or {}).items())), programs
