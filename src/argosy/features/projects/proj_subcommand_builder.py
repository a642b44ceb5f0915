"""Shared flags of the `argosy proj` commands, and the update of a project spec.

In: parsers, parsed flags. Out: parsers with the shared flags; exit codes. Never: command-specific logic.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from argosy.cli.cluster_flags import add_target_flags
from argosy.cli.subcommand_flags_and_runner import add_subcommand, print_message, run_with_service

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService

Commands = argparse._SubParsersAction  # the type argparse gives no public name
PROJECT_ARGUMENT = ("PROJECT", "the project")


def add_command(
    parts: Commands[argparse.ArgumentParser],
    name: str,
    help_text: str,
    run: Callable[[argparse.Namespace], int],
    *,
    examples: Sequence[str],
    arguments: Sequence[tuple[str, str]] = (PROJECT_ARGUMENT,),
    output_formats: Sequence[str] = (),
) -> argparse.ArgumentParser:
    """Add a command; `arguments` are its positional arguments with their help texts."""
    parser = add_subcommand(parts, name, help_text, [f"proj {example}" for example in examples])
    for argument, meaning in arguments:
        parser.add_argument(argument.lower().replace("-", "_"), metavar=argument, help=meaning)
    if output_formats:
        help_text = f"{', '.join(output_formats)} (default: {output_formats[0]})"
        parser.add_argument("-o", "--output", choices=output_formats, default="", help=help_text)
    help_text = "namespace of the projects (default: the control namespace)"
    parser.add_argument("-N", "--app-namespace", default="", metavar="NS", help=help_text)
    add_target_flags(parser)
    parser.set_defaults(run=run)
    return parser


def update_spec(args: argparse.Namespace, change_spec: Callable[[dict[str, Any]], dict[str, Any]]) -> int:
    """Update the project's spec. argo: prints nothing on stdout; the result goes to stderr."""

    async def work(app_service: ApplicationService) -> int:
        from argosy.gitops.application_client.appproject_operations import change_project

        has_changed = await change_project(app_service, args.project, change_spec)
        print_message(f"project '{args.project}' {'updated' if has_changed else 'unchanged'}")
        return 0

    return run_with_service(args, work, show_target=True)
