"""Prints output of commands: data and lines on stdout, progress and warnings on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from argosy.cli.tables import drop_control_characters
from argosy.kube.well_known_kinds import CLI_API_VERSION


def print_data(data: dict[str, Any], output: str, *, has_api_version: bool = True) -> None:
    """Print one object as JSON or YAML."""
    document = {"apiVersion": CLI_API_VERSION, **data} if has_api_version else data
    if output == "yaml":
        from argosy.kube.objects import dump_yaml

        print(dump_yaml(document), end="")
    else:
        print(json.dumps(document, indent=2, ensure_ascii=False))


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def print_progress(text: str) -> None:
    """Print a progress message."""
    print(f"{text} …", file=sys.stderr, flush=True)


def warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        print(f"warning: {drop_control_characters(sentence)}", file=sys.stderr)
