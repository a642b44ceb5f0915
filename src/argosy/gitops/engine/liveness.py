"""Liveness and readiness of a controller: one sentence per problem.

In: its engine, Lease, queue and watches. Out: problems; empty if it is healthy. Never: blames it for a destination
cluster; makes a request: all facts are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from argosy.gitops.engine.engine import Engine
from argosy.gitops.engine.metrics import of_engine, of_process
from argosy.kube.controller import SYSTEM_CLOCK, Clock
from argosy.observability.metrics import text

if TYPE_CHECKING:
    from argosy.kube.controller.leader_election import Election

STUCK: Final = 600.0  # seconds per reconciliation, and without progress of the queue
STALE: Final = 900.0  # seconds without an event of a kind: watches restart after ten minutes at most
MOMENT: Final = 5.0  # seconds until workers have started
ENDED: Final = 60.0  # seconds from the end of the workers to that of the engine
UNHEARD: Final = 30.0  # seconds that the API server may leave a candidate without an answer


class Vitals:
    """State of one controller; it may run several engines in turn, or wait to lead."""

    def __init__(self, workers: int, stuck: float = STUCK, clock: Clock = SYSTEM_CLOCK) -> None:
        self.engine: Engine | None = None
        self._election: Election | None = None
        self._beside: list[Election] = []  # elections of add-ons
        self._workers, self._stuck, self._clock = workers, stuck, clock
        self._was_filled = self._was_joined = False
        # Called with the leader (empty: this one), and the earliest time at which the Lease may be taken.
        self.told: Callable[[str, str], None] = lambda leader, until: None

    def stands(self, election: Election) -> None:
        """Register the election of the engine."""
        self._election, election.told = election, self.told

    def stands_beside(self, election: Election) -> None:
        """Register an election of add-ons."""
        self._beside.append(election)

    async def kept(self, engine: Engine) -> None:
        """Run the engine and observe it."""
        self.engine = engine
        try:
            await engine.run()
        finally:
            self.engine = None

    @property
    def _is_filled(self) -> bool:
        self._was_filled = self._was_filled or (self.engine is not None and self.engine.filled_at is not None)
        return self._was_filled

    def unready(self) -> list[str]:
        """List what is missing at startup; a candidate that waits to lead is ready."""
        if self.engine is None and self._election is not None:
            return []
        if not self._is_filled:
            lacking = [] if self.engine is None else self.engine.everything.lacking()
            return lacking or ["the initial list of the cluster's objects is not complete"]
        return [] if self._has_joined else ["it has not joined the sharding members yet"]

    @property
    def _has_joined(self) -> bool:
        """True once joined: a rolling update ends the old replica when this one can take over at once."""
        sharing = None if self.engine is None else self.engine.sharing
        self._was_joined = self._was_joined or sharing is None or sharing.members.identity in sharing.members.roster
        return self._was_joined

    def troubles(self) -> list[str]:
        confinement = [] if self.engine is None else self.engine.confinement.troubles()
        return [*self._of_lease(), *self._of_silence(), *self.stuck(), *self._overlong(is_away=True), *confinement]

    def stuck(self) -> list[str]:
        """List problems that a restart would fix; unreachable or slow clusters are not among them."""
        return [*self._of_watches(), *self._of_work()]

    def measured(self) -> str:
        return text([*of_process(), *([] if self.engine is None else of_engine(self.engine))])

    def _of_lease(self) -> Iterator[str]:
        sharing = None if self.engine is None else self.engine.sharing
        if sharing is not None and (late := sharing.members.overdue()) > 0:
            yield (
                f"its Lease as {sharing.members.identity} expired {late:.0f} s ago without renewal: "
                "other controllers take over its applications"
            )
        for each in (*([] if self._election is None else [self._election]), *self._beside):
            if each.leads and (late := each.overdue()) > 0:
                yield f"its Lease as the leader expired {late:.0f} s ago without renewal"
            elif not each.leads and (silent := each.silence()) > UNHEARD:
                yield f"no answer from the API server for {silent:.0f} s: the leader is unknown"

    def _of_silence(self) -> Iterator[str]:
        if self.engine is not None and self.engine.is_silent():
            silent = self._clock.monotonic() - self.engine.heard.heard_at
            yield f"no event from the cluster for {silent:.0f} s"

    def _of_watches(self) -> Iterator[str]:
        if self.engine is None or self.engine.is_silent():
            return
        now, heard, everything = self._clock.monotonic(), self.engine.heard, self.engine.everything
        for kind in sorted(everything.kinds - everything.troubles.keys()):  # errors of the cluster are not ours
            fed = heard.fed.get(kind)
            if fed is not None and now - fed > STALE:
                yield f"the watch of {kind} has received nothing for {now - fed:.0f} s"

    def _of_work(self) -> Iterator[str]:
        if self.engine is None or self.engine.filled_at is None:
            return
        now, queue = self._clock.monotonic(), self.engine.queue
        if queue.is_closed:
            if now - queue.moved_at > ENDED:
                yield f"the workers ended {now - queue.moved_at:.0f} s ago, but the engine is still running"
            return
        if queue.workers < self._workers and now - self.engine.filled_at > MOMENT:
            yield f"{queue.workers} of {self._workers} workers are alive"
        yield from self._overlong(is_away=False)
        still = min(queue.oldest, now - queue.moved_at)
        if still > self._stuck:
            yield f"{len(queue)} applications are queued, and none was started or finished for {still:.0f} s"

    def _overlong(self, *, is_away: bool) -> Iterator[str]:
        """Report the longest reconciliation that takes too long, here or in a destination cluster."""
        if self.engine is None or self.engine.queue.is_closed:
            return
        working, is_inside = self.engine.queue.working, self.engine.grounds.is_inside
        late = [key for key, seconds in working.items() if seconds > self._stuck and is_inside(key) == is_away]
        if late:
            key = max(late, key=working.__getitem__)
            where = ", in its destination cluster" if is_away else ""
            yield f"{key.kind} {key.namespace}/{key.name} has been reconciling for {working[key]:.0f} s{where}"
