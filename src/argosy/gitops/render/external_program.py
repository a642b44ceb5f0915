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
from argosy.gitops.render.output_control_character_filter import last_lines
from argosy.isolation.errors import LimitExceeded, RefusedError
from argosy.isolation.limit_and_confinement_types import ProgramLimits
from argosy.isolation.scratch_folders import find_scratch_folder
from argosy.isolation.untrusted_program_runner import run
from argosy.kube.objects import Manifest, read_yaml_documents

_FILE_LOCATION = re.compile(r"(?P<file>[\w./@+-]+\.\w+)(?::(?P<line>\d+))?")


class Command(NamedTuple):
    """A program to run: `name` is shown to users, `root` is the whole tree, `folder` the source's path in it."""

    argv: Sequence[str]
    name: str
    root: Path
    folder: str
    limits: ProgramLimits
    env: Mapping[str, str]
    scratch: Path | None = None


def run_program(command: Command) -> bytes:
    """Run the program and return its stdout. Raises RenderError if it fails, OverLimit with its name."""
    where = command.folder or "."
    try:
        result = run(
            command.argv,
            folder=command.root / command.folder,
            readable=(command.root,),
            scratch=command.scratch,
            env=command.env,
            disposable=(find_scratch_folder(command.root) or command.root.parent,),
            limits=command.limits,
        )
    except LimitExceeded as problem:
        raise LimitExceeded(problem.limit, f"{command.name}: {problem.message}", where=where) from None
    except RefusedError as problem:
        raise RenderError(f"{command.name} cannot run: {problem}", where=where) from None
    if result.code != 0:
        exit_text = f"code {result.code}" if result.code >= 0 else f"signal {-result.code}"
        stderr_text = " | ".join(last_lines(result.stderr, 4).splitlines()) or "no output"
        file, line = _find_error_location(last_lines(result.stderr, 4), command)
        raise RenderError(f"{command.name} failed with {exit_text}: {stderr_text}", where=file or where, line=line)
    return result.stdout


def read_manifests(output: bytes, command: Command) -> list[Manifest]:
    """Parse YAML or JSON documents; the caller validates the manifests."""
    try:
        manifests = [value for value in read_yaml_documents(output, where=command.name) if value is not None]
    except ManifestError as problem:
        raise _build_output_error(f"{problem.message} (line {problem.line} of it)", command) from None
    for value in manifests:
        if not isinstance(value, dict):
            raise _build_output_error(f"{json.dumps(value)[:40]} is not a mapping", command)
    return manifests


def _build_output_error(reason: str, command: Command) -> RenderError:
    return RenderError(f"{command.name} did not print manifests: {reason}", where=command.folder or ".")


def _find_error_location(stderr_text: str, command: Command) -> tuple[str, int]:
    """Find the first file of the source that stderr mentions, and its line (0 if none)."""
    root = command.root.resolve()
    for match in _FILE_LOCATION.finditer(stderr_text):
        file = (root / command.folder / match["file"]).resolve()
        if file.is_relative_to(root) and file.is_file():
            return str(file.relative_to(root)), int(match["line"] or 0)
    return "", 0
