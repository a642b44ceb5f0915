"""Schedules the retry of a failed operation, or ends it. Pure.

In: an operation before and after a call, the time. Out: the operation as it must be written. Never: retries forever,
unless the limit is negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from argosy.gitops.application import OperationRequest, OperationState, Progress
from argosy.kube.objects.timestamps import remaining_delay, written


def settle(before: OperationState, after: OperationState, now: datetime, *, may_retry: bool = True) -> OperationState:
    """argo: a terminated operation is not retried. Until the next attempt it is Running, with a finish time."""
    if after.progress not in (Progress.FAILED, Progress.ERROR):
        return after
    retry, tried = after.request.retry, after.retries
    if before.progress is Progress.TERMINATING or not may_retry or not (tried < retry.limit or retry.limit < 0):
        # terminated while it waited for a retry
        made = tried - 1 if before.progress is Progress.TERMINATING and before.finished else tried
        return replace(after, message=f"{after.message} (retried {made} times).") if made > 0 else after
    due = now + timedelta(seconds=retry.delay(tried))
    message = f"{after.message}. Retrying attempt #{tried + 1} at {_kitchen(due)}."
    return replace(after, progress=Progress.RUNNING, message=message, retries=tried + 1, finished=written(now))


def is_resting(state: OperationState) -> bool:
    """True if the operation waits for its next attempt."""
    return state.progress is Progress.RUNNING and bool(state.finished) and state.retries > 0


def rest(state: OperationState, now: datetime) -> float:
    """Return the seconds until the next attempt."""
    delay = state.request.retry.delay(state.retries - 1)
    return remaining_delay(datetime.fromisoformat(state.finished), delay, now)


def next_attempt(state: OperationState) -> OperationState:
    """argo: clear all results; with `refresh` the newest revision is used."""
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
    """argo: Go's kitchen format: 3:04PM."""
    return time.astimezone(UTC).strftime("%I:%M%p").lstrip("0")
