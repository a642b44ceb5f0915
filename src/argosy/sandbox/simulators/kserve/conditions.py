"""Builds conditions as Knative's types do: sorted, with transition times, and Ready computed from some of the others.

In: conditions. Out: conditions for the status. Never: reads a clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from argosy.kube.objects import Manifest

DECISIVE: Final = ("PredictorReady", "TransformerReady", "ExplainerReady", "IngressReady")


class Condition(NamedTuple):
    type: str
    status: str = "True"
    reason: str = ""
    message: str = ""

    def named(self, type_: str) -> Condition:
        return self._replace(type=type_)


def ready(conditions: Iterable[Condition]) -> Condition:
    """Compute Ready: the first False condition decides, else the first Unknown one."""
    decisive = [each for name in DECISIVE for each in conditions if each.type == name]
    for status in ("False", "Unknown"):
        for each in decisive:
            if each.status == status:
                return each.named("Ready")
    return Condition("Ready")


def written(conditions: Iterable[Condition], live: Manifest, now: str) -> list[dict[str, Any]]:
    before = {each["type"]: each for each in (live.get("status") or {}).get("conditions") or ()}
    found = []
    for each in sorted(conditions):
        said: dict[str, Any] = {name: text for name, text in each._asdict().items() if text}
        known = before.get(each.type) or {}
        since = known.get("lastTransitionTime") if known.get("status") == each.status else None
        aside = {"severity": "Info"} if each.type not in (*DECISIVE, "Ready") else {}
        found.append({**said, **aside, "lastTransitionTime": since or now})
    return found
