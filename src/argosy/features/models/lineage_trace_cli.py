"""`argosy trace KIND/NAME`: the commit, notebook run and file behind a served model."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from argosy.cli.cluster_flags import add_target_flags, read_target_options
from argosy.cli.error_messages import report_error
from argosy.cli.exit_codes import EXIT_NEGATIVE
from argosy.cli.subcommand_flags_and_runner import print_document, print_message
from argosy.errors import ArgosyError
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from argosy.features.models.lineage import Lineage, LineageRun, ServingPod

Commands = argparse._SubParsersAction  # the type argparse gives no public name
EXAMPLES = """\
Examples:
  argosy trace isvc/fraud-detection-model
  argosy trace nvj/model-training -n ml-platform -o json

See also: docs/guides/notebooks-with-argocd.md
"""
SHORT_COMMIT_LENGTH, SHORT_DIGEST_LENGTH = 7, 19  # characters of a commit, and of a digest with its algorithm


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
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


def _run(args: argparse.Namespace) -> int:
    from argosy.features.models.lineage_lookup import open_tracer

    async def run() -> int:
        async with open_tracer(read_target_options(args)) as tracer:
            traced = await tracer.trace_object(args.what, args.namespace)
        if args.output != "text":
            models = [item.to_wire() for item in traced.lineages]
            runs = [item.to_wire() for item in traced.runs]
            document = {"apiVersion": CLI_API_VERSION, "kind": "Trace", "runs": runs, "models": models}
            print_document(document, args.output)
        else:
            print("\n\n".join("\n".join(_render_lineage(item)) for item in traced.lineages))
        if not traced.lineages:
            _print_unused_files(traced.runs, args.what)
        return 0 if traced.lineages and all(item.is_current for item in traced.lineages) else EXIT_NEGATIVE

    try:
        return asyncio.run(run())
    except ArgosyError as error:
        return report_error(error, f"trace {args.what} failed")


def _print_unused_files(runs: tuple[LineageRun, ...], kind_and_name: str) -> None:
    files = [file.place or file.path for file in runs[-1].files] if runs else []
    print_message(
        f"no model serves a file of {kind_and_name}" + (f"; its last run wrote {', '.join(files)}" if files else "")
    )


def _render_lineage(lineage: Lineage) -> Iterator[str]:
    if lineage.trained:
        yield _format_row(
            "commit", f"{lineage.trained.commit[:SHORT_COMMIT_LENGTH] or 'unknown'}  {lineage.trained.repository}"
        )
    for run in lineage.runs:
        yield _format_row(
            "run", f"{run.job} #{run.attempt}  {run.notebook} at {run.commit[:SHORT_COMMIT_LENGTH]}, ended {run.ended}"
        )
        for file in run.files:
            yield _format_row("", f"{file.digest[:SHORT_DIGEST_LENGTH]}  {file.place or file.path}")
    if lineage.address:
        yield _format_row("commit", lineage.address.commit or "unknown")
        yield _format_row("written", f"{lineage.address.place}")
    delivered_by = f", delivered by {lineage.app}" if lineage.app else ""
    yield _format_row("model", f"{lineage.namespace}/{lineage.name}  {lineage.source}{delivered_by}")
    for serving_pod in lineage.copies:
        yield _format_row(
            "served", f"{serving_pod.name}  since {serving_pod.started}{_describe_pod_start(lineage, serving_pod)}"
        )
    for trouble in lineage.troubles:
        yield _format_row("note", trouble)


def _describe_pod_start(lineage: Lineage, serving_pod: ServingPod) -> str:
    if lineage.address:
        return ""
    if not lineage.runs:
        return ", from a file of unknown origin"
    return (
        ", started after the file was written"
        if serving_pod.is_current
        else ", started before the file was written: restart it"
    )


def _format_row(label: str, text: str) -> str:
    return f"{label:<8}{text}"
