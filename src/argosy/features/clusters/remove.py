"""Removes a destination cluster: its Secret here, and the account that `argosy cluster add` created on it.

In: an ApplicationService, the cluster's Secret. Out: messages about deleted and remaining objects. Never: deletes
objects on that cluster that `argosy cluster add` did not create, or that another token still needs.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext

from argosy.errors import ArgosyError, Conflict, Invalid, UserError
from argosy.features.clusters import service
from argosy.features.clusters.add import Claims, claims_of
from argosy.features.clusters.cluster_account import (
    BINDING,
    MANAGER,
    RBAC,
    ROLE,
    Tell,
    delete_command,
    is_made,
    kept_message,
    left_behind,
    other_tokens,
    revoke,
)
from argosy.gitops.application_client.client import Desk, Opener
from argosy.gitops.application_client.declared_objects import Declared
from argosy.kube.client import Cluster
from argosy.kube.names import ResourceKey
from argosy.kube.objects import Manifest, key_of


async def delist(desk: Desk, declared: Declared, opener: Opener, tell: Tell) -> None:
    await service.remove(desk, declared)
    claims = claims_of(declared)
    if claims is None or (claims.account != MANAGER and claims.token is None):  # nothing was created on that cluster
        return
    try:
        async with asyncio.timeout(service.SECONDS), await _opened(desk, declared, opener) as there:
            stays = await _clear(there, claims, tell)
    except TimeoutError:
        stays = f"timeout after {service.SECONDS:g} s"
    except ArgosyError as error:
        stays = str(error)
    if stays:
        commands = "".join(f"\n  {each}" for each in _commands(claims, declared))
        tell(f"argosy: cleanup on that cluster is incomplete ({stays}); if not needed, run there:{commands}")


async def _opened(desk: Desk, declared: Declared, opener: Opener) -> AbstractAsyncContextManager[Cluster]:
    server = service.server_of(declared)
    if server == service.HERE:
        return nullcontext(desk.cluster)
    return opener(await service.connection_to(desk, {**declared.values, "server": server}))


async def _clear(there: Cluster, claims: Claims, tell: Tell) -> str:
    """Delete the account or token. Returns the reason if something remains, else an empty string."""
    stays = ""
    if claims.account == MANAGER and not (stays := await _delete_account(there, claims, tell)):
        return ""
    found = await there.get(claims.token) if claims.token else None
    if claims.token is None or found is None:
        return stays
    if not is_made(found):
        return stays or f"Secret {claims.token.name} was not created by argosy"
    if not await revoke(there, found):
        return "; ".join(filter(None, (stays, kept_message(claims.token))))
    tell(f"argosy: deleted on that cluster: Secret {claims.token.name}, which revokes its token")
    return stays


async def _delete_account(there: Cluster, claims: Claims, tell: Tell) -> str:
    """Delete the account with its roles and token. Returns the reason if it was not deleted."""
    account = ResourceKey("", "ServiceAccount", claims.namespace, MANAGER)
    role, binding = ResourceKey(RBAC, "ClusterRole", "", ROLE), ResourceKey(RBAC, "ClusterRoleBinding", "", BINDING)
    rest = [binding, account, *([claims.token] if claims.token else [])]
    found = {key: await there.get(key) for key in (role, *rest)}
    if others := await other_tokens(there, claims.namespace, MANAGER, claims.token.name if claims.token else ""):
        return f"{MANAGER} has other tokens: {', '.join(others)}"
    if strange := [f"{key.kind} {key.name}" for key, manifest in found.items() if not is_made(manifest)]:
        return f"not created by argosy: {', '.join(strange)}"
    if len((found[binding] or {}).get("subjects") or ()) > 1:
        return f"{binding.kind} {BINDING} has other subjects"
    left = await left_behind(there, claims.namespace)
    await _delete_together(there, found[role] or {}, [found[key] or {} for key in rest])
    tell(f"argosy: deleted on that cluster: {', '.join(f'{key.kind} {key.name}' for key in found)}")
    if left:
        commands = "".join(f"\n  {delete_command(each, BINDING, ROLE)}" for each in left)
        tell(f"argosy: roles remain on that cluster in {', '.join(left)}; to delete them, run there:{commands}")
    return ""


async def _delete_together(there: Cluster, role: Manifest, rest: list[Manifest]) -> None:
    """Delete all in one request, by owner references: the first deletion alone would revoke the right to delete more.

    k8s: a patch with another uid is rejected, so that an object recreated in the meantime is kept.
    """
    key, uid = key_of(role), role["metadata"]["uid"]
    owner = {"apiVersion": f"{RBAC}/v1", "kind": key.kind, "name": key.name, "uid": uid}
    for live in rest:
        patch = {"metadata": {"uid": live["metadata"]["uid"], "ownerReferences": [owner]}}
        try:
            await there.patch(key_of(live), patch)
        except (Conflict, Invalid) as error:
            if isinstance(error, Invalid) and "metadata.uid" not in error.message:
                raise
            raise UserError(kept_message(key_of(live))) from error
    if not await revoke(there, role):
        raise UserError(kept_message(key))


def _commands(claims: Claims, declared: Declared) -> list[str]:
    token = [f"secret/{claims.token.name}"] if claims.token else []
    if claims.account != MANAGER:
        return [" ".join(["kubectl delete -n", claims.namespace, *token])]
    names = service.namespaces_of(declared)
    is_part = bool(names) and declared.text("clusterResources").lower() != "true"
    account = " ".join(["kubectl delete -n", claims.namespace, *token, f"serviceaccount/{MANAGER}"])
    return [*(delete_command(place, BINDING, ROLE) for place in (names if is_part else [""])), account]
