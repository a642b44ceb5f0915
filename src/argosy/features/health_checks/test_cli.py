"""`argosy health test`: run tests, print the results, and with --watch run again when a file changes."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from argosy.cli.error_messages import OutputClosed, keep_exit_code, print_error
from argosy.cli.exit_codes import EXIT_ERROR, EXIT_NEGATIVE, EXIT_OK
from argosy.cli.output import print_data, print_lines, print_progress, warn
from argosy.cli.tables import TerminalOutput, drop_control_characters, format_count
from argosy.errors import ArgosyError, UserError

if TYPE_CHECKING:
    from argosy.features.health_checks.confined_test_runner import HealthTestRunner, ObjectHealth
    from argosy.features.health_checks.test_report import HealthTestReport
    from argosy.features.health_checks.test_run import HealthTestRequest
    from argosy.gitops.health.test_suite import CaseResult

POLL_SECONDS: Final = 0.2


def run_test(args: argparse.Namespace) -> int:
    if not args.watch:
        return _run_test(args)
    try:
        return _run_test(args)
    except KeyboardInterrupt:  # the normal way to end it, whenever it comes
        return EXIT_OK


def _run_test(args: argparse.Namespace) -> int:
    from argosy.features.health_checks.confined_test_runner import HealthTestRunner
    from argosy.features.health_checks.test_run import HealthTestRequest

    request = HealthTestRequest(
        tuple(args.paths),
        tuple(args.filename),
        args.script,
        args.open_libs,
        args.profile or "",
        args.facts,
        args.expect or "",
    )
    with HealthTestRunner(print_progress) as runner:
        if args.watch:
            _run_and_watch(runner, request, args.output)
        return _run_once(runner, request, args.output)


def _run_once(runner: HealthTestRunner, request: HealthTestRequest, output: str) -> int:
    from argosy.features.health_checks.test_run import run_tests

    report = run_tests(runner, request)
    failed_outcomes = [outcome for outcome in report.list_outcomes() if not outcome.ok]
    with keep_exit_code(EXIT_ERROR if report.problems else EXIT_NEGATIVE if failed_outcomes else EXIT_OK) as code:
        warn(report.warnings)
        if report.verdicts:
            for fault in report.failing_faults:
                print(f"error: {drop_control_characters(str(fault))}", file=sys.stderr)
        for note in report.notes:
            print(f"note: {drop_control_characters(note)}", file=sys.stderr)
        _print_report(report, output)
        sys.stdout.flush()  # stderr output follows, and must come after it on a shared terminal
        if failed_outcomes:
            _print_failure(report, failed_outcomes)
        for problem in report.problems:
            print_error(problem)
    return code


def _print_report(report: HealthTestReport, output: str) -> None:
    from argosy.gitops.health import test_suite

    if output == "text":
        print_lines(_render_report(report, TerminalOutput(sys.stdout)))
        return
    if output == "junit":
        print(test_suite.render_junit(report.list_outcomes()), end="")
    else:
        print_data(report.to_wire(), output, has_api_version=False)
    # The cases contain every error; warnings go to stderr.
    warnings = (remark for remark in report.lint_result.remarks if remark.severity == "warning")
    warn(f"{remark.file}:{remark.line}: {remark.rule} {remark.message}; {remark.advice}" for remark in warnings)


def _render_report(report: HealthTestReport, screen: TerminalOutput) -> Iterator[str]:
    from argosy.features.health_checks.lint_and_diff_cli import render_remark
    from argosy.gitops.health.test_suite import render_line

    if report.tests:
        yield from (screen.format_failure(render_line(outcome)) for outcome in report.tests if not outcome.ok)
        passed_count = sum(outcome.ok for outcome in report.tests)
        failed_count = len(report.tests) - passed_count
        failed_text = f", {failed_count} failed" if failed_count else ""
        yield f"{format_count(len(report.tests), 'case')}: {passed_count} passed{failed_text}"
    if report.verdicts:
        rows = [_build_row(item, screen) for item in report.verdicts]
        yield from screen.format_table(["KIND/NAME", "HEALTH", "MESSAGE", "RULE"], rows)
    if report.trials:
        yield "Each check on an object without a status:"
        rows = [
            [item.check.pattern, screen.format_status(item.health) or "-", item.display_message, item.check.where]
            for item in report.trials
        ]
        yield from screen.format_table(["KIND", "HEALTH", "MESSAGE", "CHECK"], rows)
    yield from (render_remark(item, screen) for item in report.lint_result.remarks)
    if not (
        report.tests
        or report.verdicts
        or report.lint_result.linted_scripts
        or report.lint_result.remarks
        or report.problems
    ):
        yield "no checks in these settings"


def _build_row(verdict: ObjectHealth, screen: TerminalOutput) -> list[str]:
    return [
        f"{verdict.key.kind}/{verdict.key.name}",
        screen.format_status(verdict.health) or "-",
        verdict.display_message,
        verdict.rule or "-",
    ]


def _print_failure(report: HealthTestReport, failed_outcomes: Sequence[CaseResult]) -> None:
    """Print what failed, the reason, and the next step."""
    first_case = failed_outcomes[0].case
    summary = f"{len(failed_outcomes)} of {format_count(len(report.list_outcomes()), 'case')} failed"
    name = drop_control_characters(f"{first_case.kind} {first_case.name}".strip())
    reason, advice = _find_reason(report, failed_outcomes, name)
    print(f"argosy: {summary}: {drop_control_characters(reason)}\nnext: {advice}", file=sys.stderr)


def _find_reason(report: HealthTestReport, failed_outcomes: Sequence[CaseResult], name: str) -> tuple[str, str]:
    if any(not outcome.ok for outcome in report.tests):
        return f"the first is {name}", "fix the rule or its test; -o json prints expected and actual values"
    from argosy.features.health_checks.confined_test_runner import insert_script_name

    for verdict in report.verdicts:
        if verdict.fault and verdict.is_builtin_rule:
            return (
                f"{name}: the health rule cannot read the object: {verdict.fault}",
                "fix the object; a field has a type that its kind does not allow",
            )
        if verdict.fault:
            fault = insert_script_name(verdict.fault, verdict.rule)
            return f"{name}: the check itself failed: {fault}", "correct the script; argosy health lint helps"
        if report.expect not in ("", verdict.health):
            return f"{name} is not {report.expect}{_render_missing_rule(verdict)}", _render_advice(verdict)
    error = (
        failed_outcomes[0].got["error"]
        if isinstance(failed_outcomes[0].got, dict) and "error" in failed_outcomes[0].got
        else ""
    )
    if report.failing_faults and failed_outcomes[0].case.name == report.failing_faults[0].where:
        error, _, advice = error.partition("; ")
        return f"{report.failing_faults[0].where}: {error}", advice or "correct the setting"
    error = insert_script_name(error, failed_outcomes[0].case.name)
    return f"{name}: the check itself failed: {error}", "correct the script; argosy health lint helps"


def _render_missing_rule(verdict: ObjectHealth) -> str:
    return ", because this kind has no health rule" if verdict.assessment is None else ""


def _render_advice(verdict: ObjectHealth) -> str:
    if verdict.assessment is None:
        return "write a check for it, or set health.fallback in argosy-cm"
    return "argosy health show prints the rule that was used"


def _run_and_watch(runner: HealthTestRunner, request: HealthTestRequest, output: str) -> NoReturn:
    """Run again after each change until Ctrl-C. Print errors of a partly saved file and keep watching."""
    if any(str(path) == "-" for path in (*request.paths, *request.settings, request.script, request.facts)):
        raise UserError("standard input cannot be watched; name files")
    is_terminal = sys.stdout.isatty()
    previous_stamps: dict[Path, tuple[int, int]] | None = None
    while True:
        stamps = _read_file_stamps(request.list_files())
        if stamps == previous_stamps:
            time.sleep(POLL_SECONDS)
            continue
        previous_stamps = stamps
        print("\x1b[2J\x1b[H" if is_terminal else "---", end="" if is_terminal else "\n", flush=True)
        try:
            _run_once(runner, request, output)
        except OutputClosed:
            raise
        except (ArgosyError, OSError) as error:
            print(f"argosy: {drop_control_characters(str(error))}", file=sys.stderr)
        print("watching; Ctrl-C ends it", file=sys.stderr, flush=True)


def _read_file_stamps(files: Sequence[Path]) -> dict[Path, tuple[int, int]]:
    """Return modification time and size of each existing file."""
    stamps = {}
    for file in files:
        try:
            status = os.stat(file)
        except OSError:
            continue
        stamps[file] = (status.st_mtime_ns, status.st_size)
    return stamps
