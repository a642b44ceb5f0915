"""Watches an Application until its wait conditions are met.

In: Applications, wait conditions. Out: how the wait ended. Never: waits for conditions that need action, unless
requested; waits for a cluster that stays unreachable.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from argosy.errors import TransientError
from argosy.gitops.application import Application, read_application
from argosy.gitops.application_client.client import Desk
from argosy.gitops.application_client.stuck_pods import UNSCHEDULED, stuck_pods
from argosy.gitops.application_client.wait_conditions import Doom, Waited, doom
from argosy.gitops.coexistence.argocd_detection import seen_engines
from argosy.kube.controller.clock import SYSTEM_CLOCK, Clock, sleep
from argosy.kube.controller.wait import until
from argosy.kube.objects import Manifest

FOR_EVER: Final = 3e8  # seconds
UNHEARD: Final = 10.0  # seconds without a controller until the user is informed
PACE: Final = 2.0  # seconds between checks of objects that the Application's watch does not cover
PATIENCE: Final = 5.0  # seconds that an uncertain failure must last
AWAY: Final = 30.0  # seconds without an answer until the cluster counts as unreachable

Seen = Callable[[Application], None]
Tell = Callable[[str], None]


class Ending(StrEnum):
    REACHED = "reached"
    TOO_LATE = "too late"
    HOPELESS = "hopeless"
    GONE = "gone"


class Ended(NamedTuple):
    ending: Ending
    app: Application | None
    why: str = ""


class _Watch:
    """State of one wait: the last Application, and since when it cannot succeed."""

    def __init__(self, desk: Desk, app: Application, waited: Waited, see: Seen, clock: Clock) -> None:
        self.desk, self.key, self.waited, self.see, self.clock = desk, app.key, waited, see, clock
        self.last: Application | None = app
        self.why = ""
        self._since: dict[str, float] = {}
        self._told: set[str] = set()

    def is_done(self, manifest: Manifest | None) -> bool:
        if manifest is None:
            self.last = None
            return True
        self.last = read_application(manifest)
        self.see(self.last)
        if not self.waited.missing(self.last):
            return True
        return self.is_hopeless(doom(self.last, self.waited))

    def is_hopeless(self, found: Doom | None) -> bool:
        if found is None or not self.waited.gives_up:
            self._since = {}
            return False
        now = self.clock.monotonic()
        self._since = {found.why: self._since.get(found.why, now)}
        if found.is_certain or now - self._since[found.why] >= PATIENCE:
            self.why = found.why
            return True
        return False

    async def look(self, tell: Tell) -> bool:
        """Check Pods and the current Application; return True if the wait is over."""
        if self.is_done(await self.desk.get(self.key)):
            return True
        if self.last is None or not self.waited.gives_up or not (self.waited.wants_health or self.waited.operation):
            return False
        if stuck := await stuck_pods(self.desk, self.last):
            self.why = stuck[0]
            return True
        for pod in await stuck_pods(self.desk, self.last, frozenset({UNSCHEDULED})):
            if pod not in self._told:
                tell(f"{self.last.name}: waiting for a node: {pod}")
            self._told.add(pod)
        return False

    async def guard(self, tell: Tell) -> None:
        """Check periodically; returns if the wait is over, raises if the cluster stays unreachable."""
        answered, is_told = self.clock.monotonic(), False
        while True:
            await sleep(self.clock, PACE)
            try:
                if await self.look(tell):
                    return
                answered, is_told = self.clock.monotonic(), False
            except TransientError as error:
                if self.clock.monotonic() - answered >= AWAY:
                    raise
                if not is_told:
                    tell(f"{error}; retrying for {AWAY:g} s")
                is_told = True

    def ended(self) -> Ended:
        if self.last is None:
            return Ended(Ending.REACHED if self.waited.is_deleted else Ending.GONE, None)
        return Ended(Ending.HOPELESS if self.why else Ending.REACHED, self.last, self.why)


def _silent(text: str) -> None:
    """Default for `report`: ignores the message."""


async def follow(
    desk: Desk,
    app: Application,
    waited: Waited,
    seconds: float,
    see: Seen,
    tell: Tell = _silent,
    clock: Clock = SYSTEM_CLOCK,
) -> Ended:
    """Wait until all conditions are met; `on_application` gets every state on the way."""
    watch = _Watch(desk, app, waited, see, clock)
    work = asyncio.create_task(until(desk.cluster, app.key, watch.is_done, seconds or FOR_EVER))
    guard = asyncio.create_task(watch.guard(tell))
    try:
        await asyncio.wait({work, guard}, return_when=asyncio.FIRST_COMPLETED)
        if work.done() and not work.result():
            return Ended(Ending.TOO_LATE, watch.last)
        if not work.done():
            guard.result()
        return watch.ended()
    finally:
        for task in (work, guard):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


def is_taken_up(app: Application) -> bool:
    """True if `status.operationState` belongs to the latest request, not to the previous operation."""
    return app.operation is None or (app.state is not None and not app.state.progress.is_over)


async def unheard(desk: Desk, app: Application) -> str:
    """Describe why no controller has started the operation."""
    engines = await seen_engines(desk.cluster, desk.control)
    told = "no controller has started the operation yet"
    if engines.is_usual(app.annotations, app.namespace):
        return f"{told}; is one running? argosy controller"
    return f"{told}; delivered by: {engines.told(app.annotations, app.namespace)}"


async def follow_operation(desk: Desk, app: Application, seconds: float, see: Seen, tell: Tell) -> Ended:
    """Wait until the operation that was just requested is over."""
    begun = asyncio.Event()

    def watch(now: Application) -> None:
        if is_taken_up(now):
            begun.set()
        see(now)

    async def remind() -> None:
        try:
            await asyncio.wait_for(begun.wait(), UNHEARD)
        except TimeoutError:
            tell(f"{app.name}: {await unheard(desk, app)}")

    reminder = asyncio.create_task(remind())
    try:
        return await follow(desk, app, Waited(operation=True, gives_up=False), seconds, watch, tell)
    finally:
        reminder.cancel()


__all__ = ["Ended", "Ending", "Seen", "Tell", "Waited", "follow", "follow_operation", "is_taken_up", "unheard"]
