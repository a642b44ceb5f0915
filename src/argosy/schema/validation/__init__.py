"""The rules of built-in kinds, as users of a Kubernetes 1.32 API server meet them.

In: a resource and a manifest that has its defaults and was prepared. Out: faults in the server's order and words.
Never: raises for bad input; looks at another manifest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from argosy.model.manifest import Manifest
from argosy.model.names import GroupKind
from argosy.schema import syntax
from argosy.schema.fault import Fault
from argosy.schema.kinds import Resource
from argosy.schema.validation import batch, control, core, metadata, network, pod, service, storage, workloads
from argosy.schema.validation.prepare import has_generation, prepare_create, prepare_status_update, prepare_update

__all__ = [
    "allows_unconditional_update",
    "has_generation",
    "on_create",
    "on_status_update",
    "on_update",
    "prepare_create",
    "prepare_status_update",
    "prepare_update",
]

Check = Callable[[Manifest], list[Fault]]
Compare = Callable[[Manifest, Manifest], list[Fault]]


@dataclass(frozen=True, slots=True)
class Rules:
    """What one kind asks. `again`: an update is checked like a new manifest too, its metadata included."""

    names: syntax.Grammar = syntax.dns_subdomain
    create: Check | None = None
    update: Compare | None = None
    status: Check | None = None
    again: bool = True


def _both(check: Check, *compare: Compare) -> Compare:
    def update(manifest: Manifest, old: Manifest) -> list[Fault]:
        faults = check(manifest)
        for each in compare:
            faults = faults + each(manifest, old)
        return faults

    return update


_ADMISSION, _RBAC = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
_PLAIN = Rules()
_LABEL, _SEGMENT = syntax.dns_label, syntax.path_segment
_EVENT = Rules(_SEGMENT, create=core.event, again=False)
_WEBHOOKS = Rules(create=control.webhooks, update=_both(control.webhooks), again=False)

_RULES: dict[tuple[str, str], Rules] = {
    ("", "ConfigMap"): Rules(create=core.config_map, update=core.config_map_updated),
    ("", "Endpoints"): Rules(create=core.endpoints, update=_both(core.endpoints)),
    ("", "Event"): _EVENT,
    ("", "LimitRange"): Rules(create=core.limit_range, update=_both(core.limit_range)),
    ("", "Namespace"): Rules(_LABEL, create=core.namespace, status=core.namespace_status, again=False),
    ("", "Node"): Rules(create=core.node, update=_both(core.node), again=False),
    ("", "PersistentVolume"): Rules(create=storage.volume, update=storage.volume_updated),
    ("", "PersistentVolumeClaim"): Rules(create=storage.claim, update=storage.claim_updated),
    ("", "Pod"): Rules(create=pod.pod_created, update=pod.pod_updated, status=pod.pod_status),
    ("", "ReplicationController"): Rules(
        create=workloads.replication_controller, update=_both(workloads.replication_controller), again=False
    ),
    ("", "ResourceQuota"): Rules(create=core.resource_quota, update=core.resource_quota_updated, again=False),
    ("", "Secret"): Rules(create=core.secret, update=core.secret_updated),
    ("", "Service"): Rules(syntax.dns_1035_label, create=service.service, update=service.service_updated),
    ("apps", "DaemonSet"): Rules(
        create=workloads.daemon_set, update=_both(workloads.daemon_set, workloads.selector_changed), again=False
    ),
    ("apps", "Deployment"): Rules(
        create=workloads.deployment, update=_both(workloads.deployment, workloads.selector_changed), again=False
    ),
    ("apps", "ReplicaSet"): Rules(
        create=workloads.replica_set, update=_both(workloads.replica_set, workloads.selector_changed), again=False
    ),
    ("apps", "StatefulSet"): Rules(
        _LABEL,
        create=workloads.stateful_set,
        update=_both(workloads.stateful_set, workloads.stateful_set_changed),
        again=False,
    ),
    ("autoscaling", "HorizontalPodAutoscaler"): Rules(
        create=control.autoscaler, update=_both(control.autoscaler), again=False
    ),
    ("batch", "CronJob"): Rules(create=batch.cron_job_created, update=batch.cron_job_updated, again=False),
    ("batch", "Job"): Rules(create=batch.job_created, update=batch.job_updated, again=False),
    ("coordination.k8s.io", "Lease"): Rules(create=control.lease, update=_both(control.lease), again=False),
    ("discovery.k8s.io", "EndpointSlice"): Rules(create=network.endpoint_slice, update=_both(network.endpoint_slice)),
    ("events.k8s.io", "Event"): _EVENT,
    ("networking.k8s.io", "Ingress"): Rules(create=network.ingress_created, update=_both(network.ingress)),
    ("networking.k8s.io", "NetworkPolicy"): Rules(
        create=network.network_policy, update=_both(network.network_policy), again=False
    ),
    ("policy", "PodDisruptionBudget"): Rules(
        create=control.disruption_budget, update=_both(control.disruption_budget), again=False
    ),
    ("scheduling.k8s.io", "PriorityClass"): Rules(
        create=control.priority_class, update=control.priority_class_updated, again=False
    ),
    ("storage.k8s.io", "StorageClass"): Rules(
        create=storage.storage_class, update=storage.storage_class_updated, again=False
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): _WEBHOOKS,
    (_ADMISSION, "ValidatingWebhookConfiguration"): _WEBHOOKS,
    (_RBAC, "ClusterRole"): Rules(_SEGMENT, create=control.cluster_role, update=_both(control.cluster_role)),
    (_RBAC, "ClusterRoleBinding"): Rules(
        _SEGMENT,
        create=control.cluster_role_binding,
        update=_both(control.cluster_role_binding, control.role_ref_changed),
    ),
    (_RBAC, "Role"): Rules(_SEGMENT, create=control.role, update=_both(control.role)),
    (_RBAC, "RoleBinding"): Rules(
        _SEGMENT, create=control.role_binding, update=_both(control.role_binding, control.role_ref_changed)
    ),
    ("apiregistration.k8s.io", "APIService"): Rules(_SEGMENT),
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
    """Whether a write without a resourceVersion is taken for the newest; others must say what they saw."""
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
    conditional = resource.group_kind in _CONDITIONAL
    faults = metadata.twice(about, old.get("metadata") or {}, conditional=conditional)
    if rules.again:
        faults.extend(metadata.on_create(about, namespaced=resource.namespaced, grammar=rules.names))
    if rules.update is not None:
        faults.extend(rules.update(manifest, old))
    return faults


def on_status_update(resource: Resource, manifest: Manifest, old: Manifest) -> list[Fault]:
    rules = _RULES.get(resource.group_kind, _PLAIN)
    about = manifest.get("metadata") or {}
    conditional = resource.group_kind in _CONDITIONAL
    faults = metadata.twice(about, old.get("metadata") or {}, conditional=conditional)
    if rules.status is not None:
        faults.extend(rules.status(manifest))
    return faults
