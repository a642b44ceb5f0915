"""`argosy doctor [APP…]`: finds problems of an installation and its Applications, with causes and fixes."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from argosy.cli.durations import seconds
from argosy.cli.error_messages import answering, failed
from argosy.cli.exit_codes import DONE, NO, REFUSED
from argosy.cli.tables import plain
from argosy.cli.target_flags import add_target_flags, target_options, with_target
from argosy.cli.verbs import asked, can_ask, print_data, talk
from argosy.errors import ArgosyError, UserError

if TYPE_CHECKING:
    from argosy.features.doctor.report import Report
    from argosy.features.doctor.service import Examination
    from argosy.gitops.application_client.client import Desk

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy doctor
  argosy doctor stage00-minio --explain
  argosy doctor --match 'stage0|stage1' -o status
  argosy doctor --fix

See also: docs/reference/doctor.md, docs/reference/rules.md
"""
FORMS = ("text", "json", "yaml", "status")
PATIENCE = 1.0  # before progress is shown


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="what is wrong with an installation and its Applications, why, and what helps",
        description="Reads an installation and its Applications, and changes nothing. Exit code 1: problems found.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="APP", help="Applications, as NAME or NAMESPACE/NAME (default: all)")
    add("--match", default="", metavar="PATTERN", help="only Applications whose names match a regular expression")
    add("--explain", action="store_true", help="show each finding in full: why it is certain, and how to fix it")
    add("--checklist", action="store_true", help="what to verify after a sync, as assertions")
    add("--fix", action="store_true", help="apply safe fixes, after confirmation")
    add("-y", "--yes", action="store_true", help="with --fix: do not ask")
    about = "exit 1 on a finding of at least this severity (default: warning)"
    add("--fail-on", choices=("error", "warning", "info"), default="warning", help=about)
    about = "time limit for comparisons and proofs, in seconds (default: 9)"
    add("--timeout", type=seconds, default=9.0, metavar="S", help=about)
    about = "namespace of the Applications (default: the control namespace)"
    add("-N", "--app-namespace", default="", metavar="NS", help=about)
    add("-o", "--output", choices=FORMS, default="text", help="text (default), json, yaml or status")
    add_target_flags(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    if chosen.yes and not chosen.fix:
        raise UserError("requires --fix: --fix -y", where="-y")
    if chosen.fix and not chosen.yes and not can_ask():
        raise UserError("no terminal for the confirmation; run it without --fix, or add -y", where="--fix")
    try:
        return asyncio.run(_run(chosen))
    except ArgosyError as error:
        return failed(error, "doctor failed")


async def _run(chosen: argparse.Namespace) -> int:
    from argosy.cli.connection import open_desk
    from argosy.features.doctor.report import Report
    from argosy.features.doctor.service import Wanted, at_home, examine
    from argosy.gitops.application_client.reader import open_reader

    is_quick = chosen.output == "status"
    is_here = bool(chosen.app_namespace)
    wanted = Wanted(tuple(chosen.names), chosen.match, chosen.checklist, is_here, is_quick, chosen.timeout)
    async with open_desk(target_options(chosen), chosen.app_namespace) as opened:
        desk = await at_home(opened) if not chosen.app_namespace else opened

        async def examined() -> Report:
            async with _patience(desk), open_reader(desk) as reader:
                return Report(await examine(desk, reader, wanted))

        report = await examined()
        code = _verdict(report, chosen)
        with answering(code):
            _show(report, chosen)
            sys.stdout.flush()
        if chosen.fix:
            done, failure = await _fix(desk, report.found, is_asking=not chosen.yes)
            if done:
                report = await examined()
                code = _verdict(report, chosen)
                _tell_left(report)
            code = max(code, failure)
    return code


def _verdict(report: Report, chosen: argparse.Namespace) -> int:
    from argosy.gitops.analysis.violation import Severity

    if report.found.is_blind:
        return REFUSED
    is_bad = not report.is_calm if chosen.output == "status" else report.is_bad(Severity(chosen.fail_on))
    is_amiss = chosen.checklist and any(item.holds is False for item in report.checklist)
    return NO if is_bad or report.found.is_ill or is_amiss else DONE


def _tell_left(report: Report) -> None:
    """Print the remaining findings after the fixes, in one line."""
    from argosy.cli.tables import counted
    from argosy.gitops.analysis.violation import Severity

    found = [(report.count(each), each.value) for each in Severity]
    words = (f"{number} info" if word == "info" else counted(number, word) for number, word in found if number)
    counts = ", ".join(words)
    talk(f"examined again: {f'{counts} left; see: argosy doctor' if counts else 'nothing is left'}")


@asynccontextmanager
async def _patience(desk: Desk) -> AsyncIterator[None]:
    told = asyncio.get_running_loop().call_later(PATIENCE, talk, f"looking at {plain(desk.where)} …")
    try:
        yield
    finally:
        told.cancel()


def _show(report: Report, chosen: argparse.Namespace) -> None:
    from argosy.cli.tables import Screen
    from argosy.features.doctor import text_output

    if chosen.output in ("json", "yaml"):
        print_data(report.document(has_checklist=chosen.checklist), chosen.output)
        return
    screen = Screen(sys.stdout)
    if chosen.output == "status":
        print("\n".join(text_output.status_lines(report)))
        return
    print(with_target("\n".join(text_output.shown(report, screen, is_whole=chosen.explain))))
    if chosen.checklist:
        print("\n".join(text_output.checklist_lines(report, screen)))
    sys.stdout.flush()
    is_whole = chosen.explain or chosen.checklist
    for line in text_output.closing(report, is_fixing=chosen.fix, is_whole=is_whole, is_explained=chosen.explain):
        talk(plain(line))


async def _fix(desk: Desk, found: Examination, *, is_asking: bool) -> tuple[int, int]:
    """Apply fixes; return their number and the exit code of failures. A failure does not stop the other fixes."""
    from argosy.features.doctor.fixes import fixes

    offered = fixes(found)
    talk(f"target: {desk.where}")
    if not offered:
        talk("no safe fixes available; see FIX and --explain")
    done, code = 0, DONE
    for each in offered:
        if each.act is None:
            talk(plain(f"{each.subject}: {each.text}"))
            continue
        if is_asking and not asked(plain(f"{each.subject}: {each.text}?")):
            talk(f"{each.subject}: not changed")
            continue
        try:
            print(plain(f"{each.subject}: {await each.act(desk)}"))
            done += 1
        except ArgosyError as error:
            code = failed(error, f"{each.subject} was not fixed")
    return done, code
