"""Projects over their budget of worker time, as a ConfigMap of the installation lists them: one entry by controller.

In: how much projects have used, or that ConfigMap. Out: its data, or BudgetUse by project. Never: decides whose turn it
is; reads a clock.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from argosy.model.annotations import PART_OF
from argosy.model.manifest import Manifest
from argosy.model.times import written
from argosy.report.wire import mapping

BUDGETS_CONFIG_MAP: Final = "argosy-project-budgets"
BUDGETS_LABELS: Final = {"app.kubernetes.io/name": "argosy-controller", PART_OF: "argosy"}
VALID_SECONDS: Final = 120.0  # then an entry is ignored: the controller that wrote it has stopped
ABANDONED_SECONDS: Final = 3600.0  # then any controller may remove an entry; until then, clocks may only differ
_UNREADABLE: Final = (ValueError, TypeError, KeyError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """Worker time in seconds that a project has used, what it may use, and within which time."""

    used: float
    budget: float
    window: float


def budget_uses_to_wire(uses: Mapping[str, BudgetUse], now: datetime) -> str:
    """Return the entry of one controller."""
    projects = {
        project: {"usedSeconds": round(use.used, 1), "budgetSeconds": use.budget, "windowSeconds": use.window}
        for project, use in uses.items()
    }
    return json.dumps({"observedAt": written(now), "projects": projects}, sort_keys=True)


def read_budget_uses(config_map: Manifest | None, now: datetime) -> dict[str, BudgetUse]:
    """Return the projects that are over their budgets now, each as the controller says that has it worst.

    Entries that are old or cannot be read are left out.
    """
    uses: dict[str, BudgetUse] = {}
    for text in mapping((config_map or {}).get("data")).values():
        for project, use in _read_entry(text, now):
            if project not in uses or uses[project].used < use.used:
                uses[project] = use
    return uses


def is_abandoned(text: object, now: datetime) -> bool:
    """True if an entry is so old that the controller that wrote it cannot be at work, whatever its clock says."""
    try:
        return abs(_age(json.loads(str(text)), now)) > ABANDONED_SECONDS
    except _UNREADABLE:
        return False


def _read_entry(text: object, now: datetime) -> Iterator[tuple[str, BudgetUse]]:
    try:
        wire = json.loads(str(text))
        projects = mapping(wire["projects"]) if abs(_age(wire, now)) <= VALID_SECONDS else {}
    except _UNREADABLE:
        return
    for project, numbers in projects.items():
        if (use := _read_use(numbers)) is not None:
            yield project, use


def _read_use(wire: Any) -> BudgetUse | None:
    try:
        use = BudgetUse(*(float(wire[name]) for name in ("usedSeconds", "budgetSeconds", "windowSeconds")))
    except _UNREADABLE:
        return None
    is_sound = all(math.isfinite(number) and number >= 0 for number in (use.used, use.budget, use.window))
    return use if is_sound else None


def _age(wire: Any, now: datetime) -> float:
    return (now - datetime.fromisoformat(wire["observedAt"])).total_seconds()
