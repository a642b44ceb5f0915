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
from argosy.kube.objects import Manifest, key_of
from argosy.kube.resource_key import GroupKind, ResourceKey
from argosy.kube.well_known_kinds import SECRET

# argo: the same names, so that argocd and argosy find each other's objects
MANAGER_ACCOUNT, MANAGER_ROLE, MANAGER_BINDING = "argocd-manager", "argocd-manager-role", "argocd-manager-role-binding"
RBAC_GROUP: Final = "rbac.authorization.k8s.io"
ACCOUNT_ANNOTATION: Final = "kubernetes.io/service-account.name"
ALLOW_ALL_RULES: Final[list[dict[str, Any]]] = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
# Label of objects that argosy created there, so that nothing else is deleted.
MANAGED_BY_LABELS: Final = {"app.kubernetes.io/managed-by": "argosy"}
WHOLE_CLUSTER: Final = ("",)  # the whole cluster: all namespaces and cluster-scoped resources
# Seconds to wait for the garbage collection of objects that were just removed.
GARBAGE_COLLECTION_SECONDS, POLL_INTERVAL_SECONDS = 10.0, 0.25

ReportMessage = Callable[[str], None]
AccessNamespaces = Sequence[str]  # namespaces, or WHOLE


async def ensure_manager_account(
    cluster_client: Cluster, system_namespace: str, namespaces: AccessNamespaces, report: ReportMessage
) -> None:
    """argo: create the account with full access to the cluster or to namespaces; existing objects are kept."""
    metadata = {"name": MANAGER_ACCOUNT, "namespace": system_namespace}
    account: Manifest = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    roles = [_build_role(namespace) for namespace in namespaces]
    for manifest in (account, *roles):  # dry run first: leave no account behind if its roles are rejected
        with suppress(Conflict):
            await cluster_client.create(manifest, dry_run=True)
    for manifest in (account, *roles, *(_build_binding(namespace, system_namespace) for namespace in namespaces)):
        await _ensure_object(cluster_client, manifest, report)


def _build_role(namespace: str) -> Manifest:
    rules = ALLOW_ALL_RULES if namespace else [*ALLOW_ALL_RULES, {"nonResourceURLs": ["*"], "verbs": ["*"]}]
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": _role_kind(namespace),
        "metadata": _build_metadata(MANAGER_ROLE, namespace),
        "rules": rules,
    }


def _build_binding(namespace: str, system_namespace: str) -> Manifest:
    return {
        "apiVersion": f"{RBAC_GROUP}/v1",
        "kind": f"{_role_kind(namespace)}Binding",
        "metadata": _build_metadata(MANAGER_BINDING, namespace),
        "roleRef": {"apiGroup": RBAC_GROUP, "kind": _role_kind(namespace), "name": MANAGER_ROLE},
        "subjects": [_build_subject(system_namespace)],
    }


def _role_kind(namespace: str) -> str:
    return "Role" if namespace else "ClusterRole"


def _build_metadata(name: str, namespace: str) -> dict[str, str]:
    return {"name": name, "namespace": namespace} if namespace else {"name": name}


def _build_subject(system_namespace: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": MANAGER_ACCOUNT, "namespace": system_namespace}


async def _ensure_object(cluster_client: Cluster, manifest: Manifest, report: ReportMessage) -> None:
    """argo: its messages; an existing object is used, and the rules of an existing role are updated."""
    key = key_of(manifest)
    suffix = _namespace_suffix(key)
    for _ in range(int(GARBAGE_COLLECTION_SECONDS / POLL_INTERVAL_SECONDS)):
        try:
            await cluster_client.create({**manifest, "metadata": {**manifest["metadata"], "labels": MANAGED_BY_LABELS}})
            report(f'{key.kind} "{key.name}" created{suffix}')
            return
        except Conflict:
            live = await cluster_client.get(key)
        if live is not None and not live["metadata"].get("ownerReferences"):
            break
        await asyncio.sleep(POLL_INTERVAL_SECONDS)  # a removal of this cluster is still being garbage collected
    if "rules" in manifest:
        await cluster_client.patch(key, {"rules": manifest["rules"]})
        report(f'{key.kind} "{key.name}" updated{suffix}')
    else:
        report(f'{key.kind} "{key.name}" already exists{suffix}')


# -- surplus bindings -------------------------------------------------------------------------------------------------


async def find_surplus_bindings(
    cluster_client: Cluster,
    system_namespace: str,
    namespaces: AccessNamespaces,
    previous_namespaces: AccessNamespaces,
    own_token_name: str,
    report: ReportMessage,
) -> list[ResourceKey]:
    """Bindings that give the account access outside `namespaces`. Raises UserError if argosy must not delete one.

    `own_token_name` is the name of the Secret with the token that is replaced.
    """
    bindings: list[ResourceKey] = []
    for namespace in sorted({*WHOLE_CLUSTER, *previous_namespaces} - set(namespaces)):
        key = ResourceKey(RBAC_GROUP, f"{_role_kind(namespace)}Binding", namespace, MANAGER_BINDING)
        try:
            binding = await cluster_client.get(key)
        except Forbidden as error:  # the user may manage RBAC only in some namespaces
            report(f"argosy: cannot check for surplus rights of {MANAGER_ACCOUNT} ({error.message})")
            continue
        if binding is None or not _binds_account(binding, system_namespace):
            continue
        reason = await _find_keep_reason(cluster_client, binding, system_namespace, own_token_name)
        if not reason:
            bindings.append(key)
        elif "" not in namespaces:
            raise UserError(
                f"{MANAGER_ACCOUNT} has more rights than requested, from {key.kind} {MANAGER_BINDING} "
                f"({reason}); if not needed, run on "
                f"that cluster: {render_delete_command(namespace, MANAGER_BINDING)}; otherwise use another "
                "--service-account"
            )
    return bindings


async def delete_bindings_and_roles(
    cluster_client: Cluster, bindings: Sequence[ResourceKey], report: ReportMessage
) -> None:
    """Delete the bindings and their roles."""
    for binding in bindings:
        role = ResourceKey(RBAC_GROUP, _role_kind(binding.namespace), binding.namespace, MANAGER_ROLE)
        for key in (binding, role):
            live = await cluster_client.get(key)
            if live is not None and is_created_by_argosy(live):
                if not await delete_unless_recreated(cluster_client, live):
                    raise UserError(
                        f"{key.kind} {key.name}{_namespace_suffix(key)} was recreated in the meantime; try again"
                    )
                report(f'{key.kind} "{key.name}" deleted{_namespace_suffix(key)}')


def _binds_account(binding: Manifest, system_namespace: str) -> bool:
    subject = _build_subject(system_namespace).items()
    return any(subject <= entry.items() for entry in binding.get("subjects") or ())


async def _find_keep_reason(
    cluster_client: Cluster, binding: Manifest, system_namespace: str, own_token_name: str
) -> str:
    if not is_created_by_argosy(binding):
        return "argosy did not create it"
    if len(binding.get("subjects") or ()) > 1:
        return "it has other subjects"
    other_token_names = await list_other_tokens(cluster_client, system_namespace, MANAGER_ACCOUNT, own_token_name)
    return f"the account has other tokens: {', '.join(other_token_names)}" if other_token_names else ""


async def list_leftover_namespaces(cluster_client: Cluster, system_namespace: str) -> list[str]:
    """Namespaces in which a binding of the account, created by argosy, still exists."""
    labels = ",".join(f"{name}={text}" for name, text in MANAGED_BY_LABELS.items())
    bindings = (await cluster_client.list(GroupKind(RBAC_GROUP, "RoleBinding"), labels=labels)).items
    account_bindings = [
        binding
        for binding in bindings
        if binding["metadata"]["name"] == MANAGER_BINDING and _binds_account(binding, system_namespace)
    ]
    return sorted(binding["metadata"]["namespace"] for binding in account_bindings)


async def list_other_tokens(cluster_client: Cluster, namespace: str, account: str, own_token_name: str) -> list[str]:
    secrets = (await cluster_client.list(SECRET, namespace=namespace, metadata_only=True)).items
    return sorted(
        secret["metadata"]["name"]
        for secret in secrets
        if (secret["metadata"].get("annotations") or {}).get(ACCOUNT_ANNOTATION) == account
        and secret["metadata"]["name"] != own_token_name
    )


def render_delete_command(namespace: str, *names: str) -> str:
    """kubectl command that deletes the binding and the role."""
    kinds = {MANAGER_BINDING: f"{_role_kind(namespace)}Binding".lower(), MANAGER_ROLE: _role_kind(namespace).lower()}
    namespace_flag = f"-n {namespace} " if namespace else ""
    return f"kubectl delete {namespace_flag}{' '.join(f'{kinds[name]}/{name}' for name in names)}"


async def delete_unless_recreated(cluster_client: Cluster, live: Manifest) -> bool:
    """Delete this object if it still exists. False if another object has its name now; that one is kept."""
    try:
        await cluster_client.delete(key_of(live), uid=live["metadata"].get("uid"))
    except Conflict:
        return False
    except ClusterError as error:
        if error.code != 404:
            raise
    return True


def render_recreated_message(key: ResourceKey) -> str:
    """Message for an object that was not deleted because it was recreated."""
    return f"{key.kind} {key.name}{_namespace_suffix(key)} was recreated in the meantime and is kept"


def is_created_by_argosy(manifest: Mapping[str, Any] | None) -> bool:
    """True if `argosy cluster add` created the object."""
    return manifest is not None and MANAGED_BY_LABELS.items() <= (manifest["metadata"].get("labels") or {}).items()


def _namespace_suffix(key: ResourceKey) -> str:
    return f' in namespace "{key.namespace}"' if key.namespace else ""
