"""`argocd cluster|repo list|get`, `account`, `context` and `login`: versions that need no server."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from argosy.cli.target_flags import add_target_flags, target_options
from argosy.cli.verbs import at_desk, print_data, talk
from argosy.features.accounts.cli import add_verbs
from argosy.features.clusters.cli import add_verbs as add_clusters

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk
    from argosy.gitops.application_client.known_repositories import Repository

Commands = argparse._SubParsersAction  # the type argparse gives no public name
REPOSITORIES = ("TYPE", "NAME", "REPO", "INSECURE", "OCI", "LFS", "CREDS", "STATUS", "MESSAGE", "PROJECT")
NO_SERVER = "no login needed: commands use the cluster and user of the kubeconfig"
UNKNOWN = "Unknown"


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    add_clusters(_group(commands, "cluster"))
    forms, parts = ("wide", "json", "yaml", "url"), _group(commands, "repo")
    parser = _verb(parts, "list", run_repositories, forms)
    parser.add_argument("--refresh", default="", metavar="HOW")
    parser = _verb(parts, "get", run_repository, forms)
    parser.add_argument("asked", metavar="REPO")
    parser.add_argument("--project", default="", metavar="NAME")
    parser.add_argument("--refresh", default="", metavar="HOW")
    parts = _group(commands, "account")
    _verb(parts, "get-user-info", run_user, ("", "json", "yaml"))
    add_verbs(parts)
    parser = _verb(commands, "context", run_context, ())
    parser.add_argument("asked", nargs="?", default="", metavar="CONTEXT")
    for name in ("login", "logout", "relogin"):
        parser = _verb(commands, name, run_login, ())
        parser.add_argument("asked", nargs="*", metavar="SERVER")
        for flag in ("--username", "--password", "--name", "--sso-port"):
            parser.add_argument(flag, metavar="TEXT")
        for flag in ("--sso", "--skip-test-tls", "--sso-launch-browser"):
            parser.add_argument(flag, action="store_true")


def _group(commands: Commands[argparse.ArgumentParser], name: str) -> Commands[argparse.ArgumentParser]:
    parser = commands.add_parser(name)
    return parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))


def _verb(
    parts: Commands[argparse.ArgumentParser], name: str, run: Callable[[argparse.Namespace], int], forms: Any
) -> argparse.ArgumentParser:
    parser = parts.add_parser(name)
    if forms:
        parser.add_argument("-o", "--output", choices=forms, default=forms[0])
    add_target_flags(parser)
    parser.set_defaults(run=run, app_namespace="")
    return parser


def run_repositories(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.known_repositories import repositories_of

        _print_repositories(chosen.output, await repositories_of(desk), is_list=True)
        return 0

    return at_desk(chosen, work)


def run_repository(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.gitops.application_client.known_repositories import repository_at

        _print_repositories(chosen.output, [await repository_at(desk, chosen.asked)], is_list=False)
        return 0

    return at_desk(chosen, work)


def _print_repositories(how: str, found: list[Repository], *, is_list: bool) -> None:
    rows: list[tuple[str, ...]] = []
    data = []
    for each in found:
        switches = [str(value).lower() for value in (each.insecure, each.oci, each.lfs, each.has_credentials)]
        rows.append((each.type, each.name, each.url, *switches, UNKNOWN, "", each.project))
        wire = {"repo": each.url, "type": each.type, "name": each.name, "project": each.project}
        switched = {"insecure": each.insecure, "enableOCI": each.oci, "enableLfs": each.lfs}
        data.append({name: value for name, value in {**wire, **switched}.items() if value})
    _print(how, REPOSITORIES, rows, data, [each.url for each in found], is_list=is_list)


def _print(
    how: str,
    head: tuple[str, ...],
    rows: list[tuple[str, ...]],
    data: list[dict[str, Any]],
    names: list[str],
    *,
    is_list: bool,
) -> None:
    from argosy.cli.tables import aligned

    if how in ("json", "yaml"):
        print_data(data if is_list else data[0], how)
    elif how == "url":
        print("".join(f"{each}\n" for each in names), end="")
    else:
        print("\n".join(aligned([head, *rows])))


def run_user(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        name = await desk.who()
        if chosen.output:
            print_data({"loggedIn": True, "username": name}, chosen.output)
        else:
            print(f"Logged In: true\nUsername: {name}\nIssuer: kubernetes\nGroups: ")
        return 0

    return at_desk(chosen, work)


def run_context(chosen: argparse.Namespace) -> int:
    """argo: Lists contexts of its own file; argosy has only the current kubeconfig context."""
    from argosy.cli.tables import aligned
    from argosy.cli.target import find_target
    from argosy.errors import UserError

    found = find_target(target_options(chosen)).connection
    if chosen.asked and chosen.asked != found.name:
        raise UserError(
            "unknown context: contexts come from the kubeconfig; choose one with --kube-context or kubectl config"
        )
    if chosen.asked:
        print(f"Already at context '{found.name}'")
        return 0
    print("\n".join(aligned([("CURRENT", "NAME", "SERVER"), ("*", found.name, found.server)])))
    return 0


def run_login(chosen: argparse.Namespace) -> int:
    """Refuse a server of another installation, because later commands would not use it."""
    if chosen.command == "login" and chosen.asked and not chosen.is_direct:
        from argosy.features.argocd_cli.named_server import NamedServer, check_server

        check_server(chosen, NamedServer(chosen.asked[0]))
    talk(f"argosy: {NO_SERVER}")
    return 0
