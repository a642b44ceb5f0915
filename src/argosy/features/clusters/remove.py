"""Removes a destination cluster: its Secret here, and the account that `argosy cluster add` created on it.

In: an ApplicationService, the cluster's Secret. Out: messages about deleted and remaining objects. Never: deletes
objects on that cluster that `argosy cluster add` did not create, or that another token still needs.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext

from argosy.errors import ArgosyError, Conflict, Invalid, UserError
from argosy.features.clusters import service
from argosy.features.clusters.cluster_service_account import (
    MANAGER_ACCOUNT,
    MANAGER_BINDING,
    MANAGER_ROLE,
    RBAC_GROUP,
    ReportMessage,
    delete_unless_recreated,
    is_created_by_argosy,
    list_leftover_namespaces,
    list_other_tokens,
    render_delete_command,
    render_recreated_message,
)
from argosy.features.clusters.connection_state import CONNECTION_TIMEOUT_SECONDS, build_cluster_connection
from argosy.features.clusters.service_account_token_lifecycle import ServiceAccountClaims, read_token_claims
from argosy.gitops.application_client.application_service import ApplicationService, ClusterOpener
from argosy.gitops.application_client.argocd_secrets_and_config_maps import DeclaredSecret
from argosy.kube.client import Cluster
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import ResourceKey


async def remove_cluster(
    app_service: ApplicationService, declared: DeclaredSecret, opener: ClusterOpener, report: ReportMessage
) -> None:
    await service.remove_cluster(app_service, declared)
    claims = read_token_claims(declared)
    # Nothing was created on that cluster.
    if claims is None or (claims.account != MANAGER_ACCOUNT and claims.token is None):
        return
    try:
        async with (
            asyncio.timeout(CONNECTION_TIMEOUT_SECONDS),
            await _open_cluster(app_service, declared, opener) as cluster_client,
        ):
            reason = await _clean_up(cluster_client, claims, report)
    except TimeoutError:
        reason = f"timeout after {CONNECTION_TIMEOUT_SECONDS:g} s"
    except ArgosyError as error:
        reason = str(error)
    if reason:
        commands = "".join(f"\n  {command}" for command in _render_delete_commands(claims, declared))
        report(f"argosy: cleanup on that cluster is incomplete ({reason}); if not needed, run there:{commands}")


async def _open_cluster(
    app_service: ApplicationService, declared: DeclaredSecret, opener: ClusterOpener
) -> AbstractAsyncContextManager[Cluster]:
    server = service.read_server(declared)
    if server == service.IN_CLUSTER_SERVER:
        return nullcontext(app_service.cluster)
    return opener(await build_cluster_connection(app_service, {**declared.values, "server": server}))


async def _clean_up(cluster_client: Cluster, claims: ServiceAccountClaims, report: ReportMessage) -> str:
    """Delete the account or token. Returns the reason if something remains, else an empty string."""
    reason = ""
    if claims.account == MANAGER_ACCOUNT and not (reason := await _delete_account(cluster_client, claims, report)):
        return ""
    secret = await cluster_client.get(claims.token) if claims.token else None
    if claims.token is None or secret is None:
        return reason
    if not is_created_by_argosy(secret):
        return reason or f"Secret {claims.token.name} was not created by argosy"
    if not await delete_unless_recreated(cluster_client, secret):
        return "; ".join(filter(None, (reason, render_recreated_message(claims.token))))
    report(f"argosy: deleted on that cluster: Secret {claims.token.name}, which revokes its token")
    return reason


async def _delete_account(cluster_client: Cluster, claims: ServiceAccountClaims, report: ReportMessage) -> str:
    """Delete the account with its roles and token. Returns the reason if it was not deleted."""
    account = ResourceKey("", "ServiceAccount", claims.namespace, MANAGER_ACCOUNT)
    role, binding = (
        ResourceKey(RBAC_GROUP, "ClusterRole", "", MANAGER_ROLE),
        ResourceKey(RBAC_GROUP, "ClusterRoleBinding", "", MANAGER_BINDING),
    )
    dependents = [binding, account, *([claims.token] if claims.token else [])]
    objects = {key: await cluster_client.get(key) for key in (role, *dependents)}
    if other_token_names := await list_other_tokens(
        cluster_client, claims.namespace, MANAGER_ACCOUNT, claims.token.name if claims.token else ""
    ):
        return f"{MANAGER_ACCOUNT} has other tokens: {', '.join(other_token_names)}"
    if foreign_objects := [
        f"{key.kind} {key.name}" for key, manifest in objects.items() if not is_created_by_argosy(manifest)
    ]:
        return f"not created by argosy: {', '.join(foreign_objects)}"
    if len((objects[binding] or {}).get("subjects") or ()) > 1:
        return f"{binding.kind} {MANAGER_BINDING} has other subjects"
    leftover_namespaces = await list_leftover_namespaces(cluster_client, claims.namespace)
    await _delete_together(cluster_client, objects[role] or {}, [objects[key] or {} for key in dependents])
    report(f"argosy: deleted on that cluster: {', '.join(f'{key.kind} {key.name}' for key in objects)}")
    if leftover_namespaces:
        commands = "".join(
            f"\n  {render_delete_command(namespace, MANAGER_BINDING, MANAGER_ROLE)}"
            for namespace in leftover_namespaces
        )
        report(
            f"argosy: roles remain on that cluster in {', '.join(leftover_namespaces)}; to delete them, run "
            f"there:{commands}"
        )
    return ""


async def _delete_together(cluster_client: Cluster, role: Manifest, dependents: list[Manifest]) -> None:
    """Delete all in one request, by owner references: the first deletion alone would revoke the right to delete more.

    k8s: a patch with another uid is rejected, so that an object recreated in the meantime is kept.
    """
    key, uid = key_of(role), role["metadata"]["uid"]
    owner = {"apiVersion": f"{RBAC_GROUP}/v1", "kind": key.kind, "name": key.name, "uid": uid}
    for live in dependents:
        patch = {"metadata": {"uid": live["metadata"]["uid"], "ownerReferences": [owner]}}
        try:
            await cluster_client.patch(key_of(live), patch)
        except (Conflict, Invalid) as error:
            if isinstance(error, Invalid) and "metadata.uid" not in error.message:
                raise
            raise UserError(render_recreated_message(key_of(live))) from error
    if not await delete_unless_recreated(cluster_client, role):
        raise UserError(render_recreated_message(key))


def _render_delete_commands(claims: ServiceAccountClaims, declared: DeclaredSecret) -> list[str]:
    token = [f"secret/{claims.token.name}"] if claims.token else []
    if claims.account != MANAGER_ACCOUNT:
        return [" ".join(["kubectl delete -n", claims.namespace, *token])]
    namespaces = service.read_namespaces(declared)
    is_namespaced = bool(namespaces) and declared.get_stripped("clusterResources").lower() != "true"
    account = " ".join(["kubectl delete -n", claims.namespace, *token, f"serviceaccount/{MANAGER_ACCOUNT}"])
    return [
        *(
            render_delete_command(namespace, MANAGER_BINDING, MANAGER_ROLE)
            for namespace in (namespaces if is_namespaced else [""])
        ),
        account,
    ]
