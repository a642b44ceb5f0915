"""Whether a controller really works: what speaks against it, a sentence for each reason.

In: its engine, its Lease, its queue, the news from its cluster. Out: reasons; none: it is well. Never: blames it for a
cluster that applications go to; asks anybody: everything is known here already.
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

STUCK: Final = 600.0  # seconds that one application may be worked on, and that nothing may move
STALE: Final = 900.0  # seconds that one kind may be silent: a watch is begun anew after ten minutes at most
MOMENT: Final = 5.0  # seconds until workers that were told to begin have done so
ENDED: Final = 60.0  # seconds from the end of the workers to that of the engine
UNHEARD: Final = 30.0  # seconds that the API server may leave a candidate without an answer


class Vitals:
    """Of one controller; it may have one engine after another, or wait for its turn."""

    def __init__(self, workers: int, stuck: float = STUCK, clock: Clock = SYSTEM_CLOCK) -> None:
        self.engine: Engine | None = None
        self._election: Election | None = None
        self._beside: list[Election] = []  # of add-ons
        self._workers, self._stuck, self._clock = workers, stuck, clock
        self._was_filled = self._was_joined = False
        # Who leads (empty: this one), and when the Lease may be taken at the earliest.
        self.told: Callable[[str, str], None] = lambda leader, until: None

    def stands(self, election: Election) -> None:
        """The engine leads, or waits for that."""
        self._election, election.told = election, self.told

    def stands_beside(self, election: Election) -> None:
        """Add-ons do."""
        self._beside.append(election)

    async def kept(self, engine: Engine) -> None:
        """Run it, and know how it is meanwhile."""
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
        """What is still to be done at the start; who waits for its turn to lead is ready to."""
        if self.engine is None and self._election is not None:
            return []
        if not self._is_filled:
            lacking = [] if self.engine is None else self.engine.everything.lacking()
            return lacking or ["what lives in the cluster is still being listed"]
        return [] if self._has_joined else ["it does not have its part of the work yet"]

    @property
    def _has_joined(self) -> bool:
        """Once: who replaces another by this one ends that when this one can take over at once."""
        sharing = None if self.engine is None else self.engine.sharing
        self._was_joined = self._was_joined or sharing is None or sharing.members.identity in sharing.members.roster
        return self._was_joined

    def troubles(self) -> list[str]:
        confinement = [] if self.engine is None else self.engine.confinement.troubles()
        return [*self._of_lease(), *self._of_silence(), *self.stuck(), *self._overlong(is_away=True), *confinement]

    def stuck(self) -> list[str]:
        """Those of them that a new process would mend: it could do no more while a cluster is away, or slow."""
        return [*self._of_watches(), *self._of_work()]

    def measured(self) -> str:
        return text([*of_process(), *([] if self.engine is None else of_engine(self.engine))])

    def _of_lease(self) -> Iterator[str]:
        sharing = None if self.engine is None else self.engine.sharing
        if sharing is not None and (late := sharing.members.overdue()) > 0:
            yield (
                f"its Lease as {sharing.members.identity} has not been renewed for {late:.0f} s more than it lasts: "
                "others have its applications, or will"
            )
        for each in (*([] if self._election is None else [self._election]), *self._beside):
            if each.leads and (late := each.overdue()) > 0:
                yield f"its Lease as the leader has not been renewed for {late:.0f} s more than it lasts"
            elif not each.leads and (silent := each.silence()) > UNHEARD:
                yield f"the API server has not answered for {silent:.0f} s: nobody knows who leads"

    def _of_silence(self) -> Iterator[str]:
        if self.engine is not None and self.engine.is_silent():
            silent = self._clock.monotonic() - self.engine.heard.heard_at
            yield f"nothing has been heard of the cluster for {silent:.0f} s"

    def _of_watches(self) -> Iterator[str]:
        if self.engine is None or self.engine.is_silent():
            return
        now, heard, everything = self._clock.monotonic(), self.engine.heard, self.engine.everything
        for kind in sorted(everything.kinds - everything.troubles.keys()):  # what a cluster refuses is no fault of ours
            fed = heard.fed.get(kind)
            if fed is not None and now - fed > STALE:
                yield f"the watch of {kind} has stood still for {now - fed:.0f} s"

    def _of_work(self) -> Iterator[str]:
        if self.engine is None or self.engine.filled_at is None:
            return
        now, queue = self._clock.monotonic(), self.engine.queue
        if queue.is_closed:
            if now - queue.moved_at > ENDED:
                yield f"its workers ended {now - queue.moved_at:.0f} s ago, and it has not"
            return
        if queue.workers < self._workers and now - self.engine.filled_at > MOMENT:
            yield f"of {self._workers} workers {queue.workers} are alive"
        yield from self._overlong(is_away=False)
        still = min(queue.oldest, now - queue.moved_at)
        if still > self._stuck:
            yield f"{len(queue)} applications wait, and none was begun or done for {still:.0f} s"

    def _overlong(self, *, is_away: bool) -> Iterator[str]:
        """The application that has been worked on for too long, here or in a cluster that it goes to."""
        if self.engine is None or self.engine.queue.is_closed:
            return
        working, is_inside = self.engine.queue.working, self.engine.grounds.is_inside
        late = [key for key, seconds in working.items() if seconds > self._stuck and is_inside(key) == is_away]
        if late:
            key = max(late, key=working.__getitem__)
            where = ", in the cluster that it goes to" if is_away else ""
            yield f"{key.kind} {key.namespace}/{key.name} has been worked on for {working[key]:.0f} s{where}"
