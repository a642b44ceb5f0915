"""`argocd cluster|repo list|get`, `account`, `context` and `login`: versions that need no server."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from argosy.cli.cluster_flags import add_target_flags, read_target_options
from argosy.cli.subcommand_flags_and_runner import print_document, print_message, run_with_service
from argosy.features.accounts.cli import add_verbs
from argosy.features.clusters.cli import add_verbs as add_clusters

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.application_client.known_repositories import RepositoryFacts

Commands = argparse._SubParsersAction  # the type argparse gives no public name
REPOSITORY_COLUMNS = ("TYPE", "NAME", "REPO", "INSECURE", "OCI", "LFS", "CREDS", "STATUS", "MESSAGE", "PROJECT")
NO_LOGIN_MESSAGE = "no login needed: commands use the cluster and user of the kubeconfig"
UNKNOWN_STATUS = "Unknown"


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    add_clusters(_add_group(commands, "cluster"))
    formats, parts = ("wide", "json", "yaml", "url"), _add_group(commands, "repo")
    parser = _add_verb(parts, "list", run_repo_list, formats)
    parser.add_argument("--refresh", default="", metavar="HOW")
    parser = _add_verb(parts, "get", run_repo_get, formats)
    parser.add_argument("asked", metavar="REPO")
    parser.add_argument("--project", default="", metavar="NAME")
    parser.add_argument("--refresh", default="", metavar="HOW")
    parts = _add_group(commands, "account")
    _add_verb(parts, "get-user-info", run_user, ("", "json", "yaml"))
    add_verbs(parts)
    parser = _add_verb(commands, "context", run_context, ())
    parser.add_argument("asked", nargs="?", default="", metavar="CONTEXT")
    for name in ("login", "logout", "relogin"):
        parser = _add_verb(commands, name, run_login, ())
        parser.add_argument("asked", nargs="*", metavar="SERVER")
        for flag in ("--username", "--password", "--name", "--sso-port"):
            parser.add_argument(flag, metavar="TEXT")
        for flag in ("--sso", "--skip-test-tls", "--sso-launch-browser"):
            parser.add_argument(flag, action="store_true")


def _add_group(commands: Commands[argparse.ArgumentParser], name: str) -> Commands[argparse.ArgumentParser]:
    parser = commands.add_parser(name)
    return parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser))


def _add_verb(
    parts: Commands[argparse.ArgumentParser], name: str, run: Callable[[argparse.Namespace], int], formats: Any
) -> argparse.ArgumentParser:
    parser = parts.add_parser(name)
    if formats:
        parser.add_argument("-o", "--output", choices=formats, default=formats[0])
    add_target_flags(parser)
    parser.set_defaults(run=run, app_namespace="")
    return parser


def run_repo_list(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.known_repositories import list_repositories

        _print_repositories(args.output, await list_repositories(service), is_list=True)
        return 0

    return run_with_service(args, work)


def run_repo_get(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        from argosy.gitops.application_client.known_repositories import load_repository

        _print_repositories(args.output, [await load_repository(service, args.asked)], is_list=False)
        return 0

    return run_with_service(args, work)


def _print_repositories(output: str, repositories: list[RepositoryFacts], *, is_list: bool) -> None:
    rows: list[tuple[str, ...]] = []
    data = []
    for repository in repositories:
        switches = [
            str(value).lower()
            for value in (repository.insecure, repository.oci, repository.lfs, repository.has_credentials)
        ]
        rows.append(
            (repository.type, repository.name, repository.url, *switches, UNKNOWN_STATUS, "", repository.project)
        )
        wire = {"repo": repository.url, "type": repository.type, "name": repository.name, "project": repository.project}
        switch_fields = {"insecure": repository.insecure, "enableOCI": repository.oci, "enableLfs": repository.lfs}
        data.append({name: value for name, value in {**wire, **switch_fields}.items() if value})
    _print_table(
        output, REPOSITORY_COLUMNS, rows, data, [repository.url for repository in repositories], is_list=is_list
    )


def _print_table(
    output: str,
    columns: tuple[str, ...],
    rows: list[tuple[str, ...]],
    data: list[dict[str, Any]],
    names: list[str],
    *,
    is_list: bool,
) -> None:
    from argosy.cli.tables import format_aligned_columns

    if output in ("json", "yaml"):
        print_document(data if is_list else data[0], output)
    elif output == "url":
        print("".join(f"{name}\n" for name in names), end="")
    else:
        print("\n".join(format_aligned_columns([columns, *rows])))


def run_user(args: argparse.Namespace) -> int:
    async def work(service: ApplicationService) -> int:
        name = await service.find_user()
        if args.output:
            print_document({"loggedIn": True, "username": name}, args.output)
        else:
            print(f"Logged In: true\nUsername: {name}\nIssuer: kubernetes\nGroups: ")
        return 0

    return run_with_service(args, work)


def run_context(args: argparse.Namespace) -> int:
    """argo: Lists contexts of its own file; argosy has only the current kubeconfig context."""
    from argosy.cli.cluster_target import find_target
    from argosy.cli.tables import format_aligned_columns
    from argosy.errors import UserError

    connection = find_target(read_target_options(args)).connection
    if args.asked and args.asked != connection.name:
        raise UserError(
            "unknown context: contexts come from the kubeconfig; choose one with --kube-context or kubectl config"
        )
    if args.asked:
        print(f"Already at context '{connection.name}'")
        return 0
    print("\n".join(format_aligned_columns([("CURRENT", "NAME", "SERVER"), ("*", connection.name, connection.server)])))
    return 0


def run_login(args: argparse.Namespace) -> int:
    """Refuse a server of another installation, because later commands would not use it."""
    if args.command == "login" and args.asked and not args.is_direct:
        from argosy.features.argocd_cli.server_flag_cluster_match import NamedServer, check_server_of_cluster

        check_server_of_cluster(args, NamedServer(args.asked[0]))
    print_message(f"argosy: {NO_LOGIN_MESSAGE}")
    return 0
