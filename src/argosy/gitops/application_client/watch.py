"""Follows Applications until something is true of them.

In: Applications, what to wait for. Out: how it ended. Never: waits for what cannot come by itself, unless told to; or
for a cluster that is gone.
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
UNHEARD: Final = 10.0  # seconds after which somebody is told that nobody takes the work up
PACE: Final = 2.0  # seconds between looks at what no watch of an Application tells
PATIENCE: Final = 5.0  # seconds that something must stay hopeless, where it may yet be a slip
AWAY: Final = 30.0  # seconds without an answer after which a cluster counts as gone

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
    """What was last seen, and since when it is hopeless."""

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
        """Whether it is over by what no watch tells."""
        if self.is_done(await self.desk.get(self.key)):
            return True
        if self.last is None or not self.waited.gives_up or not (self.waited.wants_health or self.waited.operation):
            return False
        if stuck := await stuck_pods(self.desk, self.last):
            self.why = stuck[0]
            return True
        for pod in await stuck_pods(self.desk, self.last, frozenset({UNSCHEDULED})):
            if pod not in self._told:
                tell(f"{self.last.name}: waits for room: {pod}")
            self._told.add(pod)
        return False

    async def guard(self, tell: Tell) -> None:
        """Looks again and again; ends where it is over, and raises where the cluster stays away."""
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
                    tell(f"{error}; trying again for {AWAY:g} s")
                is_told = True

    def ended(self) -> Ended:
        if self.last is None:
            return Ended(Ending.REACHED if self.waited.is_deleted else Ending.GONE, None)
        return Ended(Ending.HOPELESS if self.why else Ending.REACHED, self.last, self.why)


def _silent(text: str) -> None:
    """Nobody is told."""


async def follow(
    desk: Desk,
    app: Application,
    waited: Waited,
    seconds: float,
    see: Seen,
    tell: Tell = _silent,
    clock: Clock = SYSTEM_CLOCK,
) -> Ended:
    """Until nothing is missing. `see` is told of every state on the way."""
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
    """Whether its state is that of the operation that was asked for last, and not of the one before."""
    return app.operation is None or (app.state is not None and not app.state.progress.is_over)


async def unheard(desk: Desk, app: Application) -> str:
    """What to say where nobody begins its operation."""
    engines = await seen_engines(desk.cluster, desk.control)
    told = "nobody has taken the operation up yet"
    if engines.is_usual(app.annotations, app.namespace):
        return f"{told}; does a controller run? argosy controller"
    return f"{told}; who delivers: {engines.told(app.annotations, app.namespace)}"


async def follow_operation(desk: Desk, app: Application, seconds: float, see: Seen, tell: Tell) -> Ended:
    """Until the operation that was just asked for is over."""
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
