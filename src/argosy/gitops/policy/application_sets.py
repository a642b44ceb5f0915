"""Decides whether a controller expands ApplicationSets into Applications.

In: workloads, an ApplicationSet. Out: whether it is expanded, and the condition to write if it is not. Never: raises;
asks a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from argosy.gitops.policy.delivery_engine import COMPONENT, KINDS, NAME, PART_OF, is_running
from argosy.kube.names import GroupKind
from argosy.kube.objects import Manifest

APPLICATION_SET: Final = GroupKind("argoproj.io", "ApplicationSet")
CONTROLLER: Final = "applicationset-controller"  # argo: suffix of the name label of its workload
ERROR: Final = "ErrorOccurred"  # argo: condition type; its own controller sets it to False after expansion
REASON: Final = "NoApplicationSetController"
MESSAGE: Final = (
    "no controller expands this ApplicationSet: argosy does not run generators, and no applicationset controller of an"
    " Argo CD runs in this cluster; commit its Applications to Git, or run Argo CD's applicationset controller"
)


def is_expander(workload: Manifest) -> bool:
    """True for a running workload or Pod of Argo CD's applicationset controller."""
    if workload.get("kind") not in KINDS:
        return False
    labels = workload["metadata"].get("labels") or {}
    is_component = labels.get(COMPONENT) == CONTROLLER and labels.get(PART_OF) == "argocd"
    is_named = str(labels.get(NAME) or "").endswith(CONTROLLER)
    return (is_component or is_named) and is_running(workload)


def is_expanded(application_set: Manifest, workloads: Iterable[Manifest]) -> bool:
    """True if a controller runs here, or another one wrote a status: it may run in another cluster."""
    return any(map(is_expander, workloads)) or any(not is_own(each) for each in _conditions(application_set))


def is_own(condition: Mapping[str, Any]) -> bool:
    return condition.get("reason") == REASON


def has_own_condition(application_set: Manifest) -> bool:
    return any(map(is_own, _conditions(application_set)))


def build_condition(now: str) -> dict[str, str]:
    return {"type": ERROR, "status": "True", "reason": REASON, "message": MESSAGE, "lastTransitionTime": now}


def _conditions(application_set: Manifest) -> list[Mapping[str, Any]]:
    status = application_set.get("status")
    listed = status.get("conditions") if isinstance(status, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
