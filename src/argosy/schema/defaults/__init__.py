"""The defaults of built-in kinds.

In: a manifest as a user wrote it. Out: the manifest as an API server of Kubernetes 1.32 stores it.
Never: addresses, uids, times, or anything else that is not known from the manifest alone.
"""

from __future__ import annotations

from collections.abc import Callable

from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind
from argosy.schema.defaults import control, core, pod, workloads
from argosy.schema.defaults.allocation import allocate_service, carry_allocated

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
    ("authentication.k8s.io", "TokenRequest"): control.token_request,
    ("batch", "CronJob"): workloads.cron_job,
    ("batch", "Job"): workloads.job,
    ("coordination.k8s.io", "Lease"): control.always("spec"),
    ("certificates.k8s.io", "CertificateSigningRequest"): control.always("spec", "status"),
    ("discovery.k8s.io", "EndpointSlice"): control.endpoint_slice,
    ("events.k8s.io", "Event"): core.event_of_events_group,
    ("networking.k8s.io", "Ingress"): control.ingress,
    ("networking.k8s.io", "IngressClass"): control.ingress_class,
    ("networking.k8s.io", "NetworkPolicy"): control.network_policy,
    ("policy", "PodDisruptionBudget"): control.disruption_budget,
    ("scheduling.k8s.io", "PriorityClass"): control.priority_class,
    ("apiregistration.k8s.io", "APIService"): control.api_service,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): control.custom_resource_definition,
    (_ADMISSION, "MutatingWebhookConfiguration"): control.mutating_webhooks,
    (_ADMISSION, "ValidatingAdmissionPolicy"): control.admission_policy,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): control.admission_policy_binding,
    (_ADMISSION, "ValidatingWebhookConfiguration"): control.validating_webhooks,
    (_RBAC, "ClusterRole"): control.role,
    (_RBAC, "ClusterRoleBinding"): control.role_binding,
    (_RBAC, "Role"): control.role,
    (_RBAC, "RoleBinding"): control.role_binding,
    (_STORAGE, "CSIDriver"): control.csi_driver,
    (_STORAGE, "CSINode"): control.csi_node,
    (_STORAGE, "CSIStorageCapacity"): control.csi_storage_capacity,
    (_STORAGE, "StorageClass"): control.storage_class,
    (_STORAGE, "VolumeAttachment"): control.volume_attachment,
}
_BY_VERSION: dict[tuple[str, str, str], Callable[[Manifest], Manifest]] = {
    ("autoscaling", "HorizontalPodAutoscaler", "v1"): workloads.autoscaler,
    ("autoscaling", "HorizontalPodAutoscaler", "v2"): workloads.autoscaler_v2,
}


def apply(kind: GroupKind, version: str, manifest: Manifest) -> Manifest:
    """A copy with every default filled in. Raises ManifestError for a quantity that cannot be read."""
    found = _BY_KIND.get(kind) or _BY_VERSION.get((kind.group, kind.kind, version))
    return found(manifest) if found else manifest
