"""Advances a sync operation by one call, as far as it can go without waiting.

In: the operation as it was last written, its tasks, a cluster, and functions of other steps. Out: the operation as it
must be written now, and when to call again. Never: waits or sleeps.

The process may be killed before or after any call to the cluster, and restarts with the state that was written last.
Therefore a second apply changes nothing; a hook carries the mark of its operation and is created once; a finalizer
keeps it until its result has been written, and it is deleted only in a later call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import compress

from argosy.errors import ClusterError, Conflict
from argosy.gitops.application import Application, OperationState, Outcome, Phase, Progress
from argosy.gitops.application.hooks import DeletePolicy
from argosy.gitops.application.step_results import Task
from argosy.gitops.sync import hooks
from argosy.gitops.sync.live_lookup import read_live
from argosy.gitops.sync.notebook_gates import LOOK, Holds
from argosy.gitops.sync.operation_terms import SyncSettings, Terms
from argosy.gitops.sync.options import SyncOptions
from argosy.gitops.sync.prune import MayDelete
from argosy.gitops.sync.stale_status import hold_stale_statuses
from argosy.gitops.sync.task_health import AssessAll, refresh
from argosy.gitops.sync.task_states import DELETION, HELD_BACK, Board, Turn, failure_text, waiting_text, with_reasons
from argosy.gitops.sync.task_validation import Permitted, invalid
from argosy.gitops.sync.termination import TERMINATING, terminate
from argosy.gitops.sync.wave_gates import deadline_of, pause_of, with_pause
from argosy.gitops.sync.wave_step import DELETING, AppliedMessages, Ran, Runner, RunState
from argosy.kube.client import Catalog, Cluster, Propagation
from argosy.kube.names import ResourceKey
from argosy.kube.objects.timestamps import CLOCK_SKEW, written

RUNNING = "one or more tasks are running"  # argo: these messages are Argo CD's
UNSUCCESSFUL = "one or more synchronization tasks completed unsuccessfully"
NOT_APPLIED = "one or more objects failed to apply"
TOO_LATE = "operation is terminating due to timeout"


@dataclass(frozen=True, slots=True)
class Advanced:
    """Write the state first. Then call again: after `wait` seconds, or when something changes if it is None."""

    state: OperationState
    wait: float | None = None


async def advance(
    state: OperationState,
    tasks: Sequence[Task],
    app: Application,
    options: SyncOptions,
    *,
    cluster: Cluster,
    assess_all: AssessAll,
    settings: SyncSettings,
    now: Callable[[], datetime],
    may_delete: MayDelete,
    permitted: Permitted,
    is_mass: bool = False,
    shared: str = "",
    holds: Holds = lambda wave: None,
    applied_messages: AppliedMessages | None = None,
) -> Advanced:
    """Run one call. `is_mass_prune`: confirm all prunes. `shared_resource` names an object of another Application too.

    `find_hold` returns what keeps a wave from starting. `applied_messages` are the messages of earlier passes of this
    operation whose state could not be written.
    """
    if state.progress.is_over:
        return Advanced(state)
    assess_all = hold_stale_statuses(assess_all, settings.observed_kinds)
    terms = Terms(app, state, options, is_mass=is_mass)
    board = Board(state, tasks)
    if state.progress is Progress.TERMINATING:
        progress, message = await terminate(board, cluster, assess_all, Propagation(terms.propagation))
        if state.message == TOO_LATE:
            message += ", triggered by controller sync timeout"
        elif state.message.startswith(TERMINATING):
            message += f": {state.message.removeprefix(TERMINATING)}"
        return Advanced(_ended(state, board, progress, message, now))
    if is_too_late(state, settings, now()):
        return Advanced(replace(state, progress=Progress.TERMINATING, message=TOO_LATE), 0.0)
    if shared and options.is_on("FailOnSharedResource"):
        return Advanced(_ended(state, board, Progress.FAILED, f"Shared resource found: {shared}", now))
    messages = {} if applied_messages is None else applied_messages
    runner = Runner(board, terms, settings, cluster, may_delete, now, messages)
    return await _Call(board, terms, settings, cluster, assess_all, now, permitted, runner, holds).advance()


def is_too_late(state: OperationState, settings: SyncSettings, now: datetime) -> bool:
    """argo: all attempts of an operation share one timeout."""
    if not settings.timeout or not state.started:
        return False
    return now - datetime.fromisoformat(state.started) > timedelta(seconds=settings.timeout)


def _ended(
    state: OperationState, board: Board, progress: Progress, message: str, now: Callable[[], datetime]
) -> OperationState:
    return replace(
        state,
        progress=progress,
        message=message,
        finished=written(now()),
        results=board.results,
        has_result=True,
    )


@dataclass(slots=True)
class _Call:
    """The steps of Argo CD's sync, in order; each returns a result if the call ends with it."""

    board: Board
    terms: Terms
    settings: SyncSettings
    cluster: Cluster
    assess_all: AssessAll
    now: Callable[[], datetime]
    permitted: Permitted
    runner: Runner
    holds: Holds
    kinds: Catalog = field(default_factory=dict)
    may_begin: bool = False  # kinds and permissions of the pending tasks were checked in this call

    async def advance(self) -> Advanced:
        if not self.board.is_begun and (answer := await self._begin()):
            return answer
        while True:
            if answer := await self._pass():
                return answer

    async def _begin(self) -> Advanced | None:
        """argo: once per operation: create the namespace, then dry-run everything else."""
        if answer := await self._check():
            return answer
        turns = [turn for turn in self.board.turns if not self.terms.is_left_alone(turn.task)]
        space = next((turn for turn in turns if self._is_new_namespace(turn)), None)
        if self.terms.request.dry_run:
            space = None
        elif space is not None and (await self.runner.run([space])).state is RunState.FAILED:
            return self._over(Progress.FAILED, with_reasons("the namespace failed to apply", [space]))
        there = [turn for turn in turns if turn is not space and turn.key.group_kind in self.kinds]
        if not self.runner.try_out(there):
            return self._over(Progress.FAILED, "one or more objects failed to apply (dry run)")
        if self.terms.request.dry_run:
            return self._over(Progress.SUCCEEDED, "successfully synced (no more tasks)")
        return None

    def _is_new_namespace(self, turn: Turn) -> bool:
        destination = ResourceKey("", "Namespace", "", self.terms.app.destination.namespace)
        return turn.key == destination and turn.live is None and not turn.task.is_prune

    async def _check(self) -> Advanced | None:
        if self.may_begin:
            return None
        self.kinds = await self.cluster.kinds()
        pending = [turn for turn in self.board.turns if turn.is_pending]
        faults = invalid(pending, self.board, self.kinds, self.terms, self.permitted)
        for turn, reason in faults:
            self.board.record(turn, Outcome.SYNC_FAILED, None, reason)
        self.may_begin = True
        if not faults:
            return None
        reasons = ", ".join(reason for _, reason in faults)
        return self._over(Progress.FAILED, f"one or more synchronization tasks are not valid: {reasons}")

    async def _pass(self) -> Advanced | None:
        """Run one round. None if a step was run whose end may be visible at once."""
        await refresh(self.board, self.cluster, self.assess_all, self.now)
        told = [turn for turn in self.board.turns if turn.is_hook and turn.is_over and not turn.is_told]
        running = self._awaited()
        if told or running:
            # The end of a hook must be written before anything else happens, because after that the hook may be
            # deleted.
            message = waiting_text(running) if running else RUNNING
            return self._running(message, 0.0 if told else self._next_deadline(running))
        if vanishing := await self._vanishing():
            return self._running(waiting_text(vanishing, DELETION), DELETING)
        await self._find_hooks()
        await self._release_hooks()
        if self.board.failures():
            return await self._fail(NOT_APPLIED if self.terms.state.message.startswith(NOT_APPLIED) else UNSUCCESSFUL)
        return await self._next_step()

    def _awaited(self) -> list[Turn]:
        """argo: a step is applied completely before any of its tasks is awaited, because they may depend on each other.

        After a failure the rest of the step is not applied any more, and only hooks are awaited.
        """
        running = [turn for turn in self.board.turns if self.board.is_awaited(turn)]
        if not self._is_half_made():
            return running
        return [turn for turn in running if turn.is_hook] if self.board.failures() else []

    def _is_half_made(self) -> bool:
        """True if a step is applied only partly, because of a deletion or a CRD that was not ready."""
        pending = self._pending()
        step = {turn for turn in self.board.turns if pending and turn.step == pending[0].step}
        makes = {turn for turn in step if not turn.task.is_prune}
        # The namespace is created before its step, so it says nothing about the others.
        made = {turn for turn in makes if not turn.is_pending and turn.key.kind != "Namespace"}
        return bool(made) and not makes.isdisjoint(pending)

    async def _vanishing(self) -> list[Turn]:
        """argo: pruned objects must be gone before anything else happens."""
        left = []
        for turn in self.board.turns:
            if turn.outcome is Outcome.PRUNED and turn.live is not None:
                turn.live = await read_live(turn.key, self.cluster)
                if turn.live is not None and turn.live["metadata"].get("deletionTimestamp"):
                    left.append(turn)
        return left

    async def _find_hooks(self) -> None:
        """Read finished hooks that the watch has not delivered yet, so that they are released and deleted."""
        for turn in self.board.turns:
            if turn.is_hook and turn.is_over and turn.live is None and not turn.is_fresh:
                turn.live, turn.is_fresh = await read_live(turn.key, self.cluster), True
                if not turn.is_ours:
                    turn.live = None  # of another operation

    async def _release_hooks(self) -> None:
        for turn in self.board.turns:
            if turn.is_hook and turn.is_over and turn.live is not None:
                try:
                    await hooks.release(turn.key, turn.live, self.cluster)
                except ClusterError as error:
                    if error.may_pass or isinstance(error, Conflict):
                        raise
                    said = f"Failed to remove hook finalizer: {error.message}"
                    self.board.record(turn, turn.outcome, Progress.ERROR, said)

    async def _fail(self, message: str) -> Advanced:
        last = self.board.of_failure
        has_ends = any(turn.is_pending for turn in last) or any(self._leaving(DeletePolicy.HOOK_FAILED))
        if has_ends and self.board.results != self.terms.state.results:
            # The failure is written before anything reacts to it, because its cause may be gone by then.
            return self._running(message, 0.0)
        await self._delete_hooks(DeletePolicy.HOOK_FAILED)
        if pending := [turn for turn in last if turn.is_pending]:
            ran = await self.runner.run(pending)
            if ran.state is RunState.PENDING:
                return self._running(ran.message, ran.wait)
            return self._running(waiting_text(pending), 0.0)
        failures = set(self.board.failures())
        is_reason = (turn in failures or turn.outcome is Outcome.SYNC_FAILED for turn in self.board.ordinary)
        said = failure_text(message, list(compress(self.board.ordinary, is_reason)))
        if any(turn.outcome is Outcome.SYNC_FAILED for turn in last):
            said += "\n" + with_reasons("one or more SyncFail hooks failed", last)
        return self._over(Progress.FAILED, said)

    def _pending(self) -> list[Turn]:
        pending = [turn for turn in self.board.ordinary if turn.is_pending]
        return [turn for turn in pending if not self.terms.is_left_alone(turn.task)]

    async def _next_step(self) -> Advanced | None:
        pending = self._pending()
        if not pending:
            return await self._succeed("successfully synced (no more tasks)")
        if pause := self._pause():
            return self._running(RUNNING, (pause - self.now()).total_seconds())
        if answer := await self._check():
            return answer
        step = [turn for turn in pending if turn.step == pending[0].step]
        if answer := await self._held_back(step):
            return answer
        ran = await self.runner.run(step)
        whole = [turn for turn in self.board.turns if turn.step == step[0].step and not turn.is_pending]
        return await self._after(whole, ran, is_last=len(step) == len(pending))

    async def _held_back(self, step: Sequence[Turn]) -> Advanced | None:
        """Hold a wave until its notebooks have succeeded. Prunes are not held."""
        makes = [turn for turn in step if not turn.task.is_prune]
        phase, wave = step[0].step
        found = self.holds(wave) if phase is Phase.SYNC and makes else None
        if found is None:
            return None
        if not found.has_failed:
            return self._running(found.message, LOOK)
        for turn in makes:
            self.board.record(turn, Outcome.SYNC_FAILED, Progress.FAILED, f"{HELD_BACK}{found.message}")
        return await self._fail(NOT_APPLIED)

    async def _after(self, step: Sequence[Turn], ran: Ran, *, is_last: bool) -> Advanced | None:
        if ran.state is RunState.PENDING:
            return self._running(ran.message, ran.wait)
        if ran.state is RunState.FAILED:
            if running := [turn for turn in step if turn.is_hook and turn.is_running]:
                return self._running(waiting_text(running), None)
            if self.board.of_failure:
                return self._running(RUNNING, 0.0)  # the failure is written before SyncFail hooks run
            return await self._fail(NOT_APPLIED)
        if is_last and not any(turn.is_hook or turn.gate.blocks for turn in step):
            # argo: health of the last wave is not awaited
            return await self._succeed("successfully synced (all tasks run)")
        if is_last or not self.settings.wave_delay:
            return None
        until = self.now() + timedelta(seconds=self.settings.wave_delay)
        running = [turn for turn in step if turn.is_running]
        message = with_pause(waiting_text(running) if running else RUNNING, until)
        return self._answer(Progress.RUNNING, message, self.settings.wave_delay)

    async def _succeed(self, message: str) -> Advanced:
        await self._delete_hooks(DeletePolicy.HOOK_SUCCEEDED)
        return self._over(Progress.SUCCEEDED, message)

    async def _delete_hooks(self, policy: DeletePolicy) -> None:
        """argo: the end of the operation decides, not the end of the hook."""
        for turn in self._leaving(policy):
            assert turn.live is not None
            try:
                await hooks.remove(turn.key, turn.live, self.cluster, Propagation(self.terms.propagation))
            except ClusterError as error:
                if error.may_pass or isinstance(error, Conflict):
                    raise  # argo: would leave the hook; here the operation is not over, and this pass is repeated
                said = f"failed to delete resource: {error.message}"
                self.board.record(turn, turn.outcome, Progress.ERROR, said)

    def _leaving(self, policy: DeletePolicy) -> Iterator[Turn]:
        for turn in self.board.turns:
            if turn.is_pending and turn.is_ours:
                continue  # created just before a crash: not recorded yet
            if turn.is_hook and turn.live is not None and not turn.is_running and turn.has_policy(policy):
                yield turn

    # -- results ------------------------------------------------------------------------------------------------

    def _next_deadline(self, running: Sequence[Turn]) -> float | None:
        times = [deadline for turn in running if (deadline := deadline_of(turn.message))]
        return max(0.0, (min(times) - self.now()).total_seconds()) if times else None

    def _running(self, message: str, wait: float | None) -> Advanced:
        """Return a running state, and keep the end of a pause between waves in the message."""
        return self._answer(Progress.RUNNING, with_pause(message, self._pause()), wait)

    def _pause(self) -> datetime | None:
        """Return when the pause between two waves ends; None if there is none, it is over, or the clock jumped back."""
        pause = pause_of(self.terms.state.message)
        longest = timedelta(seconds=self.settings.wave_delay) + CLOCK_SKEW
        return pause if pause and timedelta(0) < pause - self.now() <= longest else None

    def _over(self, progress: Progress, message: str) -> Advanced:
        return Advanced(_ended(self.terms.state, self.board, progress, message, self.now))

    def _answer(self, progress: Progress, message: str, wait: float | None) -> Advanced:
        results = self.board.results
        state = replace(self.terms.state, progress=progress, message=message, results=results, has_result=True)
        return Advanced(state, wait)
