"""Whether a cluster answers, asked again and again; calls of one that does not come to an end.

In: a question that costs little. Out: why it does not answer, in a sentence; the same cluster with calls that end.
Never: waits for an answer for ever; gives a cluster up because of one answer that was lost; ends because of one.
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
BETWEEN: Final = 5.0  # seconds from an answer to the next question
AGAIN: Final = 1.0  # after none
LONGEST: Final = 10.0  # that an answer may take
PATIENCE: Final = 15.0  # without an answer: then it is said
SLOW: Final = 2.0  # an answer that takes longer: others need not wait for this one
REFUSED: Final = frozenset({401, 403})


class Pulse:
    """`said` is why there is no answer; empty while there is, or while it is too early to say."""

    def __init__(self, ask: Callable[[], Awaitable[object]], clock: Clock = SYSTEM_CLOCK) -> None:
        self._ask, self._clock = ask, clock
        self.said = ""
        self.beats = asyncio.Event()  # it has answered, and nothing was in the way since
        self.stopped = asyncio.Event()  # there is a reason to say
        self._since = clock.monotonic()  # of the last answer
        self._asked: float | None = None

    @property
    def is_slow(self) -> bool:
        late = self._asked is not None and self._clock.monotonic() - self._asked > SLOW
        return late or not self.beats.is_set()

    async def run(self) -> None:
        """Until cancelled."""
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
                log.exception("whether a cluster answers cannot be told")
                self._missed("its answer is not understood; see the log of the controller", is_certain=False)
            else:
                self._answered()
            self._asked = None
            await sleep(self._clock, BETWEEN if self.beats.is_set() else AGAIN)

    def _answered(self) -> None:
        self._since, self.said = self._clock.monotonic(), ""
        self.stopped.clear()
        self.beats.set()

    def _missed(self, said: str, *, is_certain: bool) -> None:
        """A refusal lasts until somebody changes something; silence may pass."""
        if is_certain or self._clock.monotonic() - self._since >= PATIENCE:
            self.said = said
            self.beats.clear()
            self.stopped.set()

    async def lasting(self, work: Coroutine[Any, Any, T]) -> T:
        """The answer to a call; Unavailable as soon as nobody answers any more."""
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
    """The same cluster: its calls last no longer than it answers. Implements `Cluster`."""

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
