"""`argosy health lint` and `argosy health diff`: lint health checks, and compare health rules."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from argosy.cli.error_messages import answering, tell
from argosy.cli.exit_codes import CANNOT, DONE, NO
from argosy.cli.output import print_data, print_lines, talk, warn
from argosy.cli.tables import Screen, counted, plain

if TYPE_CHECKING:
    from argosy.features.health_checks.comparison import Comparison
    from argosy.features.health_checks.lint import Linted, Remark

COLOURS = {"error": "31", "warning": "33"}


def lint(chosen: argparse.Namespace) -> int:
    from argosy.features.health_checks.lint import lint_paths

    found = lint_paths(chosen.paths, open_libs=chosen.open_libs)
    errors, warnings = found.count("error"), found.count("warning")
    is_bad = bool(errors or (chosen.strict and warnings))
    with answering(CANNOT if found.problems else NO if is_bad else DONE) as code:
        _show(found, chosen.output, strict=chosen.strict)
        sys.stdout.flush()
        told = f"{counted(found.scripts, 'script')}: {counted(errors, 'error')}, {counted(warnings, 'warning')}"
        print(told, file=sys.stderr)
        if is_bad:
            print("next: fix the lines above; docs/reference/health.md explains each rule", file=sys.stderr)
        for problem in found.problems:
            tell(problem)
    return code


def _show(found: Linted, output: str, *, strict: bool) -> None:
    if output in ("json", "yaml"):
        data = {"kind": "HealthLint", "scripts": found.scripts, "items": [each.as_data() for each in found.remarks]}
        print_data(data, output)
    elif output == "junit":
        from argosy.features.health_checks.junit import junit

        print(junit("argosy health lint", found, strict=strict))
    elif output == "github":
        print_lines(_annotation(each) for each in found.remarks)
    else:
        screen = Screen(sys.stdout)
        print_lines(remark_line(each, screen) for each in found.remarks)


def remark_line(remark: Remark, screen: Screen) -> str:
    severity = screen.colour(remark.severity, COLOURS.get(remark.severity, "0"))
    place = f" [{plain(remark.place)}]" if remark.place not in ("", remark.file) else ""
    advice = f"; {plain(remark.advice)}" if remark.advice else ""
    return f"{plain(remark.file)}:{remark.line}: {remark.rule} {severity}: {plain(remark.message)}{advice}{place}"


def _annotation(remark: Remark) -> str:
    """Render a workflow command that GitHub Actions shows next to the code."""
    kind = "error" if remark.severity == "error" else "warning"
    text = plain(f"{remark.message}; {remark.advice}" if remark.advice else remark.message).replace("%", "%25")
    file = plain(remark.file).replace("%", "%25").replace(",", "%2C").replace(":", "%3A")
    return f"::{kind} file={file},line={remark.line},title={remark.rule}::{text}"


def diff(chosen: argparse.Namespace) -> int:
    from argosy.features.health_checks.comparison import Alternative, compare
    from argosy.features.health_checks.service import Workbench

    alternative = Alternative(chosen.profile or "", tuple(chosen.filename), chosen.script, chosen.open_libs)
    with Workbench(talk) as bench:
        found = compare(bench, chosen.kind, alternative, chosen.paths)
    with answering(NO if found.differs else DONE) as code:
        warn(found.settings.faults)
        if chosen.output in ("json", "yaml"):
            print_data({"kind": "HealthDiff", **found.as_data()}, chosen.output)
        else:
            print_lines(_told(found, Screen(sys.stdout)))
        sys.stdout.flush()
        if found.hint:
            print(f"hint: {plain(found.hint)}", file=sys.stderr)
        if found.differs:
            print(f"argosy: {found.kind}: the rules differ, and {_counted(found)}", file=sys.stderr)
            print(f"next: {_next(found)}", file=sys.stderr)
    return code


def _next(found: Comparison) -> str:
    if not found.objects:
        return "add files with objects of this kind, to compare the health that each rule reports"
    return "keep the rule whose results you want; argosy health show prints each rule"


def _counted(found: Comparison) -> str:
    if not found.objects:
        return "there are no test objects of this kind"
    health = sum(each.changes_health for each in found.disagreements)
    message = len(found.disagreements) - health
    return f"of {counted(found.objects, 'object')}, {health} would change health and {message} only the message"


def _told(found: Comparison, screen: Screen) -> Iterator[str]:
    if not found.differs:
        yield f"{found.kind}: no difference between {found.one} and {found.other}"
        return
    yield from (screen.difference(plain(line)) for line in found.lines)
    changed = [each for each in found.disagreements if each.changes_health]
    if changed:
        rows = [
            [
                each.name,
                screen.mark(each.one.health) or "-",
                each.one.message,
                screen.mark(each.other.health) or "-",
                each.other.message,
            ]
            for each in changed
        ]
        yield ""
        yield from screen.table(["OBJECT", "DEFAULT SAYS", "MESSAGE", "OTHER SAYS", "MESSAGE"], rows)
