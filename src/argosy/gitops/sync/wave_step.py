"""Runs one step: all tasks of one phase and wave. Prunes, deletes old hooks, applies kind by kind.

In: tasks whose wave has come. Out: done, failed, or pending. Never: waits; creates a hook twice that carries the mark
of this operation.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from argosy.errors import ArgosyError, ClusterError, TransientError
from argosy.gitops.application import Outcome, Phase, Progress
from argosy.gitops.application.hooks import DeletePolicy
from argosy.gitops.sync import hooks
from argosy.gitops.sync.apply import Applied, Wish, apply, would_apply
from argosy.gitops.sync.live_lookup import read_live
from argosy.gitops.sync.operation_terms import SyncSettings, Terms
from argosy.gitops.sync.prune import MayDelete, prune, refusal
from argosy.gitops.sync.task_order import defined_by
from argosy.gitops.sync.task_states import DELETION, PROGRESS_OF, Board, Turn, waiting_text
from argosy.gitops.sync.wave_gates import GateKind, with_deadline
from argosy.kube.client import Cluster, Propagation
from argosy.kube.names import ResourceKey

AppliedMessages = dict[tuple[ResourceKey, Phase], str]  # messages of the objects that an operation changed


class RunState(enum.Enum):
    DONE = "done"
    PENDING = "pending"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Ran:
    state: RunState
    message: str = ""  # why the step is pending
    wait: float | None = None  # seconds until the next try; None: until something changes


DELETING = 1.0  # seconds between checks of objects being deleted; a watch event usually comes first
DEFINING = 0.1


class Runner:
    def __init__(
        self,
        board: Board,
        terms: Terms,
        settings: SyncSettings,
        cluster: Cluster,
        may_delete: MayDelete,
        now: Callable[[], datetime],
        applied_messages: AppliedMessages,
    ) -> None:
        self._board, self._terms, self._settings = board, terms, settings
        self._applied_messages = applied_messages
        self._cluster, self._may_delete, self._now = cluster, may_delete, now

    # -- dry run ------------------------------------------------------------------------------------------------

    def try_out(self, turns: Sequence[Turn]) -> bool:
        """argo: a client-side dry run of all tasks, also of those that are applied server-side."""
        is_good = True
        for turn in turns:
            outcome, message = self._tried(turn)
            is_good = is_good and outcome is not Outcome.SYNC_FAILED
            if self._terms.request.dry_run or outcome is Outcome.SYNC_FAILED:
                progress = PROGRESS_OF[outcome]
                progress = Progress.SUCCEEDED if progress is Progress.RUNNING else progress
                self._board.record(turn, outcome, progress, message)
        return is_good

    def _tried(self, turn: Turn) -> tuple[Outcome, str]:
        if turn.task.is_prune:
            reason = refusal(turn.live or {}, self._terms, self._may_delete)
            return (Outcome.PRUNE_SKIPPED, reason) if reason else (Outcome.PRUNED, "pruned (dry run)")
        try:
            return Outcome.SYNCED, would_apply(self._wish(turn))
        except ArgosyError as error:
            return Outcome.SYNC_FAILED, _words(error)

    # -- execution ----------------------------------------------------------------------------------------------

    async def run(self, turns: Sequence[Turn]) -> Ran:
        prunes = [turn for turn in turns if turn.task.is_prune]
        makes = [turn for turn in turns if not turn.task.is_prune]
        if not await self._meet_hooks([turn for turn in makes if turn.is_hook]):
            return Ran(RunState.FAILED)
        asking = [turn for turn in prunes if self._terms.must_confirm(turn.live or {})]
        if asking:
            return Ran(RunState.PENDING, waiting_text(asking, "pruning confirmation of"))
        await self._each(prunes, self._prune)
        if any(turn.has_failed for turn in prunes):
            return Ran(RunState.FAILED)
        if ran := await self._clear_way([turn for turn in makes if turn.is_hook and turn.is_pending]):
            return ran
        return await self._make([turn for turn in makes if turn.is_pending])

    async def _meet_hooks(self, turns: Sequence[Turn]) -> bool:
        """Find live objects with the names of hooks: our own hook keeps running; another one's finalizer is removed."""

        async def meet(turn: Turn) -> None:
            turn.live, turn.is_fresh = await read_live(turn.key, self._cluster), True
            if turn.is_ours:
                self._board.record(turn, Outcome.SYNCED, Progress.RUNNING, f"{self._wish(turn).name} created")
            elif turn.live is not None:
                try:
                    await hooks.release(turn.key, turn.live, self._cluster)
                except ClusterError as error:
                    said = f"failed to remove hook finalizer: {error.message}"
                    self._board.record(turn, turn.outcome, Progress.ERROR, said)

        await self._each(turns, meet)
        return not any(turn.has_failed for turn in turns)

    async def _clear_way(self, turns: Sequence[Turn]) -> Ran | None:
        """argo: delete hooks of earlier operations if their delete policy is BeforeHookCreation."""
        old = [turn for turn in turns if turn.live and turn.has_policy(DeletePolicy.BEFORE_HOOK_CREATION)]

        async def clear(turn: Turn) -> None:
            assert turn.live is not None
            try:
                turn.live = await hooks.remove(turn.key, turn.live, self._cluster, Propagation(self._terms.propagation))
            except ClusterError as error:
                said = f"failed to delete resource: {error.message}"
                self._board.record(turn, turn.outcome, Progress.ERROR, said)

        await self._each(old, clear)
        if any(turn.has_failed for turn in old):
            return Ran(RunState.FAILED)
        left = [turn for turn in old if turn.live is not None]
        return Ran(RunState.PENDING, waiting_text(left, DELETION), DELETING) if left else None

    async def _prune(self, turn: Turn) -> None:
        assert turn.live is not None
        outcome, message = await prune(turn.key, turn.live, self._terms, self._may_delete, self._cluster)
        self._board.record(turn, outcome, PROGRESS_OF[outcome], message)

    async def _make(self, turns: Sequence[Turn]) -> Ran:
        """argo: a failed kind does not stop the kinds after it."""
        waiting: list[Turn] = []
        for _, group in groupby(turns, key=lambda turn: turn.key.kind):
            alike = list(group)
            if undefined := await self._undefined(alike):
                return Ran(RunState.PENDING, waiting_text([undefined]), DEFINING)

            async def make(turn: Turn) -> None:
                if not await self._applied(turn):
                    waiting.append(turn)

            await self._each(alike, make)
        if any(turn.has_failed for turn in turns):
            return Ran(RunState.FAILED)
        if waiting:
            return Ran(RunState.PENDING, waiting_text(waiting, DELETION), DELETING)
        return Ran(RunState.DONE)

    async def _applied(self, turn: Turn) -> bool:
        """Apply one object. False if the old object must be deleted first."""
        try:
            applied = await apply(self._wish(turn), self._cluster)
        except TransientError:
            raise
        except ArgosyError as error:
            self._board.record(turn, Outcome.SYNC_FAILED, Progress.FAILED, _words(error))
            return True
        turn.live, turn.is_fresh = applied.live, True
        if applied.is_waiting:
            return False
        progress = Progress.SUCCEEDED if turn.gate.kind is GateKind.IGNORE else Progress.RUNNING
        message = with_deadline(self._remembered(turn, applied), turn.gate.deadline(self._now()))
        self._board.record(turn, Outcome.SYNCED, progress, message)
        return True

    def _remembered(self, turn: Turn, applied: Applied) -> str:
        """Return what this operation did to the object, also in a pass whose state could not be written."""
        key = turn.key, turn.task.phase
        if applied.is_unchanged:
            return self._applied_messages.get(key, applied.message)
        self._applied_messages[key] = applied.message
        return applied.message

    async def _undefined(self, turns: Sequence[Turn]) -> Turn | None:
        """argo: a CRD that was just applied gets some seconds before its custom resources are applied."""
        wanted = {(turn.key.group, turn.key.kind) for turn in turns}
        definition = next((turn for turn in self._board.turns if defined_by(turn.task) in wanted), None)
        if definition is None or definition.is_pending:
            return None
        found = definition.live
        if found is None or not _is_established(found):
            found = definition.live = await read_live(definition.key, self._cluster)
        if found is None or _is_established(found):
            return None
        patience = timedelta(seconds=self._settings.definition_patience)
        born = datetime.fromisoformat(found["metadata"]["creationTimestamp"])
        return definition if self._now() - born < patience else None

    def _wish(self, turn: Turn) -> Wish:
        assert turn.task.desired is not None
        return Wish(turn.key, turn.task.desired, turn.live, self._terms.how(turn.task), self._terms.state.started)

    async def _each(self, turns: Sequence[Turn], work: Callable[[Turn], Awaitable[None]]) -> None:
        """Run `work` for all tasks concurrently; errors are raised after all of them have ended."""
        if len(turns) == 1:
            await work(turns[0])
            return
        places = asyncio.Semaphore(self._settings.parallel)

        async def one(turn: Turn) -> None:
            async with places:
                await work(turn)

        outcomes = await asyncio.gather(*map(one, turns), return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome


def _words(error: ArgosyError) -> str:
    return error.message if isinstance(error, ClusterError) else str(error)


def _is_established(definition: dict[str, Any]) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each.get("type") == "Established" and each.get("status") == "True" for each in conditions)
