"""Reads and writes the ConfigMap that lists projects over their budget of worker time, one entry per controller.

In: the usage of projects, or that ConfigMap. Out: its data, or BudgetUse by project. Never: schedules work; reads a
clock.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from argosy.annotations import PART_OF
from argosy.gitops.status.status_json_conversions import as_mapping
from argosy.kube.objects import Manifest
from argosy.kube.objects.timestamps_and_delays import format_timestamp

BUDGETS_LABELS: Final = {"app.kubernetes.io/name": "argosy-controller", PART_OF: "argosy"}
VALID_SECONDS: Final = 120.0  # then an entry is ignored, because its controller has stopped
ABANDONED_SECONDS: Final = 3600.0  # then any controller may remove an entry; before, clocks may just differ
_PARSE_ERRORS: Final = (ValueError, TypeError, KeyError, OverflowError, RecursionError)


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """Worker time in seconds that a project has used, its budget, and the time window."""

    used: float
    budget: float
    window: float


def budget_uses_to_wire(uses: Mapping[str, BudgetUse], now: datetime) -> str:
    """Return the entry of one controller."""
    projects = {
        project: {"usedSeconds": round(use.used, 1), "budgetSeconds": use.budget, "windowSeconds": use.window}
        for project, use in uses.items()
    }
    return json.dumps({"observedAt": format_timestamp(now), "projects": projects}, sort_keys=True)


def read_worst_budget_uses(config_map: Manifest | None, now: datetime) -> dict[str, BudgetUse]:
    """Return the projects over budget, each with the highest usage of all controllers.

    Expired and unreadable entries are ignored.
    """
    entries = list(_read_valid_entries(config_map, now))
    projects = {project for uses in entries for project in uses}
    return {project: _find_worst(entries, project) for project in projects}


def find_budget_use(config_map: Manifest | None, project: str, now: datetime) -> BudgetUse | None:
    """Return the highest usage of one project; None if it is not over budget."""
    entries = [uses for uses in _read_valid_entries(config_map, now) if project in uses]
    return _find_worst(entries, project) if entries else None


def is_abandoned(text: object, now: datetime) -> bool:
    """True if an entry is so old that its controller has stopped, whatever its clock says."""
    observed_at, _ = _read_entry(str(text))
    return observed_at is not None and abs((now - observed_at).total_seconds()) > ABANDONED_SECONDS


def _find_worst(entries: Iterable[Mapping[str, BudgetUse]], project: str) -> BudgetUse:
    return max((uses[project] for uses in entries if project in uses), key=lambda use: use.used)


def _read_valid_entries(config_map: Manifest | None, now: datetime) -> Iterator[Mapping[str, BudgetUse]]:
    for text in as_mapping((config_map or {}).get("data")).values():
        observed_at, uses = _read_entry(str(text))
        if observed_at is not None and abs((now - observed_at).total_seconds()) <= VALID_SECONDS:
            yield uses


@lru_cache(maxsize=32)  # a list of Applications calls it for each row
def _read_entry(text: str) -> tuple[datetime | None, Mapping[str, BudgetUse]]:
    """Return when the entry was written, None if it cannot be read, and the projects in it."""
    try:
        wire = json.loads(text)
        observed_at, projects = datetime.fromisoformat(wire["observedAt"]), as_mapping(wire["projects"])
    except _PARSE_ERRORS:
        return None, {}
    if observed_at.tzinfo is None:
        return None, {}
    uses = {project: _read_use(numbers) for project, numbers in projects.items()}
    return observed_at, {project: use for project, use in uses.items() if use is not None}


def _read_use(wire: Any) -> BudgetUse | None:
    try:
        use = BudgetUse(*(float(wire[name]) for name in ("usedSeconds", "budgetSeconds", "windowSeconds")))
    except _PARSE_ERRORS:
        return None
    is_sound = all(math.isfinite(number) and number >= 0 for number in (use.used, use.budget, use.window))
    return use if is_sound else None
