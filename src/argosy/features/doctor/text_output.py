"""Renders a diagnosis as text: head, table, explained findings, checklist. In: a DoctorReport. Out: lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from argosy.cli.tables import CAUSE, Screen, counted, plain, shown_width
from argosy.gitops.analysis.violation import Severity

if TYPE_CHECKING:
    from argosy.features.doctor.report import Report
    from argosy.gitops.analysis.diagnosis import Line

# Which of the screen's marks a state has
LIKE: Final = {
    "ComparisonError": "Unknown",
    "InvalidSpecError": "Unknown",
    "SyncError": "Degraded",
    "SyncFailed": "Degraded",
    "DeletionError": "Degraded",
    "UnknownError": "Unknown",
    "Syncing": "Progressing",
    "Warning": "Healthy",
}
CHECKED: Final = {"ok": "Healthy", "bad": "Degraded", "unknown": "Unknown"}
HEADINGS: Final = ("APP", "STATE", CAUSE, "FIX", "")


def shown(report: Report, screen: Screen, *, is_whole: bool) -> Iterator[str]:
    yield from _head(report, screen)
    if report.lines:
        yield from screen.table(HEADINGS, list(_rows(report.lines, screen)), whole=CAUSE)
    elif report.found.chosen:
        count = counted(len(report.found.chosen), "application")
        yield f"{count}: no problems found"
    if is_whole:
        for line in report.lines:
            for told in _whole(line):
                yield from screen.folded(told, 11 if told.startswith(" ") else 4)
    for told in _totals(report):
        yield from screen.folded(told)


def _head(report: Report, screen: Screen) -> Iterator[str]:
    """Render the checks on one line if they fit."""
    checks = [screen.mark_as(plain(each.text), CHECKED[each.mark.value]) for each in report.found.checks]
    together = "   ".join(checks)
    yield from [together] if screen.width is None or shown_width(together) <= screen.width else checks


def _rows(lines: list[Line], screen: Screen) -> Iterator[list[str]]:
    before = ""
    for each in lines:
        is_first = each.app != before
        before = each.app
        state = screen.mark_as(each.state, LIKE.get(each.state, each.state)) if is_first else ""
        yield [each.app if is_first else "", state, each.cause, each.remedy.word, each.remedy.tag]


def _whole(line: Line) -> Iterator[str]:
    yield ""
    rule = f"{line.finding.rule.id} {line.severity}: " if line.finding else ""
    yield f"{line.app}: {rule}{plain(line.cause)}"
    if line.finding:
        yield f"  sure     {line.finding.rule.why_sure}"
    yield f"  do       {plain(line.fix)}"


def _totals(report: Report) -> Iterator[str]:
    if report.total:
        counts = [
            counted(report.count(Severity.ERROR), "error"),
            counted(report.count(Severity.WARNING), "warning"),
            f"{report.count(Severity.INFO)} for information",
        ]
        yield f"{counted(report.total, 'finding')} ({', '.join(counts)})"
    if report.found.chosen:
        yield report.score.text
        for name, why in report.score.exceptions.items():
            yield f"  without {name}: {plain(why)}"


def status_lines(report: Report) -> Iterator[str]:
    """argo: one line per Application, `name ... Sync/Health`."""
    width = max((len(app.name) for app in report.found.chosen), default=0)
    for app in report.found.chosen:
        yield f"{app.name:<{width}} ... {app.sync}/{app.health}"


def checklist_lines(report: Report, screen: Screen) -> Iterator[str]:
    yield "After a sync:"
    for item in report.checklist:
        mark = "Unknown" if item.holds is None else "Healthy" if item.holds else "Degraded"
        told = f": {', '.join(item.told)}" if item.told else ""
        yield f"  {screen.mark_as(plain(item.text + told), mark)}"


def closing(report: Report, *, is_fixing: bool, is_whole: bool, is_explained: bool = False) -> Iterator[str]:
    """Render notes, follow-ups and the next command."""
    for note in report.found.view.notes:
        yield f"note: {note}"
    for each in report.follow_ups() if is_whole else ():
        yield f"later: {each}"
    proposed = [name for name, each in report.found.treatments.items() if each.cures]
    if not is_fixing and report.total:
        ways = [f"argosy align {'--all' if len(proposed) > 1 else proposed[0]}" if proposed else ""]
        ways += [_further(report, is_explained=is_explained)]
        if any(ways):
            yield f"next: {';  '.join(filter(None, ways))}"
    if not is_fixing:
        yield "nothing was changed"


def _further(report: Report, *, is_explained: bool) -> str:
    """Return the command that explains the worst finding; empty if everything is explained."""
    mine = [each for each in report.lines if each.finding and not each.app.startswith("(")]
    worst = max(mine, key=lambda each: each.severity.weight).app if mine else ""
    if is_explained:
        return f"argosy explain application/{worst}" if worst else ""
    return f"argosy doctor {worst} --explain" if worst else "argosy doctor --explain"
