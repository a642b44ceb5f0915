"""`argosy oc …`: kubectl with the verbs of oc."""

from __future__ import annotations

from typing import Any

from argosy.cli import kubectl


def add_to(commands: Any) -> None:
    kubectl.add_to(commands, "oc")
