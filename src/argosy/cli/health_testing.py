"""`argosy health test`: runs tests, shows what came of them, and does so again when a file is saved."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from argosy.cli.health import print_data, print_lines, talk, warn
from argosy.cli.screen import Screen, counted, plain, table
from argosy.model.errors import ArgosyError, UserError

if TYPE_CHECKING:
    from argosy.app.health.testing import Report, Request
    from argosy.app.health.workbench import Workbench
    from argosy.health.suite import Outcome

POLL_SECONDS: Final = 0.2


def test(chosen: argparse.Namespace) -> int:
    from argosy.app.health.testing import Request
    from argosy.app.health.workbench import Workbench

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
            return _watch(bench, request, chosen.output)
        return _once(bench, request, chosen.output)


def _once(bench: Workbench, request: Request, output: str) -> int:
    from argosy.app.health.testing import run_tests

    report = run_tests(bench, request)
    warn(report.settings)
    for note in report.notes:
        print(f"note: {plain(note)}", file=sys.stderr)
    _show(report, output)
    sys.stdout.flush()  # what follows goes to stderr, and must come after it on a shared terminal
    failed = [outcome for outcome in report.outcomes() if not outcome.ok]
    if failed:
        _explain(report, failed, request)
    return 1 if failed else 0


def _show(report: Report, output: str) -> None:
    from argosy.health import suite

    if output in ("json", "yaml"):
        print_data(suite.report(report.outcomes()), output, named=False)
    elif output == "junit":
        print(suite.junit(report.outcomes()), end="")
    else:
        print_lines(_text(report, Screen(sys.stdout)))


def _text(report: Report, screen: Screen) -> Iterator[str]:
    from argosy.cli.health_review import remark_line
    from argosy.health.suite import line

    if report.tests:
        yield from (screen.bad(line(outcome)) for outcome in report.tests if not outcome.ok)
        passed = sum(outcome.ok for outcome in report.tests)
        failed = len(report.tests) - passed
        ending = f", {failed} failed" if failed else ""
        yield f"{counted(len(report.tests), 'case')}: {passed} passed{ending}"
    if report.verdicts:
        yield from table(
            ["KIND/NAME", "HEALTH", "MESSAGE", "RULE"],
            [
                [f"{each.key.kind}/{each.key.name}", screen.mark(each.health) or "-", each.message, each.rule or "-"]
                for each in report.verdicts
            ],
        )
    if report.trials:
        yield "Each check on an object without a status:"
        yield from table(
            ["KIND", "HEALTH", "MESSAGE", "CHECK"],
            [
                [each.check.pattern, screen.mark(each.health) or "-", each.message, each.check.where]
                for each in report.trials
            ],
        )
        yield from (remark_line(each, screen) for each in report.remarks)
    if not (report.tests or report.verdicts or report.trials):
        yield "no checks in these settings"


def _explain(report: Report, failed: Sequence[Outcome], request: Request) -> None:
    """What failed, why, and what to do."""
    total, first = len(report.outcomes()), failed[0].case
    what = f"{len(failed)} of {counted(total, 'case')} failed"
    name = plain(f"{first.kind} {first.name}")
    if faults := report.faults():
        why, advice = (
            f"{name}: the check itself failed: {plain(faults[0])}",
            "correct the script; argosy health lint helps",
        )
    elif report.verdicts and not any(not outcome.ok for outcome in report.tests):
        why, advice = f"{name} is not {request.expect}", "argosy health show prints the rule that judged it"
    else:
        why, advice = f"the first is {name}", "correct the rule or its test; -o json has all of expected and got"
    print(f"argosy: {what}: {why}\nnext: {advice}", file=sys.stderr)


def _watch(bench: Workbench, request: Request, output: str) -> int:
    """Runs until Ctrl-C, which is the normal way to end it. A file that is half saved is told of, and waited for."""
    if any(path.name == "-" for path in (*request.paths, *request.settings)):
        raise UserError("standard input cannot be watched; name files")
    is_terminal = sys.stdout.isatty()
    seen: dict[Path, tuple[int, int]] | None = None
    try:
        while True:
            now = _stamps(request.files())
            if now == seen:
                time.sleep(POLL_SECONDS)
                continue
            seen = now
            print("\x1b[2J\x1b[H" if is_terminal else "---", end="" if is_terminal else "\n", flush=True)
            try:
                _once(bench, request, output)
            except (ArgosyError, OSError) as error:
                print(f"argosy: {plain(str(error))}", file=sys.stderr)
            print("watching; Ctrl-C ends it", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        return 0


def _stamps(files: Sequence[Path]) -> dict[Path, tuple[int, int]]:
    """When each file was last changed; one that is gone just now is left out."""
    found = {}
    for file in files:
        try:
            status = os.stat(file)
        except OSError:
            continue
        found[file] = (status.st_mtime_ns, status.st_size)
    return found
