"""A cluster is removed: its Secret here, and on it what was made when it was added.

In: a desk, the cluster's Secret. Out: sentences that tell what went and what is left. Never: deletes on that cluster
what `argosy cluster add` did not make, or what another token still needs.
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
    if claims is None or (claims.account != MANAGER and claims.token is None):  # nothing was made there
        return
    try:
        async with asyncio.timeout(service.SECONDS), await _opened(desk, declared, opener) as there:
            stays = await _clear(there, claims, tell)
    except TimeoutError:
        stays = f"no answer in {service.SECONDS:g} s"
    except ArgosyError as error:
        stays = str(error)
    if stays:
        commands = "".join(f"\n  {each}" for each in _commands(claims, declared))
        tell(f"argosy: not all is cleared away on that cluster ({stays}); where nobody needs it, type there:{commands}")


async def _opened(desk: Desk, declared: Declared, opener: Opener) -> AbstractAsyncContextManager[Cluster]:
    server = service.server_of(declared)
    if server == service.HERE:
        return nullcontext(desk.cluster)
    return opener(await service.connection_to(desk, {**declared.values, "server": server}))


async def _clear(there: Cluster, claims: Claims, tell: Tell) -> str:
    """Returns why something stays; empty where nothing does that was made there."""
    stays = ""
    if claims.account == MANAGER and not (stays := await _delete_account(there, claims, tell)):
        return ""
    found = await there.get(claims.token) if claims.token else None
    if claims.token is None or found is None:
        return stays
    if not is_made(found):
        return stays or f"Secret {claims.token.name} was not made by argosy"
    if not await revoke(there, found):
        return "; ".join(filter(None, (stays, kept_message(claims.token))))
    tell(f"argosy: deleted on that cluster: Secret {claims.token.name}, and so its token")
    return stays


async def _delete_account(there: Cluster, claims: Claims, tell: Tell) -> str:
    """With its rights and its token. Returns why not."""
    account = ResourceKey("", "ServiceAccount", claims.namespace, MANAGER)
    role, binding = ResourceKey(RBAC, "ClusterRole", "", ROLE), ResourceKey(RBAC, "ClusterRoleBinding", "", BINDING)
    rest = [binding, account, *([claims.token] if claims.token else [])]
    found = {key: await there.get(key) for key in (role, *rest)}
    if others := await other_tokens(there, claims.namespace, MANAGER, claims.token.name if claims.token else ""):
        return f"{MANAGER} has other tokens: {', '.join(others)}"
    if strange := [f"{key.kind} {key.name}" for key, manifest in found.items() if not is_made(manifest)]:
        return f"not made by argosy: {', '.join(strange)}"
    if len((found[binding] or {}).get("subjects") or ()) > 1:
        return f"{binding.kind} {BINDING} has other subjects"
    left = await left_behind(there, claims.namespace)
    await _delete_together(there, found[role] or {}, [found[key] or {} for key in rest])
    tell(f"argosy: deleted on that cluster: {', '.join(f'{key.kind} {key.name}' for key in found)}")
    if left:
        commands = "".join(f"\n  {delete_command(each, BINDING, ROLE)}" for each in left)
        tell(f"argosy: left on that cluster are roles in {', '.join(left)}; to delete them, type there:{commands}")
    return ""


async def _delete_together(there: Cluster, role: Manifest, rest: list[Manifest]) -> None:
    """In one request: whichever of them goes first takes away the right, or the token, to delete the others.

    k8s: a patch that names another uid is refused, so that an object created again meanwhile is kept.
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
