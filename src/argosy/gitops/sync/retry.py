"""Schedules the retry of a failed operation, or ends it. Pure.

In: an operation before and after a call, the time. Out: the operation as it must be written. Never: retries forever,
unless the limit is negative.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from argosy.gitops.application import OperationPhase, OperationRequest, OperationState
from argosy.kube.objects.timestamps_and_delays import format_timestamp, remaining_delay


def schedule_retry_or_finish(
    before: OperationState, after: OperationState, now: datetime, *, may_retry: bool = True
) -> OperationState:
    """argo: a terminated operation is not retried. Until the next attempt it is Running, with a finish time."""
    if after.phase not in (OperationPhase.FAILED, OperationPhase.ERROR):
        return after
    retry, attempts = after.request.retry, after.retries
    if before.phase is OperationPhase.TERMINATING or not may_retry or not (attempts < retry.limit or retry.limit < 0):
        # terminated while it waited for a retry
        retries = attempts - 1 if before.phase is OperationPhase.TERMINATING and before.finished else attempts
        return replace(after, message=f"{after.message} (retried {retries} times).") if retries > 0 else after
    retry_at = now + timedelta(seconds=retry.delay_seconds(attempts))
    message = f"{after.message}. Retrying attempt #{attempts + 1} at {_format_kitchen_time(retry_at)}."
    return replace(
        after, phase=OperationPhase.RUNNING, message=message, retries=attempts + 1, finished=format_timestamp(now)
    )


def is_waiting_for_retry(state: OperationState) -> bool:
    """True if the operation waits for its next attempt."""
    return state.phase is OperationPhase.RUNNING and bool(state.finished) and state.retries > 0


def seconds_until_retry(state: OperationState, now: datetime) -> float:
    """Return the seconds until the next attempt."""
    delay = state.request.retry.delay_seconds(state.retries - 1)
    return remaining_delay(datetime.fromisoformat(state.finished), delay, now)


def start_next_attempt(state: OperationState) -> OperationState:
    """argo: clear all results; with `refresh` the newest revision is used."""
    request = remove_revision(state.request) if state.request.retry.refresh else state.request
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


def remove_revision(request: OperationRequest) -> OperationRequest:
    sync: Mapping[str, Any] = request.wire.get("sync") or {}
    remaining = {name: value for name, value in sync.items() if name not in ("revision", "revisions")}
    wire = {**request.wire, "sync": remaining} if request.wire else request.wire
    return replace(request, sync=replace(request.sync, revision="", revisions=()), wire=wire)


def _format_kitchen_time(time: datetime) -> str:
    """argo: Go's kitchen format: 3:04PM."""
    return time.astimezone(UTC).strftime("%I:%M%p").lstrip("0")
