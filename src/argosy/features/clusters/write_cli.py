"""`argosy cluster add|set|rm|rotate`: change the destination clusters."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from argosy.cli.cluster_flags import read_target_options
from argosy.cli.subcommand_flags_and_runner import confirm, is_compat, is_interactive, print_message, run_with_service
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.application_client.argocd_secrets_and_config_maps import DeclaredSecret
    from argosy.kube.client.connection_settings import Connection

MAX_LISTED_APPLICATIONS = 10  # Applications listed before a cluster is removed


def run_add(args: argparse.Namespace) -> int:
    if args.in_cluster and args.cluster_endpoint:
        raise UserError("Can only use one of --in-cluster or --cluster-endpoint")  # argo: its message
    connection = _load_context(args)
    options = _read_options(args)
    if not options.account and not options.config.keys() & {"execProviderConfig", "awsAuthConfig"}:
        level = "namespace" if options.namespaces and not options.has_cluster_resources else "cluster"
        warning = (
            f"WARNING: This will create a service account `argocd-manager` on the cluster referenced by context "
            f"`{args.asked}` with full {level} level privileges."
        )
        if not _confirm(args, f"{warning} Do you want to continue"):
            print_message("argosy: cancelled")
            return 1

    async def work(app_service: ApplicationService) -> int:
        from argosy.features.clusters.add import add_cluster
        from argosy.features.clusters.service import read_server

        assert app_service.opener is not None
        async with app_service.opener(connection) as cluster_client:
            declared, is_unchanged = await add_cluster(
                app_service, cluster_client, connection, options, app_service.opener, print_message
            )
        should_report_unchanged = is_unchanged and not is_compat(args)  # argo: always prints "added"
        print(f"Cluster '{read_server(declared)}' {'unchanged' if should_report_unchanged else 'added'}")
        return 0

    return run_with_service(args, work, show_target=True)


def _load_context(args: argparse.Namespace) -> Connection:
    from argosy.cli.application_service_connection import load_context_connection

    try:
        return load_context_connection(args.asked, args.context_kubeconfig or read_target_options(args).kubeconfig)
    except UserError as error:
        if args.context_kubeconfig is not None:
            raise
        other = (
            f"{'or ' if '; ' in error.message else ''}pass the kubeconfig that contains it: --context-kubeconfig FILE"
        )
        raise UserError(f"{error.message}; {other}", where=error.where, line=error.line) from error


def _read_options(args: argparse.Namespace) -> Any:
    from argosy.features.clusters.add import AddClusterOptions

    config: dict[str, Any] = {}
    if args.aws_cluster_name:
        aws = {"clusterName": args.aws_cluster_name, "roleARN": args.aws_role_arn, "profile": args.aws_profile}
        config["awsAuthConfig"] = {name: text for name, text in aws.items() if text}
    elif args.exec_command:
        program = {
            "command": args.exec_command,
            "args": args.exec_command_args,
            "env": _parse_pairs(args.exec_command_env, "--exec-command-env"),
            "apiVersion": args.exec_command_api_version or "client.authentication.k8s.io/v1beta1",
            "installHint": args.exec_command_install_hint,
        }
        config["execProviderConfig"] = {name: value for name, value in program.items() if value}
    if args.proxy_url:
        config["proxyUrl"] = args.proxy_url
    if args.disable_compression:
        config["disableCompression"] = True
    is_in_cluster = args.in_cluster or args.cluster_endpoint == "internal"
    return AddClusterOptions(
        name=args.name or ("in-cluster" if is_in_cluster else args.asked),
        namespaces=tuple(namespace for text in args.namespace for namespace in text.split(",") if namespace),
        has_cluster_resources=args.cluster_resources,
        account=args.service_account,
        system_namespace=args.system_namespace,
        project=args.project,
        is_in_cluster=is_in_cluster,
        uses_cluster_info=args.cluster_endpoint == "kube-public",
        shard=args.shard if args.shard >= 0 else None,
        is_upsert=args.upsert,
        config=config,
        labels=_parse_pairs(args.label, "--label"),
        annotations=_parse_pairs(args.annotation, "--annotation"),
    )


def _parse_pairs(arguments: list[str], flag: str) -> dict[str, str]:
    pairs = [argument.partition("=") for argument in arguments]
    if invalid_names := [name for name, equals, _ in pairs if not equals or not name]:
        raise UserError(f"invalid value {invalid_names[0]!r}; use {flag} NAME=VALUE", where=flag)
    return {name: text for name, _, text in pairs}


def _confirm(args: argparse.Namespace, question: str) -> bool:
    if args.yes:
        return True
    if not is_interactive():
        if is_compat(args):  # argo: without a terminal, the answer is yes
            return True
        raise UserError("cannot ask for confirmation without a terminal; pass -y")
    return confirm(question)


def run_set(args: argparse.Namespace) -> int:
    flags: dict[str, Any] = {
        "name": args.name,
        "namespaces": [""] if args.namespace == ["*"] else args.namespace,
        "labels": _parse_pairs(args.label, "--label"),
        "annotations": _parse_pairs(args.annotation, "--annotation"),
    }
    changes = {name: value for name, value in flags.items() if value}
    if not changes:
        raise UserError("nothing to change; pass --name, --namespace, --label or --annotation")

    async def work(app_service: ApplicationService) -> int:
        from argosy.features.clusters.service import check_name, get_cluster, read_server, update_cluster

        declared = await get_cluster(app_service, args.asked)
        if args.name:
            await check_name(app_service, args.name, read_server(declared))
        await update_cluster(app_service, declared, changes, tuple(changes))
        print(f"Cluster '{args.asked}' updated.")
        return 0

    return run_with_service(args, work, show_target=True)


def run_rm(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.features.clusters.service import check_removable, get_cluster, read_server

        clusters: dict[str, tuple[str, DeclaredSecret]] = {}
        for text in args.asked:  # check all clusters before the first one is removed
            cluster = await get_cluster(app_service, text)
            check_removable(cluster)
            clusters.setdefault(read_server(cluster), (text, cluster))
        return max([await _remove_cluster(app_service, args, *cluster) for cluster in clusters.values()])

    return run_with_service(args, work, show_target=True)


async def _remove_cluster(
    app_service: ApplicationService, args: argparse.Namespace, name: str, declared: DeclaredSecret
) -> int:
    from argosy.features.clusters.remove import remove_cluster
    from argosy.features.clusters.service import list_applications

    if apps := await list_applications(app_service, declared):
        suffix = f" … and {len(apps) - MAX_LISTED_APPLICATIONS} more" if len(apps) > MAX_LISTED_APPLICATIONS else ""
        print_message(
            f"argosy: Applications with destination '{name}': {', '.join(apps[:MAX_LISTED_APPLICATIONS])}{suffix}"
        )
    warning = "Any Apps deploying to this cluster will go to health status Unknown."
    if not _confirm(args, f"Are you sure you want to remove '{name}'? {warning}"):
        print_message(f"The command to remove '{name}' was cancelled.")
        return 1
    assert app_service.opener is not None
    messages: list[str] = []
    await remove_cluster(app_service, declared, app_service.opener, messages.append)
    print(f"Cluster '{name}' removed")
    for message in messages:
        print_message(message)
    return 0


def run_rotate(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.features.clusters.service import get_cluster
        from argosy.features.clusters.service_account_token_lifecycle import rotate_token

        declared = await get_cluster(app_service, args.asked)
        assert app_service.opener is not None
        await rotate_token(app_service, declared, app_service.opener, print_message)
        print(f"Cluster '{args.asked}' rotated auth")
        return 0

    return run_with_service(args, work, show_target=True)
