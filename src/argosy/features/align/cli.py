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

from argosy.cli.error_messages import answering, failed
from argosy.cli.exit_codes import DONE, NO
from argosy.cli.tables import counted
from argosy.cli.target_flags import add_target_flags, target_options
from argosy.cli.verbs import print_data, talk
from argosy.errors import ArgosyError, UserError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from argosy.features.align.application_files import Files
    from argosy.features.align.service import Alignment
    from argosy.gitops.application import Application
    from argosy.gitops.source.settings import SourceSettings

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy align
  argosy align stage00-minio --repo ~/src/private-ai-demo --write
  argosy align --all --patch align.patch

See also: docs/reference/aligning.md, docs/reference/explaining.md
"""
SECONDS = 2.0
MESSAGE = "Bring Applications in line with what lives"


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "align",
        help="the smallest changes in Git that make Applications Synced, proven",
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
    add("-m", "--message", default=MESSAGE, metavar="TEXT", help=f"of that commit (default: {MESSAGE!r})")
    forms = ["text", "json", "yaml"]
    add("-o", "--output", choices=forms, default="text", help="text (default), json or yaml")
    add_target_flags(parser)
    parser.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    if chosen.all and chosen.names:
        raise UserError("cannot be used with names; omit --all or the names", where="--all")
    if chosen.accept and not chosen.names:
        raise UserError("requires the names of Applications: argosy align APP --accept", where="--accept")
    if chosen.patch == "-" and chosen.output != "text":
        raise UserError(f"stdout is for the patch; omit -o {chosen.output}, or use a file", where="--patch -")
    try:
        files = _files(chosen)
        found = asyncio.run(_found(chosen, files))
        with answering(DONE if found.is_good else NO) as code:
            _show(chosen, found)
            sys.stdout.flush()
            _write(chosen, found)
            _next(chosen, found)
        return code
    except ArgosyError as error:
        return failed(error, " ".join(["align", *chosen.names, "failed"]))


def _files(chosen: argparse.Namespace) -> Files | None:
    """Load the working tree; None without one, and then align only proposes and proves."""
    from argosy.features.align.application_files import Files
    from argosy.gitops.workspace.paths import enclosing

    if not chosen.repo and enclosing(os.path.realpath(os.curdir)) is None:
        if chosen.write or chosen.patch or chosen.branch:
            raise UserError("the current folder is not in a repository; use --repo DIR", where="align")
        return None
    found = Files.below(chosen.repo or os.curdir)
    return found if chosen.repo or found.applications else None


async def _found(chosen: argparse.Namespace, files: Files | None) -> Alignment:
    from argosy.cli.connection import open_desk
    from argosy.features.align.proposals import Wishes
    from argosy.features.align.service import align
    from argosy.gitops.application_client.reader import open_reader

    async with open_desk(target_options(chosen), chosen.app_namespace) as desk:
        everyone = await desk.all()
        picked = await desk.chosen(chosen.names, chosen.selector) if chosen.names or chosen.selector else everyone
        picked = [each for each in picked if not each.deleted]
        if not picked:
            raise UserError(f"there is no Application in {desk.namespace}; see where they are: argosy app list")
        talk(f"comparing {counted(len(picked), 'Application')} of {desk.where}; the cluster is not changed")
        wishes = Wishes(chosen.recreate, chosen.accept, is_documented=chosen.as_documented, siblings=everyone)
        async with open_reader(desk) as reader:
            files = _theirs(chosen, files, everyone, reader.rules.repositories.settings)
            return await align(reader, picked, files, wishes, _Progress(len(picked)))


def _theirs(
    chosen: argparse.Namespace, files: Files | None, apps: Sequence[Application], settings: SourceSettings
) -> Files | None:
    """Use a working tree without --repo only if an Application reads its repository."""
    if files is None or chosen.repo or files.is_read_by(apps, settings):
        return files
    if chosen.write or chosen.patch or chosen.branch:
        told = "no Application reads this folder's repository; choose the working tree with the Application files"
        raise UserError(f"{told}: --repo DIR", where="align")
    return None


class _Progress:
    """Prints progress every few seconds."""

    def __init__(self, total: int) -> None:
        self._total, self._due = total, time.monotonic() + SECONDS

    def __call__(self, number: int) -> None:
        if time.monotonic() > self._due and number < self._total:
            self._due = time.monotonic() + SECONDS
            talk(f"… {number} of {self._total}")


def _show(chosen: argparse.Namespace, found: Alignment) -> None:
    if chosen.output != "text":
        print_data({"apiVersion": "cli.argosy.dev/v1", "kind": "Alignment", **found.document()}, chosen.output)
        return
    if chosen.patch == "-":
        return
    from argosy.cli.tables import Screen
    from argosy.features.align.text_output import lines

    # One write, so that output on stderr does not end up in the last line if a pipe shows both.
    print("".join(f"{line}\n" for line in lines(found, Screen(sys.stdout))), end="")


def _write(chosen: argparse.Namespace, found: Alignment) -> None:
    files = found.files
    if files is None or not files.changed:
        if chosen.write or chosen.patch or chosen.branch:
            talk("nothing to write")
        return
    if chosen.patch == "-":
        print(files.patch(), end="")
    elif chosen.patch:
        Path(chosen.patch).write_text(files.patch(), newline="")
        talk(f"wrote {chosen.patch}; apply it in {files.root}: git apply {os.path.realpath(chosen.patch)}")
    elif chosen.write:
        talk(f"wrote {counted(len(files.write()), 'file')} in {files.root}")
    elif chosen.branch:
        from argosy.features.align.commit import commit

        made = commit(files, chosen.branch, chosen.message)
        talk(f"committed {made[:7]} to {chosen.branch}; the working tree is unchanged")


def _committing(chosen: argparse.Namespace, files: Files | None) -> str:
    """Build the git command that commits only the written files."""
    root, paths = (files.root, sorted(files.changed)) if files else ("", [])
    place = [] if root == os.path.realpath(os.curdir) else ["-C", root]
    return shlex.join(["git", *place, "commit", "-m", chosen.message, "--", *paths])


def _next(chosen: argparse.Namespace, found: Alignment) -> None:
    changes = bool(found.files and found.files.changed)
    words = " ".join(["argosy align", *chosen.names])
    syncs = "".join(f"; argosy app sync {name}" for name in found.order)
    if chosen.write and changes:
        talk(f"next: {_committing(chosen, found.files)} && git push{syncs}")
    elif chosen.branch and changes:
        talk(f"next: git push -u origin {chosen.branch}, and have it merged{syncs}")
    elif changes and not chosen.patch:
        talk(f"next: {words} --write (or --patch FILE, or --branch NAME)")
    elif found.files is None and any(each.done for each in found.apps):
        talk(f"next: {words} --repo DIR --write, where DIR is the working tree with the Application files")
    elif found.order and not changes:
        talk(f"next: {syncs.removeprefix('; ')}")
