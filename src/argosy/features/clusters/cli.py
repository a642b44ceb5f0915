"""`argosy cluster add|list|get|set|rm|rotate`: manage destination clusters."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.cluster_flags import add_target_flags
from argosy.cli.subcommand_flags_and_runner import SubcommandFunction, add_subcommand, print_document, run_with_service
from argosy.errors import ArgosyError, UserError
from argosy.features.clusters.write_cli import run_add, run_rm, run_rotate, run_set

if TYPE_CHECKING:
    from argosy.features.clusters.connection_state import ClusterConnection
    from argosy.features.repositories.connection_test import ConnectionState
    from argosy.gitops.application_client.application_service import ApplicationService
    from argosy.gitops.application_client.argocd_secrets_and_config_maps import DeclaredSecret

Commands = argparse._SubParsersAction  # the type argparse gives no public name
EXAMPLES = """\
Examples:
  argosy cluster add prod
  argosy cluster list
  argosy cluster rotate prod
  argosy cluster rm prod

See also: docs/guides/clusters.md
"""
SEE_ALSO = "See also: docs/guides/clusters.md, docs/reference/cli.md"
HEADINGS = ("SERVER", "NAME", "VERSION", "STATUS", "MESSAGE", "PROJECT")
ENDPOINTS = ("kubeconfig", "kube-public", "internal")
OUTPUT_FORMATS = ("wide", "json", "yaml", "server")
LABEL_WIDTH = 25  # argo: of the labels in its get


def add_commands(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "cluster",
        help="add, list, rotate and remove destination clusters",
        description="Manage the destination clusters of Applications.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_verbs(parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser)))


def add_verbs(parts: Commands[argparse.ArgumentParser]) -> None:
    add_parser = _add_command(
        parts,
        "add",
        "add the cluster of a kubeconfig context as a destination",
        run_add,
        ("add prod", "add prod --name production --namespace ml --namespace web -y"),
    )
    add_parser.add_argument("asked", metavar="CONTEXT", help="a context of the kubeconfig")
    _add_create_flags(add_parser)
    _add_credential_flags(add_parser)
    list_parser = _add_command(
        parts, "list", "list clusters and their connection status", run_list, ("list", "list -o json")
    )
    get_parser = _add_command(parts, "get", "show clusters", run_get, ("get prod", "get https://10.0.0.1:6443 -o wide"))
    set_parser = _add_command(parts, "set", "change the name, namespaces, labels or annotations of a cluster", run_set,
                    ("set prod --name production --namespace web", "set prod --namespace '*'"))  # fmt: skip
    _add_set_flags(set_parser)
    for command_parser, default_output in ((list_parser, "wide"), (get_parser, "yaml")):  # argo: as there
        command_parser.add_argument(
            "-o",
            "--output",
            choices=OUTPUT_FORMATS,
            default=default_output,
            help=f"{', '.join(OUTPUT_FORMATS)} (default: {default_output})",
        )
    remove_parser = _add_command(parts, "rm", "remove clusters from the destinations", run_rm,
                     ("rm prod", "rm dev test -y"))  # fmt: skip
    rotate_parser = _add_command(parts, "rotate", "create a new token for a cluster and revoke the old one", run_rotate,
                     ("rotate prod",))  # fmt: skip
    alias_parsers = [
        _add_command(parts, "rotate-auth", "alias of rotate, as in the argocd CLI", run_rotate, ("rotate-auth prod",))
    ]
    for command_parser in (set_parser, rotate_parser, *alias_parsers):
        command_parser.add_argument("asked", metavar="SERVER|NAME", help="address or name of the cluster")
    for command_parser in (get_parser, remove_parser):  # argo: only these accept several clusters
        command_parser.add_argument("asked", metavar="SERVER|NAME", nargs="+", help="addresses or names of clusters")
    remove_parser.add_argument("-y", "--yes", action="store_true", help="skip the confirmation prompt")


def _add_create_flags(parser: argparse.ArgumentParser) -> None:
    about = "kubeconfig that contains CONTEXT (default: --kubeconfig, KUBECONFIG or ~/.kube/config)"
    parser.add_argument("--context-kubeconfig", type=Path, metavar="FILE", help=about)
    parser.add_argument("--name", default="", metavar="NAME", help="name of the cluster (default: CONTEXT)")
    parser.add_argument(
        "--namespace", action="append", default=[], metavar="NS", help="manage only this namespace; repeatable"
    )
    about = "with --namespace: also manage cluster-scoped resources"
    parser.add_argument("--cluster-resources", action="store_true", help=about)
    about = "an existing service account (default: create argocd-manager)"
    parser.add_argument("--service-account", default="", metavar="NAME", help=about)
    about = "namespace of the service account (default: kube-system)"
    parser.add_argument("--system-namespace", default="kube-system", metavar="NS", help=about)
    parser.add_argument("--project", default="", metavar="NAME", help="project that the cluster is scoped to")
    parser.add_argument("--in-cluster", action="store_true", help="the cluster is the one that argosy runs in")
    about = "address to use (default: kubeconfig): of the context, of kube-public/cluster-info, or as --in-cluster"
    parser.add_argument("--cluster-endpoint", choices=ENDPOINTS, default="", help=about)
    about = "stored for Argo CD and ignored by argosy, which shards by Application"
    parser.add_argument("--shard", type=int, default=-1, metavar="N", help=about)
    parser.add_argument(
        "--label", action="append", default=[], metavar="K=V", help="for the cluster Secret; repeatable"
    )
    parser.add_argument(
        "--annotation", action="append", default=[], metavar="K=V", help="for the cluster Secret; repeatable"
    )
    parser.add_argument("--proxy-url", default="", metavar="URL", help="proxy to reach the cluster")
    parser.add_argument(
        "--disable-compression", action="store_true", help="request uncompressed responses from the API server"
    )
    parser.add_argument("--upsert", action="store_true", help="overwrite an existing cluster with the same address")
    parser.add_argument("-y", "--yes", action="store_true", help="skip the confirmation prompt")


def _add_set_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="", metavar="NAME", help="new name of the cluster")
    about = "manage only this namespace; repeatable; '*' for all"
    parser.add_argument("--namespace", action="append", default=[], metavar="NS", help=about)
    about = "for the cluster Secret, replacing the existing ones; repeatable"
    parser.add_argument("--label", action="append", default=[], metavar="K=V", help=about)
    parser.add_argument("--annotation", action="append", default=[], metavar="K=V", help=about)


def _add_credential_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--aws-cluster-name", default="", metavar="NAME", help="authenticate with AWS, for this EKS cluster"
    )
    parser.add_argument("--aws-role-arn", default="", metavar="ARN", help="with --aws-cluster-name: IAM role to assume")
    parser.add_argument("--aws-profile", default="", metavar="NAME", help="with --aws-cluster-name: AWS profile")
    parser.add_argument(
        "--exec-command", default="", metavar="NAME", help="authenticate with the credentials that this command prints"
    )
    parser.add_argument("--exec-command-args", action="append", default=[], metavar="ARG", help="argument; repeatable")
    about = "environment variable of the command; repeatable"
    parser.add_argument("--exec-command-env", action="append", default=[], metavar="K=V", help=about)
    about = "ExecCredential API version of the command (default: client.authentication.k8s.io/v1beta1)"
    parser.add_argument("--exec-command-api-version", default="", metavar="VERSION", help=about)
    parser.add_argument(
        "--exec-command-install-hint", default="", metavar="TEXT", help="hint to show if the command is missing"
    )


def _add_command(
    parts: Commands[argparse.ArgumentParser],
    name: str,
    summary: str,
    run: SubcommandFunction,
    examples: tuple[str, ...],
) -> argparse.ArgumentParser:
    parser = add_subcommand(parts, name, summary, [f"cluster {example}" for example in examples], see_also=SEE_ALSO)
    add_target_flags(parser)
    parser.set_defaults(run=functools.partial(_run_with_error_message, run), app_namespace="")
    return parser


def _run_with_error_message(run: SubcommandFunction, args: argparse.Namespace) -> int:
    from argosy.cli.error_messages import report_error

    try:
        return run(args)
    except ArgosyError as error:
        names = getattr(args, "asked", "")
        cluster_names = names if isinstance(names, str) else " ".join(names)
        return report_error(error, f"cluster {args.part} {cluster_names}".strip() + " failed")


def run_list(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.features.clusters.service import list_clusters

        await _print_clusters(
            app_service, args.output, await list_clusters(app_service, with_faulty=True), is_list=True
        )
        return 0

    return run_with_service(args, work)


def run_get(args: argparse.Namespace) -> int:
    async def work(app_service: ApplicationService) -> int:
        from argosy.features.clusters.service import get_cluster

        await _print_clusters(
            app_service, args.output, [await get_cluster(app_service, name) for name in args.asked], is_list=False
        )
        return 0

    return run_with_service(args, work)


async def _print_clusters(
    app_service: ApplicationService, output: str, clusters: list[DeclaredSecret], *, is_list: bool
) -> None:
    import asyncio

    from argosy.features.clusters.connection_state import fetch_state
    from argosy.features.clusters.service import cluster_to_wire, read_server

    if output == "server":
        print("".join(f"{read_server(cluster)}\n" for cluster in clusters if read_server(cluster)), end="")
        return
    states = await asyncio.gather(*(fetch_state(app_service, cluster) for cluster in clusters))
    if output in ("json", "yaml"):
        apps = await _count_applications(app_service)
        data = [
            cluster_to_wire(cluster, *state, apps.get(read_server(cluster), 0))
            for cluster, state in zip(clusters, states, strict=True)
        ]
        # argo: a single cluster is not printed as a list
        print_document(data if is_list or len(data) > 1 else data[0], output)
    elif is_list:
        from argosy.cli.tables import format_aligned_columns

        print("\n".join(format_aligned_columns([HEADINGS, *map(_build_row, clusters, states)])))
    else:
        print(
            "\n\n".join(
                "\n".join(_render_details(cluster, state.state, state.version))
                for cluster, state in zip(clusters, states, strict=True)
            )
        )


async def _count_applications(app_service: ApplicationService) -> dict[str, int]:
    """Number of Applications by destination address."""
    from collections import Counter

    from argosy.features.clusters.service import list_clusters, read_server

    names = {cluster.get_stripped("name"): read_server(cluster) for cluster in await list_clusters(app_service)}
    try:
        destinations = [
            app.destination.with_in_cluster_alias for app in await app_service.list_applications(all_namespaces=True)
        ]
    except UserError:  # the Application CRD is not installed
        return {}
    return Counter(destination.server or names.get(destination.name, "") for destination in destinations)


def _build_row(declared: DeclaredSecret, connection: ClusterConnection) -> tuple[str, ...]:
    """argo: the columns of `argocd cluster list`."""
    from argosy.features.clusters.service import read_server

    state, version, _ = connection
    namespaces = [namespace for namespace in declared.get_stripped("namespaces").split(",") if namespace.strip()]
    server = read_server(declared) or "-"
    server = f"{server} ({len(namespaces)} namespaces)" if namespaces else server
    short = ".".join(version.removeprefix("v").split(".")[:2])
    return server, declared.get_stripped("name"), short, state.status, state.message, declared.get_stripped("project")


def _render_details(declared: DeclaredSecret, state: ConnectionState, version: str) -> list[str]:
    """argo: the blocks of `argocd cluster get -o wide`."""
    from argosy.features.clusters.service import read_config, read_server

    config = read_config(declared)
    tls_config = config.get("tlsClientConfig")
    tls: dict[str, Any] = tls_config if isinstance(tls_config, dict) else {}
    is_aws = bool(config.get("awsAuthConfig"))
    fields = [
        ("Server URL:", read_server(declared)),
        ("Server Name:", declared.get_stripped("name") or "-"),
        ("Server Version:", version),
        ("Namespaces:", declared.get_stripped("namespaces") or "(all)"),
        ("Project:", declared.get_stripped("project") or "-"),
        ("Status:", f"{state.status}{f' ({state.message})' if state.message else ''}"),
    ]
    tls_fields = [
        ("Client cert:", str(bool(tls.get("certData"))).lower()),
        ("Cert validation:", str(tls.get("insecure") is not True).lower()),
    ]
    auth_fields = [
        ("Basic authentication:", str(bool(config.get("username"))).lower()),
        ("oAuth authentication:", str(bool(config.get("bearerToken"))).lower()),
        ("AWS authentication:", str(is_aws).lower()),
        ("Exec authentication:", str(bool(config.get("execProviderConfig"))).lower()),
    ]
    lines: list[str] = []
    for title, block in (
        ("Cluster information", fields), ("TLS configuration", tls_fields), ("Authentication", auth_fields)
    ):  # fmt: skip
        lines += [
            *([""] if lines else []),
            title,
            "",
            *(f"  {name:<{LABEL_WIDTH}}{text}".rstrip() for name, text in block),
        ]
    return lines
