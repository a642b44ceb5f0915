"""Decides whether a controller expands ApplicationSets into Applications.

In: workloads, an ApplicationSet. Out: whether it is expanded, and the condition to write if it is not. Never: raises;
asks a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from argosy.gitops.policy.application_delivery_engine_detection import (
    COMPONENT_LABEL,
    CONTROLLER_KINDS,
    NAME_LABEL,
    PART_OF_LABEL,
    is_running,
)
from argosy.kube.objects import Manifest

CONTROLLER_NAME_SUFFIX: Final = "applicationset-controller"  # argo: suffix of the name label of its workload
ERROR_CONDITION_TYPE: Final = (
    "ErrorOccurred"  # argo: condition type; its own controller sets it to False after expansion
)
NO_CONTROLLER_REASON: Final = "NoApplicationSetController"
NO_CONTROLLER_MESSAGE: Final = (
    "no controller expands this ApplicationSet: argosy does not run generators, and no applicationset controller of an"
    " Argo CD runs in this cluster; commit its Applications to Git, or run Argo CD's applicationset controller"
)


def is_applicationset_controller(workload: Manifest) -> bool:
    """True for a running workload or Pod of Argo CD's applicationset controller."""
    if workload.get("kind") not in CONTROLLER_KINDS:
        return False
    labels = workload["metadata"].get("labels") or {}
    is_component = labels.get(COMPONENT_LABEL) == CONTROLLER_NAME_SUFFIX and labels.get(PART_OF_LABEL) == "argocd"
    is_named = str(labels.get(NAME_LABEL) or "").endswith(CONTROLLER_NAME_SUFFIX)
    return (is_component or is_named) and is_running(workload)


def is_expanded(application_set: Manifest, workloads: Iterable[Manifest]) -> bool:
    """True if a controller runs here, or another one wrote a status: it may run in another cluster."""
    return any(map(is_applicationset_controller, workloads)) or any(
        not is_own_condition(condition) for condition in _list_conditions(application_set)
    )


def is_own_condition(condition: Mapping[str, Any]) -> bool:
    return condition.get("reason") == NO_CONTROLLER_REASON


def has_own_condition(application_set: Manifest) -> bool:
    return any(map(is_own_condition, _list_conditions(application_set)))


def build_no_controller_condition(now: str) -> dict[str, str]:
    return {
        "type": ERROR_CONDITION_TYPE,
        "status": "True",
        "reason": NO_CONTROLLER_REASON,
        "message": NO_CONTROLLER_MESSAGE,
        "lastTransitionTime": now,
    }


def _list_conditions(application_set: Manifest) -> list[Mapping[str, Any]]:
    status = application_set.get("status")
    listed = status.get("conditions") if isinstance(status, dict) else None
    return [condition for condition in listed if isinstance(condition, dict)] if isinstance(listed, list) else []
