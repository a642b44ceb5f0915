"""Applies the defaults of built-in kinds.

In: a manifest as a user wrote it. Out: the manifest as a Kubernetes 1.32 API server stores it.
Never: sets addresses, uids, times, or anything else that depends on more than the manifest.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.kube.schema.defaults import cluster, core, pod, workloads
from argosy.kube.schema.defaults.allocation import allocate_service, carry_allocated

__all__ = ["allocate_service", "apply", "carry_allocated"]

_ADMISSION, _STORAGE, _RBAC = "admissionregistration.k8s.io", "storage.k8s.io", "rbac.authorization.k8s.io"

_BY_KIND: dict[tuple[str, str], Callable[[Manifest], Manifest]] = {
    ("", "Endpoints"): core.endpoints,
    ("", "Event"): core.event,
    ("", "LimitRange"): core.limit_range,
    ("", "Namespace"): core.namespace,
    ("", "Node"): core.node,
    ("", "PersistentVolume"): core.persistent_volume,
    ("", "PersistentVolumeClaim"): core.claim,
    ("", "Pod"): pod.pod,
    ("", "PodTemplate"): pod.pod_template,
    ("", "ReplicationController"): workloads.replication_controller,
    ("", "ResourceQuota"): core.resource_quota,
    ("", "Secret"): core.secret,
    ("", "Service"): core.service,
    ("apps", "DaemonSet"): workloads.daemon_set,
    ("apps", "Deployment"): workloads.deployment,
    ("apps", "ReplicaSet"): workloads.replica_set,
    ("apps", "StatefulSet"): workloads.stateful_set,
    ("authentication.k8s.io", "TokenRequest"): cluster.token_request,
    ("batch", "CronJob"): workloads.cron_job,
    ("batch", "Job"): workloads.job,
    ("coordination.k8s.io", "Lease"): cluster.always("spec"),
    ("certificates.k8s.io", "CertificateSigningRequest"): cluster.always("spec", "status"),
    ("discovery.k8s.io", "EndpointSlice"): cluster.endpoint_slice,
    ("events.k8s.io", "Event"): core.event_of_events_group,
    ("networking.k8s.io", "Ingress"): cluster.ingress,
    ("networking.k8s.io", "IngressClass"): cluster.ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): cluster.network_policy,
    ("policy", "PodDisruptionBudget"): cluster.disruption_budget,
    ("scheduling.k8s.io", "PriorityClass"): cluster.priority_class,
    ("apiregistration.k8s.io", "APIService"): cluster.api_service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): cluster.custom_resource_definition,
    (_ADMISSION, "MutatingWebhookConfiguration"): cluster.mutating_webhooks,
    (_ADMISSION, "ValidatingAdmissionPolicy"): cluster.admission_policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): cluster.admission_policy_binding,
    (_ADMISSION, "ValidatingWebhookConfiguration"): cluster.validating_webhooks,
    (_RBAC, "ClusterRole"): cluster.role,
    (_RBAC, "ClusterRoleBinding"): cluster.role_binding,
    (_RBAC, "Role"): cluster.role,
    (_RBAC, "RoleBinding"): cluster.role_binding,
    (_STORAGE, "CSIDriver"): cluster.csi_driver,
    (_STORAGE, "CSINode"): cluster.csi_node,
    (_STORAGE, "CSIStorageCapacity"): cluster.csi_storage_capacity,
    (_STORAGE, "StorageClass"): cluster.storage_class,
    (_STORAGE, "VolumeAttachment"): cluster.volume_attachment,
}
_BY_VERSION: dict[tuple[str, str, str], Callable[[Manifest], Manifest]] = {
    ("autoscaling", "HorizontalPodAutoscaler", "v1"): workloads.autoscaler,
    ("autoscaling", "HorizontalPodAutoscaler", "v2"): workloads.autoscaler_v2,
}


def apply(kind: GroupKind, version: str, manifest: Manifest) -> Manifest:
    """Return a copy with all defaults. Raises ManifestError for an invalid quantity."""
    found = _BY_KIND.get(kind) or _BY_VERSION.get((kind.group, kind.kind, version))
    return found(manifest) if found else manifest
