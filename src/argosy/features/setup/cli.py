"""`argosy setup …`: set up environments, permissions and Applications for an Argo CD in a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from argosy.cli.durations import seconds
from argosy.cli.tables import Screen
from argosy.features.setup.delivery_cli import answered, apply, destroy, plan, status

if TYPE_CHECKING:
    from argosy.features.setup.preparation import Said

Commands = argparse._SubParsersAction  # the type argparse gives no public name
Run = Callable[[argparse.Namespace], int]

FILE = Path("argosy.yaml")
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


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    about = "set up environments, permissions and Applications for an Argo CD"
    parser = _described(commands, "setup", about)
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))
    _add_delivering(parts)
    _add_preparing(parts)


def _described(commands: Commands[argparse.ArgumentParser], name: str, about: str) -> argparse.ArgumentParser:
    return commands.add_parser(
        name,
        help=about,
        description=about[0].upper() + about[1:] + ".",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def _add_delivering(parts: Commands[argparse.ArgumentParser]) -> None:
    _add(parts, "plan", "show the changes that argosy.yaml requires", plan)
    parser = _add(parts, "apply", "apply the setup of argosy.yaml", apply)
    _add_writing(parser)
    about = "seconds to wait until the operator has applied the settings (default: 120)"
    parser.add_argument("--timeout", type=seconds, default=120.0, metavar="S", help=about)
    _add(parts, "status", "show whether the setup of argosy.yaml is complete", status)
    parser = _add(parts, "destroy", "remove the objects that setup created", destroy)
    _add_writing(parser)
    about = "also remove the namespaces that setup created, with everything in them; needs -y"
    parser.add_argument("--namespaces", action="store_true", help=about)
    about = "seconds to wait for the deletion of each Application (default: 60)"
    parser.add_argument("--timeout", type=seconds, default=60.0, metavar="S", help=about)


def _add(parts: Commands[argparse.ArgumentParser], name: str, about: str, run: Run) -> argparse.ArgumentParser:
    parser = _described(parts, name, about)
    parser.add_argument("-f", "--file", type=Path, default=FILE, metavar="FILE", help="default: argosy.yaml")
    parser.add_argument("-o", "--output", choices=["text", "json", "yaml"], default="text", help="text, json or yaml")
    _finish(parser, run)
    return parser


def _add_writing(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="show the plan, and write nothing")


def _add_preparing(parts: Commands[argparse.ArgumentParser]) -> None:
    parser = _described(parts, "argocd", "prepare namespaces and permissions with OpenShift GitOps")
    about = "folder of dev-, staging- and production-application.yaml"
    parser.add_argument("--apps", type=Path, required=True, metavar="DIR", help=about)
    about = "print the admin password instead of the command that reads it"
    parser.add_argument("--show-password", action="store_true", help=about)
    about = "seconds to wait for the Argo CD server (default: 300; at most 60 for its namespace)"
    parser.add_argument("--timeout", type=seconds, default=300.0, metavar="S", help=about)
    _finish(parser, prepare)

    parser = _described(parts, "apps", "apply the three Applications of a folder, and list them")
    about = "folder of dev-, staging- and production-application.yaml"
    parser.add_argument("folder", type=Path, metavar="DIR", help=about)
    _finish(parser, apply_apps)

    parser = _described(parts, "credentials", "write Secrets with credentials from the cluster")
    sources = parser.add_subparsers(dest="source", metavar="SOURCE", required=True, parser_class=type(parser))
    parser = _described(sources, "gitea", "write the credentials of a Gitea that its operator installed")
    about = "namespace of the Secrets (default: the namespace of the context)"
    parser.add_argument("-n", "--namespace", default="", metavar="NS", help=about)
    _finish(parser, write_gitea)


def _finish(parser: argparse.ArgumentParser, run: Run) -> None:
    from argosy.cli.target_flags import add_target_flags

    add_target_flags(parser)
    parser.set_defaults(run=run)


def prepare(chosen: argparse.Namespace) -> int:
    from argosy.cli.target_flags import target_options
    from argosy.features.setup.preparation import prepare_argocd

    def run() -> int:
        prepare_argocd(
            target_options(chosen), chosen.apps, _tell, _tell_target,
            shows_password=chosen.show_password, timeout=chosen.timeout,
        )  # fmt: skip
        return 0

    return answered(run)


def apply_apps(chosen: argparse.Namespace) -> int:
    from argosy.cli.target_flags import target_options
    from argosy.features.setup.preparation import apply_applications

    def run() -> int:
        apply_applications(target_options(chosen), chosen.folder, _tell, _tell_target)
        return 0

    return answered(run)


def write_gitea(chosen: argparse.Namespace) -> int:
    from argosy.cli.target_flags import target_options
    from argosy.features.setup.preparation import write_gitea_credentials

    def run() -> int:
        write_gitea_credentials(target_options(chosen), chosen.namespace, _tell, _tell_target)
        return 0

    return answered(run)


def _tell(said: Said) -> None:
    """Print immediately, because the next step may take long."""
    for line in [said] if isinstance(said, str) else Screen(sys.stdout).table(said.headings, said.rows):
        print(line, flush=True)


def _tell_target(where: Said) -> None:
    print(f"target: {where}", file=sys.stderr, flush=True)
