"""Prints output of commands: data and lines on stdout, progress and warnings on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import Any

from argosy.cli.tables import plain


def print_data(data: dict[str, Any], form: str, *, named: bool = True) -> None:
    """Print one object as JSON or YAML."""
    whole = {"apiVersion": "cli.argosy.dev/v1", **data} if named else data
    if form == "yaml":
        from argosy.kube.objects import dump

        print(dump(whole), end="")
    else:
        print(json.dumps(whole, indent=2, ensure_ascii=False))


def print_lines(lines: Iterable[str]) -> None:
    for line in lines:
        print(line)


def talk(text: str) -> None:
    """Print a progress message."""
    print(f"{text} …", file=sys.stderr, flush=True)


def warn(sentences: Iterable[str]) -> None:
    for sentence in sentences:
        print(f"warning: {plain(sentence)}", file=sys.stderr)
