"""Validates built-in kinds like a Kubernetes 1.32 API server.

In: a resource and a manifest that was defaulted and prepared. Out: field errors in the server's order and wording.
Never: raises for invalid input; looks at another object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.kube.schema import name_syntax
from argosy.kube.schema.field_error import Fault
from argosy.kube.schema.resources import Resource
from argosy.kube.schema.validation import (
    batch,
    cluster,
    core,
    metadata,
    network,
    pod,
    service,
    status_counts,
    storage,
    workloads,
)
from argosy.kube.schema.validation.preparation import (
    has_generation,
    patient,
    prepare_create,
    prepare_status_update,
    prepare_update,
)

__all__ = [
    "allows_unconditional_update",
    "has_generation",
    "on_create",
    "on_status_update",
    "on_update",
    "patient",
    "prepare_create",
    "prepare_status_update",
    "prepare_update",
]

Check = Callable[[Manifest], list[Fault]]
Compare = Callable[[Manifest, Manifest], list[Fault]]


@dataclass(frozen=True, slots=True)
class Rules:
    """Validation rules of one kind.

    `update_steps` are the kind's update strategy, in order: `m` compares the metadata, `c` validates it as
    on create, `s` validates other fields as on create, `u` compares other fields. k8s: so some errors are repeated.
    """

    steps: str = "mc"
    names: name_syntax.Grammar = name_syntax.dns_subdomain
    create: Check | None = None
    update: Compare | None = None
    status: Check | None = None


_ADMISSION, _RBAC, _NETWORK = "admissionregistration.k8s.io", "rbac.authorization.k8s.io", "networking.k8s.io"
_PLAIN = Rules()
_LABEL, _SEGMENT = name_syntax.dns_label, name_syntax.path_segment
_EVENT = Rules("", _SEGMENT, create=core.event)
_WEBHOOKS = Rules("ms", create=cluster.webhooks)

_RULES: dict[tuple[str, str], Rules] = {
    ("", "ConfigMap"): Rules("mcu", create=core.config_map, update=core.config_map_updated),
    ("", "Endpoints"): Rules("mcs", create=core.endpoints),
    ("", "Event"): _EVENT,
    ("", "LimitRange"): Rules("cs", create=core.limit_range),
    ("", "Namespace"): Rules("csm", _LABEL, create=core.namespace, status=core.namespace_status),
    ("", "Node"): Rules("csm", create=core.node),
    ("", "PersistentVolume"): Rules("cscu", create=storage.volume, update=storage.volume_updated),
    ("", "PersistentVolumeClaim"): Rules("csmcu", create=storage.claim, update=storage.claim_updated),
    ("", "Pod"): Rules("mcu", create=pod.pod_created, update=pod.pod_updated, status=pod.pod_status),
    ("", "ReplicationController"): Rules(
        "csms", create=workloads.replication_controller, status=status_counts.replica_set
    ),
    ("", "ResourceQuota"): Rules("mu", create=core.resource_quota, update=core.resource_quota_updated),
    ("", "Secret"): Rules("mcu", create=core.secret, update=core.secret_updated),
    ("", "Service"): Rules("mcu", name_syntax.dns_1035_label, create=service.service, update=service.service_updated),
    ("apiregistration.k8s.io", "APIService"): Rules(names=_SEGMENT),
    ("apps", "DaemonSet"): Rules(
        "csmsu", create=workloads.daemon_set, update=workloads.selector_changed, status=status_counts.daemon_set
    ),
    ("apps", "Deployment"): Rules(
        "msu", create=workloads.deployment, update=workloads.selector_changed, status=status_counts.deployment
    ),
    ("apps", "ReplicaSet"): Rules(
        "csmsu", create=workloads.replica_set, update=workloads.selector_changed, status=status_counts.replica_set
    ),
    ("apps", "StatefulSet"): Rules(
        "msu",
        _LABEL,
        create=workloads.stateful_set,
        update=workloads.stateful_set_changed,
        status=status_counts.stateful_set,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Rules("ms", create=cluster.autoscaler),
    ("batch", "CronJob"): Rules("mu", create=batch.cron_job_created, update=batch.cron_job_updated),
    ("batch", "Job"): Rules("csmu", create=batch.job_created, update=batch.job_updated),
    ("coordination.k8s.io", "Lease"): Rules("ms", create=cluster.lease),
    ("discovery.k8s.io", "EndpointSlice"): Rules(
        "csu", create=network.endpoint_slice, update=network.address_type_changed
    ),
    ("events.k8s.io", "Event"): _EVENT,
    ("policy", "PodDisruptionBudget"): Rules("s", _SEGMENT, create=cluster.disruption_budget),
    ("scheduling.k8s.io", "PriorityClass"): Rules(
        "mu", create=cluster.priority_class, update=cluster.priority_class_updated
    ),
    ("storage.k8s.io", "StorageClass"): Rules(
        "csmu", create=storage.storage_class, update=storage.storage_class_updated
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): _WEBHOOKS,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _WEBHOOKS,
    (_NETWORK, "Ingress"): Rules("mcu", create=network.ingress_created, update=lambda new, _: network.ingress(new)),
    (_NETWORK, "NetworkPolicy"): Rules("csms", create=network.network_policy),
    (_RBAC, "ClusterRole"): Rules("cscsm", _SEGMENT, create=cluster.cluster_role),
    (_RBAC, "ClusterRoleBinding"): Rules(
        "cscsmu", _SEGMENT, create=cluster.cluster_role_binding, update=cluster.role_ref_changed
    ),
    (_RBAC, "Role"): Rules("cscsm", _SEGMENT, create=cluster.role),
    (_RBAC, "RoleBinding"): Rules("cscsmu", _SEGMENT, create=cluster.role_binding, update=cluster.role_ref_changed),
}
_CONDITIONAL = {
    (_ADMISSION, "MutatingWebhookConfiguration"), (_ADMISSION, "ValidatingWebhookConfiguration"),
    (_ADMISSION, "ValidatingAdmissionPolicy"), (_ADMISSION, "ValidatingAdmissionPolicyBinding"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"), ("apiregistration.k8s.io", "APIService"),
    ("coordination.k8s.io", "Lease"), ("node.k8s.io", "RuntimeClass"), ("policy", "PodDisruptionBudget"),
    ("storage.k8s.io", "CSIDriver"), ("storage.k8s.io", "CSINode"), ("storage.k8s.io", "CSIStorageCapacity"),
    ("storage.k8s.io", "VolumeAttachment"),
}  # fmt: skip


def allows_unconditional_update(kind: GroupKind) -> bool:
    """True if an update without a resourceVersion is allowed; other kinds require it."""
    return kind not in _CONDITIONAL


def on_create(resource: Resource, manifest: Manifest) -> list[Fault]:
    rules = _RULES.get(resource.group_kind, _PLAIN)
    about = manifest.get("metadata") or {}
    faults = metadata.on_create(about, namespaced=resource.namespaced, grammar=rules.names)
    if rules.create is not None:
        faults.extend(rules.create(manifest))
    return faults


def on_update(resource: Resource, manifest: Manifest, old: Manifest) -> list[Fault]:
    rules = _RULES.get(resource.group_kind, _PLAIN)
    about = manifest.get("metadata") or {}
    faults = _shared(resource, about, old)
    for step in rules.steps:
        if step == "m":
            faults += _compared(resource, about, old, builtin=True)
        elif step == "c":
            faults += metadata.on_create(about, namespaced=resource.namespaced, grammar=rules.names)
        elif step == "s" and rules.create is not None:
            faults += rules.create(manifest)
        elif step == "u" and rules.update is not None:
            faults += rules.update(manifest, old)
    return faults


def on_status_update(resource: Resource, manifest: Manifest, old: Manifest) -> list[Fault]:
    rules = _RULES.get(resource.group_kind, _PLAIN)
    about = manifest.get("metadata") or {}
    faults = _shared(resource, about, old) + _compared(resource, about, old, builtin=True)
    if rules.status is not None:
        faults += rules.status(manifest)
    return faults


def _compared(resource: Resource, about: Manifest, old: Manifest, *, builtin: bool) -> list[Fault]:
    before, conditional = old.get("metadata") or {}, resource.group_kind in _CONDITIONAL
    return metadata.on_update(about, before, conditional=conditional, builtin=builtin)


def _shared(resource: Resource, about: Manifest, old: Manifest) -> list[Fault]:
    """Run the metadata checks that the server runs for every kind before the kind's own rules."""
    faults = metadata.on_create(about, namespaced=resource.namespaced, grammar=name_syntax.path_segment, custom=True)
    return faults + _compared(resource, about, old, builtin=False)
