"""Counts Applications before and after: synced, healthy, and with errors.

In: the state of each Application. Out: counts and percentages. Never: a figure that was not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple


class ApplicationStatus(NamedTuple):
    """Sync and health status of one Application, and its conditions."""

    sync: str
    health: str
    errors: tuple[str, ...] = ()  # condition types
    warnings: tuple[str, ...] = ()

    @property
    def render(self) -> str:
        errors_text = "".join(f" + {error}" for error in dict.fromkeys(self.errors))
        return f"{self.sync}/{self.health}{errors_text}"

    def to_wire(self) -> dict[str, Any]:
        return {"sync": self.sync, "health": self.health, "errors": list(self.errors), "warnings": list(self.warnings)}


@dataclass(frozen=True, slots=True)
class AlignmentTally:
    total: int
    synced: int
    healthy: int
    errors: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, str, str]:
        counts = Counter(self.errors)
        errors_text = ", ".join(f"{error} x{number}" if number > 1 else error for error, number in counts.items())
        return (
            f"Synced {render_share(self.synced, self.total)}",
            f"Healthy {render_share(self.healthy, self.total)}",
            f"errors {len(self.errors)}{f' ({errors_text})' if errors_text else ''}",
        )

    def to_wire(self) -> dict[str, Any]:
        return {
            "applications": self.total,
            "synced": self.synced,
            "syncedPercent": compute_percent(self.synced, self.total),
            "healthy": self.healthy,
            "healthyPercent": compute_percent(self.healthy, self.total),
            "errors": list(self.errors),
        }


def count_statuses(statuses: Iterable[ApplicationStatus]) -> AlignmentTally:
    status_list = list(statuses)
    return AlignmentTally(
        len(status_list),
        sum(status.sync == "Synced" for status in status_list),
        sum(status.health == "Healthy" for status in status_list),
        tuple(sorted(error for status in status_list for error in status.errors)),
    )


def compute_percent(number: int, total: int) -> float:
    """Return the percentage with one decimal; 100 if the total is 0."""
    return round(100 * number / total, 1) if total else 100.0


def render_share(number: int, total: int) -> str:
    return f"{number}/{total} ({compute_percent(number, total):.1f}%)"
