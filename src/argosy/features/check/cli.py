"""`argosy check [PATH…]`: finds problems in Git before anything is deployed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from argosy.cli.error_messages import keep_exit_code
from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_OK
from argosy.cli.slow_step_progress import show_progress_if_slow
from argosy.cli.tables import TerminalOutput, drop_control_characters, format_count
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.check.service import CheckResult

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy check
  argosy check deploy/ -o github
  argosy check charts/fraud
  argosy check --fail-on error
  argosy check --fix
  argosy check --baseline known.yaml --write-baseline
  argosy explain AGY113

See also: docs/reference/rules.md
"""
OUTPUT_FORMATS = ("text", "json", "github", "sarif", "junit", "gitlab")
COLOURS = {"error": "31", "warning": "33", "info": "36"}


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check",
        help="find problems in Git before anything is deployed",
        description="Finds and renders every Application, and applies all rules. No cluster is needed.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    description = "files, folders and Helm charts (default: the current folder)"
    add("paths", nargs="*", type=Path, metavar="PATH", help=description)
    description = "exit 1 on a finding of at least this severity (default: warning)"
    add("--fail-on", choices=("error", "warning", "info"), default="warning", help=description)
    add("--baseline", default="", metavar="FILE", help="known findings; only new ones are reported")
    description = "the branch, tag or commit to compare with (default: the branch to merge into)"
    add("--base", default="", metavar="REF", help=description)
    add("--write-baseline", action="store_true", help="write the findings to the baseline")
    add("--profile", choices=("data-bearing",), default="", help="a checklist for every Application (AGY117)")
    add("--online", action="store_true", help="check on the Git hosts that branches and tags exist (AGY112)")
    add("--fix", action="store_true", help="fix findings with a safe fix in the files, and check again")
    description = "text (default), json, github, sarif, junit or gitlab"
    add("-o", "--output", choices=OUTPUT_FORMATS, default="text", help=description)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from argosy.features.check.service import CheckRunOptions, check_paths, fix_and_check_paths
    from argosy.gitops.analysis.rule_violation import Severity

    paths = [str(path) for path in args.paths] or ["."]
    if args.fix and args.write_baseline:
        raise UserError(
            "cannot be used with --fix: fix first, then write the remaining findings", where="--write-baseline"
        )
    manner = CheckRunOptions(args.profile, is_online=args.online, base=args.base, is_interactive=True)
    with show_progress_if_slow("reading files and rendering Applications …"):
        if args.fix:
            result = fix_and_check_paths(paths, baseline=args.baseline, options=manner, log=_print_to_stderr)
        else:
            writes = args.write_baseline
            result = check_paths(
                paths, baseline=args.baseline, writes_baseline=writes, options=manner, log=_print_to_stderr
            )
    if result.is_empty:
        message = "no Application, kustomization, manifest or notebook found"
        advice = "choose a folder: argosy check FOLDER, or start a repository: argosy init FOLDER"
        raise UserError(f"{message}; {'correct the path' if args.paths else advice}", where=", ".join(paths))
    min_weight = Severity(args.fail_on).weight
    is_bad = any(finding.severity.weight >= min_weight for finding in result.findings)
    with keep_exit_code(EXIT_NEGATIVE if is_bad else EXIT_OK) as code:
        _print_fixes(result, sys.stdout if args.output == "text" else sys.stderr)
        _print_findings(result, args.output)
        sys.stdout.flush()
        for note in result.notes:
            _print_to_stderr(f"note: {note}")
        _print_to_stderr(_render_summary(result))
        if not args.fix and any(finding.violation.file_fix for finding in result.findings):
            _print_to_stderr("some can be fixed automatically: argosy check --fix")
        if result.findings:
            _print_to_stderr(f"next: argosy explain {result.findings[0].rule.id}")
    return code


def _print_fixes(result: CheckResult, stream: TextIO) -> None:
    screen = TerminalOutput(stream)
    for fixed in result.fixed:
        violation = fixed.finding.violation
        message = (
            f"{fixed.finding.rule.id} {screen.add_colour('fixed', '32')}: {drop_control_characters(violation.message)}"
        )
        print(f"{drop_control_characters(str(fixed.location))}: {message}", file=stream)
    for unfixed in result.unfixed:
        message = f"{unfixed.finding.rule.id} was not fixed: {drop_control_characters(unfixed.reason)}"
        print(f"{drop_control_characters(str(unfixed.finding.location))}: {message}", file=stream)
    stream.flush()


def _print_findings(result: CheckResult, output: str) -> None:
    if output == "text":
        screen = TerminalOutput(sys.stdout)
        for finding in result.findings:
            severity = screen.add_colour(str(finding.severity), COLOURS[finding.severity])
            violation = finding.violation
            message = (
                f"{finding.rule.id} {severity}: {drop_control_characters(violation.message)}; "
                f"{drop_control_characters(violation.fix)}"
            )
            print(f"{drop_control_characters(str(violation.location))}: {message}")
        return
    from argosy.features.check.report_formats import RENDERERS as PRINTED

    if text := PRINTED[output](result):
        print(text)


def _render_summary(result: CheckResult) -> str:
    counts = {name: sum(finding.severity == name for finding in result.findings) for name in COLOURS}
    parts = [*(format_count(counts[name], name) for name in ("error", "warning")), f"{counts['info']} for information"]
    excused = f"; {format_count(len(result.excused), 'finding')} excused" if result.excused else ""
    counts_text = f"{format_count(result.applications, 'Application')}, {format_count(result.objects, 'object')}"
    return f"{counts_text}: {', '.join(parts)}{excused}"


def _print_to_stderr(text: str) -> None:
    print(drop_control_characters(text), file=sys.stderr, flush=True)
