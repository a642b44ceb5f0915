"""`argosy health lint` and `argosy health diff`: lint health checks, and compare health rules."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from argosy.cli.error_messages import keep_exit_code, print_error
from argosy.cli.exit_codes import EXIT_ERROR, EXIT_NEGATIVE, EXIT_OK
from argosy.cli.output import print_data, print_lines, print_progress, warn
from argosy.cli.tables import TerminalOutput, drop_control_characters, format_count

if TYPE_CHECKING:
    from argosy.features.health_checks.default_rule_comparison import HealthRuleComparison
    from argosy.features.health_checks.lint import HealthLintRemark, LintResult

COLOUR_CODES = {"error": "31", "warning": "33"}


def run_lint(args: argparse.Namespace) -> int:
    from argosy.features.health_checks.lint import lint_paths

    lint_result = lint_paths(args.paths, open_libs=args.open_libs)
    errors, warnings = lint_result.count("error"), lint_result.count("warning")
    is_bad = bool(errors or (args.strict and warnings))
    with keep_exit_code(EXIT_ERROR if lint_result.problems else EXIT_NEGATIVE if is_bad else EXIT_OK) as code:
        _print_lint_result(lint_result, args.output, strict=args.strict)
        sys.stdout.flush()
        summary = (
            f"{format_count(lint_result.script_count, 'script')}: {format_count(errors, 'error')}, "
            f"{format_count(warnings, 'warning')}"
        )
        print(summary, file=sys.stderr)
        if is_bad:
            print("next: fix the lines above; docs/reference/health.md explains each rule", file=sys.stderr)
        for problem in lint_result.problems:
            print_error(problem)
    return code


def _print_lint_result(lint_result: LintResult, output: str, *, strict: bool) -> None:
    if output in ("json", "yaml"):
        data = {
            "kind": "HealthLint",
            "scripts": lint_result.script_count,
            "items": [remark.to_wire() for remark in lint_result.remarks],
        }
        print_data(data, output)
    elif output == "junit":
        from argosy.features.health_checks.lint_junit import render_junit

        print(render_junit("argosy health lint", lint_result, strict=strict))
    elif output == "github":
        print_lines(_render_github_annotation(remark) for remark in lint_result.remarks)
    else:
        screen = TerminalOutput(sys.stdout)
        print_lines(render_remark(remark, screen) for remark in lint_result.remarks)


def render_remark(remark: HealthLintRemark, screen: TerminalOutput) -> str:
    severity = screen.add_colour(remark.severity, COLOUR_CODES.get(remark.severity, "0"))
    place = f" [{drop_control_characters(remark.place)}]" if remark.place not in ("", remark.file) else ""
    advice = f"; {drop_control_characters(remark.advice)}" if remark.advice else ""
    return (
        f"{drop_control_characters(remark.file)}:{remark.line}: {remark.rule} {severity}: "
        f"{drop_control_characters(remark.message)}{advice}{place}"
    )


def _render_github_annotation(remark: HealthLintRemark) -> str:
    """Render a workflow command that GitHub Actions shows next to the code."""
    kind = "error" if remark.severity == "error" else "warning"
    text = drop_control_characters(f"{remark.message}; {remark.advice}" if remark.advice else remark.message).replace(
        "%", "%25"
    )
    file = drop_control_characters(remark.file).replace("%", "%25").replace(",", "%2C").replace(":", "%3A")
    return f"::{kind} file={file},line={remark.line},title={remark.rule}::{text}"


def run_diff(args: argparse.Namespace) -> int:
    from argosy.features.health_checks.confined_test_runner import HealthTestRunner
    from argosy.features.health_checks.default_rule_comparison import AlternativeRule, compare_rules

    alternative = AlternativeRule(args.profile or "", tuple(args.filename), args.script, args.open_libs)
    with HealthTestRunner(print_progress) as runner:
        comparison = compare_rules(runner, args.kind, alternative, args.paths)
    with keep_exit_code(EXIT_NEGATIVE if comparison.differs else EXIT_OK) as code:
        warn(comparison.settings.faults)
        if args.output in ("json", "yaml"):
            print_data({"kind": "HealthDiff", **comparison.to_wire()}, args.output)
        else:
            print_lines(_render_comparison(comparison, TerminalOutput(sys.stdout)))
        sys.stdout.flush()
        if comparison.hint:
            print(f"hint: {drop_control_characters(comparison.hint)}", file=sys.stderr)
        if comparison.differs:
            print(f"argosy: {comparison.kind}: the rules differ, and {_render_counts(comparison)}", file=sys.stderr)
            print(f"next: {_render_next_step(comparison)}", file=sys.stderr)
    return code


def _render_next_step(comparison: HealthRuleComparison) -> str:
    if not comparison.object_count:
        return "add files with objects of this kind, to compare the health that each rule reports"
    return "keep the rule whose results you want; argosy health show prints each rule"


def _render_counts(comparison: HealthRuleComparison) -> str:
    if not comparison.object_count:
        return "there are no test objects of this kind"
    health = sum(disagreement.changes_health for disagreement in comparison.disagreements)
    message = len(comparison.disagreements) - health
    return (
        f"of {format_count(comparison.object_count, 'object')}, {health} would change health and {message} "
        "only the message"
    )


def _render_comparison(comparison: HealthRuleComparison, screen: TerminalOutput) -> Iterator[str]:
    if not comparison.differs:
        yield f"{comparison.kind}: no difference between {comparison.default_name} and {comparison.other_name}"
        return
    yield from (screen.format_diff_line(drop_control_characters(line)) for line in comparison.diff_lines)
    health_changes = [disagreement for disagreement in comparison.disagreements if disagreement.changes_health]
    if health_changes:
        rows = [
            [
                disagreement.name,
                screen.format_status(disagreement.default_result.health) or "-",
                disagreement.default_result.message,
                screen.format_status(disagreement.other_result.health) or "-",
                disagreement.other_result.message,
            ]
            for disagreement in health_changes
        ]
        yield ""
        yield from screen.format_table(["OBJECT", "DEFAULT SAYS", "MESSAGE", "OTHER SAYS", "MESSAGE"], rows)
