"""`argosy preview [BASE[...HEAD]] [APP…]`: shows the effects of a branch before it is merged."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from argosy.cli.cluster_flags import add_target_flags, read_target_options
from argosy.cli.error_messages import keep_exit_code
from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_OK
from argosy.cli.slow_step_progress import show_progress_if_slow
from argosy.cli.tables import TerminalOutput, drop_control_characters

if TYPE_CHECKING:
    from argosy.features.preview.service import Preview
    from argosy.gitops.analysis.object_changes import ApplicationChange, ObjectChange

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES: Final = """\
Examples:
  argosy preview                       this branch with uncommitted changes, against main
  argosy preview HEAD~1 llmops-dev     since the last commit, one Application
  argosy preview origin/main...HEAD -o md > comment.md
  argosy preview --live                against the live state in the cluster

See also: docs/guides/previewing.md
"""
OUTPUT_FORMATS: Final = ("text", "md", "html", "json", "yaml")
MAX_SHOWN_FIELDS: Final = 20
COLOURS: Final = {"+": "32", "~": "33", "-": "31"}


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "preview",
        help="show what a branch would change, before it is merged",
        description="Renders changed Applications on both sides and reports the effects: restarts,\n"
        "deletions, resource requests. No cluster is needed.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    description = "BASE, BASE...HEAD or BASE..HEAD (default: the branch to merge into, and the working tree)"
    add(
        "words", nargs="*", metavar="BASE[...HEAD] APP", help=f"{description}; and names of Applications (default: all)"
    )
    add("--repo", default=".", metavar="DIR", help="a folder of the repository (default: the current folder)")
    add("--diff", action="store_true", help="show full line diffs instead of fields")
    add("-o", "--output", choices=OUTPUT_FORMATS, default="text", help="text (default), md, html, json or yaml")
    add("--live", action="store_true", help="compare with the live state in the cluster instead of the base")
    add_target_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    from argosy.gitops.analysis.change_impact_summary import ChangeVerdict

    preview = _build_preview(args)
    with keep_exit_code(EXIT_OK if preview.impact.verdict is ChangeVerdict.FINE else EXIT_NEGATIVE) as code:
        _print_preview(preview, args)
        sys.stdout.flush()
        if args.output == "text":
            for note in preview.notes:
                _print_to_stderr(f"note: {note}")
        if advice := _choose_next_command(preview, args):
            _print_to_stderr(f"next: {advice}")
    return code


def _build_preview(args: argparse.Namespace) -> Preview:
    from argosy.features.preview.service import build_preview

    with show_progress_if_slow("comparing files and rendering both sides …"):
        if args.live:
            from argosy.cli.application_service_connection import build_service_opener
            from argosy.features.preview.live_comparison import preview_live

            return preview_live(
                args.repo, args.words, build_service_opener(read_target_options(args)), log=_print_to_stderr
            )
        return build_preview(args.repo, args.words, log=_print_to_stderr)


def _print_preview(preview: Preview, args: argparse.Namespace) -> None:
    if args.output == "text":
        print("\n".join(_render_lines(preview, TerminalOutput(sys.stdout), shows_diff=args.diff)))
    elif args.output == "md":
        from argosy.features.preview.pull_request_comment_markdown import render_comment

        print(render_comment(preview))
    elif args.output == "html":
        from argosy.features.preview.html_report import render_html

        print(render_html(preview))
    else:
        from argosy.cli.subcommand_flags_and_runner import print_document
        from argosy.features.preview.output_rows_and_json import preview_to_wire

        print_document(preview_to_wire(preview), args.output)


def _render_lines(preview: Preview, screen: TerminalOutput, *, shows_diff: bool) -> Iterator[str]:
    from argosy.features.preview.output_rows_and_json import build_rows, render_preview_summary

    yield drop_control_characters(render_preview_summary(preview))
    yield f"Impact: {drop_control_characters(preview.impact.summary)}"
    if not preview.impact.app_changes:
        return
    yield ""
    headings = ("APP", "ENVIRONMENT", "SYNC", "+", "~", "-", "MESSAGE")
    yield from screen.format_table(headings, [[str(cell) or "-" for cell in row] for row in build_rows(preview)])
    for touched, effects in zip(preview.impact.app_changes, preview.impact.effects, strict=True):
        texts_by_object: dict[str, list[str]] = {}
        for effect in effects:
            texts_by_object.setdefault(effect.name, []).append(effect.text)
        yield ""
        yield drop_control_characters(touched.name)
        yield from _render_faults(touched)
        for change in touched.changes:
            yield from _render_change(change, texts_by_object.pop(change.name, []), screen, shows_diff=shows_diff)


def _render_faults(touched: ApplicationChange) -> Iterator[str]:
    if touched.render_failure:
        yield drop_control_characters(
            f"  cannot be rendered: {touched.render_failure.location}: {touched.render_failure.message}; "
            f"{touched.render_failure.fix}"
        )
    if touched.render_failure_before:
        yield drop_control_characters(
            f"  could not be rendered before: {touched.render_failure_before.location}: "
            f"{touched.render_failure_before.message}"
        )


def _render_change(
    change: ObjectChange, effects: list[str], screen: TerminalOutput, *, shows_diff: bool
) -> Iterator[str]:
    from argosy.features.preview.output_rows_and_json import build_unified_diff, iterate_field_lines

    namespace_text = f" -n {change.key.namespace}" if change.key.namespace else ""
    mark = screen.add_colour(str(change.change_type), COLOURS[change.change_type])
    effects_text = f": {'; '.join(effects)}" if effects else ""
    yield f"  {mark} {drop_control_characters(change.name + namespace_text + effects_text)}"
    if shows_diff:
        yield from (
            f"    {screen.format_diff_line(drop_control_characters(line))}" for line in build_unified_diff(change)
        )
        return
    fields = list(iterate_field_lines(change))
    for field_line in fields[:MAX_SHOWN_FIELDS]:
        location = f"   {field_line.place}" if field_line.place else ""
        yield drop_control_characters(f"      {field_line.path}   {field_line.before} → {field_line.after}{location}")
    if len(fields) > MAX_SHOWN_FIELDS:
        yield f"      … and {len(fields) - MAX_SHOWN_FIELDS} more fields; show all: --diff"


def _choose_next_command(preview: Preview, args: argparse.Namespace) -> str:
    from argosy.gitops.analysis.cluster_effect_types import EffectKind

    if any(change.render_failure for change in preview.impact.app_changes) or preview.impact.list_effects(
        EffectKind.INVALID
    ):
        return "argosy check"
    if preview.impact.list_effects(EffectKind.REFUSED):
        return "argosy explain AGY111"
    if not preview.impact.app_changes and not args.words:
        return "argosy preview HEAD~1 for the last commit, or choose a base"
    return ""


def _print_to_stderr(text: str) -> None:
    print(drop_control_characters(text), file=sys.stderr, flush=True)
