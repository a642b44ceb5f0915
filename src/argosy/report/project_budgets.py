"""Projects over their budget of worker time, as a ConfigMap of the installation lists them.

In: how much projects have used, or that ConfigMap. Out: its data, or BudgetUse by project. Never: decides whose turn it
is; reads a clock.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from argosy.model.manifest import Manifest
from argosy.model.times import written
from argosy.report.wire import mapping

BUDGETS_CONFIG_MAP: Final = "argosy-project-budgets"
VALID_SECONDS: Final = 120.0  # then an entry is ignored: the controller that wrote it has stopped


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """Worker time in seconds that a project has used, what it may use, and within which time."""

    used: float
    budget: float
    window: float


def budget_use_to_wire(use: BudgetUse, now: datetime) -> str:
    numbers = {"usedSeconds": round(use.used, 1), "budgetSeconds": use.budget, "windowSeconds": use.window}
    return json.dumps({**numbers, "observedAt": written(now)}, sort_keys=True)


def read_budget_uses(config_map: Manifest | None, now: datetime) -> dict[str, BudgetUse]:
    """Return the projects that are over their budgets now; entries that are old or cannot be read are left out."""
    uses = {str(project): _read(text, now) for project, text in mapping((config_map or {}).get("data")).items()}
    return {project: use for project, use in uses.items() if use is not None}


def _read(text: object, now: datetime) -> BudgetUse | None:
    try:
        wire = json.loads(str(text))
        age = (now - datetime.fromisoformat(wire["observedAt"])).total_seconds()
        use = BudgetUse(*(float(wire[name]) for name in ("usedSeconds", "budgetSeconds", "windowSeconds")))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    is_sound = all(math.isfinite(number) and number >= 0 for number in (use.used, use.budget, use.window))
    return use if is_sound and abs(age) <= VALID_SECONDS else None
