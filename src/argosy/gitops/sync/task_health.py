"""Updates running tasks from the health of their objects.

In: the tasks of an operation. Out: the same, with finished ones marked. Never: finishes a task because of an object
that may be older than the apply: the object is read again first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from argosy.errors import ClusterError
from argosy.gitops.application import Outcome, Progress
from argosy.gitops.application.step_results import Assessment
from argosy.gitops.sync.client_side_patch import shape_of
from argosy.gitops.sync.task_states import Board, Turn, missing_text, verdict
from argosy.gitops.sync.wave_gates import GateKind, deadline_of, with_deadline, without_deadline
from argosy.kube.client import ClusterReader
from argosy.kube.objects import Manifest

AssessAll = Callable[[Sequence[Manifest]], Awaitable[list[Assessment | None]]]


async def refresh(board: Board, cluster: ClusterReader, assess_all: AssessAll, now: Callable[[], datetime]) -> None:
    running = [turn for turn in board.turns if turn.is_running and turn.gate.kind is not GateKind.IGNORE]
    said = await _judged(running, assess_all)
    doubtful = [turn for turn in running if not turn.is_fresh and _matters(board, turn, said.get(turn))]
    if doubtful:
        read = await asyncio.gather(*(_read(board, turn, cluster) for turn in doubtful), return_exceptions=True)
        for outcome in read:
            if outcome is not None:
                raise outcome
        said |= await _judged([turn for turn in doubtful if turn.is_running], assess_all)
    for turn in running:
        if turn.is_running and turn.live is not None and turn in said:
            _move(board, turn, said[turn], now())


def _matters(board: Board, turn: Turn, found: Assessment | None) -> bool:
    """True if the task seems finished, or its object seems deleted although it is awaited."""
    if turn.live is None:
        return board.is_awaited(turn)
    moved = verdict(found, is_hook=turn.is_hook)
    return moved is not None and moved[0] is not Progress.RUNNING


async def _judged(turns: Sequence[Turn], assess_all: AssessAll) -> dict[Turn, Assessment | None]:
    there = [(turn, turn.live) for turn in turns if turn.live is not None]
    if not there:
        return {}
    found = await assess_all([live for _, live in there])
    return {turn: assessment for (turn, _), assessment in zip(there, found, strict=True)}


async def _read(board: Board, turn: Turn, cluster: ClusterReader) -> None:
    try:
        turn.live, turn.is_fresh = await cluster.get(turn.key), True
    except ClusterError as error:
        if error.may_pass:
            raise  # argo: would fail the sync, and the retry would run its hooks again
        if error.code != 404:
            board.record(turn, turn.outcome, Progress.ERROR, f"Failed to get live resource: {error.message}")
            return
        turn.live = None
    if turn.live is None:
        board.record(turn, Outcome.SYNC_FAILED, Progress.ERROR, missing_text(turn.key))


def _unjudged(board: Board, turn: Turn, assessment: Assessment | None) -> str:
    """Say in the message that a custom resource without a health check is not awaited."""
    said = f"{turn.key.name} created" if turn.is_hook and assessment is None else without_deadline(turn.message)  # argo
    is_custom = turn.live is not None and shape_of(turn.live) is None
    if assessment is not None or not is_custom or not board.is_awaited(turn):
        return said
    return f"{said} (not awaited: no health check for {turn.key.group_kind})"


def _move(board: Board, turn: Turn, assessment: Assessment | None, now: datetime) -> None:
    deadline = deadline_of(turn.message)
    moved = verdict(assessment, is_hook=turn.is_hook)
    if moved is not None and moved[0] is not Progress.RUNNING:
        progress, message = moved
        board.record(turn, turn.outcome, progress, message or _unjudged(board, turn, assessment))
    elif deadline is not None and now >= deadline:
        reason = assessment.message if assessment else ""
        said = f"not healthy within {turn.gate.timeout:g}s" + (f": {reason}" if reason else "")
        board.record(turn, turn.outcome, Progress.FAILED, said)
    elif moved is not None and moved[1]:
        board.record(turn, turn.outcome, Progress.RUNNING, with_deadline(moved[1], deadline))
