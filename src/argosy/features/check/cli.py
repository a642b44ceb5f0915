"""`argosy check [PATH…]`: finds problems in Git before anything is deployed."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from argosy.cli.error_messages import answering
from argosy.cli.exit_codes import DONE, NO
from argosy.cli.progress import patiently
from argosy.cli.tables import Screen, counted, plain
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.features.check.service import Checked

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
FORMS = ("text", "json", "github", "sarif", "junit", "gitlab")
COLOURS = {"error": "31", "warning": "33", "info": "36"}


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "check",
        help="find what is wrong in Git, before anything is deployed",
        description="Finds and renders every Application, and applies all rules. No cluster is needed.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    about = "files, folders and Helm charts (default: the current folder)"
    add("paths", nargs="*", type=Path, metavar="PATH", help=about)
    about = "exit 1 on a finding of at least this severity (default: warning)"
    add("--fail-on", choices=("error", "warning", "info"), default="warning", help=about)
    add("--baseline", default="", metavar="FILE", help="known findings; only new ones are reported")
    about = "the branch, tag or commit to compare with (default: the branch to merge into)"
    add("--base", default="", metavar="REF", help=about)
    add("--write-baseline", action="store_true", help="write the findings to the baseline")
    add("--profile", choices=("data-bearing",), default="", help="a checklist for every Application (AGY117)")
    add("--online", action="store_true", help="check on the Git hosts that branches and tags exist (AGY112)")
    add("--fix", action="store_true", help="fix findings with a safe fix in the files, and check again")
    about = "text (default), json, github, sarif, junit or gitlab"
    add("-o", "--output", choices=FORMS, default="text", help=about)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    from argosy.features.check.service import Manner, check, fix
    from argosy.gitops.analysis.violation import Severity

    paths = [str(path) for path in chosen.paths] or ["."]
    if chosen.fix and chosen.write_baseline:
        raise UserError(
            "cannot be used with --fix: fix first, then write the remaining findings", where="--write-baseline"
        )
    manner = Manner(chosen.profile, is_online=chosen.online, base=chosen.base, is_typed=True)
    with patiently("reading files and rendering Applications …"):
        if chosen.fix:
            found = fix(paths, baseline=chosen.baseline, manner=manner, talk=_talk)
        else:
            writes = chosen.write_baseline
            found = check(paths, baseline=chosen.baseline, is_writing=writes, manner=manner, talk=_talk)
    if found.is_empty:
        message = "no Application, kustomization, manifest or notebook found"
        here = "choose a folder: argosy check FOLDER, or start a repository: argosy init FOLDER"
        raise UserError(f"{message}; {'correct the path' if chosen.paths else here}", where=", ".join(paths))
    least = Severity(chosen.fail_on).weight
    is_bad = any(each.severity.weight >= least for each in found.findings)
    with answering(NO if is_bad else DONE) as code:
        _show_mended(found, sys.stdout if chosen.output == "text" else sys.stderr)
        _show(found, chosen.output)
        sys.stdout.flush()
        for note in found.notes:
            _talk(f"note: {note}")
        _talk(_summary(found))
        if not chosen.fix and any(each.sight.mend for each in found.findings):
            _talk("some can be fixed automatically: argosy check --fix")
        if found.findings:
            _talk(f"next: argosy explain {found.findings[0].rule.id}")
    return code


def _show_mended(found: Checked, to: TextIO) -> None:
    screen = Screen(to)
    for each in found.mended:
        sight = each.finding.sight
        said = f"{each.finding.rule.id} {screen.colour('fixed', '32')}: {plain(sight.message)}"
        print(f"{plain(str(each.place))}: {said}", file=to)
    for left in found.unmended:
        said = f"{left.finding.rule.id} was not fixed: {plain(left.why)}"
        print(f"{plain(str(left.finding.place))}: {said}", file=to)
    to.flush()


def _show(found: Checked, output: str) -> None:
    if output == "text":
        screen = Screen(sys.stdout)
        for finding in found.findings:
            severity = screen.colour(str(finding.severity), COLOURS[finding.severity])
            sight = finding.sight
            told = f"{finding.rule.id} {severity}: {plain(sight.message)}; {plain(sight.fix)}"
            print(f"{plain(str(sight.place))}: {told}")
        return
    from argosy.features.check.report_formats import FORMS as PRINTED

    if text := PRINTED[output](found):
        print(text)


def _summary(found: Checked) -> str:
    counts = {name: sum(each.severity == name for each in found.findings) for name in COLOURS}
    parts = [*(counted(counts[name], name) for name in ("error", "warning")), f"{counts['info']} for information"]
    excused = f"; {counted(len(found.excused), 'finding')} excused" if found.excused else ""
    looked = f"{counted(found.applications, 'Application')}, {counted(found.objects, 'object')}"
    return f"{looked}: {', '.join(parts)}{excused}"


def _talk(text: str) -> None:
    print(plain(text), file=sys.stderr, flush=True)
