"""`argosy cluster add|list|get|set|rm|rotate`: manage destination clusters."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argosy.cli.target_flags import add_target_flags
from argosy.cli.verbs import Run, at_desk, described, print_data
from argosy.errors import ArgosyError, UserError
from argosy.features.clusters.edit_cli import run_add, run_rm, run_rotate, run_set

if TYPE_CHECKING:
    from argosy.features.repositories.connection_test import State
    from argosy.gitops.application_client.client import Desk
    from argosy.gitops.application_client.declared_objects import Declared

Commands = argparse._SubParsersAction  # the type argparse gives no public name
EXAMPLES = """\
Examples:
  argosy cluster add prod
  argosy cluster list
  argosy cluster rotate prod
  argosy cluster rm prod

See also: docs/guides/clusters.md
"""
SEE = "See also: docs/guides/clusters.md, docs/reference/cli.md"
HEADINGS = ("SERVER", "NAME", "VERSION", "STATUS", "MESSAGE", "PROJECT")
ENDPOINTS = ("kubeconfig", "kube-public", "internal")
FORMS = ("wide", "json", "yaml", "server")
WIDTH = 25  # argo: of the labels in its get


def add_to(commands: Commands[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "cluster",
        help="add, list, rotate and remove destination clusters",
        description="Manage the destination clusters of Applications.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_verbs(parser.add_subparsers(dest="part", metavar="COMMAND", required=True, parser_class=type(parser)))


def add_verbs(parts: Commands[argparse.ArgumentParser]) -> None:
    add = _verb(parts, "add", "add the cluster of a kubeconfig context as a destination", run_add, ("add prod",
                "add prod --name production --namespace ml --namespace web -y"))  # fmt: skip
    add.add_argument("asked", metavar="CONTEXT", help="a context of the kubeconfig")
    _add_flags(add)
    _programs(add)
    listing = _verb(parts, "list", "list clusters and their connection status", run_list, ("list", "list -o json"))
    getting = _verb(parts, "get", "show clusters", run_get, ("get prod", "get https://10.0.0.1:6443 -o wide"))
    setting = _verb(parts, "set", "change the name, namespaces, labels or annotations of a cluster", run_set,
                    ("set prod --name production --namespace web", "set prod --namespace '*'"))  # fmt: skip
    _set_flags(setting)
    for each, usual in ((listing, "wide"), (getting, "yaml")):  # argo: as there
        each.add_argument("-o", "--output", choices=FORMS, default=usual, help=f"{', '.join(FORMS)} (default: {usual})")
    removing = _verb(parts, "rm", "remove clusters from the destinations", run_rm,
                     ("rm prod", "rm dev test -y"))  # fmt: skip
    rotating = _verb(parts, "rotate", "create a new token for a cluster and revoke the old one", run_rotate,
                     ("rotate prod",))  # fmt: skip
    others = [_verb(parts, "rotate-auth", "alias of rotate, as in the argocd CLI", run_rotate, ("rotate-auth prod",))]
    for each in (setting, rotating, *others):
        each.add_argument("asked", metavar="SERVER|NAME", help="address or name of the cluster")
    for each in (getting, removing):  # argo: only these accept several clusters
        each.add_argument("asked", metavar="SERVER|NAME", nargs="+", help="addresses or names of clusters")
    removing.add_argument("-y", "--yes", action="store_true", help="skip the confirmation prompt")


def _add_flags(parser: argparse.ArgumentParser) -> None:
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


def _set_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default="", metavar="NAME", help="new name of the cluster")
    about = "manage only this namespace; repeatable; '*' for all"
    parser.add_argument("--namespace", action="append", default=[], metavar="NS", help=about)
    about = "for the cluster Secret, replacing the existing ones; repeatable"
    parser.add_argument("--label", action="append", default=[], metavar="K=V", help=about)
    parser.add_argument("--annotation", action="append", default=[], metavar="K=V", help=about)


def _programs(parser: argparse.ArgumentParser) -> None:
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


def _verb(
    parts: Commands[argparse.ArgumentParser], name: str, about: str, run: Run, examples: tuple[str, ...]
) -> argparse.ArgumentParser:
    parser = described(parts, name, about, [f"cluster {each}" for each in examples], see=SEE)
    add_target_flags(parser)
    parser.set_defaults(run=functools.partial(_telling, run), app_namespace="")
    return parser


def _telling(run: Run, chosen: argparse.Namespace) -> int:
    from argosy.cli.error_messages import failed

    try:
        return run(chosen)
    except ArgosyError as error:
        given = getattr(chosen, "asked", "")
        which = given if isinstance(given, str) else " ".join(given)
        return failed(error, f"cluster {chosen.part} {which}".strip() + " failed")


def run_list(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.features.clusters.service import all_clusters

        await _show(desk, chosen.output, await all_clusters(desk, with_faulty=True), is_list=True)
        return 0

    return at_desk(chosen, work)


def run_get(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.features.clusters.service import named

        await _show(desk, chosen.output, [await named(desk, each) for each in chosen.asked], is_list=False)
        return 0

    return at_desk(chosen, work)


async def _show(desk: Desk, how: str, found: list[Declared], *, is_list: bool) -> None:
    import asyncio

    from argosy.features.clusters.service import document, server_of, state_of

    if how == "server":
        print("".join(f"{server_of(each)}\n" for each in found if server_of(each)), end="")
        return
    states = await asyncio.gather(*(state_of(desk, each) for each in found))
    if how in ("json", "yaml"):
        apps = await _counts(desk)
        data = [document(each, *state, apps.get(server_of(each), 0)) for each, state in zip(found, states, strict=True)]
        print_data(
            data if is_list or len(data) > 1 else data[0], how
        )  # argo: a single cluster is not printed as a list
    elif is_list:
        from argosy.cli.tables import aligned

        print("\n".join(aligned([HEADINGS, *map(_row, found, states)])))
    else:
        print("\n\n".join("\n".join(_lines(each, *state)) for each, state in zip(found, states, strict=True)))


async def _counts(desk: Desk) -> dict[str, int]:
    """Number of Applications by destination address."""
    from collections import Counter

    from argosy.features.clusters.service import all_clusters, server_of

    names = {each.text("name"): server_of(each) for each in await all_clusters(desk)}
    try:
        places = [app.destination.known for app in await desk.all(everywhere=True)]
    except UserError:  # the Application CRD is not installed
        return {}
    return Counter(place.server or names.get(place.name, "") for place in places)


def _row(declared: Declared, told: tuple[State, str]) -> tuple[str, ...]:
    """argo: the columns of `argocd cluster list`."""
    from argosy.features.clusters.service import server_of

    state, version = told
    spaces = [each for each in declared.text("namespaces").split(",") if each.strip()]
    server = server_of(declared) or "-"
    server = f"{server} ({len(spaces)} namespaces)" if spaces else server
    short = ".".join(version.removeprefix("v").split(".")[:2])
    return server, declared.text("name"), short, state.status, state.message, declared.text("project")


def _lines(declared: Declared, state: State, version: str) -> list[str]:
    """argo: the blocks of `argocd cluster get -o wide`."""
    from argosy.features.clusters.service import config_of, server_of

    config = config_of(declared)
    given = config.get("tlsClientConfig")
    tls: dict[str, Any] = given if isinstance(given, dict) else {}
    is_cloud = bool(config.get("awsAuthConfig"))
    fields = [
        ("Server URL:", server_of(declared)),
        ("Server Name:", declared.text("name") or "-"),
        ("Server Version:", version),
        ("Namespaces:", declared.text("namespaces") or "(all)"),
        ("Project:", declared.text("project") or "-"),
        ("Status:", f"{state.status}{f' ({state.message})' if state.message else ''}"),
    ]
    safe = [
        ("Client cert:", str(bool(tls.get("certData"))).lower()),
        ("Cert validation:", str(tls.get("insecure") is not True).lower()),
    ]
    lets_in = [
        ("Basic authentication:", str(bool(config.get("username"))).lower()),
        ("oAuth authentication:", str(bool(config.get("bearerToken"))).lower()),
        ("AWS authentication:", str(is_cloud).lower()),
        ("Exec authentication:", str(bool(config.get("execProviderConfig"))).lower()),
    ]
    found: list[str] = []
    for title, block in (
        ("Cluster information", fields), ("TLS configuration", safe), ("Authentication", lets_in)
    ):  # fmt: skip
        found += [*([""] if found else []), title, "", *(f"  {name:<{WIDTH}}{text}".rstrip() for name, text in block)]
    return found
