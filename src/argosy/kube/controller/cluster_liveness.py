"""Liveness probing of a cluster, and a client whose calls fail as soon as the cluster stops answering.

In: a cheap request. Out: the reason why the cluster does not answer; a wrapped cluster whose calls end.
Never: waits for an answer for ever; declares a cluster dead because of one lost answer; stops after an error.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

from argosy.errors import ArgosyError, ClusterError, UserError
from argosy.kube.client import Cluster
from argosy.kube.client.forwarding_cluster import Call, ForwardingCluster, Send
from argosy.kube.client.status_errors import ApiServerNotTrusted, ApiServerUnavailable
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock, cancel_and_wait, run_with_timeout, sleep

log = logging.getLogger(__name__)
T = TypeVar("T")
PROBE_INTERVAL_SECONDS: Final = 5.0  # seconds from an answer to the next probe
PROBE_RETRY_SECONDS: Final = 1.0  # seconds to the next probe after a failure
PROBE_TIMEOUT_SECONDS: Final = 10.0  # timeout of a probe in seconds
FAILURE_THRESHOLD_SECONDS: Final = 15.0  # seconds without an answer after which the cluster counts as dead
SLOW_PROBE_SECONDS: Final = 2.0  # seconds; a slower cluster gets fewer workers
REFUSED_CODES: Final = frozenset({401, 403})


class LivenessProbe:
    """Probes a cluster. `failure` is why it does not answer; empty while it does, or for the first seconds without."""

    def __init__(self, probe: Callable[[], Awaitable[object]], clock: Clock = SYSTEM_CLOCK) -> None:
        self._probe, self._clock = probe, clock
        self.failure = ""
        self.alive = asyncio.Event()  # the cluster answered, and has not been declared dead since
        self.dead = asyncio.Event()  # the cluster is declared dead
        self._last_answer_at = clock.monotonic()  # time of the last answer
        self._probe_started_at: float | None = None

    @property
    def is_slow(self) -> bool:
        is_late = (
            self._probe_started_at is not None and self._clock.monotonic() - self._probe_started_at > SLOW_PROBE_SECONDS
        )
        return is_late or not self.alive.is_set()

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            self._probe_started_at = self._clock.monotonic()
            try:
                await run_with_timeout(self._clock, PROBE_TIMEOUT_SECONDS, _run(self._probe()))
            except TimeoutError:
                self._record_failure("did not answer in time", is_certain=False)
            except (ClusterError, UserError) as error:
                self._record_failure(
                    str(error), is_certain=not isinstance(error, ClusterError) or error.code in REFUSED_CODES
                )
            except ArgosyError as error:
                self._record_failure(str(error), is_certain=isinstance(error, ApiServerNotTrusted))
            except Exception:
                log.exception("liveness probe failed unexpectedly")
                self._record_failure("cannot process the cluster's answer; see the controller log", is_certain=False)
            else:
                self._record_answer()
            self._probe_started_at = None
            await sleep(self._clock, PROBE_INTERVAL_SECONDS if self.alive.is_set() else PROBE_RETRY_SECONDS)

    def _record_answer(self) -> None:
        self._last_answer_at, self.failure = self._clock.monotonic(), ""
        self.dead.clear()
        self.alive.set()

    def _record_failure(self, failure: str, *, is_certain: bool) -> None:
        """Record a failed probe. A refusal is certain, because a person must act; other failures may be temporary."""
        if is_certain or self._clock.monotonic() - self._last_answer_at >= FAILURE_THRESHOLD_SECONDS:
            self.failure = failure
            self.alive.clear()
            self.dead.set()

    async def run_while_alive(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of a call; raise ApiServerUnavailable as soon as the cluster is declared dead."""
        task, death = asyncio.ensure_future(work), asyncio.ensure_future(self.dead.wait())
        try:
            await asyncio.wait({task, death}, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise ApiServerUnavailable(self.failure)
        finally:
            death.cancel()
            await cancel_and_wait(task)


async def _run(work: Awaitable[T]) -> T:
    return await work


class FailFastCluster(ForwardingCluster):
    """A `Cluster` whose calls fail when the cluster is declared dead, instead of waiting for their timeouts."""

    def __init__(self, cluster: Cluster, probe: LivenessProbe) -> None:
        super().__init__(cluster)
        self._run_while_alive = probe.run_while_alive

    async def _send(self, call: Call, send: Send[T]) -> T:
        return await self._run_while_alive(send())
