"""Runs a program of the installation that turns files into manifests.

In: its command, and a folder with the files. Out: the manifests that the program prints.
Never: runs it unconfined; shows more of its stderr than the last lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from argosy.errors import ManifestError, RenderError
from argosy.gitops.render.program_output import last_lines
from argosy.isolation.errors import OverLimit, RefusedError
from argosy.isolation.limits import ProgramLimits
from argosy.isolation.program import run
from argosy.isolation.scratch_folders import find_scratch_folder
from argosy.kube.objects import Manifest, load_all

_PLACE = re.compile(r"(?P<file>[\w./@+-]+\.\w+)(?::(?P<line>\d+))?")


class Command(NamedTuple):
    """A program to run: `name` is shown to users, `root` is the whole tree, `folder` the source's path in it."""

    argv: Sequence[str]
    name: str
    root: Path
    folder: str
    limits: ProgramLimits
    env: Mapping[str, str]
    scratch: Path | None = None


def output_of(command: Command) -> bytes:
    """Run the program and return its stdout. Raises RenderError if it fails, OverLimit with its name."""
    where = command.folder or "."
    try:
        done = run(
            command.argv,
            folder=command.root / command.folder,
            readable=(command.root,),
            scratch=command.scratch,
            env=command.env,
            disposable=(find_scratch_folder(command.root) or command.root.parent,),
            limits=command.limits,
        )
    except OverLimit as problem:
        raise OverLimit(problem.limit, f"{command.name}: {problem.message}", where=where) from None
    except RefusedError as problem:
        raise RenderError(f"{command.name} cannot run: {problem}", where=where) from None
    if done.code != 0:
        how = f"code {done.code}" if done.code >= 0 else f"signal {-done.code}"
        said = " | ".join(last_lines(done.stderr, 4).splitlines()) or "no output"
        file, line = _place(last_lines(done.stderr, 4), command)
        raise RenderError(f"{command.name} failed with {how}: {said}", where=file or where, line=line)
    return done.stdout


def manifests_in(output: bytes, command: Command) -> list[Manifest]:
    """Parse YAML or JSON documents; the caller validates the manifests."""
    try:
        found = [value for value in load_all(output, where=command.name) if value is not None]
    except ManifestError as problem:
        raise _unreadable(f"{problem.message} (line {problem.line} of it)", command) from None
    for value in found:
        if not isinstance(value, dict):
            raise _unreadable(f"{json.dumps(value)[:40]} is not a mapping", command)
    return found


def _unreadable(what: str, command: Command) -> RenderError:
    return RenderError(f"{command.name} did not print manifests: {what}", where=command.folder or ".")


def _place(said: str, command: Command) -> tuple[str, int]:
    """Find the first file of the source that stderr mentions, and its line (0 if none)."""
    root = command.root.resolve()
    for found in _PLACE.finditer(said):
        file = (root / command.folder / found["file"]).resolve()
        if file.is_relative_to(root) and file.is_file():
            return str(file.relative_to(root)), int(found["line"] or 0)
    return "", 0
