"""What conditions and templates see of an Application."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.features.notifications.condition_and_template_evaluation import evaluate_conditions
from argosy.features.notifications.settings import NotificationSettings, TriggerCondition

pytestmark = pytest.mark.anyio
NOW = datetime(2026, 1, 2, tzinfo=UTC)


class RecordingPool:
    """Records what would be sent to the confined process, and fails every condition."""

    def __init__(self) -> None:
        self.payloads: list[Any] = []

    async def run(self, function: str, payload: Any) -> Any:
        self.payloads.append(payload)
        return [{"holds": False, "once": "", "fault": ""}]


async def test_conditions_do_not_see_the_manifests_that_an_operation_carries() -> None:
    operation = {"sync": {"prune": True, "manifests": ['{"kind": "Secret", "stringData": {"a": "canary"}}']}}
    app = {
        "kind": "Application",
        "metadata": {"name": "models"},
        "operation": operation,
        "status": {"operationState": {"operation": operation, "phase": "Running"}},
    }
    pool = RecordingPool()
    await evaluate_conditions(pool, app, {"on": (TriggerCondition("true"),)}, NotificationSettings(), None, NOW)
    assert "canary" not in json.dumps(pool.payloads, default=str)
    (payload,) = pool.payloads
    values = payload["values"]["app"]
    assert values["operation"] == {"sync": {"prune": True}}
    assert values["status"]["operationState"] == {"operation": {"sync": {"prune": True}}, "phase": "Running"}
