"""`argosy admin …`: initial password, export and import of an installation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from argosy.cli.cluster_flags import add_target_flags
from argosy.cli.subcommand_flags_and_runner import add_subcommand, print_message, run_with_service
from argosy.features.backup.export_import_cli import add_export_and_import

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService

Commands = argparse._SubParsersAction  # the type argparse gives no public name
EXAMPLES = """\
Examples:
  argosy admin initial-password
  argosy admin export > argosy.yaml
  argosy admin import argosy.yaml --dry-run

See also: docs/guides/page.md, docs/guides/moving.md
"""
PASSWORD_ADVICE = (
    "Use it for the first login, change it with 'argosy account update-password', then delete Secret {secret}."
)


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("admin", help="export and import an installation; initial password", epilog=EXAMPLES,
                                 description="Administer an installation.",
                                 formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parts = parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))
    examples = ("admin initial-password", "admin initial-password -n argocd")
    see_also = "See also: docs/guides/page.md, docs/reference/cli.md"
    password_parser = add_subcommand(
        parts, "initial-password", "print the initial password of admin", examples, see_also=see_also
    )
    help_text = "namespace of argocd-secret (default: where argosy or an ArgoCD resource is installed, else argocd)"
    password_parser.add_argument("-n", "--namespace", default="", metavar="NS", help=help_text)
    add_target_flags(password_parser)
    password_parser.set_defaults(run=run_initial_password, app_namespace="")
    add_export_and_import(parts)


def run_initial_password(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.web.auth.account_password_token_store import INITIAL_ADMIN_SECRET, AccountStore

        print(
            await AccountStore(
                app_service.cluster, args.namespace or app_service.control_namespace
            ).load_initial_password()
        )
        print_message(PASSWORD_ADVICE.format(secret=INITIAL_ADMIN_SECRET))
        return 0

    return run_with_service(args, work)
