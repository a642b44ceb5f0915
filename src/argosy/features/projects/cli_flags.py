"""Shared flags of the `argosy proj` commands, and the update of a project spec.

In: parsers, parsed flags. Out: parsers with the shared flags; exit codes. Never: command-specific logic.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from argosy.cli.target_flags import add_target_flags
from argosy.cli.verbs import at_desk, described, talk

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk

Commands = argparse._SubParsersAction  # the type argparse gives no public name
PROJECT = ("PROJECT", "the project")


def verb(
    parts: Commands[argparse.ArgumentParser],
    name: str,
    about: str,
    run: Callable[[argparse.Namespace], int],
    *,
    examples: Sequence[str],
    named: Sequence[tuple[str, str]] = (PROJECT,),
    forms: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Add a command; `named` are its positional arguments with their help texts."""
    parser = described(parts, name, about, [f"proj {each}" for each in examples])
    for argument, meaning in named:
        parser.add_argument(argument.lower().replace("-", "_"), metavar=argument, help=meaning)
    if forms:
        about = f"{', '.join(forms)} (default: {forms[0]})"
        parser.add_argument("-o", "--output", choices=forms, default="", help=about)
    about = "namespace of the projects (default: the control namespace)"
    parser.add_argument("-N", "--app-namespace", default="", metavar="NS", help=about)
    add_target_flags(parser)
    parser.set_defaults(run=run)
    return parser


def changed(chosen: argparse.Namespace, make: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """Update the project's spec. argo: prints nothing on stdout; the result goes to stderr."""

    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.projects import change_project

        has_changed = await change_project(desk, chosen.project, make)
        talk(f"project '{chosen.project}' {'updated' if has_changed else 'unchanged'}")
        return 0

    return at_desk(chosen, work, writes=True)
