"""Sync retries and self-heal continue after the system clock jumps."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from argosy.gitops.application import OperationPhase, OperationRequest, OperationState, RetryStrategy, read_application
from argosy.gitops.application.step_results import AppComparison, Pair, SyncStatus
from argosy.gitops.sync.auto_sync_decision import DelaySync, StartSync, SyncTarget, decide_auto_sync
from argosy.gitops.sync.retry import seconds_until_retry
from argosy.kube.objects.timestamps_and_delays import format_timestamp
from argosy.kube.resource_key import ResourceKey
from support.examples import examples

NOW = datetime(2026, 1, 10, tzinfo=UTC)
JUMPS = st.floats(-30 * 86400, 30 * 86400)


def resting(retries: int) -> OperationState:
    request = OperationRequest(retry=RetryStrategy(limit=5))
    return OperationState(
        request,
        OperationPhase.RUNNING,
        "",
        started=format_timestamp(NOW),
        finished=format_timestamp(NOW),
        retries=retries,
    )


@settings(max_examples=examples(200), deadline=None)
@given(st.integers(1, 5), JUMPS)
def test_retry_wait_never_exceeds_its_backoff_after_a_clock_jump(retries: int, jump: float) -> None:
    state = resting(retries)
    longest = state.request.retry.delay_seconds(retries - 1)
    assert 0 <= seconds_until_retry(state, NOW + timedelta(seconds=jump)) <= longest


def test_operation_retries_at_once_after_the_clock_is_set_back_by_a_day() -> None:
    assert seconds_until_retry(replace(resting(2)), NOW - timedelta(days=1)) == 0


@pytest.mark.parametrize("days", [-30, -1, 1, 30])
def test_drift_is_healed_at_once_after_a_clock_jump(days: int) -> None:
    source = {"repoURL": "https://git.example/x", "path": "p"}
    state: dict[str, Any] = {
        "operation": {"sync": {"revision": "abc", "autoHealAttemptsCount": 3}},
        "phase": "Succeeded",
        "startedAt": format_timestamp(NOW),
        "finishedAt": format_timestamp(NOW),
        "syncResult": {"revision": "abc", "source": source},
    }
    automated = {"automated": {"selfHeal": True}}
    app = read_application(
        {
            "metadata": {"name": "models"},
            "spec": {"source": source, "syncPolicy": automated},
            "status": {"operationState": state},
        }
    )
    manifest = {"metadata": {"name": "web"}}
    drift = Pair(ResourceKey("apps", "Deployment", "ml", "web"), manifest, manifest, True)
    comparison = AppComparison((drift,), status=SyncStatus.OUT_OF_SYNC)
    assert isinstance(decide_auto_sync(app, comparison, SyncTarget(("abc",)), NOW), DelaySync), (
        "it would wait without a jump"
    )
    assert isinstance(decide_auto_sync(app, comparison, SyncTarget(("abc",)), NOW + timedelta(days=days)), StartSync)
