"""All that came of a look at an application, told in Argo CD's words.

In: values. Out: the Application's status, its history, Events: plain JSON data. Never: decides, asks a cluster, reads
a clock.
"""

from argosy.report.conditions import Condition, ConditionType
from argosy.report.history import Deployment, deployments, with_deployment
from argosy.report.holds import Hold, hold_text, read_hold
from argosy.report.operations import request_wire, state_wire
from argosy.report.resources import Resource, resource_of
from argosy.report.status import Report, changes, is_outdated, status
from argosy.report.summary import summary

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
