"""Whom a doctor looks at first, where there are more than can be looked at in time."""

from __future__ import annotations

from typing import Any

from argosy.desk.doctor.applications import urgency
from argosy.model.application import read_application


def application(name: str, **status: Any) -> Any:
    return read_application({"metadata": {"name": name}, "spec": {}, "status": status})


def test_errors_are_looked_at_first_and_what_was_never_synced_last() -> None:
    apps = [
        application("a-new"),
        application("b-drifted", history=[{"id": 0}]),
        application("c-broken", conditions=[{"type": "ComparisonError", "message": "x"}]),
        application("d-warned", history=[{"id": 0}], conditions=[{"type": "SharedResourceWarning"}]),
    ]
    assert [each.name for each in sorted(apps, key=urgency)] == ["c-broken", "b-drifted", "d-warned", "a-new"]
