"""Findings about a notebook, and which of them block it.

In: findings, a validation level, strictness. Out: the blocking findings, and the failure they cause. Never: reads a
notebook.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

Severity = Literal["info", "warning", "error"]
SEVERITIES: Final = ("info", "warning", "error")
WHOLE: Final = -1  # cell index of a finding about the whole notebook
MOST_FINDINGS, MOST_MESSAGE = 100, 500  # limits of the job status

# Lowest severity that blocks, by validation level.
THRESHOLDS: Final[dict[str, Severity]] = {
    "learning": "error",
    "development": "warning",
    "staging": "warning",
    "production": "info",
}
STDERR, WARNINGS = "stderr-output", "warning-output"  # categories that failOnStderr and failOnWarnings turn into errors
CATEGORIES: Final = {STDERR: "validation_stderr_failure", WARNINGS: "validation_warning_failure"}
STRICT_FAILURE, SILENT_FAILURE = "validation_strict_mode_failure", "validation_findings"


@dataclass(frozen=True)
class Finding:
    """A finding in a cell; `line` counts from 1 within the cell (0: the whole cell)."""

    cell: int
    severity: Severity
    category: str
    message: str
    suggestion: str = ""
    example: str = ""
    line: int = 0

    def as_wire(self, *, with_example: bool = True) -> dict[str, Any]:
        """One entry of `status.educationalFeedback`."""
        message = self.message if len(self.message) <= MOST_MESSAGE else self.message[:MOST_MESSAGE] + "…"
        told = {"cell": self.cell, "severity": self.severity, "category": self.category, "message": message}
        told |= {"suggestion": self.suggestion} if self.suggestion else {}
        return {**told, "codeExample": self.example} if self.example and with_example else told

    def __str__(self) -> str:
        return f"cell {self.cell}: {self.message}" if self.cell != WHOLE else self.message


def blocking(findings: Iterable[Finding], level: str, *, strict: bool = False) -> list[Finding]:
    """Findings that make the notebook fail, most severe first."""
    least = SEVERITIES.index("info" if strict else THRESHOLDS[level])
    counted = [each for each in findings if SEVERITIES.index(each.severity) >= least]
    return sorted(counted, key=lambda each: -SEVERITIES.index(each.severity))


def failure(findings: Iterable[Finding], level: str, *, strict: bool = False) -> tuple[str, str]:
    """Message and category of the failure that the findings cause; both empty if nothing blocks."""
    found = blocking(findings, level, strict=strict)
    if not found:
        return "", ""
    first, more = found[0], len(found) - 1
    message = str(first) + (f" (and {more} more)" if more else "")
    if first.severity == "error" and first.category in CATEGORIES:
        return message, CATEGORIES[first.category]
    is_by_level = bool(blocking(found, level))
    return message, SILENT_FAILURE if is_by_level else STRICT_FAILURE
