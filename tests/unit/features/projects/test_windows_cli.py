"""`argosy proj windows list` marks malformed windows."""

from __future__ import annotations

from typing import Any

import pytest

from argosy.features.projects.windows_cli import _build_rows, _list_faults

GOOD = {"kind": "deny", "schedule": "0 11 * * *", "duration": "2h", "applications": ["*"]}


def project(*windows: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": "ml"}, "spec": {"syncWindows": list(windows)}}


@pytest.mark.parametrize("wrong", [{"schedule": "at noon"}, {"duration": "long"}, {"timeZone": "Mars/Base"}])
def test_malformed_window_is_marked_and_reported_with_the_update_command(wrong: dict[str, str]) -> None:
    ml_project = project(GOOD, {**GOOD, **wrong})
    assert [row[1] for row in _build_rows(ml_project)][1] == "Malformed" and _build_rows(ml_project)[0][1] in (
        "Active",
        "Inactive",
    )
    (fault,) = _list_faults(ml_project)
    assert fault.startswith("window 1 is malformed: ") and "argosy proj windows update ml 1" in fault


def test_valid_windows_have_no_faults() -> None:
    assert _list_faults(project(GOOD)) == []
