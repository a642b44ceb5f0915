"""What was noticed about a notebook, and whether it counts.

In: findings, a level, what users insist on. Out: those that block, and why. Never: looks at a notebook.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

Severity = Literal["info", "warning", "error"]
SEVERITIES: Final = ("info", "warning", "error")
WHOLE: Final = -1  # in place of a cell's index
MOST_FINDINGS, MOST_MESSAGE = 100, 500  # what a status can hold

# The least severity that blocks.
THRESHOLDS: Final[dict[str, Severity]] = {
    "learning": "error",
    "development": "warning",
    "staging": "warning",
    "production": "info",
}
STDERR, WARNINGS = "stderr-output", "warning-output"  # categories of findings that a setting makes errors of
CATEGORIES: Final = {STDERR: "validation_stderr_failure", WARNINGS: "validation_warning_failure"}
STRICT_FAILURE, SILENT_FAILURE = "validation_strict_mode_failure", "validation_findings"


@dataclass(frozen=True)
class Finding:
    """Something that was noticed in a cell; `line` counts in the cell, from 1 (0: no one line)."""

    cell: int
    severity: Severity
    category: str
    message: str
    suggestion: str = ""
    example: str = ""
    line: int = 0

    def as_wire(self, *, with_example: bool = True) -> dict[str, Any]:
        """One of `status.educationalFeedback`."""
        message = self.message if len(self.message) <= MOST_MESSAGE else self.message[:MOST_MESSAGE] + "…"
        told = {"cell": self.cell, "severity": self.severity, "category": self.category, "message": message}
        told |= {"suggestion": self.suggestion} if self.suggestion else {}
        return {**told, "codeExample": self.example} if self.example and with_example else told

    def __str__(self) -> str:
        return f"cell {self.cell}: {self.message}" if self.cell != WHOLE else self.message


def blocking(findings: Iterable[Finding], level: str, *, strict: bool = False) -> list[Finding]:
    """Those that make a notebook fail, the worst first."""
    least = SEVERITIES.index("info" if strict else THRESHOLDS[level])
    counted = [each for each in findings if SEVERITIES.index(each.severity) >= least]
    return sorted(counted, key=lambda each: -SEVERITIES.index(each.severity))


def failure(findings: Iterable[Finding], level: str, *, strict: bool = False) -> tuple[str, str]:
    """The message and the category of the failure that they are; both empty if they are none."""
    found = blocking(findings, level, strict=strict)
    if not found:
        return "", ""
    first, more = found[0], len(found) - 1
    message = str(first) + (f" (and {more} more)" if more else "")
    if first.severity == "error" and first.category in CATEGORIES:
        return message, CATEGORIES[first.category]
    is_by_level = bool(blocking(found, level))
    return message, SILENT_FAILURE if is_by_level else STRICT_FAILURE
