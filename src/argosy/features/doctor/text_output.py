"""Renders a diagnosis as text: head, table, explained findings, checklist. In: a DoctorReport. Out: lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from argosy.cli.tables import CAUSE_COLUMN, TerminalOutput, drop_control_characters, format_count, measure_width
from argosy.gitops.analysis.alignment.git_change_proposal_types import DECISION_TAG_LEGEND
from argosy.gitops.analysis.rule_violation import Severity

if TYPE_CHECKING:
    from argosy.features.doctor.examination_summary import DoctorReport
    from argosy.gitops.analysis.diagnosis_table_and_score import DiagnosisLine

# Which of the screen's marks a state has
MARK_BY_STATE: Final = {
    "ComparisonError": "Unknown",
    "InvalidSpecError": "Unknown",
    "SyncError": "Degraded",
    "SyncFailed": "Degraded",
    "DeletionError": "Degraded",
    "UnknownError": "Unknown",
    "Syncing": "Progressing",
    "Warning": "Healthy",
}
MARK_BY_CHECK: Final = {"ok": "Healthy", "bad": "Degraded", "unknown": "Unknown"}
HEADINGS: Final = ("APP", "STATE", CAUSE_COLUMN, "FIX", "")


def render_report(report: DoctorReport, screen: TerminalOutput, *, explains: bool) -> Iterator[str]:
    yield from _render_check_results(report, screen)
    if report.lines:
        yield from screen.format_table(HEADINGS, list(_iterate_rows(report.lines, screen)), uncut_column=CAUSE_COLUMN)
        if any(line.remedy.tag for line in report.lines):
            yield DECISION_TAG_LEGEND
    elif report.examination.chosen:
        count = format_count(len(report.examination.chosen), "application")
        yield f"{count}: no problems found"
    if explains:
        for line in report.lines:
            for text in _explain_line(line):
                yield from screen.wrap_text(text, 11 if text.startswith(" ") else 4)
    for text in _render_totals(report):
        yield from screen.wrap_text(text)


def _render_check_results(report: DoctorReport, screen: TerminalOutput) -> Iterator[str]:
    """Render the checks on one line if they fit."""
    checks = [
        screen.format_with_mark(drop_control_characters(check.text), MARK_BY_CHECK[check.mark.value])
        for check in report.examination.checks
    ]
    joined = "   ".join(checks)
    yield from [joined] if screen.width is None or measure_width(joined) <= screen.width else checks


def _iterate_rows(lines: list[DiagnosisLine], screen: TerminalOutput) -> Iterator[list[str]]:
    previous_app = ""
    for line in lines:
        is_first = line.app != previous_app
        previous_app = line.app
        state = screen.format_with_mark(line.state, MARK_BY_STATE.get(line.state, line.state)) if is_first else ""
        yield [line.app if is_first else "", state, line.cause, line.remedy.label, line.remedy.tag]


def _explain_line(line: DiagnosisLine) -> Iterator[str]:
    yield ""
    rule = f"{line.finding.rule.id} {line.severity}: " if line.finding else ""
    yield f"{line.app}: {rule}{drop_control_characters(line.cause)}"
    if line.finding:
        yield f"  because  {line.finding.rule.certainty}"
    yield f"  fix      {drop_control_characters(line.fix)}"


def _render_totals(report: DoctorReport) -> Iterator[str]:
    if report.finding_count:
        counts = [
            format_count(report.count(Severity.ERROR), "error"),
            format_count(report.count(Severity.WARNING), "warning"),
            f"{report.count(Severity.INFO)} for information",
        ]
        yield f"{format_count(report.finding_count, 'finding')} ({', '.join(counts)})"
    if report.examination.chosen:
        yield report.score.text
        for name, reason in report.score.excluded_apps.items():
            yield f"  without {name}: {drop_control_characters(reason)}"


def render_status(report: DoctorReport) -> Iterator[str]:
    """argo: one line per Application, `name ... Sync/Health`."""
    width = max((len(app.name) for app in report.examination.chosen), default=0)
    for app in report.examination.chosen:
        yield f"{app.name:<{width}} ... {app.sync}/{app.health}"


def render_checklist(report: DoctorReport, screen: TerminalOutput) -> Iterator[str]:
    yield "After a sync:"
    for item in report.checklist:
        mark = "Unknown" if item.holds is None else "Healthy" if item.holds else "Degraded"
        details = f": {', '.join(item.evidence)}" if item.evidence else ""
        yield f"  {screen.format_with_mark(drop_control_characters(item.text + details), mark)}"


def render_closing(
    report: DoctorReport, *, is_fixing: bool, shows_follow_ups: bool, is_explained: bool = False
) -> Iterator[str]:
    """Render notes, follow-ups and the next command."""
    for note in report.examination.view.notes:
        yield f"note: {note}"
    for item in report.iterate_follow_ups() if shows_follow_ups else ():
        yield f"later: {item}"
    proposed = [name for name, item in report.examination.treatments.items() if item.is_proven_to_help]
    if not is_fixing and report.finding_count:
        commands = [f"argosy align {'--all' if len(proposed) > 1 else proposed[0]}" if proposed else ""]
        commands += [_choose_next_command(report, is_explained=is_explained)]
        if any(commands):
            yield f"next: {';  '.join(filter(None, commands))}"
    if not is_fixing:
        yield "nothing was changed"


def _choose_next_command(report: DoctorReport, *, is_explained: bool) -> str:
    """Return the command that explains the worst finding; empty if everything is explained."""
    application_lines = [line for line in report.lines if line.finding and not line.app.startswith("(")]
    worst = max(application_lines, key=lambda line: line.severity.weight).app if application_lines else ""
    if is_explained:
        return f"argosy explain application/{worst}" if worst else ""
    return f"argosy doctor {worst} --explain" if worst else "argosy doctor --explain"
