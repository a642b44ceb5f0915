"""Parents of a live object: from ownerReferences, or inferred where Kubernetes sets none.

In: a live manifest. Out: references to its parents. Never: checks that they exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from argosy.gitops.application.sync_annotations import has_option
from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind, ResourceKey, split_api_version
from argosy.kube.well_known_kinds import OPERATOR_GROUP, SERVICE

_SERVICE_ACCOUNT_TOKEN_TYPE: Final = "kubernetes.io/service-account-token"
_SERVICE_ACCOUNT_NAME_ANNOTATION: Final = "kubernetes.io/service-account.name"
_SERVICE_ACCOUNT_UID_ANNOTATION: Final = "kubernetes.io/service-account.uid"
_OPERATOR_GROUP_ANNOTATION: Final = "olm.operatorGroup"
_CONTROLLER_REFERENCES_ONLY: Final = "ControllerReferencesOnly=true"


class ParentRef(NamedTuple):
    key: ResourceKey  # has the child's namespace, even if the parent is cluster-scoped
    uid: str = ""  # empty if only the name is known
    version: str = ""


def read_parents(manifest: Manifest) -> Iterator[ParentRef]:
    """Yield the parents that the manifest itself shows; for claims of a StatefulSet see `claim_name_prefixes`."""
    yield from _read_owner_references(manifest)
    if (inferred := infer_parent(manifest)) is not None:
        yield inferred


def is_child(manifest: Manifest) -> bool:
    return next(read_parents(manifest), None) is not None


def infer_parent(manifest: Manifest) -> ParentRef | None:
    """argo: the relations that Argo CD infers without an ownerReference."""
    group, _ = split_api_version(manifest["apiVersion"])
    infer = _PARENT_INFERENCES.get((group, manifest["kind"]))
    parent = infer(manifest) if infer else None
    return None if parent is None or has_option(manifest, _CONTROLLER_REFERENCES_ONLY) else parent


def claim_name_prefixes(stateful_set: Manifest) -> tuple[str, ...]:
    """Return the prefixes of the names of the claims that the StatefulSet creates."""
    if has_option(stateful_set, _CONTROLLER_REFERENCES_ONLY):
        return ()
    templates = (stateful_set.get("spec") or {}).get("volumeClaimTemplates") or ()
    name = stateful_set["metadata"]["name"]
    return tuple(f"{(template.get('metadata') or {}).get('name')}-{name}-" for template in templates)


def build_parent(kind: GroupKind, name: str, child: Manifest, *, uid: str = "", version: str = "v1") -> ParentRef:
    return ParentRef(ResourceKey(*kind, child["metadata"].get("namespace") or "", name), uid, version)


def _read_owner_references(manifest: Manifest) -> Iterator[ParentRef]:
    references = manifest["metadata"].get("ownerReferences")
    if not references:
        return
    controllers_only = has_option(manifest, _CONTROLLER_REFERENCES_ONLY)
    for reference in references:
        if not controllers_only or reference.get("controller"):
            group, version = split_api_version(reference["apiVersion"])
            kind = GroupKind(group, reference["kind"])
            yield build_parent(kind, reference["name"], manifest, uid=reference.get("uid") or "", version=version)


def _infer_service(endpoints: Manifest) -> ParentRef | None:
    if endpoints["metadata"].get("ownerReferences"):
        return None
    return build_parent(SERVICE, endpoints["metadata"]["name"], endpoints)


def _infer_service_account(secret: Manifest) -> ParentRef | None:
    if secret.get("type") != _SERVICE_ACCOUNT_TOKEN_TYPE:
        return None
    annotations = secret["metadata"].get("annotations") or {}
    name, uid = annotations.get(_SERVICE_ACCOUNT_NAME_ANNOTATION), annotations.get(_SERVICE_ACCOUNT_UID_ANNOTATION)
    return build_parent(GroupKind("", "ServiceAccount"), name, secret, uid=uid) if name and uid else None


def _infer_operator_group(operator: Manifest) -> ParentRef | None:
    name = (operator["metadata"].get("annotations") or {}).get(_OPERATOR_GROUP_ANNOTATION)
    return build_parent(OPERATOR_GROUP, name, operator) if name else None


_PARENT_INFERENCES: Final[Mapping[tuple[str, str], Callable[[Manifest], ParentRef | None]]] = {
    ("", "Endpoints"): _infer_service,
    ("", "Secret"): _infer_service_account,
    ("operators.coreos.com", "ClusterServiceVersion"): _infer_operator_group,
}
