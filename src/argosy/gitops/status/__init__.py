"""Builds the status of an Application in Argo CD's format.

In: values. Out: the Application's status, its history, Events, as JSON data. Never: decides, asks a cluster, reads a
clock.
"""

from argosy.gitops.status.conditions import AppCondition, ConditionType
from argosy.gitops.status.history import DeploymentRecord, append_deployment, read_deployments
from argosy.gitops.status.operation_state_json_writer import request_to_wire, state_to_wire
from argosy.gitops.status.resources import ResourceStatus, build_resource
from argosy.gitops.status.status_builder import StatusReport, build_status, build_status_patch, is_comparison_outdated
from argosy.gitops.status.summary import build_summary
from argosy.gitops.status.sync_hold_annotation import SyncHold, hold_to_annotation, read_hold

__all__ = [
    "AppCondition",
    "ConditionType",
    "DeploymentRecord",
    "ResourceStatus",
    "StatusReport",
    "SyncHold",
    "append_deployment",
    "build_resource",
    "build_status",
    "build_status_patch",
    "build_summary",
    "hold_to_annotation",
    "is_comparison_outdated",
    "read_deployments",
    "read_hold",
    "request_to_wire",
    "state_to_wire",
]
