"""`argosy oc …`: kubectl with the verbs of oc."""

from __future__ import annotations

from typing import Any

from argosy.features.kubectl import cli


def add_commands(commands: Any) -> None:
    cli.add_commands(commands, "oc")
