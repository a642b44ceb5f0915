"""`argosy align`: finds, proves and writes the smallest changes in Git that make Applications Synced."""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.cluster_flags import add_target_flags, read_target_options
from argosy.cli.error_messages import keep_exit_code, report_error
from argosy.cli.exit_codes import EXIT_NEGATIVE, EXIT_OK
from argosy.cli.subcommand_flags_and_runner import print_document, print_message
from argosy.cli.tables import format_count
from argosy.errors import ArgosyError, UserError
from argosy.kube.well_known_kinds import CLI_API_VERSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from argosy.features.align_git.service import Alignment
    from argosy.features.align_git.working_tree_edits import WorkingTreeEdits
    from argosy.gitops.application import Application
    from argosy.gitops.source.repository_access_settings import SourceSettings

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy align
  argosy align stage00-minio --repo ~/src/private-ai-demo --write
  argosy align --all --patch align.patch

See also: docs/reference/aligning.md, docs/reference/difference-causes.md
"""
PROGRESS_INTERVAL_SECONDS = 2.0
DEFAULT_COMMIT_MESSAGE = "Align Applications with the live state"


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "align",
        help="find the smallest changes in Git that make Applications Synced, with proof",
        description="Proposes ignore rules, branches, sync options and more, and compares again to prove them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("names", nargs="*", metavar="APP", help="Applications, as NAME or NAMESPACE/NAME (default: all)")
    add("--all", action="store_true", help="all Applications of the namespace, which is the default")
    add("-l", "--selector", default="", metavar="SEL", help="only Applications with these labels")
    add("-N", "--app-namespace", default="", metavar="NS", help="namespace of the Applications (default: control)")
    add("--repo", default="", metavar="DIR", help="working tree with the Application files (default: this folder's)")
    add("--as-documented", action="store_true", help="write ignore rules exactly as in widely copied documents")
    add("--accept", action="store_true", help="also apply uncertain proposals, for the given Applications")
    add("--recreate", action="store_true", help="also annotate objects that must be deleted and created again, in Git")
    writing = parser.add_mutually_exclusive_group()
    writing.add_argument("--write", action="store_true", help="edit the files of the working tree")
    writing.add_argument("--patch", default="", metavar="FILE", help="write a patch for git apply; - for stdout")
    writing.add_argument("--branch", default="", metavar="NAME", help="commit to a new branch; files here stay")
    add(
        "-m",
        "--message",
        default=DEFAULT_COMMIT_MESSAGE,
        metavar="TEXT",
        help=f"message of that commit (default: {DEFAULT_COMMIT_MESSAGE!r})",
    )
    forms = ["text", "json", "yaml"]
    add("-o", "--output", choices=forms, default="text", help="text (default), json or yaml")
    add_target_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.all and args.names:
        raise UserError("cannot be used with names; omit --all or the names", where="--all")
    if args.accept and not args.names:
        raise UserError("requires the names of Applications: argosy align APP --accept", where="--accept")
    if args.patch == "-" and args.output != "text":
        raise UserError(f"stdout is for the patch; omit -o {args.output}, or use a file", where="--patch -")
    try:
        files = _load_working_tree(args)
        alignment = asyncio.run(_align_applications(args, files))
        with keep_exit_code(EXIT_OK if alignment.is_aligned else EXIT_NEGATIVE) as code:
            _print_alignment(args, alignment)
            sys.stdout.flush()
            _write_changes(args, alignment)
            _print_next_command(args, alignment)
        return code
    except ArgosyError as error:
        return report_error(error, " ".join(["align", *args.names, "failed"]))


def _load_working_tree(args: argparse.Namespace) -> WorkingTreeEdits | None:
    """Load the working tree; None without one, and then align only proposes and proves."""
    from argosy.features.align_git.working_tree_edits import WorkingTreeEdits
    from argosy.gitops.workspace.enclosing_repository_lookup import find_enclosing_repository

    if not args.repo and find_enclosing_repository(os.path.realpath(os.curdir)) is None:
        if args.write or args.patch or args.branch:
            raise UserError("the current folder is not in a repository; use --repo DIR", where="align")
        return None
    edits = WorkingTreeEdits.load_repository(args.repo or os.curdir)
    return edits if args.repo or edits.applications else None


async def _align_applications(args: argparse.Namespace, files: WorkingTreeEdits | None) -> Alignment:
    from argosy.cli.application_service_connection import open_service
    from argosy.features.align_git.proposal_search_by_trial import AlignOptions
    from argosy.features.align_git.service import align_applications
    from argosy.gitops.application_client.app_state_reader import open_reader

    async with open_service(read_target_options(args), args.app_namespace) as service:
        all_applications = await service.list_applications()
        selected = (
            await service.load_selected(args.names, args.selector) if args.names or args.selector else all_applications
        )
        selected = [application for application in selected if not application.deletion_timestamp]
        if not selected:
            raise UserError(f"there is no Application in {service.namespace}; see where they are: argosy app list")
        count = format_count(len(selected), "Application")
        print_message(f"comparing {count} of {service.cluster_name}; the cluster is not changed")
        wishes = AlignOptions(
            args.recreate, args.accept, uses_documented_rules=args.as_documented, siblings=all_applications
        )
        async with open_reader(service) as reader:
            files = _drop_unrelated_working_tree(
                args, files, all_applications, reader.reconciler_settings.repositories.settings
            )
            return await align_applications(reader, selected, files, wishes, _ProgressPrinter(len(selected)))


def _drop_unrelated_working_tree(
    args: argparse.Namespace, files: WorkingTreeEdits | None, apps: Sequence[Application], settings: SourceSettings
) -> WorkingTreeEdits | None:
    """Use a working tree without --repo only if an Application reads its repository."""
    if files is None or args.repo or files.is_read_by(apps, settings):
        return files
    if args.write or args.patch or args.branch:
        problem = "no Application reads this folder's repository; choose the working tree with the Application files"
        raise UserError(f"{problem}: --repo DIR", where="align")
    return None


class _ProgressPrinter:
    """Prints progress every few seconds."""

    def __init__(self, total: int) -> None:
        self._total, self._due = total, time.monotonic() + PROGRESS_INTERVAL_SECONDS

    def __call__(self, number: int) -> None:
        if time.monotonic() > self._due and number < self._total:
            self._due = time.monotonic() + PROGRESS_INTERVAL_SECONDS
            print_message(f"… {number} of {self._total}")


def _print_alignment(args: argparse.Namespace, alignment: Alignment) -> None:
    if args.output != "text":
        print_document({"apiVersion": CLI_API_VERSION, "kind": "Alignment", **alignment.to_wire()}, args.output)
        return
    if args.patch == "-":
        return
    from argosy.cli.tables import TerminalOutput
    from argosy.features.align_git.text_output import render_alignment

    # One write, so that output on stderr does not end up in the last line if a pipe shows both.
    print("".join(f"{line}\n" for line in render_alignment(alignment, TerminalOutput(sys.stdout))), end="")


def _write_changes(args: argparse.Namespace, alignment: Alignment) -> None:
    files = alignment.files
    if files is None or not files.changed:
        if args.write or args.patch or args.branch:
            print_message("nothing to write")
        return
    if args.patch == "-":
        print(files.build_patch(), end="")
    elif args.patch:
        Path(args.patch).write_text(files.build_patch(), newline="")
        print_message(f"wrote {args.patch}; apply it in {files.root}: git apply {os.path.realpath(args.patch)}")
    elif args.write:
        print_message(f"wrote {format_count(len(files.write_files()), 'file')} in {files.root}")
    elif args.branch:
        commit_id = files.commit_to_branch(args.branch, args.message)
        print_message(f"committed {commit_id[:7]} to {args.branch}; the working tree is unchanged")


def _build_commit_command(args: argparse.Namespace, files: WorkingTreeEdits | None) -> str:
    """Build the git command that commits only the written files."""
    root, paths = (files.root, sorted(files.changed)) if files else ("", [])
    folder_arguments = [] if root == os.path.realpath(os.curdir) else ["-C", root]
    return shlex.join(["git", *folder_arguments, "commit", "-m", args.message, "--", *paths])


def _print_next_command(args: argparse.Namespace, alignment: Alignment) -> None:
    changes = bool(alignment.files and alignment.files.changed)
    command = " ".join(["argosy align", *args.names])
    sync_commands = "".join(f"; argosy app sync {name}" for name in alignment.sync_order)
    if args.write and changes:
        print_message(f"next: {_build_commit_command(args, alignment.files)} && git push{sync_commands}")
    elif args.branch and changes:
        print_message(f"next: git push -u origin {args.branch}, and have it merged{sync_commands}")
    elif changes and not args.patch:
        print_message(f"next: {command} --write (or --patch FILE, or --branch NAME)")
    elif alignment.files is None and any(aligned.done for aligned in alignment.apps):
        print_message(f"next: {command} --repo DIR --write, where DIR is the working tree with the Application files")
    elif alignment.sync_order and not changes:
        print_message(f"next: {sync_commands.removeprefix('; ')}")
