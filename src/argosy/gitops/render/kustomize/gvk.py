"""Group, version and kind, and the order of kinds. In: apiVersion and kind. Out: a Gvk. Never: asks a cluster."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple


class Gvk(NamedTuple):
    """Group, version and kind; as a selector, an empty part means any."""

    group: str = ""
    version: str = ""
    kind: str = ""

    def is_selected_by(self, selector: Gvk) -> bool:
        return (
            (not selector.group or selector.group == self.group)
            and (not selector.version or selector.version == self.version)
            and (not selector.kind or selector.kind == self.kind)
        )

    @property
    def is_cluster_scoped(self) -> bool:
        """True for the cluster-scoped kinds of Kubernetes 1.21; every other kind counts as namespaced."""
        return (self.group, self.version, self.kind) in _CLUSTER_SCOPED

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


@lru_cache(4096)
def parse_gvk(api_version: str, kind: str) -> Gvk:
    group, slash, version = api_version.partition("/")
    return Gvk(group, version, kind) if slash else Gvk("", group, kind)


def _list_cluster_scoped_kinds() -> frozenset[tuple[str, str, str]]:
    versions = ("v1", "v1beta1")
    cluster_scoped = {("", "v1", kind) for kind in ("Namespace", "Node", "PersistentVolume", "ComponentStatus")}
    for group, kinds, group_versions in (
        ("rbac.authorization.k8s.io", "ClusterRole ClusterRoleBinding", versions),
        ("apiextensions.k8s.io", "CustomResourceDefinition", versions),
        ("apiregistration.k8s.io", "APIService", versions),
        ("storage.k8s.io", "StorageClass CSIDriver CSINode VolumeAttachment", versions),
        ("scheduling.k8s.io", "PriorityClass", versions),
        ("node.k8s.io", "RuntimeClass", versions),
        ("networking.k8s.io", "IngressClass", versions),
        ("policy", "PodSecurityPolicy", ("v1beta1",)),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration ValidatingWebhookConfiguration", versions),
        ("certificates.k8s.io", "CertificateSigningRequest", versions),
        ("flowcontrol.apiserver.k8s.io", "FlowSchema PriorityLevelConfiguration", ("v1beta1",)),
        ("internal.apiserver.k8s.io", "StorageVersion", ("v1alpha1",)),
    ):
        cluster_scoped |= {(group, version, kind) for version in group_versions for kind in kinds.split()}
    return frozenset(cluster_scoped)


_CLUSTER_SCOPED: Final = _list_cluster_scoped_kinds()

FIRST_KINDS: Final = [
    "Namespace",
    "ResourceQuota",
    "StorageClass",
    "CustomResourceDefinition",
    "ServiceAccount",
    "PodSecurityPolicy",
    "Role",
    "ClusterRole",
    "RoleBinding",
    "ClusterRoleBinding",
    "ConfigMap",
    "Secret",
    "Endpoints",
    "Service",
    "LimitRange",
    "PriorityClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "PodDisruptionBudget",
]
LAST_KINDS: Final = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
_KIND_ORDER: Final = {kind: index - len(FIRST_KINDS) for index, kind in enumerate(FIRST_KINDS)} | {
    kind: index + 1 for index, kind in enumerate(LAST_KINDS)
}


def build_order_key(gvk: Gvk) -> tuple[int, str]:
    """Sort key for the order in which Kubernetes objects depend on each other."""
    return (
        _KIND_ORDER.get(gvk.kind, 0),
        f"{gvk.group or '~G'}_{gvk.version or '~V'}_{gvk.kind or '~K'}",
    )
