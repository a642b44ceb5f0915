"""Parents of a live object: from ownerReferences, or inferred where Kubernetes sets none.

In: a live manifest. Out: references to its parents. Never: checks that they exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from argosy.gitops.application.hooks import has_option
from argosy.kube.names import GroupKind, ResourceKey, split_api_version
from argosy.kube.objects import Manifest

CLAIM: Final = GroupKind("", "PersistentVolumeClaim")
STATEFUL_SET: Final = GroupKind("apps", "StatefulSet")
_ACCOUNT_TOKEN: Final = "kubernetes.io/service-account-token"  # noqa: S105 - a type's name
_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"
_OPERATOR_GROUP: Final = "olm.operatorGroup"
_CONTROLLERS_ONLY: Final = "ControllerReferencesOnly=true"


class Parent(NamedTuple):
    key: ResourceKey  # has the child's namespace, even if the parent is cluster-scoped
    uid: str = ""  # empty if only the name is known
    version: str = ""


def parents(manifest: Manifest) -> Iterator[Parent]:
    """Yield the parents that the manifest itself shows; for claims of a StatefulSet see `claim_name_prefixes`."""
    yield from _said(manifest)
    if (unsaid := unsaid_parent(manifest)) is not None:
        yield unsaid


def is_child(manifest: Manifest) -> bool:
    return next(parents(manifest), None) is not None


def unsaid_parent(manifest: Manifest) -> Parent | None:
    """argo: the relations that Argo CD infers without an ownerReference."""
    group, _ = split_api_version(manifest["apiVersion"])
    find = _UNSAID.get((group, manifest["kind"]))
    found = find(manifest) if find else None
    return None if found is None or has_option(manifest, _CONTROLLERS_ONLY) else found


def claims(stateful_set: Manifest) -> tuple[str, ...]:
    """Return the prefixes of the names of the claims that the StatefulSet creates."""
    if has_option(stateful_set, _CONTROLLERS_ONLY):
        return ()
    templates = (stateful_set.get("spec") or {}).get("volumeClaimTemplates") or ()
    name = stateful_set["metadata"]["name"]
    return tuple(f"{(each.get('metadata') or {}).get('name')}-{name}-" for each in templates)


def parent_of(kind: GroupKind, name: str, child: Manifest, *, uid: str = "", version: str = "v1") -> Parent:
    return Parent(ResourceKey(*kind, child["metadata"].get("namespace") or "", name), uid, version)


def _said(manifest: Manifest) -> Iterator[Parent]:
    references = manifest["metadata"].get("ownerReferences")
    if not references:
        return
    controllers_only = has_option(manifest, _CONTROLLERS_ONLY)
    for each in references:
        if not controllers_only or each.get("controller"):
            group, version = split_api_version(each["apiVersion"])
            kind = GroupKind(group, each["kind"])
            yield parent_of(kind, each["name"], manifest, uid=each.get("uid") or "", version=version)


def _service(endpoints: Manifest) -> Parent | None:
    if endpoints["metadata"].get("ownerReferences"):
        return None
    return parent_of(GroupKind("", "Service"), endpoints["metadata"]["name"], endpoints)


def _account(secret: Manifest) -> Parent | None:
    if secret.get("type") != _ACCOUNT_TOKEN:
        return None
    annotations = secret["metadata"].get("annotations") or {}
    name, uid = annotations.get(_ACCOUNT_NAME), annotations.get(_ACCOUNT_UID)
    return parent_of(GroupKind("", "ServiceAccount"), name, secret, uid=uid) if name and uid else None


def _operator_group(operator: Manifest) -> Parent | None:
    name = (operator["metadata"].get("annotations") or {}).get(_OPERATOR_GROUP)
    return parent_of(GroupKind("operators.coreos.com", "OperatorGroup"), name, operator) if name else None


_UNSAID: Final[Mapping[tuple[str, str], Callable[[Manifest], Parent | None]]] = {
    ("", "Endpoints"): _service,
    ("", "Secret"): _account,
    ("operators.coreos.com", "ClusterServiceVersion"): _operator_group,
}
