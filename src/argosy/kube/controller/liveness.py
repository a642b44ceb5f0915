"""Liveness probing of a cluster, and a client whose calls fail as soon as the cluster stops answering.

In: a cheap request. Out: the reason why the cluster does not answer; a wrapped cluster whose calls end.
Never: waits for an answer for ever; declares a cluster dead because of one lost answer; stops after an error.
"""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from argosy.errors import ArgosyError, ClusterError, UserError
from argosy.kube.client import Catalog, Cluster, Listing, User, WatchEvent
from argosy.kube.client.status_errors import Unavailable, Untrusted
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock, let_go, sleep, within
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest

log = logging.getLogger(__name__)
T = TypeVar("T")
BETWEEN: Final = 5.0  # seconds from an answer to the next probe
AGAIN: Final = 1.0  # seconds to the next probe after a failure
LONGEST: Final = 10.0  # timeout of a probe in seconds
PATIENCE: Final = 15.0  # seconds without an answer after which the cluster counts as dead
SLOW: Final = 2.0  # seconds; a slower cluster gets fewer workers
REFUSED: Final = frozenset({401, 403})


class Pulse:
    """Probes a cluster. `failure` is why it does not answer; empty while it does, or for the first seconds without."""

    def __init__(self, ask: Callable[[], Awaitable[object]], clock: Clock = SYSTEM_CLOCK) -> None:
        self._ask, self._clock = ask, clock
        self.said = ""
        self.beats = asyncio.Event()  # the cluster answered, and has not been declared dead since
        self.stopped = asyncio.Event()  # the cluster is declared dead
        self._since = clock.monotonic()  # time of the last answer
        self._asked: float | None = None

    @property
    def is_slow(self) -> bool:
        late = self._asked is not None and self._clock.monotonic() - self._asked > SLOW
        return late or not self.beats.is_set()

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            self._asked = self._clock.monotonic()
            try:
                await within(self._clock, LONGEST, _started(self._ask()))
            except TimeoutError:
                self._missed("did not answer in time", is_certain=False)
            except (ClusterError, UserError) as error:
                self._missed(str(error), is_certain=not isinstance(error, ClusterError) or error.code in REFUSED)
            except ArgosyError as error:
                self._missed(str(error), is_certain=isinstance(error, Untrusted))
            except Exception:
                log.exception("liveness probe failed unexpectedly")
                self._missed("cannot process the cluster's answer; see the controller log", is_certain=False)
            else:
                self._answered()
            self._asked = None
            await sleep(self._clock, BETWEEN if self.beats.is_set() else AGAIN)

    def _answered(self) -> None:
        self._since, self.said = self._clock.monotonic(), ""
        self.stopped.clear()
        self.beats.set()

    def _missed(self, said: str, *, is_certain: bool) -> None:
        """Record a failed probe. A refusal is certain, because a person must act; other failures may be temporary."""
        if is_certain or self._clock.monotonic() - self._since >= PATIENCE:
            self.said = said
            self.beats.clear()
            self.stopped.set()

    async def lasting(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a call; raise ApiServerUnavailable as soon as the cluster is declared dead."""
        task, end = asyncio.ensure_future(work), asyncio.ensure_future(self.stopped.wait())
        try:
            await asyncio.wait({task, end}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise Unavailable(self.said)
        finally:
            end.cancel()
            await let_go(task)


async def _started(work: Awaitable[T]) -> T:
    return await work


class Living:
    """A `Cluster` whose calls fail when the cluster is declared dead, instead of waiting for their timeouts."""

    def __init__(self, cluster: Cluster, pulse: Pulse) -> None:
        self._cluster, self._lasting = cluster, pulse.lasting

    async def kinds(self) -> Catalog:
        return await self._lasting(self._cluster.kinds())

    async def get(self, key: ResourceKey) -> Manifest | None:
        return await self._lasting(self._cluster.get(key))

    async def list(self, kind: GroupKind, **selectors: Any) -> Listing:
        return await self._lasting(self._cluster.list(kind, **selectors))

    def watch(self, kind: GroupKind, **selectors: Any) -> AsyncIterator[WatchEvent]:
        return self._cluster.watch(kind, **selectors)

    def logs(self, key: ResourceKey, **chosen: Any) -> AsyncIterator[str]:
        return self._cluster.logs(key, **chosen)

    def acting_as(self, user: User) -> Living:
        other = copy.copy(self)
        other._cluster = self._cluster.acting_as(user)
        return other

    async def create(self, manifest: Manifest, **terms: Any) -> Manifest:
        return await self._lasting(self._cluster.create(manifest, **terms))

    async def apply(self, manifest: Manifest, **terms: Any) -> Manifest:
        return await self._lasting(self._cluster.apply(manifest, **terms))

    async def replace(self, manifest: Manifest, **terms: Any) -> Manifest:
        return await self._lasting(self._cluster.replace(manifest, **terms))

    async def patch(self, key: ResourceKey, patch: Any, **terms: Any) -> Manifest:
        return await self._lasting(self._cluster.patch(key, patch, **terms))

    async def delete(self, key: ResourceKey, **terms: Any) -> None:
        await self._lasting(self._cluster.delete(key, **terms))
