"""Builds conditions as Knative's types do: sorted, with transition times, and Ready computed from some of the others.

In: conditions. Out: conditions for the status. Never: reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from argosy.kube.objects import Manifest

READY_CONDITION_TYPES: Final = ("PredictorReady", "TransformerReady", "ExplainerReady", "IngressReady")


class KnativeCondition(NamedTuple):
    type: str
    status: str = "True"
    reason: str = ""
    message: str = ""

    def with_type(self, type_: str) -> KnativeCondition:
        return self._replace(type=type_)


def compute_ready_condition(conditions: Iterable[KnativeCondition]) -> KnativeCondition:
    """Compute Ready: the first False condition decides, else the first Unknown one."""
    deciding_conditions = [
        condition for name in READY_CONDITION_TYPES for condition in conditions if condition.type == name
    ]
    for status in ("False", "Unknown"):
        for condition in deciding_conditions:
            if condition.status == status:
                return condition.with_type("Ready")
    return KnativeCondition("Ready")


def conditions_to_wire(conditions: Iterable[KnativeCondition], service: Manifest, now: str) -> list[dict[str, Any]]:
    previous_conditions = {item["type"]: item for item in (service.get("status") or {}).get("conditions") or ()}
    wire_conditions = []
    for item in sorted(conditions):
        fields: dict[str, Any] = {name: text for name, text in item._asdict().items() if text}
        previous = previous_conditions.get(item.type) or {}
        transitioned_at = previous.get("lastTransitionTime") if previous.get("status") == item.status else None
        severity = {"severity": "Info"} if item.type not in (*READY_CONDITION_TYPES, "Ready") else {}
        wire_conditions.append({**fields, **severity, "lastTransitionTime": transitioned_at or now})
    return wire_conditions
