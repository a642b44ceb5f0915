"""Validates built-in kinds like a Kubernetes 1.32 API server.

In: a resource and a manifest that was defaulted and prepared. Out: field errors in the server's order and wording.
Never: raises for invalid input; looks at another object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema import name_label_address_syntax
from argosy.kube.schema.api_resource import ApiResource
from argosy.kube.schema.field_error import FieldError
from argosy.kube.schema.validation import (
    batch,
    ingress_and_network_policy,
    metadata,
    namespace_secret_quota_node,
    pod,
    rbac_autoscaling_webhooks,
    service,
    status_replica_counts,
    storage,
    workloads,
)
from argosy.kube.schema.validation.create_update_strategy import (
    add_default_tolerations,
    has_generation,
    prepare_create,
    prepare_status_update,
    prepare_update,
)

__all__ = [
    "add_default_tolerations",
    "allows_unconditional_update",
    "has_generation",
    "prepare_create",
    "prepare_status_update",
    "prepare_update",
    "validate_create",
    "validate_status_update",
    "validate_update",
]

CreateCheck = Callable[[Manifest], list[FieldError]]
UpdateCheck = Callable[[Manifest, Manifest], list[FieldError]]


@dataclass(frozen=True, slots=True)
class KindRules:
    """Validation rules of one kind.

    `update_steps` are the kind's update strategy, in order: `m` compares the metadata, `c` validates it as
    on create, `s` validates other fields as on create, `u` compares other fields. k8s: so some errors are repeated.
    """

    update_steps: str = "mc"
    name_check: name_label_address_syntax.SyntaxCheck = name_label_address_syntax.check_dns_subdomain
    create_check: CreateCheck | None = None
    update_check: UpdateCheck | None = None
    status_check: CreateCheck | None = None


_ADMISSION, _RBAC, _NETWORK = "admissionregistration.k8s.io", "rbac.authorization.k8s.io", "networking.k8s.io"
_DEFAULT_RULES = KindRules()
_LABEL_NAME, _PATH_SEGMENT_NAME = (
    name_label_address_syntax.check_dns_label,
    name_label_address_syntax.check_path_segment,
)
_EVENT_RULES = KindRules("", _PATH_SEGMENT_NAME, create_check=namespace_secret_quota_node.validate_event)
_WEBHOOK_RULES = KindRules("ms", create_check=rbac_autoscaling_webhooks.validate_webhooks)

_RULES_BY_KIND: dict[tuple[str, str], KindRules] = {
    ("", "ConfigMap"): KindRules(
        "mcu",
        create_check=namespace_secret_quota_node.validate_config_map,
        update_check=namespace_secret_quota_node.validate_config_map_update,
    ),
    ("", "Endpoints"): KindRules("mcs", create_check=namespace_secret_quota_node.validate_endpoints),
    ("", "Event"): _EVENT_RULES,
    ("", "LimitRange"): KindRules("cs", create_check=namespace_secret_quota_node.validate_limit_range),
    ("", "Namespace"): KindRules(
        "csm",
        _LABEL_NAME,
        create_check=namespace_secret_quota_node.validate_namespace,
        status_check=namespace_secret_quota_node.validate_namespace_status,
    ),
    ("", "Node"): KindRules("csm", create_check=namespace_secret_quota_node.validate_node),
    ("", "PersistentVolume"): KindRules(
        "cscu", create_check=storage.validate_persistent_volume, update_check=storage.validate_persistent_volume_update
    ),
    ("", "PersistentVolumeClaim"): KindRules(
        "csmcu", create_check=storage.validate_claim, update_check=storage.validate_claim_update
    ),
    ("", "Pod"): KindRules(
        "mcu",
        create_check=pod.validate_pod_create,
        update_check=pod.validate_pod_update,
        status_check=pod.validate_pod_status,
    ),
    ("", "ReplicationController"): KindRules(
        "csms",
        create_check=workloads.validate_replication_controller,
        status_check=status_replica_counts.validate_replica_set_status,
    ),
    ("", "ResourceQuota"): KindRules(
        "mu",
        create_check=namespace_secret_quota_node.validate_resource_quota,
        update_check=namespace_secret_quota_node.validate_resource_quota_update,
    ),
    ("", "Secret"): KindRules(
        "mcu",
        create_check=namespace_secret_quota_node.validate_secret,
        update_check=namespace_secret_quota_node.validate_secret_update,
    ),
    ("", "Service"): KindRules(
        "mcu",
        name_label_address_syntax.check_dns_1035_label,
        create_check=service.validate_service,
        update_check=service.validate_service_update,
    ),
    ("apiregistration.k8s.io", "APIService"): KindRules(name_check=_PATH_SEGMENT_NAME),
    ("apps", "DaemonSet"): KindRules(
        "csmsu",
        create_check=workloads.validate_daemon_set,
        update_check=workloads.validate_selector_update,
        status_check=status_replica_counts.validate_daemon_set_status,
    ),
    ("apps", "Deployment"): KindRules(
        "msu",
        create_check=workloads.validate_deployment,
        update_check=workloads.validate_selector_update,
        status_check=status_replica_counts.validate_deployment_status,
    ),
    ("apps", "ReplicaSet"): KindRules(
        "csmsu",
        create_check=workloads.validate_replica_set,
        update_check=workloads.validate_selector_update,
        status_check=status_replica_counts.validate_replica_set_status,
    ),
    ("apps", "StatefulSet"): KindRules(
        "msu",
        _LABEL_NAME,
        create_check=workloads.validate_stateful_set,
        update_check=workloads.validate_stateful_set_update,
        status_check=status_replica_counts.validate_stateful_set_status,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): KindRules(
        "ms", create_check=rbac_autoscaling_webhooks.validate_autoscaler
    ),
    ("batch", "CronJob"): KindRules(
        "mu", create_check=batch.validate_cron_job_create, update_check=batch.validate_cron_job_update
    ),
    ("batch", "Job"): KindRules("csmu", create_check=batch.validate_job_create, update_check=batch.validate_job_update),
    ("coordination.k8s.io", "Lease"): KindRules("ms", create_check=rbac_autoscaling_webhooks.validate_lease),
    ("discovery.k8s.io", "EndpointSlice"): KindRules(
        "csu",
        create_check=ingress_and_network_policy.validate_endpoint_slice,
        update_check=ingress_and_network_policy.validate_address_type_update,
    ),
    ("events.k8s.io", "Event"): _EVENT_RULES,
    ("policy", "PodDisruptionBudget"): KindRules(
        "s", _PATH_SEGMENT_NAME, create_check=rbac_autoscaling_webhooks.validate_disruption_budget
    ),
    ("scheduling.k8s.io", "PriorityClass"): KindRules(
        "mu",
        create_check=rbac_autoscaling_webhooks.validate_priority_class,
        update_check=rbac_autoscaling_webhooks.validate_priority_class_update,
    ),
    ("storage.k8s.io", "StorageClass"): KindRules(
        "csmu", create_check=storage.validate_storage_class, update_check=storage.validate_storage_class_update
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): _WEBHOOK_RULES,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _WEBHOOK_RULES,
    (_NETWORK, "Ingress"): KindRules(
        "mcu",
        create_check=ingress_and_network_policy.validate_ingress_create,
        update_check=lambda new, _: ingress_and_network_policy.validate_ingress(new),
    ),
    (_NETWORK, "NetworkPolicy"): KindRules("csms", create_check=ingress_and_network_policy.validate_network_policy),
    (_RBAC, "ClusterRole"): KindRules(
        "cscsm", _PATH_SEGMENT_NAME, create_check=rbac_autoscaling_webhooks.validate_cluster_role
    ),
    (_RBAC, "ClusterRoleBinding"): KindRules(
        "cscsmu",
        _PATH_SEGMENT_NAME,
        create_check=rbac_autoscaling_webhooks.validate_cluster_role_binding,
        update_check=rbac_autoscaling_webhooks.validate_role_ref_update,
    ),
    (_RBAC, "Role"): KindRules("cscsm", _PATH_SEGMENT_NAME, create_check=rbac_autoscaling_webhooks.validate_role),
    (_RBAC, "RoleBinding"): KindRules(
        "cscsmu",
        _PATH_SEGMENT_NAME,
        create_check=rbac_autoscaling_webhooks.validate_role_binding,
        update_check=rbac_autoscaling_webhooks.validate_role_ref_update,
    ),
}
_REQUIRE_RESOURCE_VERSION = {
    (_ADMISSION, "MutatingWebhookConfiguration"), (_ADMISSION, "ValidatingWebhookConfiguration"),
    (_ADMISSION, "ValidatingAdmissionPolicy"), (_ADMISSION, "ValidatingAdmissionPolicyBinding"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"), ("apiregistration.k8s.io", "APIService"),
    ("coordination.k8s.io", "Lease"), ("node.k8s.io", "RuntimeClass"), ("policy", "PodDisruptionBudget"),
    ("storage.k8s.io", "CSIDriver"), ("storage.k8s.io", "CSINode"), ("storage.k8s.io", "CSIStorageCapacity"),
    ("storage.k8s.io", "VolumeAttachment"),
}  # fmt: skip


def allows_unconditional_update(kind: GroupKind) -> bool:
    """True if an update without a resourceVersion is allowed; other kinds require it."""
    return kind not in _REQUIRE_RESOURCE_VERSION


def validate_create(resource: ApiResource, manifest: Manifest) -> list[FieldError]:
    rules = _RULES_BY_KIND.get(resource.group_kind, _DEFAULT_RULES)
    object_metadata = manifest.get("metadata") or {}
    errors = metadata.validate_metadata_create(
        object_metadata, namespaced=resource.namespaced, name_check=rules.name_check
    )
    if rules.create_check is not None:
        errors.extend(rules.create_check(manifest))
    return errors


def validate_update(resource: ApiResource, manifest: Manifest, old: Manifest) -> list[FieldError]:
    rules = _RULES_BY_KIND.get(resource.group_kind, _DEFAULT_RULES)
    object_metadata = manifest.get("metadata") or {}
    errors = _validate_common_metadata(resource, object_metadata, old)
    for step in rules.update_steps:
        if step == "m":
            errors += _compare_metadata(resource, object_metadata, old, is_builtin_check=True)
        elif step == "c":
            errors += metadata.validate_metadata_create(
                object_metadata, namespaced=resource.namespaced, name_check=rules.name_check
            )
        elif step == "s" and rules.create_check is not None:
            errors += rules.create_check(manifest)
        elif step == "u" and rules.update_check is not None:
            errors += rules.update_check(manifest, old)
    return errors


def validate_status_update(resource: ApiResource, manifest: Manifest, old: Manifest) -> list[FieldError]:
    rules = _RULES_BY_KIND.get(resource.group_kind, _DEFAULT_RULES)
    object_metadata = manifest.get("metadata") or {}
    errors = _validate_common_metadata(resource, object_metadata, old) + _compare_metadata(
        resource, object_metadata, old, is_builtin_check=True
    )
    if rules.status_check is not None:
        errors += rules.status_check(manifest)
    return errors


def _compare_metadata(
    resource: ApiResource, object_metadata: Manifest, old: Manifest, *, is_builtin_check: bool
) -> list[FieldError]:
    old_metadata, needs_resource_version = old.get("metadata") or {}, resource.group_kind in _REQUIRE_RESOURCE_VERSION
    return metadata.validate_metadata_update(
        object_metadata, old_metadata, needs_resource_version=needs_resource_version, is_builtin=is_builtin_check
    )


def _validate_common_metadata(resource: ApiResource, object_metadata: Manifest, old: Manifest) -> list[FieldError]:
    """Run the metadata checks that the server runs for every kind before the kind's own rules."""
    errors = metadata.validate_metadata_create(
        object_metadata,
        namespaced=resource.namespaced,
        name_check=name_label_address_syntax.check_path_segment,
        is_custom=True,
    )
    return errors + _compare_metadata(resource, object_metadata, old, is_builtin_check=False)
