"""Output of `argosy explain application/NAME`: the wave that blocks a sync, and states that no rule explains."""

from __future__ import annotations

import io

from argosy.cli.tables import TerminalOutput
from argosy.features.doctor.examination_summary import DoctorReport
from argosy.features.doctor.service import Examination
from argosy.features.explain.application_cli import _render_report
from argosy.gitops.analysis.current_wave_gate import find_wave_wait
from argosy.gitops.analysis.live_view import LiveApplication
from argosy.gitops.analysis.rules import diagnose_installation
from support.installation_facts import ago, app, view

RUNNING = {
    "phase": "Running",
    "message": "waiting for healthy state of batch/Job/train",
    "startedAt": ago(127),
    "operation": {"sync": {}},
}


def explain(application: LiveApplication) -> list[str]:
    live_view = view(application)
    wait = find_wave_wait(application, live_view)
    examination = Examination(
        "a test", (), live_view, live_view.apps, tuple(diagnose_installation(live_view)), (wait,) if wait else ()
    )
    return [line.strip() for line in _render_report(DoctorReport(examination), TerminalOutput(io.StringIO()))]


def test_blocked_wave_of_a_running_sync_is_printed_once() -> None:
    head, *rest = explain(app(status={"operationState": RUNNING}))
    assert head.startswith("Application/models -n argocd: ")
    (line,) = rest
    assert line.startswith("waits    its first wave is blocked for ") and "batch/Job/train" in line


def test_state_without_a_matching_rule_is_printed_as_unexplained() -> None:
    _, line = explain(app(health="Missing"))
    assert line.startswith("why      no rule identifies a cause")
