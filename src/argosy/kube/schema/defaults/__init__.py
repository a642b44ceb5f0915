"""Applies the defaults of built-in kinds.

In: a manifest as a user wrote it. Out: the manifest as a Kubernetes 1.32 API server stores it.
Never: sets addresses, uids, times, or anything else that depends on more than the manifest.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.defaults import core, network_storage_rbac, pod, workloads
from argosy.kube.schema.defaults.service_ip_and_node_ports import allocate_service, keep_allocated_fields

__all__ = ["allocate_service", "apply_defaults", "keep_allocated_fields"]

_ADMISSION, _STORAGE, _RBAC = "admissionregistration.k8s.io", "storage.k8s.io", "rbac.authorization.k8s.io"

_DEFAULTS_BY_KIND: dict[tuple[str, str], Callable[[Manifest], Manifest]] = {
    ("", "Endpoints"): core.default_endpoints,
    ("", "Event"): core.default_event,
    ("", "LimitRange"): core.default_limit_range,
    ("", "Namespace"): core.default_namespace,
    ("", "Node"): core.default_node,
    ("", "PersistentVolume"): core.default_persistent_volume,
    ("", "PersistentVolumeClaim"): core.default_claim,
    ("", "Pod"): pod.default_pod,
    ("", "PodTemplate"): pod.default_pod_template_object,
    ("", "ReplicationController"): workloads.default_replication_controller,
    ("", "ResourceQuota"): core.default_resource_quota,
    ("", "Secret"): core.default_secret,
    ("", "Service"): core.default_service,
    ("apps", "DaemonSet"): workloads.default_daemon_set,
    ("apps", "Deployment"): workloads.default_deployment,
    ("apps", "ReplicaSet"): workloads.default_replica_set,
    ("apps", "StatefulSet"): workloads.default_stateful_set,
    ("authentication.k8s.io", "TokenRequest"): network_storage_rbac.default_token_request,
    ("batch", "CronJob"): workloads.default_cron_job,
    ("batch", "Job"): workloads.default_job,
    ("coordination.k8s.io", "Lease"): network_storage_rbac.build_struct_defaulter("spec"),
    ("certificates.k8s.io", "CertificateSigningRequest"): network_storage_rbac.build_struct_defaulter("spec", "status"),
    ("discovery.k8s.io", "EndpointSlice"): network_storage_rbac.default_endpoint_slice,
    ("events.k8s.io", "Event"): core.default_events_v1_event,
    ("networking.k8s.io", "Ingress"): network_storage_rbac.default_ingress,
    ("networking.k8s.io", "IngressClass"): network_storage_rbac.default_ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): network_storage_rbac.default_network_policy,
    ("policy", "PodDisruptionBudget"): network_storage_rbac.default_disruption_budget,
    ("scheduling.k8s.io", "PriorityClass"): network_storage_rbac.default_priority_class,
    ("apiregistration.k8s.io", "APIService"): network_storage_rbac.default_api_service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): network_storage_rbac.default_custom_resource_definition,
    (_ADMISSION, "MutatingWebhookConfiguration"): network_storage_rbac.default_mutating_webhooks,
    (_ADMISSION, "ValidatingAdmissionPolicy"): network_storage_rbac.default_admission_policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): network_storage_rbac.default_admission_policy_binding,
    (_ADMISSION, "ValidatingWebhookConfiguration"): network_storage_rbac.default_validating_webhooks,
    (_RBAC, "ClusterRole"): network_storage_rbac.default_role,
    (_RBAC, "ClusterRoleBinding"): network_storage_rbac.default_role_binding,
    (_RBAC, "Role"): network_storage_rbac.default_role,
    (_RBAC, "RoleBinding"): network_storage_rbac.default_role_binding,
    (_STORAGE, "CSIDriver"): network_storage_rbac.default_csi_driver,
    (_STORAGE, "CSINode"): network_storage_rbac.default_csi_node,
    (_STORAGE, "CSIStorageCapacity"): network_storage_rbac.default_csi_storage_capacity,
    (_STORAGE, "StorageClass"): network_storage_rbac.default_storage_class,
    (_STORAGE, "VolumeAttachment"): network_storage_rbac.default_volume_attachment,
}
_DEFAULTS_BY_VERSION: dict[tuple[str, str, str], Callable[[Manifest], Manifest]] = {
    ("autoscaling", "HorizontalPodAutoscaler", "v1"): workloads.default_autoscaler_v1,
    ("autoscaling", "HorizontalPodAutoscaler", "v2"): workloads.default_autoscaler_v2,
}


def apply_defaults(kind: GroupKind, version: str, manifest: Manifest) -> Manifest:
    """Return a copy with all defaults. Raises ManifestError for an invalid quantity."""
    apply_kind_defaults = _DEFAULTS_BY_KIND.get(kind) or _DEFAULTS_BY_VERSION.get((kind.group, kind.kind, version))
    return apply_kind_defaults(manifest) if apply_kind_defaults else manifest
