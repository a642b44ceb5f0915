"""`argosy admin …`: initial password, export and import of an installation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.target_flags import add_target_flags
from argosy.cli.verbs import at_desk, described, talk
from argosy.features.backup.export_import_cli import add_moving

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk

Commands = argparse._SubParsersAction  # the type argparse gives no public name
EXAMPLES = """\
Examples:
  argosy admin initial-password
  argosy admin export > argosy.yaml
  argosy admin import argosy.yaml --dry-run

See also: docs/guides/page.md, docs/guides/moving.md
"""
ADVICE = "Use it for the first login, change it with 'argosy account update-password', then delete Secret {secret}."


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("admin", help="export and import an installation; initial password", epilog=EXAMPLES,
                                 description="Administer an installation.",
                                 formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))
    words = ("admin initial-password", "admin initial-password -n argocd")
    see = "See also: docs/guides/page.md, docs/reference/cli.md"
    found = described(parts, "initial-password", "print the initial password of admin", words, see=see)
    about = "namespace of argocd-secret (default: where argosy or an ArgoCD resource is installed, else argocd)"
    found.add_argument("-n", "--namespace", default="", metavar="NS", help=about)
    add_target_flags(found)
    found.set_defaults(run=run_initial, app_namespace="")
    add_moving(parts)


def run_initial(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.web.auth.account_changes import INITIAL, AccountBook

        print(await AccountBook(desk.cluster, chosen.namespace or desk.control).initial_password())
        talk(ADVICE.format(secret=INITIAL))
        return 0

    return at_desk(chosen, work)
