"""`argosy uninstall`: takes argosy out of a cluster, and leaves what it delivered."""

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
        help="take argosy out of a cluster; what it delivered stays",
        description="Takes away what `argosy install` brought, after a plan and a question. Applications, what they "
        "delivered, settings and definitions stay, unless --applications is given.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_namespace(parser, "where it runs (default: argosy)")
    about = "first delete the Applications that it delivers, with all of theirs; then settings and definitions, too"
    parser.add_argument("--applications", action="store_true", help=about)
    about = "also where Applications stay that nobody would deliver, or whose finalizers nobody would serve"
    parser.add_argument("--force", action="store_true", help=about)
    about = "wait for each Application to be gone, at most (default: 120)"
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
