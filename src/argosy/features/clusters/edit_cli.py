"""`argosy cluster add|set|rm|rotate`: change the destination clusters."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from argosy.cli.target_flags import target_options
from argosy.cli.verbs import asked, at_desk, can_ask, is_compat, talk
from argosy.errors import UserError

if TYPE_CHECKING:
    from argosy.gitops.application_client.client import Desk
    from argosy.gitops.application_client.declared_objects import Declared
    from argosy.kube.client.connection import Connection

MOST = 10  # Applications listed before a cluster is removed


def run_add(chosen: argparse.Namespace) -> int:
    if chosen.in_cluster and chosen.cluster_endpoint:
        raise UserError("Can only use one of --in-cluster or --cluster-endpoint")  # argo: its message
    connection = _context(chosen)
    wanted = _wanted(chosen)
    if not wanted.account and not wanted.config.keys() & {"execProviderConfig", "awsAuthConfig"}:
        level = "namespace" if wanted.namespaces and not wanted.has_cluster_kinds else "cluster"
        warning = (
            f"WARNING: This will create a service account `argocd-manager` on the cluster referenced by context "
            f"`{chosen.asked}` with full {level} level privileges."
        )
        if not _may(chosen, f"{warning} Do you want to continue"):
            talk("argosy: cancelled")
            return 1

    async def work(desk: Desk) -> int:
        from argosy.features.clusters.add import enlist
        from argosy.features.clusters.service import server_of

        assert desk.opener is not None
        async with desk.opener(connection) as there:
            made, was_so = await enlist(desk, there, connection, wanted, desk.opener, talk)
        is_told = was_so and not is_compat(chosen)  # argo: always prints "added"
        print(f"Cluster '{server_of(made)}' {'unchanged' if is_told else 'added'}")
        return 0

    return at_desk(chosen, work, writes=True)


def _context(chosen: argparse.Namespace) -> Connection:
    from argosy.cli.connection import of_context

    try:
        return of_context(chosen.asked, chosen.context_kubeconfig or target_options(chosen).kubeconfig)
    except UserError as error:
        if chosen.context_kubeconfig is not None:
            raise
        other = (
            f"{'or ' if '; ' in error.message else ''}pass the kubeconfig that contains it: --context-kubeconfig FILE"
        )
        raise UserError(f"{error.message}; {other}", where=error.where, line=error.line) from error


def _wanted(chosen: argparse.Namespace) -> Any:
    from argosy.features.clusters.add import Enlisted

    config: dict[str, Any] = {}
    if chosen.aws_cluster_name:
        aws = {"clusterName": chosen.aws_cluster_name, "roleARN": chosen.aws_role_arn, "profile": chosen.aws_profile}
        config["awsAuthConfig"] = {name: text for name, text in aws.items() if text}
    elif chosen.exec_command:
        program = {
            "command": chosen.exec_command,
            "args": chosen.exec_command_args,
            "env": _pairs(chosen.exec_command_env, "--exec-command-env"),
            "apiVersion": chosen.exec_command_api_version or "client.authentication.k8s.io/v1beta1",
            "installHint": chosen.exec_command_install_hint,
        }
        config["execProviderConfig"] = {name: value for name, value in program.items() if value}
    if chosen.proxy_url:
        config["proxyUrl"] = chosen.proxy_url
    if chosen.disable_compression:
        config["disableCompression"] = True
    is_here = chosen.in_cluster or chosen.cluster_endpoint == "internal"
    return Enlisted(
        name=chosen.name or ("in-cluster" if is_here else chosen.asked),
        namespaces=tuple(each for text in chosen.namespace for each in text.split(",") if each),
        has_cluster_kinds=chosen.cluster_resources,
        account=chosen.service_account,
        system=chosen.system_namespace,
        project=chosen.project,
        is_here=is_here,
        is_public=chosen.cluster_endpoint == "kube-public",
        shard=chosen.shard if chosen.shard >= 0 else None,
        replaces=chosen.upsert,
        config=config,
        labels=_pairs(chosen.label, "--label"),
        annotations=_pairs(chosen.annotation, "--annotation"),
    )


def _pairs(given: list[str], flag: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in given]
    if wrong := [name for name, equals, _ in pairs if not equals or not name]:
        raise UserError(f"invalid value {wrong[0]!r}; use {flag} NAME=VALUE", where=flag)
    return {name: text for name, _, text in pairs}


def _may(chosen: argparse.Namespace, question: str) -> bool:
    if chosen.yes:
        return True
    if not can_ask():
        if is_compat(chosen):  # argo: without a terminal, the answer is yes
            return True
        raise UserError("cannot ask for confirmation without a terminal; pass -y")
    return asked(question)


def run_set(chosen: argparse.Namespace) -> int:
    given: dict[str, Any] = {
        "name": chosen.name,
        "namespaces": [""] if chosen.namespace == ["*"] else chosen.namespace,
        "labels": _pairs(chosen.label, "--label"),
        "annotations": _pairs(chosen.annotation, "--annotation"),
    }
    wanted = {name: value for name, value in given.items() if value}
    if not wanted:
        raise UserError("nothing to change; pass --name, --namespace, --label or --annotation")

    async def work(desk: Desk) -> int:
        from argosy.features.clusters.service import change, check_name, named, server_of

        found = await named(desk, chosen.asked)
        if chosen.name:
            await check_name(desk, chosen.name, server_of(found))
        await change(desk, found, wanted, tuple(wanted))
        print(f"Cluster '{chosen.asked}' updated.")
        return 0

    return at_desk(chosen, work, writes=True)


def run_rm(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.features.clusters.service import check_removable, named, server_of

        found: dict[str, tuple[str, Declared]] = {}
        for text in chosen.asked:  # check all clusters before the first one is removed
            each = await named(desk, text)
            check_removable(each)
            found.setdefault(server_of(each), (text, each))
        return max([await _remove(desk, chosen, *each) for each in found.values()])

    return at_desk(chosen, work, writes=True)


async def _remove(desk: Desk, chosen: argparse.Namespace, name: str, found: Declared) -> int:
    from argosy.features.clusters.remove import delist
    from argosy.features.clusters.service import bound_for

    if apps := await bound_for(desk, found):
        more = f" … and {len(apps) - MOST} more" if len(apps) > MOST else ""
        talk(f"argosy: Applications with destination '{name}': {', '.join(apps[:MOST])}{more}")
    told = "Any Apps deploying to this cluster will go to health status Unknown."
    if not _may(chosen, f"Are you sure you want to remove '{name}'? {told}"):
        talk(f"The command to remove '{name}' was cancelled.")
        return 1
    assert desk.opener is not None
    said: list[str] = []
    await delist(desk, found, desk.opener, said.append)
    print(f"Cluster '{name}' removed")
    for each in said:
        talk(each)
    return 0


def run_rotate(chosen: argparse.Namespace) -> int:
    async def work(desk: Desk) -> int:
        from argosy.features.clusters.add import rotate
        from argosy.features.clusters.service import named

        found = await named(desk, chosen.asked)
        assert desk.opener is not None
        await rotate(desk, found, desk.opener, talk)
        print(f"Cluster '{chosen.asked}' rotated auth")
        return 0

    return at_desk(chosen, work, writes=True)
