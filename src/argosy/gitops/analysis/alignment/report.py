"""Counts Applications before and after: synced, healthy, and with errors.

In: the state of each Application. Out: counts and percentages. Never: a figure that was not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Standing(NamedTuple):
    """Sync and health status of one Application, and its conditions."""

    sync: str
    health: str
    errors: tuple[str, ...] = ()  # condition types
    warnings: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        more = "".join(f" + {each}" for each in dict.fromkeys(self.errors))
        return f"{self.sync}/{self.health}{more}"

    def document(self) -> dict[str, Any]:
        return {"sync": self.sync, "health": self.health, "errors": list(self.errors), "warnings": list(self.warnings)}


@dataclass(frozen=True, slots=True)
class Tally:
    total: int
    synced: int
    healthy: int
    errors: tuple[str, ...]

    @property
    def lines(self) -> tuple[str, str, str]:
        counts = Counter(self.errors)
        named = ", ".join(f"{each} x{number}" if number > 1 else each for each, number in counts.items())
        return (
            f"Synced {share(self.synced, self.total)}",
            f"Healthy {share(self.healthy, self.total)}",
            f"errors {len(self.errors)}{f' ({named})' if named else ''}",
        )

    def document(self) -> dict[str, Any]:
        return {
            "applications": self.total,
            "synced": self.synced,
            "syncedPercent": percent(self.synced, self.total),
            "healthy": self.healthy,
            "healthyPercent": percent(self.healthy, self.total),
            "errors": list(self.errors),
        }


def tally(standings: Iterable[Standing]) -> Tally:
    all_ = list(standings)
    return Tally(
        len(all_),
        sum(each.sync == "Synced" for each in all_),
        sum(each.health == "Healthy" for each in all_),
        tuple(sorted(error for each in all_ for error in each.errors)),
    )


def percent(number: int, total: int) -> float:
    """Return the percentage with one decimal; 100 if the total is 0."""
    return round(100 * number / total, 1) if total else 100.0


def share(number: int, total: int) -> str:
    return f"{number}/{total} ({percent(number, total):.1f}%)"
