"""`argosy account`: manage accounts, their tokens and passwords, and check permissions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from argosy.cli.cluster_flags import add_target_flags
from argosy.cli.subcommand_flags_and_runner import add_subcommand, print_message, run_with_service
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.kube.client import ClusterReader
    from argosy.web.auth.account_password_token_store import AccountStore
    from argosy.web.auth.accounts import Account, TokenRecord

Commands = argparse._SubParsersAction  # the type argparse gives no public name
EXAMPLES = """\
Examples:
  argosy account list
  argosy account can-i sync applications 'ml/*'
  argosy account generate-token --account ci --expires-in 720h
  argosy account update-password

See also: docs/guides/page.md
"""
SEE_ALSO = "See also: docs/guides/page.md, docs/reference/cli.md"
OUTPUT_FORMATS = ("wide", "name", "json", "yaml")
LABEL_WIDTH = 20  # argo: width of labels in `account get`
ADMIN = "admin"
SUBJECT_HELP = "account or project role, such as proj:ml:ci"


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("account", help="manage accounts, their tokens and passwords",
                                 epilog=EXAMPLES, description="Manage accounts of the web UI and the API.",
                                 formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add_verbs(parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser)))


def add_verbs(parts: Commands[argparse.ArgumentParser]) -> None:
    _add_output_flag(_add_command(parts, "list", "list accounts", run_list, ("list", "list -o name")))
    command = _add_command(parts, "get", "show an account and its tokens", run_get, ("get", "get --account ci"))
    _add_account_flag(_add_output_flag(command))
    command = _add_command(parts, "can-i", "check whether an account has a permission", run_can_i, (
        "can-i sync applications 'ml/*'", "can-i create clusters '*' --account ci",
    ))  # fmt: skip
    for name, help_text in (("ACTION", "RBAC action"), ("RESOURCE", "RBAC resource"), ("OBJECT", "RBAC object")):
        command.add_argument(name.lower(), metavar=name, help=help_text)
    _add_account_flag(command, SUBJECT_HELP)
    command = _add_command(parts, "generate-token", "create a token and print it once", run_generate_token, (
        "generate-token --account ci", "generate-token --account ci --expires-in 720h --id pipeline",
    ))  # fmt: skip
    _add_account_flag(command)
    command.add_argument(
        "-e", "--expires-in", default="0s", metavar="TIME", help="lifetime, such as 720h (default: no expiry)"
    )
    command.add_argument("--id", default="", metavar="ID", help="id of the token (default: generated)")
    command = _add_command(
        parts, "delete-token", "delete a token and revoke it immediately", run_delete_token, ("delete-token pipeline",)
    )
    command.add_argument("id", metavar="ID", help="id of the token; see 'argosy account get'")
    _add_account_flag(command)
    command = _add_command(
        parts,
        "update-password",
        "change a password and end all sessions and tokens",
        run_update_password,
        (
            "update-password",
            "update-password --account ann < password.txt",
        ),
    )
    command.add_argument("--account", default=ADMIN, metavar="NAME", help=f"the account (default: {ADMIN})")
    help_text = "current password; checked if it is given"
    command.add_argument("--current-password", default="", metavar="TEXT", help=help_text)
    help_text = "new password; omit it to be prompted or to read stdin, because other users may see arguments"
    command.add_argument("--new-password", default="", metavar="TEXT", help=help_text)


def _add_command(
    parts: Commands[argparse.ArgumentParser],
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], int],
    examples: Sequence[str],
) -> argparse.ArgumentParser:
    parser = add_subcommand(parts, name, summary, [f"account {example}" for example in examples], see_also=SEE_ALSO)
    add_target_flags(parser)
    parser.set_defaults(run=run, app_namespace="")
    return parser


def _add_account_flag(parser: argparse.ArgumentParser, about: str = "the account") -> None:
    parser.add_argument("-a", "--account", default=ADMIN, metavar="NAME", help=f"{about} (default: {ADMIN})")


def _add_output_flag(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    about = f"{', '.join(OUTPUT_FORMATS)} (default: {OUTPUT_FORMATS[0]})"
    parser.add_argument("-o", "--output", choices=OUTPUT_FORMATS, default=OUTPUT_FORMATS[0], help=about)
    return parser


def run_list(args: argparse.Namespace) -> int:
    async def work(book: AccountStore) -> int:
        from argosy.cli.tables import format_aligned_columns

        accounts = list((await book.list_accounts()).values())
        if args.output in ("json", "yaml"):
            _print_data([_account_to_wire(account) for account in accounts], args.output)
        elif args.output == "name":
            print("".join(f"{account.name}\n" for account in accounts), end="")
        else:
            rows = [(account.name, _format_enabled(account), ", ".join(account.capabilities)) for account in accounts]
            print("\n".join(format_aligned_columns([("NAME", "ENABLED", "CAPABILITIES"), *rows])))
        return 0

    return _run_with_accounts(args, work)


def run_get(args: argparse.Namespace) -> int:
    async def work(book: AccountStore) -> int:
        from argosy.cli.tables import format_aligned_columns

        account = await book.get_account(args.account)
        if args.output in ("json", "yaml"):
            _print_data(_account_to_wire(account), args.output)
        elif args.output == "name":
            print(account.name)
        else:
            for label, value in (
                ("Name:", account.name),
                ("Enabled:", _format_enabled(account)),
                ("Capabilities:", ", ".join(account.capabilities)),
            ):
                print(f"{label:<{LABEL_WIDTH}}{value}")
            rows = [(token.id, _format_time(token.issued_at), _format_expiry(token)) for token in account.tokens]
            table = format_aligned_columns([("ID", "ISSUED AT", "EXPIRING AT"), *rows]) if rows else ["NONE"]
            print("\n".join(["", "Tokens:", *table]))
        return 0

    return _run_with_accounts(args, work)


def run_can_i(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        query = (args.account, args.resource, args.action, args.object)
        is_allowed, faults = await _check_permission(app_service.cluster, app_service.control_namespace, *query)
        for fault in faults:
            print_message(f"argosy: {fault}")
        print("yes" if is_allowed else "no")
        return 0  # argo: exit code 0 for both answers

    return run_with_service(args, work)


async def _check_permission(
    cluster: ClusterReader, namespace: str, subject: str, resource: str, action: str, rbac_object: str
) -> tuple[bool, tuple[str, ...]]:
    """Return whether the request is allowed, and policy errors. `subject`: an account, or a project role name."""
    from argosy.gitops.application.project_spec import read_project
    from argosy.gitops.policy.builtin_and_project_roles import parse_role_subject
    from argosy.gitops.policy.rbac import RbacEnforcer, RbacRequester
    from argosy.gitops.policy.rbac_config import RBAC_CM, read_access_policy
    from argosy.kube.resource_key import ResourceKey
    from argosy.kube.well_known_kinds import APP_PROJECT, CONFIG_MAP
    from argosy.web.auth.accounts import read_config_map_data

    policy = read_access_policy(read_config_map_data(await cluster.get(ResourceKey(*CONFIG_MAP, namespace, RBAC_CM))))
    projects = await cluster.list(APP_PROJECT, namespace=namespace)
    enforcer = RbacEnforcer(policy, [read_project(project) for project in projects.items])
    requester = RbacRequester(subject, is_project_role=parse_role_subject(subject) is not None)
    return enforcer.get_permissions(requester).may(resource, action, rbac_object), policy.faults


def run_generate_token(args: argparse.Namespace) -> int:
    seconds = _parse_seconds(args.expires_in)

    async def work(book: AccountStore) -> int:
        print(await book.add_token(args.account, lifetime_seconds=seconds, token_id=args.id))
        return 0

    return _run_with_accounts(args, work)


def run_delete_token(args: argparse.Namespace) -> int:
    async def work(book: AccountStore) -> int:
        await book.remove_token(args.account, args.id)
        print_message(f"token '{args.id}' of account '{args.account}' deleted")
        return 0

    return _run_with_accounts(args, work)


def run_update_password(args: argparse.Namespace) -> int:
    async def work(book: AccountStore) -> int:
        account = await book.get_account(args.account)
        if args.current_password and not await book.hashing.matches(args.current_password, account.password_hash):
            raise UserError("current password does not match; correct it or omit --current-password")
        await book.set_password(args.account, args.new_password or _prompt_password(args.account))
        print("Password updated")
        return 0

    return _run_with_accounts(args, work)


def _run_with_accounts(args: argparse.Namespace, work: Callable[[AccountStore], Awaitable[int]]) -> int:
    async def run(app_service: ApplicationService) -> int:
        from argosy.web.auth.account_password_token_store import AccountStore

        return await work(AccountStore(app_service.cluster, app_service.control_namespace))

    return run_with_service(args, run)


def _prompt_password(name: str) -> str:
    """Prompt twice at a terminal, else read one line from stdin."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    from getpass import getpass

    first = getpass(f"New password for {name}: ")
    if getpass("Confirm new password: ") != first:
        raise UserError("the passwords do not match; try again")
    return first


def _parse_seconds(text: str) -> int:
    from argosy.gitops.application.sync_policy import parse_duration

    try:
        return int(parse_duration(text))
    except ValueError as error:
        raise UserError(str(error), where="--expires-in") from error


def _account_to_wire(account: Account) -> dict[str, Any]:
    tokens = [
        {"id": token.id, "issuedAt": token.issued_at, **({"expiresAt": token.expires_at} if token.expires_at else {})}
        for token in account.tokens
    ]
    wire = {"name": account.name, "enabled": account.is_enabled, "capabilities": list(account.capabilities)}
    return {**wire, "tokens": tokens} if tokens else wire


def _format_enabled(account: Account) -> str:
    return str(account.is_enabled).lower()


def _format_time(seconds: int) -> str:
    from argosy.kube.objects.timestamps_and_delays import format_timestamp

    return format_timestamp(datetime.fromtimestamp(seconds, UTC))


def _format_expiry(token: TokenRecord) -> str:
    if not token.expires_at:
        return "never"
    is_expired = datetime.fromtimestamp(token.expires_at, UTC) < datetime.now(UTC)
    return f"{_format_time(token.expires_at)}{' (expired)' if is_expired else ''}"


def _print_data(data: Any, output: str) -> None:
    from argosy.cli.subcommand_flags_and_runner import print_document

    print_document(data, output)
