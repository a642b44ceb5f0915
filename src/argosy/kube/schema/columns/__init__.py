"""Printer columns of built-in kinds, for `kubectl get`.

In: a kind, then a manifest and the time. Out: column definitions, and the cells of one row.
Never: handles custom kinds; their CRDs declare the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest
from argosy.kube.schema.columns import cluster, core, pods, workloads
from argosy.kube.schema.columns.cells import human_duration
from argosy.kube.schema.columns.pods import row_conditions

__all__ = ["DEFAULT", "Columns", "human_duration", "of", "row_conditions"]

Cells = Callable[[Manifest, datetime], list[Any]]

_TYPES = {"int": "integer", "bool": "boolean", "date": "date"}
_ABOUT = {
    "Name": "Name of the object, unique in its namespace.",
    "Age": "Time since the object was created.",
    "Created At": "Time at which the object was created, in UTC.",
    "Containers": "Names of the containers in the template.",
    "Images": "Images of the containers in the template.",
    "Selector": "Which pods belong to the object.",
}


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of one kind. `definitions` are those of a Table; columns with priority > 0 need `-o wide`."""

    definitions: tuple[dict[str, Any], ...]
    cells: Cells


def _table(cells: Cells, words: str) -> Columns:
    """Read `Name, Ready, Desired:int, +IP`: a type other than string follows a colon, a plus marks wide output."""
    definitions = []
    for word in words.split(", "):
        name, _, kind = word.removeprefix("+").partition(":")
        definitions.append(
            {
                "name": name,
                "type": _TYPES.get(kind, "string"),
                "format": "name" if name in ("Name", "Attacher") else "",
                "description": _ABOUT.get(name, f"{name} of the object."),
                "priority": int(word.startswith("+")),
            }
        )
    return Columns(tuple(definitions), cells)


def _default_cells(manifest: Manifest, now: datetime) -> list[Any]:
    return [manifest["metadata"].get("name") or "", manifest["metadata"].get("creationTimestamp")]


DEFAULT = _table(_default_cells, "Name, Created At:date")

_PODS = "+Containers, +Images, +Selector"
_BINDING = "Name, Role, Age, +Users, +Groups, +ServiceAccounts"
_EVENT = "Last Seen, Type, Reason, Object, +Subobject, +Source, Message, +First Seen, +Count, +Name"
_POD = "Name, Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, +Readiness Gates"
_VOLUME = (
    "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, "
    "+VolumeMode"
)
_NODE = "Name, Status, Roles, Age, Version, +Internal-IP, +External-IP, +OS-Image, +Kernel-Version, +Container-Runtime"
_CLAIM = "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, +VolumeMode"
_CSI_DRIVER = (
    "Name, AttachRequired:bool, PodInfoOnMount:bool, StorageCapacity:bool, TokenRequests, RequiresRepublish:bool, "
    "Modes, Age"
)
_HPA = "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age"
_DAEMON_SET = "Name, Desired:int, Current:int, Ready:int, Up-to-date:int, Available:int, Node Selector, Age, "
_ADMISSION, _RBAC = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
_NETWORK, _STORAGE, _FLOW = "networking.k8s.io", "storage.k8s.io", "flowcontrol.apiserver.k8s.io"

_WORDS: dict[tuple[str, str], tuple[Cells, str]] = {
    ("", "ComponentStatus"): (core.component_status, "Name, Status, Message, Error"),
    ("", "ConfigMap"): (core.config_map, "Name, Data, Age"),
    ("", "Endpoints"): (core.endpoints, "Name, Endpoints, Age"),
    ("", "Event"): (core.event, _EVENT),
    ("", "Namespace"): (core.namespace, "Name, Status, Age"),
    ("", "Node"): (core.node, _NODE),
    ("", "PersistentVolume"): (core.volume, _VOLUME),
    ("", "PersistentVolumeClaim"): (core.claim, _CLAIM),
    ("", "Pod"): (pods.pod, _POD),
    ("", "PodTemplate"): (workloads.pod_template, "Name, Containers, Images, Pod Labels"),
    ("", "ReplicationController"): (
        workloads.replication_controller, f"Name, Desired:int, Current:int, Ready:int, Age, {_PODS}",
    ),
    ("", "ResourceQuota"): (core.resource_quota, "Name, Age, Request, Limit"),
    ("", "Secret"): (core.secret, "Name, Type, Data, Age"),
    ("", "Service"): (core.service, "Name, Type, Cluster-IP, External-IP, Port(s), Age, +Selector"),
    ("", "ServiceAccount"): (core.service_account, "Name, Secrets, Age"),
    ("apiregistration.k8s.io", "APIService"): (cluster.api_service, "Name, Service, Available, Age"),
    ("apps", "ControllerRevision"): (workloads.controller_revision, "Name, Controller, Revision, Age"),
    ("apps", "DaemonSet"): (workloads.daemon_set, _DAEMON_SET + _PODS),
    ("apps", "Deployment"): (workloads.deployment, f"Name, Ready, Up-to-date, Available, Age, {_PODS}"),
    ("apps", "ReplicaSet"): (workloads.replica_set, f"Name, Desired:int, Current:int, Ready:int, Age, {_PODS}"),
    ("apps", "StatefulSet"): (workloads.stateful_set, "Name, Ready, Age, +Containers, +Images"),
    ("autoscaling", "HorizontalPodAutoscaler"): (workloads.autoscaler, _HPA),
    ("autoscaling", "Scale"): (workloads.scale, "Name, Desired:int, Available:int, Age"),
    ("batch", "CronJob"): (
        workloads.cron_job, f"Name, Schedule, Timezone, Suspend:bool, Active:int, Last Schedule, Age, {_PODS}",
    ),
    ("batch", "Job"): (workloads.job, f"Name, Status, Completions, Duration, Age, {_PODS}"),
    ("certificates.k8s.io", "CertificateSigningRequest"): (
        cluster.certificate_request, "Name, Age, SignerName, Requestor, RequestedDuration, Condition",
    ),
    ("coordination.k8s.io", "Lease"): (cluster.lease, "Name, Holder, Age"),
    ("discovery.k8s.io", "EndpointSlice"): (cluster.endpoint_slice, "Name, AddressType, Ports, Endpoints, Age"),
    ("events.k8s.io", "Event"): (core.event, _EVENT),
    ("node.k8s.io", "RuntimeClass"): (cluster.runtime_class, "Name, Handler, Age"),
    ("policy", "PodDisruptionBudget"): (
        cluster.disruption_budget, "Name, Min Available, Max Unavailable, Allowed Disruptions:int, Age",
    ),
    ("scheduling.k8s.io", "PriorityClass"): (
        cluster.priority_class, "Name, Value:int, Global-Default:bool, Age, PreemptionPolicy",
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): (cluster.webhooks, "Name, Webhooks:int, Age"),
    (_ADMISSION, "ValidatingAdmissionPolicy"): (cluster.admission_policy, "Name, Validations:int, ParamKind, Age"),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): (
        cluster.admission_policy_binding, "Name, PolicyName, ParamRef, Age",
    ),
    (_ADMISSION, "ValidatingWebhookConfiguration"): (cluster.webhooks, "Name, Webhooks:int, Age"),
    (_FLOW, "FlowSchema"): (
        cluster.flow_schema, "Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL",
    ),
    (_FLOW, "PriorityLevelConfiguration"): (
        cluster.priority_level, "Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age",
    ),
    (_NETWORK, "Ingress"): (cluster.ingress, "Name, Class, Hosts, Address, Ports, Age"),
    (_NETWORK, "IngressClass"): (cluster.ingress_class, "Name, Controller, Parameters, Age"),
    (_NETWORK, "NetworkPolicy"): (cluster.network_policy, "Name, Pod-Selector, Age"),
    (_RBAC, "ClusterRoleBinding"): (cluster.role_binding, _BINDING),
    (_RBAC, "RoleBinding"): (cluster.role_binding, _BINDING),
    (_STORAGE, "CSIDriver"): (cluster.csi_driver, _CSI_DRIVER),
    (_STORAGE, "CSINode"): (cluster.csi_node, "Name, Drivers:int, Age"),
    (_STORAGE, "CSIStorageCapacity"): (cluster.csi_capacity, "Name, StorageClassName, Capacity"),
    (_STORAGE, "StorageClass"): (
        cluster.storage_class, "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
    ),
    (_STORAGE, "VolumeAttachment"): (cluster.volume_attachment, "Name, Attacher, PV, Node, Attached:bool, Age"),
}  # fmt: skip
_MADE: dict[tuple[str, str], Columns] = {}


def of(kind: GroupKind, version: str) -> Columns:
    """Return the columns of a built-in kind in any version; name and creation time if it has none of its own."""
    made = _MADE.get(kind)
    if made is None:
        found = _WORDS.get(kind)
        made = _MADE[kind] = _table(*found) if found else DEFAULT
    return made
