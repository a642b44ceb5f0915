"""What becomes of an operation that failed: another attempt, or the end. Pure.

In: an operation before and after a call, the time. Out: the operation as it is to be written. Never: tries for ever,
unless a limit below zero asks for that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from argosy.gitops.application import OperationRequest, OperationState, Progress
from argosy.kube.objects.timestamps import remaining_delay, written


def settle(
    before: OperationState, after: OperationState, now: datetime, *, may_retry: bool = True
) -> OperationState:
    """argo: what was terminated is not tried again. Until its next attempt an operation runs, and has an end."""
    if after.progress not in (Progress.FAILED, Progress.ERROR):
        return after
    retry, tried = after.request.retry, after.retries
    if before.progress is Progress.TERMINATING or not may_retry or not (tried < retry.limit or retry.limit < 0):
        made = tried - 1 if before.progress is Progress.TERMINATING and before.finished else tried  # it rested
        return replace(after, message=f"{after.message} (retried {made} times).") if made > 0 else after
    due = now + timedelta(seconds=retry.delay(tried))
    message = f"{after.message}. Retrying attempt #{tried + 1} at {_kitchen(due)}."
    return replace(
        after, progress=Progress.RUNNING, message=message, retries=tried + 1, finished=written(now)
    )


def is_resting(state: OperationState) -> bool:
    """Whether it waits for its next attempt."""
    return state.progress is Progress.RUNNING and bool(state.finished) and state.retries > 0


def rest(state: OperationState, now: datetime) -> float:
    """Seconds until the next attempt of an operation that is resting."""
    delay = state.request.retry.delay(state.retries - 1)
    return remaining_delay(datetime.fromisoformat(state.finished), delay, now)


def next_attempt(state: OperationState) -> OperationState:
    """argo: as if nothing had been done yet; with `refresh` at the newest revision."""
    request = without_revision(state.request) if state.request.retry.refresh else state.request
    return replace(
        state,
        request=request,
        finished="",
        has_result=False,
        revision="",
        revisions=(),
        sources=(),
        namespace_metadata=None,
        results=(),
    )


def without_revision(request: OperationRequest) -> OperationRequest:
    sync: Mapping[str, Any] = request.wire.get("sync") or {}
    kept = {name: value for name, value in sync.items() if name not in ("revision", "revisions")}
    wire = {**request.wire, "sync": kept} if request.wire else request.wire
    return replace(request, sync=replace(request.sync, revision="", revisions=()), wire=wire)


def _kitchen(time: datetime) -> str:
    """argo: as Go's kitchen clock shows it: 3:04PM."""
    return time.astimezone(UTC).strftime("%I:%M%p").lstrip("0")
