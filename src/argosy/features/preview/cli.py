"""`argosy preview [BASE[...HEAD]] [APP…]`: shows the effects of a branch before it is merged."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from argosy.cli.error_messages import answering
from argosy.cli.exit_codes import DONE, NO
from argosy.cli.progress import patiently
from argosy.cli.tables import Screen, plain
from argosy.cli.target_flags import add_target_flags, target_options

if TYPE_CHECKING:
    from argosy.features.preview.service import Preview
    from argosy.gitops.analysis.object_changes import Change, Touched

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES: Final = """\
Examples:
  argosy preview                       this branch with uncommitted changes, against main
  argosy preview HEAD~1 llmops-dev     since the last commit, one Application
  argosy preview origin/main...HEAD -o md > comment.md
  argosy preview --live                against the live state in the cluster

See also: docs/guides/previewing.md
"""
FORMS: Final = ("text", "md", "html", "json", "yaml")
MOST_FIELDS: Final = 20
COLOURS: Final = {"+": "32", "~": "33", "-": "31"}


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "preview",
        help="what a branch would change, before it is merged",
        description="Renders changed Applications on both sides and reports the effects: restarts,\n"
        "deletions, resource requests. No cluster is needed.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    about = "BASE, BASE...HEAD or BASE..HEAD (default: the branch to merge into, and the working tree)"
    add("words", nargs="*", metavar="BASE[...HEAD] APP", help=f"{about}; and names of Applications (default: all)")
    add("--repo", default=".", metavar="DIR", help="a folder of the repository (default: the current folder)")
    add("--diff", action="store_true", help="show full line diffs instead of fields")
    add("-o", "--output", choices=FORMS, default="text", help="text (default), md, html, json or yaml")
    add("--live", action="store_true", help="compare with the live state in the cluster instead of the base")
    add_target_flags(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    from argosy.gitops.analysis.change_impact import Verdict

    found = _found(chosen)
    with answering(DONE if found.impact.verdict is Verdict.FINE else NO) as code:
        _show(found, chosen)
        sys.stdout.flush()
        if chosen.output == "text":
            for note in found.notes:
                _talk(f"note: {note}")
        if advice := _advice(found, chosen):
            _talk(f"next: {advice}")
    return code


def _found(chosen: argparse.Namespace) -> Preview:
    from argosy.features.preview.service import preview

    with patiently("comparing files and rendering both sides …"):
        if chosen.live:
            from argosy.cli.connection import opening
            from argosy.features.preview.live_comparison import preview_live

            return preview_live(chosen.repo, chosen.words, opening(target_options(chosen)), talk=_talk)
        return preview(chosen.repo, chosen.words, talk=_talk)


def _show(found: Preview, chosen: argparse.Namespace) -> None:
    if chosen.output == "text":
        print("\n".join(_lines(found, Screen(sys.stdout), is_whole=chosen.diff)))
    elif chosen.output == "md":
        from argosy.features.preview.pull_request_comment import comment

        print(comment(found))
    elif chosen.output == "html":
        from argosy.features.preview.html_report import page

        print(page(found))
    else:
        from argosy.cli.verbs import print_data
        from argosy.features.preview.summary import as_data

        print_data(as_data(found), chosen.output)


def _lines(found: Preview, screen: Screen, *, is_whole: bool) -> Iterator[str]:
    from argosy.features.preview.summary import head_line, rows

    yield plain(head_line(found))
    yield f"Impact: {plain(found.impact.sentence)}"
    if not found.impact.touched:
        return
    yield ""
    headings = ("APP", "ENVIRONMENT", "SYNC", "+", "~", "-", "MESSAGE")
    yield from screen.table(headings, [[str(cell) or "-" for cell in row] for row in rows(found)])
    for touched, effects in zip(found.impact.touched, found.impact.effects, strict=True):
        said: dict[str, list[str]] = {}
        for each in effects:
            said.setdefault(each.name, []).append(each.text)
        yield ""
        yield plain(touched.name)
        yield from _faults(touched)
        for change in touched.changes:
            yield from _change(change, said.pop(change.name, []), screen, is_whole=is_whole)


def _faults(touched: Touched) -> Iterator[str]:
    if touched.fault:
        yield plain(f"  cannot be rendered: {touched.fault.place}: {touched.fault.message}; {touched.fault.fix}")
    if touched.fault_before:
        yield plain(f"  could not be rendered before: {touched.fault_before.place}: {touched.fault_before.message}")


def _change(change: Change, effects: list[str], screen: Screen, *, is_whole: bool) -> Iterator[str]:
    from argosy.features.preview.summary import field_lines, unified

    where = f" -n {change.key.namespace}" if change.key.namespace else ""
    mark = screen.colour(str(change.becomes), COLOURS[change.becomes])
    said = f": {'; '.join(effects)}" if effects else ""
    yield f"  {mark} {plain(change.name + where + said)}"
    if is_whole:
        yield from (f"    {screen.difference(plain(line))}" for line in unified(change))
        return
    fields = list(field_lines(change))
    for each in fields[:MOST_FIELDS]:
        place = f"   {each.place}" if each.place else ""
        yield plain(f"      {each.path}   {each.before} → {each.after}{place}")
    if len(fields) > MOST_FIELDS:
        yield f"      … and {len(fields) - MOST_FIELDS} more fields; show all: --diff"


def _advice(found: Preview, chosen: argparse.Namespace) -> str:
    from argosy.gitops.analysis.change_effects import EffectKind

    if any(each.fault for each in found.impact.touched) or found.impact.of(EffectKind.INVALID):
        return "argosy check"
    if found.impact.of(EffectKind.REFUSED):
        return "argosy explain AGY111"
    if not found.impact.touched and not chosen.words:
        return "argosy preview HEAD~1 for the last commit, or choose a base"
    return ""


def _talk(text: str) -> None:
    print(plain(text), file=sys.stderr, flush=True)
