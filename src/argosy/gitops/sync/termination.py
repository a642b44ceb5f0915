"""Terminates an operation that a user stopped or that timed out.

In: the tasks of an operation. Out: the final phase and Argo CD's message. Never: leaves a running hook behind.
"""

from __future__ import annotations

from typing import Final

from argosy.errors import ClusterError, TransientError
from argosy.gitops.application import Progress
from argosy.gitops.application.hooks import DeletePolicy
from argosy.gitops.sync import hooks
from argosy.gitops.sync.live_lookup import read_live
from argosy.gitops.sync.task_health import AssessAll
from argosy.gitops.sync.task_states import Board, Turn, verdict
from argosy.kube.client import Cluster, Propagation

TERMINATING: Final = "operation is terminating: "  # followed by the reason if the engine terminates it


async def terminate(
    board: Board, cluster: Cluster, assess_all: AssessAll, propagation: Propagation
) -> tuple[Progress, str]:
    is_clean = True
    for turn in board.turns:
        if not turn.is_hook:
            continue
        try:
            turn.live = await _found(turn, cluster)
            await _stop(board, turn, cluster, assess_all, propagation)
        except ClusterError as error:
            is_clean = False
            board.record(turn, turn.outcome, Progress.ERROR, f"Failed to delete: {error.message}")
    if is_clean:
        return Progress.FAILED, "Operation terminated"
    return Progress.ERROR, "Operation termination had errors"


async def _found(turn: Turn, cluster: Cluster) -> dict[str, object] | None:
    try:
        return await read_live(turn.key, cluster)
    except ClusterError as error:
        if error.may_pass:  # try again: a hook that cannot be read may still be running
            raise TransientError(str(error)) from error
        raise


async def _stop(board: Board, turn: Turn, cluster: Cluster, assess_all: AssessAll, propagation: Propagation) -> None:
    if turn.is_over:
        if turn.live is not None:
            await hooks.release(turn.key, turn.live, cluster)
        return
    if turn.is_pending and not turn.is_ours:
        return  # not started by this operation, not even before a crash
    if turn.live is None:
        board.record(turn, turn.outcome, Progress.SUCCEEDED, "Terminated")  # argo: the same result
        return
    (assessment,) = await assess_all([turn.live])
    moved = verdict(assessment, is_hook=True)
    is_over = moved is not None and moved[0] is not Progress.RUNNING
    is_unknown = assessment is not None and bool(assessment.fault)  # argo: it may still be running
    if not is_over or is_unknown or turn.has_policy(DeletePolicy.HOOK_FAILED):
        await hooks.remove(turn.key, turn.live, cluster, propagation)
    else:
        await hooks.release(turn.key, turn.live, cluster)
    if is_over and moved is not None:
        board.record(turn, turn.outcome, *moved)
    else:
        board.record(turn, turn.outcome, Progress.FAILED, "Terminated")
