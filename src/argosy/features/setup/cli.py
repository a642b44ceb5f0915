"""`argosy setup …`: set up environments, permissions and Applications for an Argo CD in a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.seconds_flag_parser import parse_seconds
from argosy.cli.tables import TerminalOutput
from argosy.features.setup.delivery_cli import run_apply, run_destroy, run_plan, run_status, run_with_exit_codes

if TYPE_CHECKING:
    from argosy.features.setup.setup_subcommand_entry_points import StepOutput

Commands = argparse._SubParsersAction  # the type argparse gives no public name
SetupCommand = Callable[[argparse.Namespace], int]

DEFAULT_FILE = Path("argosy.yaml")
EXAMPLES = """\
Examples:
  argosy setup plan -f argosy.yaml
  argosy setup apply -f argosy.yaml
  argosy setup status -f argosy.yaml
  argosy setup destroy -f argosy.yaml --dry-run
  argosy setup argocd --apps argocd-apps
  argosy setup apps argocd-apps
  argosy setup credentials gitea --namespace llmops-dev

See also: docs/guides/environments.md, docs/reference/argosy-yaml.md
"""


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    help_text = "set up environments, permissions and Applications for an Argo CD"
    parser = _add_parser(commands, "setup", help_text)
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))
    _add_delivery_commands(parts)
    _add_preparation_commands(parts)


def _add_parser(commands: Commands[argparse.ArgumentParser], name: str, help_text: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=help_text,
        description=help_text[0].upper() + help_text[1:] + ".",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_delivery_commands(parts: Commands[argparse.ArgumentParser]) -> None:
    _add_delivery_command(parts, "plan", "show the changes that argosy.yaml requires", run_plan)
    parser = _add_delivery_command(parts, "apply", "apply the setup of argosy.yaml", run_apply)
    _add_write_flags(parser)
    help_text = "seconds to wait until the operator has applied the settings (default: 120)"
    parser.add_argument("--timeout", type=parse_seconds, default=120.0, metavar="S", help=help_text)
    _add_delivery_command(parts, "status", "show whether the setup of argosy.yaml is complete", run_status)
    parser = _add_delivery_command(parts, "destroy", "remove the objects that setup created", run_destroy)
    _add_write_flags(parser)
    help_text = "also remove the namespaces that setup created, with everything in them; needs -y"
    parser.add_argument("--namespaces", action="store_true", help=help_text)
    help_text = "seconds to wait for the deletion of each Application (default: 60)"
    parser.add_argument("--timeout", type=parse_seconds, default=60.0, metavar="S", help=help_text)


def _add_delivery_command(
    parts: Commands[argparse.ArgumentParser], name: str, help_text: str, run: SetupCommand
) -> argparse.ArgumentParser:
    parser = _add_parser(parts, name, help_text)
    parser.add_argument("-f", "--file", type=Path, default=DEFAULT_FILE, metavar="FILE", help="default: argosy.yaml")
    parser.add_argument("-o", "--output", choices=["text", "json", "yaml"], default="text", help="text, json or yaml")
    _finish_parser(parser, run)
    return parser


def _add_write_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show the plan, and write nothing")


def _add_preparation_commands(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _add_parser(parts, "argocd", "prepare namespaces and permissions with OpenShift GitOps")
    help_text = "folder of dev-, staging- and production-application.yaml"
    parser.add_argument("--apps", type=Path, required=True, metavar="DIR", help=help_text)
    help_text = "print the admin password instead of the command that reads it"
    parser.add_argument("--show-password", action="store_true", help=help_text)
    help_text = "seconds to wait for the Argo CD server (default: 300; at most 60 for its namespace)"
    parser.add_argument("--timeout", type=parse_seconds, default=300.0, metavar="S", help=help_text)
    _finish_parser(parser, run_prepare)

    parser = _add_parser(parts, "apps", "apply the three Applications of a folder, and list them")
    help_text = "folder of dev-, staging- and production-application.yaml"
    parser.add_argument("folder", type=Path, metavar="DIR", help=help_text)
    _finish_parser(parser, run_apply_apps)

    parser = _add_parser(parts, "credentials", "write Secrets with credentials from the cluster")
    sources = parser.add_subparsers(dest="source", metavar="SOURCE", required=True, parser_class=type(parser))
    parser = _add_parser(sources, "gitea", "write the credentials of a Gitea that its operator installed")
    help_text = "namespace of the Secrets (default: the namespace of the context)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=help_text)
    _finish_parser(parser, run_write_gitea)


def _finish_parser(parser: argparse.ArgumentParser, run: SetupCommand) -> None:
    from argosy.cli.cluster_flags import add_target_flags

    add_target_flags(parser)
    parser.set_defaults(run=run)


def run_prepare(args: argparse.Namespace) -> int:
    from argosy.cli.cluster_flags import read_target_options
    from argosy.features.setup.setup_subcommand_entry_points import prepare_argocd

    def run() -> int:
        prepare_argocd(
            read_target_options(args), args.apps, _print_message, _print_target,
            shows_password=args.show_password, timeout_seconds=args.timeout,
        )  # fmt: skip
        return 0

    return run_with_exit_codes(run)


def run_apply_apps(args: argparse.Namespace) -> int:
    from argosy.cli.cluster_flags import read_target_options
    from argosy.features.setup.setup_subcommand_entry_points import apply_applications

    def run() -> int:
        apply_applications(read_target_options(args), args.folder, _print_message, _print_target)
        return 0

    return run_with_exit_codes(run)


def run_write_gitea(args: argparse.Namespace) -> int:
    from argosy.cli.cluster_flags import read_target_options
    from argosy.features.setup.setup_subcommand_entry_points import write_gitea_credentials

    def run() -> int:
        write_gitea_credentials(read_target_options(args), args.namespace, _print_message, _print_target)
        return 0

    return run_with_exit_codes(run)


def _print_message(message: StepOutput) -> None:
    """Print immediately, because the next step may take long."""
    for line in (
        [message]
        if isinstance(message, str)
        else TerminalOutput(sys.stdout).format_table(message.headings, message.rows)
    ):
        print(line, flush=True)


def _print_target(target: StepOutput) -> None:
    print(f"target: {target}", file=sys.stderr, flush=True)
