"""`argosy trace KIND/NAME`: the commit, notebook run and file behind a served model."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from argosy.cli.error_messages import failed
from argosy.cli.exit_codes import NO
from argosy.cli.target_flags import add_target_flags, target_options
from argosy.cli.verbs import print_data, talk
from argosy.errors import ArgosyError

if TYPE_CHECKING:
    from argosy.features.models.lineage import Copy, Lineage, Run

Commands = argparse._SubParsersAction  # the type argparse gives no public name
EXAMPLES = """\
Examples:
  argosy trace isvc/fraud-detection-model
  argosy trace nvj/model-training -n ml-platform -o json

See also: docs/guides/notebooks-with-argocd.md
"""
SHORT, DIGEST = 7, 19  # characters of a commit, and of a digest with its algorithm


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    about = "which commit, notebook run and file a served model comes from"
    parser: argparse.ArgumentParser = commands.add_parser(
        "trace",
        help=about,
        description=f"{about.capitalize()}.\nExit code 1: the origin is unknown, or an earlier file is served.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", metavar="KIND/NAME", help="a model (isvc/NAME, or NAME) or a notebook job (nvj/NAME)")
    parser.add_argument(
        "-n", "--namespace", default="", metavar="NS", help="namespace of the object (default: all namespaces)"
    )
    forms = ["text", "json", "yaml"]
    parser.add_argument("-o", "--output", choices=forms, default="text", help="text, json or yaml")
    add_target_flags(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    from argosy.features.models.trace import open_tracer

    async def run() -> int:
        async with open_tracer(target_options(chosen)) as tracer:
            traced = await tracer.find(chosen.what, chosen.namespace)
        if chosen.output != "text":
            served = [each.document() for each in traced.lineages]
            runs = [each.document() for each in traced.runs]
            made = {"apiVersion": "cli.argosy.dev/v1", "kind": "Trace", "runs": runs, "models": served}
            print_data(made, chosen.output)
        else:
            print("\n\n".join("\n".join(_lines(each)) for each in traced.lineages))
        if not traced.lineages:
            _tell_unused(traced.runs, chosen.what)
        return 0 if traced.lineages and all(each.is_current for each in traced.lineages) else NO

    try:
        return asyncio.run(run())
    except ArgosyError as error:
        return failed(error, f"trace {chosen.what} failed")


def _tell_unused(runs: tuple[Run, ...], what: str) -> None:
    files = [each.place or each.path for each in runs[-1].files] if runs else []
    talk(f"no model serves a file of {what}" + (f"; its last run wrote {', '.join(files)}" if files else ""))


def _lines(found: Lineage) -> Iterator[str]:
    if found.trained:
        yield _row("commit", f"{found.trained.commit[:SHORT] or 'unknown'}  {found.trained.repository}")
    for run in found.runs:
        yield _row("run", f"{run.job} #{run.attempt}  {run.notebook} at {run.commit[:SHORT]}, ended {run.ended}")
        for file in run.files:
            yield _row("", f"{file.digest[:DIGEST]}  {file.place or file.path}")
    if found.address:
        yield _row("commit", found.address.commit or "unknown")
        yield _row("written", f"{found.address.place}")
    by = f", delivered by {found.app}" if found.app else ""
    yield _row("model", f"{found.namespace}/{found.name}  {found.source}{by}")
    for copy in found.copies:
        yield _row("served", f"{copy.name}  since {copy.started}{_told(found, copy)}")
    for each in found.troubles:
        yield _row("note", each)


def _told(found: Lineage, copy: Copy) -> str:
    if found.address:
        return ""
    if not found.runs:
        return ", from a file of unknown origin"
    return (
        ", started after the file was written"
        if copy.is_current
        else ", started before the file was written: restart it"
    )


def _row(label: str, text: str) -> str:
    return f"{label:<8}{text}"
