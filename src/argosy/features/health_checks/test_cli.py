"""`argosy health test`: run tests, print the results, and with --watch run again when a file changes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from argosy.cli.error_messages import Unread, answering, tell
from argosy.cli.exit_codes import CANNOT, DONE, NO
from argosy.cli.output import print_data, print_lines, talk, warn
from argosy.cli.tables import Screen, counted, plain
from argosy.errors import ArgosyError, UserError

if TYPE_CHECKING:
    from argosy.features.health_checks.report import Report
    from argosy.features.health_checks.service import Verdict, Workbench
    from argosy.features.health_checks.test_run import Request
    from argosy.gitops.health.test_suite import Outcome

POLL_SECONDS: Final = 0.2


def test(chosen: argparse.Namespace) -> int:
    if not chosen.watch:
        return _test(chosen)
    try:
        return _test(chosen)
    except KeyboardInterrupt:  # the normal way to end it, whenever it comes
        return DONE


def _test(chosen: argparse.Namespace) -> int:
    from argosy.features.health_checks.service import Workbench
    from argosy.features.health_checks.test_run import Request

    request = Request(
        tuple(chosen.paths),
        tuple(chosen.filename),
        chosen.script,
        chosen.open_libs,
        chosen.profile or "",
        chosen.facts,
        chosen.expect or "",
    )
    with Workbench(talk) as bench:
        if chosen.watch:
            _watch(bench, request, chosen.output)
        return _once(bench, request, chosen.output)


def _once(bench: Workbench, request: Request, output: str) -> int:
    from argosy.features.health_checks.test_run import run_tests

    report = run_tests(bench, request)
    failed = [outcome for outcome in report.outcomes() if not outcome.ok]
    with answering(CANNOT if report.problems else NO if failed else DONE) as code:
        warn(report.warnings)
        if report.verdicts:
            for fault in report.failing:
                print(f"error: {plain(str(fault))}", file=sys.stderr)
        for note in report.notes:
            print(f"note: {plain(note)}", file=sys.stderr)
        _show(report, output)
        sys.stdout.flush()  # stderr output follows, and must come after it on a shared terminal
        if failed:
            _explain(report, failed)
        for problem in report.problems:
            tell(problem)
    return code


def _show(report: Report, output: str) -> None:
    from argosy.gitops.health import test_suite

    if output == "text":
        print_lines(_text(report, Screen(sys.stdout)))
        return
    if output == "junit":
        print(test_suite.junit(report.outcomes()), end="")
    else:
        print_data(report.as_data(), output, named=False)
    # The cases contain every error; warnings go to stderr.
    found = (each for each in report.review.remarks if each.severity == "warning")
    warn(f"{each.file}:{each.line}: {each.rule} {each.message}; {each.advice}" for each in found)


def _text(report: Report, screen: Screen) -> Iterator[str]:
    from argosy.features.health_checks.review_cli import remark_line
    from argosy.gitops.health.test_suite import line

    if report.tests:
        yield from (screen.bad(line(outcome)) for outcome in report.tests if not outcome.ok)
        passed = sum(outcome.ok for outcome in report.tests)
        failed = len(report.tests) - passed
        ending = f", {failed} failed" if failed else ""
        yield f"{counted(len(report.tests), 'case')}: {passed} passed{ending}"
    if report.verdicts:
        rows = [_row(each, screen) for each in report.verdicts]
        yield from screen.table(["KIND/NAME", "HEALTH", "MESSAGE", "RULE"], rows)
    if report.trials:
        yield "Each check on an object without a status:"
        rows = [
            [each.check.pattern, screen.mark(each.health) or "-", each.told, each.check.where] for each in report.trials
        ]
        yield from screen.table(["KIND", "HEALTH", "MESSAGE", "CHECK"], rows)
    yield from (remark_line(each, screen) for each in report.review.remarks)
    if not (report.tests or report.verdicts or report.review.looked or report.review.remarks or report.problems):
        yield "no checks in these settings"


def _row(each: Verdict, screen: Screen) -> list[str]:
    return [f"{each.key.kind}/{each.key.name}", screen.mark(each.health) or "-", each.told, each.rule or "-"]


def _explain(report: Report, failed: Sequence[Outcome]) -> None:
    """Print what failed, the reason, and the next step."""
    first = failed[0].case
    what = f"{len(failed)} of {counted(len(report.outcomes()), 'case')} failed"
    name = plain(f"{first.kind} {first.name}".strip())
    why, advice = _reason(report, failed, name)
    print(f"argosy: {what}: {plain(why)}\nnext: {advice}", file=sys.stderr)


def _reason(report: Report, failed: Sequence[Outcome], name: str) -> tuple[str, str]:
    if any(not outcome.ok for outcome in report.tests):
        return f"the first is {name}", "fix the rule or its test; -o json prints expected and actual values"
    from argosy.features.health_checks.service import in_script

    for verdict in report.verdicts:
        if verdict.fault and verdict.is_ours:
            return (
                f"{name}: the health rule cannot read the object: {verdict.fault}",
                "fix the object; a field has a type that its kind does not allow",
            )
        if verdict.fault:
            fault = in_script(verdict.fault, verdict.rule)
            return f"{name}: the check itself failed: {fault}", "correct the script; argosy health lint helps"
        if report.expect not in ("", verdict.health):
            return f"{name} is not {report.expect}{_why_not(verdict)}", _advice_on(verdict)
    error = failed[0].got["error"] if isinstance(failed[0].got, dict) and "error" in failed[0].got else ""
    if report.failing and failed[0].case.name == report.failing[0].where:
        error, _, advice = error.partition("; ")
        return f"{report.failing[0].where}: {error}", advice or "correct the setting"
    error = in_script(error, failed[0].case.name)
    return f"{name}: the check itself failed: {error}", "correct the script; argosy health lint helps"


def _why_not(verdict: Verdict) -> str:
    return ", because this kind has no health rule" if verdict.assessment is None else ""


def _advice_on(verdict: Verdict) -> str:
    if verdict.assessment is None:
        return "write a check for it, or set health.fallback in argosy-cm"
    return "argosy health show prints the rule that was used"


def _watch(bench: Workbench, request: Request, output: str) -> NoReturn:
    """Run again after each change until Ctrl-C. Print errors of a partly saved file and keep watching."""
    if any(str(path) == "-" for path in (*request.paths, *request.settings, request.script, request.facts)):
        raise UserError("standard input cannot be watched; name files")
    is_terminal = sys.stdout.isatty()
    seen: dict[Path, tuple[int, int]] | None = None
    while True:
        now = _stamps(request.files())
        if now == seen:
            time.sleep(POLL_SECONDS)
            continue
        seen = now
        print("\x1b[2J\x1b[H" if is_terminal else "---", end="" if is_terminal else "\n", flush=True)
        try:
            _once(bench, request, output)
        except Unread:
            raise
        except (ArgosyError, OSError) as error:
            print(f"argosy: {plain(str(error))}", file=sys.stderr)
        print("watching; Ctrl-C ends it", file=sys.stderr, flush=True)


def _stamps(files: Sequence[Path]) -> dict[Path, tuple[int, int]]:
    """Return modification time and size of each existing file."""
    found = {}
    for file in files:
        try:
            status = os.stat(file)
        except OSError:
            continue
        found[file] = (status.st_mtime_ns, status.st_size)
    return found
