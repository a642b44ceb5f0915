"""Printer columns of built-in kinds, for `kubectl get`.

In: a kind, then a manifest and the time. Out: column definitions, and the cells of one row.
Never: handles custom kinds; their CRDs declare the columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from argosy.kube.objects import Manifest
from argosy.kube.resource_key import GroupKind
from argosy.kube.schema.columns import core, network_storage_rbac, pods, workloads
from argosy.kube.schema.columns.cells import human_duration
from argosy.kube.schema.columns.pods import build_row_conditions

__all__ = ["DEFAULT_COLUMNS", "KindColumns", "build_row_conditions", "get_columns", "human_duration"]

CellBuilder = Callable[[Manifest, datetime], list[Any]]

_COLUMN_TYPES = {"int": "integer", "bool": "boolean", "date": "date"}
_DESCRIPTIONS = {
    "Name": "Name of the object, unique in its namespace.",
    "Age": "Time since the object was created.",
    "Created At": "Time at which the object was created, in UTC.",
    "Containers": "Names of the containers in the template.",
    "Images": "Images of the containers in the template.",
    "Selector": "Which pods belong to the object.",
}


@dataclass(frozen=True, slots=True)
class KindColumns:
    """Columns of one kind. `definitions` are those of a Table; columns with priority > 0 need `-o wide`."""

    definitions: tuple[dict[str, Any], ...]
    build_cells: CellBuilder


def _build_columns(build_cells: CellBuilder, column_list: str) -> KindColumns:
    """Read `Name, Ready, Desired:int, +IP`: a type other than string follows a colon, a plus marks wide output."""
    definitions = []
    for column_text in column_list.split(", "):
        name, _, column_type = column_text.removeprefix("+").partition(":")
        definitions.append(
            {
                "name": name,
                "type": _COLUMN_TYPES.get(column_type, "string"),
                "format": "name" if name in ("Name", "Attacher") else "",
                "description": _DESCRIPTIONS.get(name, f"{name} of the object."),
                "priority": int(column_text.startswith("+")),
            }
        )
    return KindColumns(tuple(definitions), build_cells)


def _build_default_row(manifest: Manifest, now: datetime) -> list[Any]:
    return [manifest["metadata"].get("name") or "", manifest["metadata"].get("creationTimestamp")]


DEFAULT_COLUMNS = _build_columns(_build_default_row, "Name, Created At:date")

_POD_TEMPLATE_COLUMNS = "+Containers, +Images, +Selector"
_BINDING_COLUMNS = "Name, Role, Age, +Users, +Groups, +ServiceAccounts"
_EVENT_COLUMNS = "Last Seen, Type, Reason, Object, +Subobject, +Source, Message, +First Seen, +Count, +Name"
_POD_COLUMNS = "Name, Ready, Status, Restarts, Age, +IP, +Node, +Nominated Node, +Readiness Gates"
_VOLUME_COLUMNS = (
    "Name, Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, "
    "+VolumeMode"
)
_NODE_COLUMNS = (
    "Name, Status, Roles, Age, Version, +Internal-IP, +External-IP, +OS-Image, +Kernel-Version, +Container-Runtime"
)
_CLAIM_COLUMNS = "Name, Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, +VolumeMode"
_CSI_DRIVER_COLUMNS = (
    "Name, AttachRequired:bool, PodInfoOnMount:bool, StorageCapacity:bool, TokenRequests, RequiresRepublish:bool, "
    "Modes, Age"
)
_AUTOSCALER_COLUMNS = "Name, Reference, Targets, MinPods, MaxPods, Replicas, Age"
_DAEMON_SET_COLUMNS = "Name, Desired:int, Current:int, Ready:int, Up-to-date:int, Available:int, Node Selector, Age, "
_ADMISSION, _RBAC = "admissionregistration.k8s.io", "rbac.authorization.k8s.io"
_NETWORK, _STORAGE, _FLOW = "networking.k8s.io", "storage.k8s.io", "flowcontrol.apiserver.k8s.io"

_COLUMNS_BY_KIND: dict[tuple[str, str], tuple[CellBuilder, str]] = {
    ("", "ComponentStatus"): (core.build_component_status_row, "Name, Status, Message, Error"),
    ("", "ConfigMap"): (core.build_config_map_row, "Name, Data, Age"),
    ("", "Endpoints"): (core.build_endpoints_row, "Name, Endpoints, Age"),
    ("", "Event"): (core.build_event_row, _EVENT_COLUMNS),
    ("", "Namespace"): (core.build_namespace_row, "Name, Status, Age"),
    ("", "Node"): (core.build_node_row, _NODE_COLUMNS),
    ("", "PersistentVolume"): (core.build_persistent_volume_row, _VOLUME_COLUMNS),
    ("", "PersistentVolumeClaim"): (core.build_volume_claim_row, _CLAIM_COLUMNS),
    ("", "Pod"): (pods.build_pod_row, _POD_COLUMNS),
    ("", "PodTemplate"): (workloads.build_pod_template_row, "Name, Containers, Images, Pod Labels"),
    ("", "ReplicationController"): (
        workloads.build_replication_controller_row,
        f"Name, Desired:int, Current:int, Ready:int, Age, {_POD_TEMPLATE_COLUMNS}",
    ),
    ("", "ResourceQuota"): (core.build_resource_quota_row, "Name, Age, Request, Limit"),
    ("", "Secret"): (core.build_secret_row, "Name, Type, Data, Age"),
    ("", "Service"): (core.build_service_row, "Name, Type, Cluster-IP, External-IP, Port(s), Age, +Selector"),
    ("", "ServiceAccount"): (core.build_service_account_row, "Name, Secrets, Age"),
    ("apiregistration.k8s.io", "APIService"): (
        network_storage_rbac.build_api_service_row,
        "Name, Service, Available, Age",
    ),
    ("apps", "ControllerRevision"): (workloads.build_controller_revision_row, "Name, Controller, Revision, Age"),
    ("apps", "DaemonSet"): (workloads.build_daemon_set_row, _DAEMON_SET_COLUMNS + _POD_TEMPLATE_COLUMNS),
    ("apps", "Deployment"): (
        workloads.build_deployment_row,
        f"Name, Ready, Up-to-date, Available, Age, {_POD_TEMPLATE_COLUMNS}",
    ),
    ("apps", "ReplicaSet"): (
        workloads.build_replica_set_row,
        f"Name, Desired:int, Current:int, Ready:int, Age, {_POD_TEMPLATE_COLUMNS}",
    ),
    ("apps", "StatefulSet"): (workloads.build_stateful_set_row, "Name, Ready, Age, +Containers, +Images"),
    ("autoscaling", "HorizontalPodAutoscaler"): (workloads.build_autoscaler_row, _AUTOSCALER_COLUMNS),
    ("autoscaling", "Scale"): (workloads.build_scale_row, "Name, Desired:int, Available:int, Age"),
    ("batch", "CronJob"): (
        workloads.build_cron_job_row,
        f"Name, Schedule, Timezone, Suspend:bool, Active:int, Last Schedule, Age, {_POD_TEMPLATE_COLUMNS}",
    ),
    ("batch", "Job"): (workloads.build_job_row, f"Name, Status, Completions, Duration, Age, {_POD_TEMPLATE_COLUMNS}"),
    ("certificates.k8s.io", "CertificateSigningRequest"): (
        network_storage_rbac.build_certificate_request_row,
        "Name, Age, SignerName, Requestor, RequestedDuration, Condition",
    ),
    ("coordination.k8s.io", "Lease"): (network_storage_rbac.build_lease_row, "Name, Holder, Age"),
    ("discovery.k8s.io", "EndpointSlice"): (
        network_storage_rbac.build_endpoint_slice_row,
        "Name, AddressType, Ports, Endpoints, Age",
    ),
    ("events.k8s.io", "Event"): (core.build_event_row, _EVENT_COLUMNS),
    ("node.k8s.io", "RuntimeClass"): (network_storage_rbac.build_runtime_class_row, "Name, Handler, Age"),
    ("policy", "PodDisruptionBudget"): (
        network_storage_rbac.build_disruption_budget_row,
        "Name, Min Available, Max Unavailable, Allowed Disruptions:int, Age",
    ),
    ("scheduling.k8s.io", "PriorityClass"): (
        network_storage_rbac.build_priority_class_row,
        "Name, Value:int, Global-Default:bool, Age, PreemptionPolicy",
    ),
    (_ADMISSION, "MutatingWebhookConfiguration"): (network_storage_rbac.build_webhooks_row, "Name, Webhooks:int, Age"),
    (_ADMISSION, "ValidatingAdmissionPolicy"): (
        network_storage_rbac.build_admission_policy_row,
        "Name, Validations:int, ParamKind, Age",
    ),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): (
        network_storage_rbac.build_admission_policy_binding_row,
        "Name, PolicyName, ParamRef, Age",
    ),
    (_ADMISSION, "ValidatingWebhookConfiguration"): (
        network_storage_rbac.build_webhooks_row,
        "Name, Webhooks:int, Age",
    ),
    (_FLOW, "FlowSchema"): (
        network_storage_rbac.build_flow_schema_row,
        "Name, PriorityLevel, MatchingPrecedence, DistinguisherMethod, Age, MissingPL",
    ),
    (_FLOW, "PriorityLevelConfiguration"): (
        network_storage_rbac.build_priority_level_row,
        "Name, Type, NominalConcurrencyShares, Queues, HandSize, QueueLengthLimit, Age",
    ),
    (_NETWORK, "Ingress"): (network_storage_rbac.build_ingress_row, "Name, Class, Hosts, Address, Ports, Age"),
    (_NETWORK, "IngressClass"): (network_storage_rbac.build_ingress_class_row, "Name, Controller, Parameters, Age"),
    (_NETWORK, "NetworkPolicy"): (network_storage_rbac.build_network_policy_row, "Name, Pod-Selector, Age"),
    (_RBAC, "ClusterRoleBinding"): (network_storage_rbac.build_role_binding_row, _BINDING_COLUMNS),
    (_RBAC, "RoleBinding"): (network_storage_rbac.build_role_binding_row, _BINDING_COLUMNS),
    (_STORAGE, "CSIDriver"): (network_storage_rbac.build_csi_driver_row, _CSI_DRIVER_COLUMNS),
    (_STORAGE, "CSINode"): (network_storage_rbac.build_csi_node_row, "Name, Drivers:int, Age"),
    (_STORAGE, "CSIStorageCapacity"): (network_storage_rbac.build_csi_capacity_row, "Name, StorageClassName, Capacity"),
    (_STORAGE, "StorageClass"): (
        network_storage_rbac.build_storage_class_row,
        "Name, Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
    ),
    (_STORAGE, "VolumeAttachment"): (
        network_storage_rbac.build_volume_attachment_row,
        "Name, Attacher, PV, Node, Attached:bool, Age",
    ),
}
_COLUMNS_CACHE: dict[tuple[str, str], KindColumns] = {}


def get_columns(kind: GroupKind, version: str) -> KindColumns:
    """Return the columns of a built-in kind in any version; name and creation time if it has none of its own."""
    columns = _COLUMNS_CACHE.get(kind)
    if columns is None:
        row_and_columns = _COLUMNS_BY_KIND.get(kind)
        columns = _COLUMNS_CACHE[kind] = _build_columns(*row_and_columns) if row_and_columns else DEFAULT_COLUMNS
    return columns
