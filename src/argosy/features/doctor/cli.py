"""`argosy doctor [APP…]`: finds problems of an installation and its Applications, with causes and fixes."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from argosy.cli.cluster_flags import add_target_flags, add_target_flags_to_printed_commands, read_target_options
from argosy.cli.error_messages import keep_exit_code, report_error
from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_OK, EXIT_REFUSED
from argosy.cli.seconds_flag_parser import parse_seconds
from argosy.cli.subcommand_flags_and_runner import confirm, is_interactive, print_document, print_message
from argosy.cli.tables import drop_control_characters
from argosy.errors import ArgosyError, UserError

if TYPE_CHECKING:
    from argosy.features.doctor.examination_summary import DoctorReport
    from argosy.features.doctor.service import Examination
    from argosy.gitops.application_client.application_service import ApplicationService

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy doctor
  argosy doctor stage00-minio --explain
  argosy doctor --match 'stage0|stage1' -o status
  argosy doctor --fix

See also: docs/reference/doctor.md, docs/reference/rules.md
"""
OUTPUT_FORMATS = ("text", "json", "yaml", "status")
PROGRESS_DELAY_SECONDS = 1.0  # before progress is shown


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "doctor",
        help="find problems of an installation and its Applications, with causes and fixes",
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
    description = "exit 1 on a finding of at least this severity (default: warning)"
    add("--fail-on", choices=("error", "warning", "info"), default="warning", help=description)
    description = "time limit for comparisons and proofs, in seconds (default: 9)"
    add("--timeout", type=parse_seconds, default=9.0, metavar="S", help=description)
    description = "namespace of the Applications (default: the control namespace)"
    add("-N", "--app-namespace", default="", metavar="NS", help=description)
    add("-o", "--output", choices=OUTPUT_FORMATS, default="text", help="text (default), json, yaml or status")
    add_target_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.yes and not args.fix:
        raise UserError("requires --fix: --fix -y", where="-y")
    if args.fix and not args.yes and not is_interactive():
        raise UserError("no terminal for the confirmation; run it without --fix, or add -y", where="--fix")
    try:
        return asyncio.run(_run(args))
    except ArgosyError as error:
        return report_error(error, "doctor failed")


async def _run(args: argparse.Namespace) -> int:
    from argosy.cli.application_service_connection import open_service
    from argosy.features.doctor.examination_summary import DoctorReport
    from argosy.features.doctor.service import DoctorOptions, examine_installation, find_readable_namespace
    from argosy.gitops.application_client.app_state_reader import open_reader

    is_quick = args.output == "status"
    is_here = bool(args.app_namespace)
    options = DoctorOptions(tuple(args.names), args.match, args.checklist, is_here, is_quick, args.timeout)
    async with open_service(read_target_options(args), args.app_namespace) as opened_service:
        service = await find_readable_namespace(opened_service) if not args.app_namespace else opened_service

        async def examined() -> DoctorReport:
            async with _print_progress_if_slow(service), open_reader(service) as reader:
                return DoctorReport(await examine_installation(service, reader, options))

        report = await examined()
        code = _choose_exit_code(report, args)
        with keep_exit_code(code):
            _print_report(report, args)
            sys.stdout.flush()
        if args.fix:
            fixed_count, failure = await _apply_fixes(service, report.examination, asks_first=not args.yes)
            if fixed_count:
                report = await examined()
                code = _choose_exit_code(report, args)
                _print_remaining(report)
            code = max(code, failure)
    return code


def _choose_exit_code(report: DoctorReport, args: argparse.Namespace) -> int:
    from argosy.gitops.analysis.rule_violation import Severity

    if report.examination.has_no_applications:
        return EXIT_REFUSED
    is_bad = not report.is_all_healthy if args.output == "status" else report.has_findings_of(Severity(args.fail_on))
    has_failed_item = args.checklist and any(item.holds is False for item in report.checklist)
    return EXIT_NEGATIVE if is_bad or report.examination.is_installation_broken or has_failed_item else EXIT_OK


def _print_remaining(report: DoctorReport) -> None:
    """Print the remaining findings after the fixes, in one line."""
    from argosy.cli.tables import format_count
    from argosy.gitops.analysis.rule_violation import Severity

    counts_by_severity = [(report.count(severity), severity.value) for severity in Severity]
    parts = (
        f"{number} info" if word == "info" else format_count(number, word)
        for number, word in counts_by_severity
        if number
    )
    counts = ", ".join(parts)
    print_message(f"examined again: {f'{counts} left; see: argosy doctor' if counts else 'nothing is left'}")


@asynccontextmanager
async def _print_progress_if_slow(service: ApplicationService) -> AsyncIterator[None]:
    timer = asyncio.get_running_loop().call_later(
        PROGRESS_DELAY_SECONDS, print_message, f"looking at {drop_control_characters(service.cluster_name)} …"
    )
    try:
        yield
    finally:
        timer.cancel()


def _print_report(report: DoctorReport, args: argparse.Namespace) -> None:
    from argosy.cli.tables import TerminalOutput
    from argosy.features.doctor import text_output

    if args.output in ("json", "yaml"):
        print_document(report.to_wire(has_checklist=args.checklist), args.output)
        return
    screen = TerminalOutput(sys.stdout)
    if args.output == "status":
        print("\n".join(text_output.render_status(report)))
        return
    print(
        add_target_flags_to_printed_commands(
            "\n".join(text_output.render_report(report, screen, explains=args.explain))
        )
    )
    if args.checklist:
        print("\n".join(text_output.render_checklist(report, screen)))
    sys.stdout.flush()
    is_whole = args.explain or args.checklist
    for line in text_output.render_closing(
        report, is_fixing=args.fix, shows_follow_ups=is_whole, is_explained=args.explain
    ):
        print_message(drop_control_characters(line))


async def _apply_fixes(service: ApplicationService, examination: Examination, *, asks_first: bool) -> tuple[int, int]:
    """Apply fixes; return their number and the exit code of failures. A failure does not stop the other fixes."""
    from argosy.features.doctor.fixes import list_fixes

    available = list_fixes(examination)
    print_message(f"target: {service.cluster_name}")
    if not available:
        print_message("no safe fixes available; see FIX and --explain")
    fixed_count, code = 0, EXIT_OK
    for fix in available:
        if fix.act is None:
            print_message(drop_control_characters(f"{fix.subject}: {fix.text}"))
            continue
        if asks_first and not confirm(drop_control_characters(f"{fix.subject}: {fix.text}?")):
            print_message(f"{fix.subject}: not changed")
            continue
        try:
            print(drop_control_characters(f"{fix.subject}: {await fix.act(service)}"))
            fixed_count += 1
        except ArgosyError as error:
            code = report_error(error, f"{fix.subject} was not fixed")
    return fixed_count, code
