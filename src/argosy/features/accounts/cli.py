"""`argosy account`: manage accounts, their tokens and passwords, and check permissions."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from argosy.cli.target_flags import add_target_flags
from argosy.cli.verbs import at_desk, described, talk
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk
    from argosy.web.auth.account_changes import AccountBook
    from argosy.web.auth.accounts import Account, TokenMark

Commands = argparse._SubParsersAction  # the type argparse gives no public name
EXAMPLES = """\
Examples:
  argosy account list
  argosy account can-i sync applications 'ml/*'
  argosy account generate-token --account ci --expires-in 720h
  argosy account update-password

See also: docs/guides/page.md
"""
SEE = "See also: docs/guides/page.md, docs/reference/cli.md"
FORMS = ("wide", "name", "json", "yaml")
WIDTH = 20  # argo: width of labels in `account get`
ADMIN = "admin"
UNKNOWN = "account or project role, such as proj:ml:ci"


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("account", help="manage accounts, their tokens and passwords",
                                 epilog=EXAMPLES, description="Manage accounts of the web UI and the API.",
                                 formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add_verbs(parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser)))


def add_verbs(parts: Commands[argparse.ArgumentParser]) -> None:
    _output(_verb(parts, "list", "list accounts", run_list, ("list", "list -o name")))
    found = _verb(parts, "get", "show an account and its tokens", run_get, ("get", "get --account ci"))
    _account(_output(found))
    found = _verb(parts, "can-i", "check whether an account has a permission", run_can, (
        "can-i sync applications 'ml/*'", "can-i create clusters '*' --account ci",
    ))  # fmt: skip
    for name, about in (("ACTION", "RBAC action"), ("RESOURCE", "RBAC resource"), ("OBJECT", "RBAC object")):
        found.add_argument(name.lower(), metavar=name, help=about)
    _account(found, UNKNOWN)
    found = _verb(parts, "generate-token", "create a token and print it once", run_generate, (
        "generate-token --account ci", "generate-token --account ci --expires-in 720h --id pipeline",
    ))  # fmt: skip
    _account(found)
    found.add_argument(
        "-e", "--expires-in", default="0s", metavar="TIME", help="lifetime, such as 720h (default: no expiry)"
    )
    found.add_argument("--id", default="", metavar="ID", help="id of the token (default: generated)")
    found = _verb(
        parts, "delete-token", "delete a token and revoke it immediately", run_delete, ("delete-token pipeline",)
    )
    found.add_argument("id", metavar="ID", help="id of the token; see 'argosy account get'")
    _account(found)
    found = _verb(parts, "update-password", "change a password and end all sessions and tokens", run_password, (
        "update-password", "update-password --account ann < password.txt",
    ))  # fmt: skip
    found.add_argument("--account", default=ADMIN, metavar="NAME", help=f"the account (default: {ADMIN})")
    about = "current password; checked if it is given"
    found.add_argument("--current-password", default="", metavar="TEXT", help=about)
    about = "new password; omit it to be prompted or to read stdin, because other users may see arguments"
    found.add_argument("--new-password", default="", metavar="TEXT", help=about)


def _verb(
    parts: Commands[argparse.ArgumentParser],
    name: str,
    about: str,
    run: Callable[[argparse.Namespace], int],
    examples: Sequence[str],
) -> argparse.ArgumentParser:
    parser = described(parts, name, about, [f"account {each}" for each in examples], see=SEE)
    add_target_flags(parser)
    parser.set_defaults(run=run, app_namespace="")
    return parser


def _account(parser: argparse.ArgumentParser, about: str = "the account") -> None:
    parser.add_argument("-a", "--account", default=ADMIN, metavar="NAME", help=f"{about} (default: {ADMIN})")


def _output(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    about = f"{', '.join(FORMS)} (default: {FORMS[0]})"
    parser.add_argument("-o", "--output", choices=FORMS, default=FORMS[0], help=about)
    return parser


def run_list(chosen: argparse.Namespace) -> int:
    async def work(book: AccountBook) -> int:
        from argosy.cli.tables import aligned

        found = list((await book.all()).values())
        if chosen.output in ("json", "yaml"):
            _print_data([_told(each) for each in found], chosen.output)
        elif chosen.output == "name":
            print("".join(f"{each.name}\n" for each in found), end="")
        else:
            rows = [(each.name, _truth(each), ", ".join(each.capabilities)) for each in found]
            print("\n".join(aligned([("NAME", "ENABLED", "CAPABILITIES"), *rows])))
        return 0

    return _with_book(chosen, work)


def run_get(chosen: argparse.Namespace) -> int:
    async def work(book: AccountBook) -> int:
        from argosy.cli.tables import aligned

        found = await book.one(chosen.account)
        if chosen.output in ("json", "yaml"):
            _print_data(_told(found), chosen.output)
        elif chosen.output == "name":
            print(found.name)
        else:
            for label, value in (
                ("Name:", found.name), ("Enabled:", _truth(found)), ("Capabilities:", ", ".join(found.capabilities))
            ):  # fmt: skip
                print(f"{label:<{WIDTH}}{value}")
            rows = [(each.id, _time(each.issued), _end(each)) for each in found.tokens]
            table = aligned([("ID", "ISSUED AT", "EXPIRING AT"), *rows]) if rows else ["NONE"]
            print("\n".join(["", "Tokens:", *table]))
        return 0

    return _with_book(chosen, work)


def run_can(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.web.auth.account_permissions import may

        words = (chosen.account, chosen.resource, chosen.action, chosen.object)
        answer, faults = await may(desk.cluster, desk.control, *words)
        for fault in faults:
            talk(f"argosy: {fault}")
        print("yes" if answer else "no")
        return 0  # argo: exit code 0 for both answers

    return at_desk(chosen, work)


def run_generate(chosen: argparse.Namespace) -> int:
    seconds = _seconds(chosen.expires_in)

    async def work(book: AccountBook) -> int:
        print(await book.add_token(chosen.account, seconds=seconds, token_id=chosen.id))
        return 0

    return _with_book(chosen, work)


def run_delete(chosen: argparse.Namespace) -> int:
    async def work(book: AccountBook) -> int:
        await book.remove_token(chosen.account, chosen.id)
        talk(f"token '{chosen.id}' of account '{chosen.account}' deleted")
        return 0

    return _with_book(chosen, work)


def run_password(chosen: argparse.Namespace) -> int:
    async def work(book: AccountBook) -> int:
        account = await book.one(chosen.account)
        if chosen.current_password and not await book.hashing.fits(chosen.current_password, account.password):
            raise UserError("current password does not match; correct it or omit --current-password")
        await book.set_password(chosen.account, chosen.new_password or _typed(chosen.account))
        print("Password updated")
        return 0

    return _with_book(chosen, work)


def _with_book(chosen: argparse.Namespace, work: Callable[[AccountBook], Awaitable[int]]) -> int:
    async def at(desk: Desk) -> int:
        from argosy.web.auth.account_changes import AccountBook

        return await work(AccountBook(desk.cluster, desk.control))

    return at_desk(chosen, at)


def _typed(name: str) -> str:
    """Prompt twice at a terminal, else read one line from stdin."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\r\n")
    from getpass import getpass

    first = getpass(f"New password for {name}: ")
    if getpass("Confirm new password: ") != first:
        raise UserError("the passwords do not match; try again")
    return first


def _seconds(text: str) -> int:
    from argosy.gitops.application.sync_policy import seconds_of

    try:
        return int(seconds_of(text))
    except ValueError as error:
        raise UserError(str(error), where="--expires-in") from error


def _told(account: Account) -> dict[str, Any]:
    marks = [
        {"id": each.id, "issuedAt": each.issued, **({"expiresAt": each.expires} if each.expires else {})}
        for each in account.tokens
    ]
    told = {"name": account.name, "enabled": account.is_enabled, "capabilities": list(account.capabilities)}
    return {**told, "tokens": marks} if marks else told


def _truth(account: Account) -> str:
    return str(account.is_enabled).lower()


def _time(seconds: int) -> str:
    from argosy.kube.objects.timestamps import written

    return written(datetime.fromtimestamp(seconds, UTC))


def _end(mark: TokenMark) -> str:
    if not mark.expires:
        return "never"
    is_over = datetime.fromtimestamp(mark.expires, UTC) < datetime.now(UTC)
    return f"{_time(mark.expires)}{' (expired)' if is_over else ''}"


def _print_data(data: Any, how: str) -> None:
    from argosy.cli.verbs import print_data

    print_data(data, how)
