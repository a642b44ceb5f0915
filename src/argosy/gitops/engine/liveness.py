"""Liveness and readiness of a controller: one sentence per problem.

In: its engine, Lease, queue and watches. Out: problems; empty if it is healthy. Never: blames it for a destination
cluster; makes a request: all facts are in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from argosy.gitops.engine.engine import Engine
from argosy.gitops.engine.metrics import collect_engine_metrics, collect_process_metrics
from argosy.kube.controller import SYSTEM_CLOCK, Clock
from argosy.observability.metrics import render_families

if TYPE_CHECKING:
    from argosy.kube.controller.leader_election import LeaderElection

STUCK_SECONDS: Final = 600.0  # seconds per reconciliation, and without progress of the queue
STALE_WATCH_SECONDS: Final = 900.0  # seconds without an event of a kind: watches restart after ten minutes at most
WORKER_START_SECONDS: Final = 5.0  # seconds until workers have started
SHUTDOWN_SECONDS: Final = 60.0  # seconds from the end of the workers to that of the engine
CANDIDATE_SILENCE_SECONDS: Final = 30.0  # seconds that the API server may leave a candidate without an answer


class ControllerHealth:
    """State of one controller; it may run several engines in turn, or wait to lead."""

    def __init__(self, workers: int, stuck_seconds: float = STUCK_SECONDS, clock: Clock = SYSTEM_CLOCK) -> None:
        self.engine: Engine | None = None
        self._election: LeaderElection | None = None
        self._addon_elections: list[LeaderElection] = []  # elections of add-ons
        self._workers, self._stuck_seconds, self._clock = workers, stuck_seconds, clock
        self._was_filled = self._was_joined = False
        # Called with the leader (empty: this one), and the earliest time at which the Lease may be taken.
        self.on_leader_change: Callable[[str, str], None] = lambda leader, until: None

    def register_election(self, election: LeaderElection) -> None:
        """Register the election of the engine."""
        self._election, election.on_leader_change = election, self.on_leader_change

    def register_addon_election(self, election: LeaderElection) -> None:
        """Register an election of add-ons."""
        self._addon_elections.append(election)

    async def run_engine(self, engine: Engine) -> None:
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

    def list_readiness_problems(self) -> list[str]:
        """List what is missing at startup; a candidate that waits to lead is ready."""
        if self.engine is None and self._election is not None:
            return []
        if not self._is_filled:
            missing = [] if self.engine is None else self.engine.informers.describe_unsynced_kinds()
            return missing or ["the initial list of the cluster's objects is not complete"]
        return [] if self._has_joined else ["it has not joined the sharding members yet"]

    @property
    def _has_joined(self) -> bool:
        """True once joined: a rolling update ends the old replica when this one can take over at once."""
        sharing = None if self.engine is None else self.engine.sharding
        self._was_joined = self._was_joined or sharing is None or sharing.members.identity in sharing.members.roster
        return self._was_joined

    def list_problems(self) -> list[str]:
        confinement = [] if self.engine is None else self.engine.confinement.list_problems()
        return [
            *self._lease_problems(),
            *self._silence_problems(),
            *self.list_restartable_problems(),
            *self._slow_reconcile_problems(is_remote=True),
            *confinement,
        ]

    def list_restartable_problems(self) -> list[str]:
        """List problems that a restart would fix; unreachable or slow clusters are not among them."""
        return [*self._watch_problems(), *self._queue_problems()]

    def render_metrics(self) -> str:
        return render_families(
            [*collect_process_metrics(), *([] if self.engine is None else collect_engine_metrics(self.engine))]
        )

    def _lease_problems(self) -> Iterator[str]:
        sharing = None if self.engine is None else self.engine.sharding
        if sharing is not None and (seconds_since_expiry := sharing.members.seconds_since_expiry()) > 0:
            yield (
                f"its Lease as {sharing.members.identity} expired {seconds_since_expiry:.0f} s ago without renewal: "
                "other controllers take over its applications"
            )
        for election in (*([] if self._election is None else [self._election]), *self._addon_elections):
            if election.is_leader and (seconds_since_expiry := election.seconds_since_expiry()) > 0:
                yield f"its Lease as the leader expired {seconds_since_expiry:.0f} s ago without renewal"
            elif (
                not election.is_leader
                and (silence_seconds := election.seconds_since_read()) > CANDIDATE_SILENCE_SECONDS
            ):
                yield f"no answer from the API server for {silence_seconds:.0f} s: the leader is unknown"

    def _silence_problems(self) -> Iterator[str]:
        if self.engine is not None and self.engine.is_silent():
            silence_seconds = self._clock.monotonic() - self.engine.watched.recorder.last_update_at
            yield f"no event from the cluster for {silence_seconds:.0f} s"

    def _watch_problems(self) -> Iterator[str]:
        if self.engine is None or self.engine.is_silent():
            return
        now, recorder, informers = self._clock.monotonic(), self.engine.watched.recorder, self.engine.informers
        for kind in sorted(informers.watched_kinds - informers.errors.keys()):  # errors of the cluster are not ours
            last_read_at = recorder.last_read_at.get(kind)
            if last_read_at is not None and now - last_read_at > STALE_WATCH_SECONDS:
                yield f"the watch of {kind} has received nothing for {now - last_read_at:.0f} s"

    def _queue_problems(self) -> Iterator[str]:
        if self.engine is None or self.engine.filled_at is None:
            return
        now, queue = self._clock.monotonic(), self.engine.queue
        if queue.is_closed:
            if now - queue.last_progress_at > SHUTDOWN_SECONDS:
                yield f"the workers ended {now - queue.last_progress_at:.0f} s ago, but the engine is still running"
            return
        if queue.worker_count < self._workers and now - self.engine.filled_at > WORKER_START_SECONDS:
            yield f"{queue.worker_count} of {self._workers} workers are alive"
        yield from self._slow_reconcile_problems(is_remote=False)
        idle_seconds = min(queue.oldest_wait_seconds, now - queue.last_progress_at)
        if idle_seconds > self._stuck_seconds:
            yield f"{len(queue)} applications are queued, and none was started or finished for {idle_seconds:.0f} s"

    def _slow_reconcile_problems(self, *, is_remote: bool) -> Iterator[str]:
        """Report the longest reconciliation that takes too long, here or in a destination cluster."""
        if self.engine is None or self.engine.queue.is_closed:
            return
        running_seconds, is_inside = self.engine.queue.processing_seconds, self.engine.clusters.is_reconciling_remotely
        slow_keys = [
            key
            for key, seconds in running_seconds.items()
            if seconds > self._stuck_seconds and is_inside(key) == is_remote
        ]
        if slow_keys:
            key = max(slow_keys, key=running_seconds.__getitem__)
            location = ", in its destination cluster" if is_remote else ""
            yield (
                f"{key.kind} {key.namespace}/{key.name} has been reconciling for {running_seconds[key]:.0f} s{location}"
            )
