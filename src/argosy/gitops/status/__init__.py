"""Builds the status of an Application in Argo CD's format.

In: values. Out: the Application's status, its history, Events, as JSON data. Never: decides, asks a cluster, reads a
clock.
"""

from argosy.gitops.status.conditions import Condition, ConditionType
from argosy.gitops.status.history import Deployment, deployments, with_deployment
from argosy.gitops.status.hold import Hold, hold_text, read_hold
from argosy.gitops.status.operations import request_wire, state_wire
from argosy.gitops.status.resources import Resource, resource_of
from argosy.gitops.status.status import Report, changes, is_outdated, status
from argosy.gitops.status.summary import summary

__all__ = [
    "Condition",
    "ConditionType",
    "Deployment",
    "Hold",
    "Report",
    "Resource",
    "changes",
    "deployments",
    "hold_text",
    "is_outdated",
    "read_hold",
    "request_wire",
    "resource_of",
    "state_wire",
    "status",
    "summary",
    "with_deployment",
]
