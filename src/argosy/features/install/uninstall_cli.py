"""`argosy uninstall`: remove argosy from a cluster and keep the delivered resources."""

from __future__ import annotations

import argparse

from argosy.cli.cluster_flags import add_target_flags, read_target_options
from argosy.cli.seconds_flag_parser import parse_seconds
from argosy.features.install.cli import add_namespace_flag, add_write_flags, run_plan_command

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy uninstall --dry-run
  argosy uninstall --namespace argosy
  argosy uninstall --applications --timeout 300

See also: docs/guides/install.md
"""


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "uninstall",
        help="remove argosy from a cluster; delivered resources stay",
        description="Removes the objects that `argosy install` created, after a plan and a confirmation. Applications, "
        "their resources, settings and CRDs stay, unless --applications is given.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_namespace_flag(parser, "namespace of argosy (default: argosy)")
    help_text = "first delete the Applications that argosy delivers, with their resources; then also settings and CRDs"
    parser.add_argument("--applications", action="store_true", help=help_text)
    help_text = "continue even if remaining Applications lose their controller or cannot be deleted any more"
    parser.add_argument("--force", action="store_true", help=help_text)
    help_text = "seconds to wait for the deletion of each Application (default: 120)"
    parser.add_argument("--timeout", type=parse_seconds, default=120.0, metavar="S", help=help_text)
    add_write_flags(parser, "show the plan, and write nothing")
    parser.add_argument("-o", "--output", choices=["text", "json", "yaml"], default="text", help="text, json or yaml")
    add_target_flags(parser)
    parser.set_defaults(run=run_uninstall)


def run_uninstall(args: argparse.Namespace) -> int:
    from argosy.features.install import service

    options = service.InstallOptions(namespace=args.namespace or service.DEFAULT_INSTALL_NAMESPACE)

    def execute_uninstall(talk: service.InstallCallbacks) -> service.PlannedInstall:
        return service.uninstall(
            read_target_options(args), options, talk,
            with_applications=args.applications, is_forced=args.force, deletion_timeout_seconds=args.timeout,
        )  # fmt: skip

    return run_plan_command(args, execute_uninstall, "UninstallPlan")
