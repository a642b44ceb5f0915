"""The service account argocd-manager on a destination cluster, and its RBAC roles and bindings.

In: an open cluster client; namespaces. Out: the account with its roles; surplus bindings. Never: deletes objects that
argosy did not create, or that another token needs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from argosy.errors import ClusterError, Conflict, Forbidden, UserError
from argosy.kube.client import Cluster
from argosy.kube.names import GroupKind, ResourceKey
from argosy.kube.objects import Manifest, key_of

# argo: the same names, so that argocd and argosy find each other's objects
MANAGER, ROLE, BINDING = "argocd-manager", "argocd-manager-role", "argocd-manager-role-binding"
RBAC: Final = "rbac.authorization.k8s.io"
SECRET: Final = GroupKind("", "Secret")
OF_ACCOUNT: Final = "kubernetes.io/service-account.name"
ALL: Final[list[dict[str, Any]]] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
MADE: Final = {
    "app.kubernetes.io/managed-by": "argosy"
}  # label of objects that argosy created there, so that nothing else is deleted
WHOLE: Final = ("",)  # the whole cluster: all namespaces and cluster-scoped resources
COLLECTED, BETWEEN = 10.0, 0.25  # seconds to wait for the garbage collection of objects that were just removed

Tell = Callable[[str], None]
Places = Sequence[str]  # namespaces, or WHOLE


async def make_manager(there: Cluster, system: str, places: Places, tell: Tell) -> None:
    """argo: create the account with full access to the cluster or to namespaces; existing objects are kept."""
    metadata = {"name": MANAGER, "namespace": system}
    account: Manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    roles = [_role(place) for place in places]
    for each in (account, *roles):  # dry run first: leave no account behind if its roles are rejected
        with suppress(Conflict):
            await there.create(each, dry_run=True)
    for each in (account, *roles, *(_binding(place, system) for place in places)):
        await _make(there, each, tell)


def _role(place: str) -> Manifest:
    rules = ALL if place else [*ALL, {"nonResourceURLs": ["*"], "verbs": ["*"]}]
    return {"apiVersion": f"{RBAC}/v1", "kind": _kind(place), "metadata": _metadata(ROLE, place), "rules": rules}


def _binding(place: str, system: str) -> Manifest:
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{_kind(place)}Binding",
        "metadata": _metadata(BINDING, place),
        "roleRef": {"apiGroup": RBAC, "kind": _kind(place), "name": ROLE},
        "subjects": [_subject(system)],
    }


def _kind(place: str) -> str:
    return "Role" if place else "ClusterRole"


def _metadata(name: str, place: str) -> dict[str, str]:
    return {"name": name, "namespace": place} if place else {"name": name}


def _subject(system: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": MANAGER, "namespace": system}


async def _make(there: Cluster, manifest: Manifest, tell: Tell) -> None:
    """argo: its messages; an existing object is used, and the rules of an existing role are updated."""
    key = key_of(manifest)
    place = _inside(key)
    for _ in range(int(COLLECTED / BETWEEN)):
        try:
            await there.create({**manifest, "metadata": {**manifest["metadata"], "labels": MADE}})
            tell(f'{key.kind} "{key.name}" created{place}')
            return
        except Conflict:
            found = await there.get(key)
        if found is not None and not found["metadata"].get("ownerReferences"):
            break
        await asyncio.sleep(BETWEEN)  # a removal of this cluster is still being garbage collected
    if "rules" in manifest:
        await there.patch(key, {"rules": manifest["rules"]})
        tell(f'{key.kind} "{key.name}" updated{place}')
    else:
        tell(f'{key.kind} "{key.name}" already exists{place}')


# -- surplus bindings -------------------------------------------------------------------------------------------------


async def surplus(there: Cluster, system: str, places: Places, had: Places, own: str, tell: Tell) -> list[ResourceKey]:
    """Bindings that give the account access outside `places`. Raises UserError if argosy must not delete one of them.

    `had` lists the namespaces it had access to before; `own` is the Secret name of the token that is replaced.
    """
    found: list[ResourceKey] = []
    for place in sorted({*WHOLE, *had} - set(places)):
        key = ResourceKey(RBAC, f"{_kind(place)}Binding", place, BINDING)
        try:
            binding = await there.get(key)
        except Forbidden as error:  # the user may manage RBAC only in some namespaces
            tell(f"argosy: cannot check for surplus rights of {MANAGER} ({error.message})")
            continue
        if binding is None or not _lets_in(binding, system):
            continue
        why = await _why_kept(there, binding, system, own)
        if not why:
            found.append(key)
        elif "" not in places:
            raise UserError(
                f"{MANAGER} has more rights than requested, from {key.kind} {BINDING} ({why}); if not needed, run on "
                f"that cluster: {delete_command(place, BINDING)}; otherwise use another --service-account"
            )
    return found


async def take_away(there: Cluster, bindings: Sequence[ResourceKey], tell: Tell) -> None:
    """Delete the bindings and their roles."""
    for binding in bindings:
        role = ResourceKey(RBAC, _kind(binding.namespace), binding.namespace, ROLE)
        for key in (binding, role):
            live = await there.get(key)
            if live is not None and is_made(live):
                if not await revoke(there, live):
                    raise UserError(f"{key.kind} {key.name}{_inside(key)} was recreated in the meantime; try again")
                tell(f'{key.kind} "{key.name}" deleted{_inside(key)}')


def _lets_in(binding: Manifest, system: str) -> bool:
    wanted = _subject(system).items()
    return any(wanted <= each.items() for each in binding.get("subjects") or ())


async def _why_kept(there: Cluster, binding: Manifest, system: str, own: str) -> str:
    if not is_made(binding):
        return "argosy did not create it"
    if len(binding.get("subjects") or ()) > 1:
        return "it has other subjects"
    others = await other_tokens(there, system, MANAGER, own)
    return f"the account has other tokens: {', '.join(others)}" if others else ""


async def left_behind(there: Cluster, system: str) -> list[str]:
    """Namespaces in which a binding of the account, created by argosy, still exists."""
    labels = ",".join(f"{name}={text}" for name, text in MADE.items())
    found = (await there.list(GroupKind(RBAC, "RoleBinding"), labels=labels)).items
    ours = [each for each in found if each["metadata"]["name"] == BINDING and _lets_in(each, system)]
    return sorted(each["metadata"]["namespace"] for each in ours)


async def other_tokens(there: Cluster, namespace: str, account: str, own: str) -> list[str]:
    found = (await there.list(SECRET, namespace=namespace, metadata_only=True)).items
    return sorted(
        each["metadata"]["name"]
        for each in found
        if (each["metadata"].get("annotations") or {}).get(OF_ACCOUNT) == account and each["metadata"]["name"] != own
    )


def delete_command(place: str, *names: str) -> str:
    """kubectl command that deletes the binding and the role."""
    kinds = {BINDING: f"{_kind(place)}Binding".lower(), ROLE: _kind(place).lower()}
    inside = f"-n {place} " if place else ""
    return f"kubectl delete {inside}{' '.join(f'{kinds[name]}/{name}' for name in names)}"


async def revoke(there: Cluster, live: Manifest) -> bool:
    """Delete this object if it still exists. False if another object has its name now; that one is kept."""
    try:
        await there.delete(key_of(live), uid=live["metadata"].get("uid"))
    except Conflict:
        return False
    except ClusterError as error:
        if error.code != 404:
            raise
    return True


def kept_message(key: ResourceKey) -> str:
    """Message for an object that was not deleted because it was recreated."""
    return f"{key.kind} {key.name}{_inside(key)} was recreated in the meantime and is kept"


def is_made(found: Mapping[str, Any] | None) -> bool:
    """True if `argosy cluster add` created the object."""
    return found is not None and MADE.items() <= (found["metadata"].get("labels") or {}).items()


def _inside(key: ResourceKey) -> str:
    return f' in namespace "{key.namespace}"' if key.namespace else ""
