"""`argosy uninstall`: remove argosy from a cluster and keep the delivered resources."""

from __future__ import annotations

import argparse

from argosy.cli.durations import seconds
from argosy.cli.target_flags import add_target_flags, target_options
from argosy.features.install.cli import add_namespace, add_writing, carried_out

Commands = argparse._SubParsersAction  # the type argparse gives no public name

EXAMPLES = """\
Examples:
  argosy uninstall --dry-run
  argosy uninstall --namespace argosy
  argosy uninstall --applications --timeout 300

See also: docs/guides/install.md
"""


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "uninstall",
        help="remove argosy from a cluster; delivered resources stay",
        description="Removes the objects that `argosy install` created, after a plan and a confirmation. Applications, "
        "their resources, settings and CRDs stay, unless --applications is given.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_namespace(parser, "namespace of argosy (default: argosy)")
    about = "first delete the Applications that argosy delivers, with their resources; then also settings and CRDs"
    parser.add_argument("--applications", action="store_true", help=about)
    about = "continue even if remaining Applications lose their controller or cannot be deleted any more"
    parser.add_argument("--force", action="store_true", help=about)
    about = "seconds to wait for the deletion of each Application (default: 120)"
    parser.add_argument("--timeout", type=seconds, default=120.0, metavar="S", help=about)
    add_writing(parser, "show the plan, and write nothing")
    parser.add_argument("-o", "--output", choices=["text", "json", "yaml"], default="text", help="text, json or yaml")
    add_target_flags(parser)
    parser.set_defaults(run=uninstall)


def uninstall(chosen: argparse.Namespace) -> int:
    from argosy.features.install import service

    options = service.InstallOptions(namespace=chosen.namespace or service.USUAL_NAMESPACE)

    def carry_out(talk: service.Talk) -> service.Planned:
        return service.uninstall(
            target_options(chosen), options, talk,
            with_applications=chosen.applications, is_forced=chosen.force, seconds=chosen.timeout,
        )  # fmt: skip

    return carried_out(chosen, carry_out, "UninstallPlan")
