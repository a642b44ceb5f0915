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
WHOLE_NOTEBOOK: Final = -1  # cell index of a finding about the whole notebook
MAX_FINDINGS, MAX_MESSAGE_CHARACTERS = 100, 500  # limits of the job status

# Lowest severity that blocks, by validation level.
THRESHOLDS: Final[dict[str, Severity]] = {
    "learning": "error",
    "development": "warning",
    "staging": "warning",
    "production": "info",
}
STDERR, WARNINGS = "stderr-output", "warning-output"  # categories that failOnStderr and failOnWarnings turn into errors
FAILURE_CATEGORIES: Final = {STDERR: "validation_stderr_failure", WARNINGS: "validation_warning_failure"}
STRICT_FAILURE, SILENT_FAILURE = "validation_strict_mode_failure", "validation_findings"


@dataclass(frozen=True)
class NotebookFinding:
    """A finding in a cell; `line` counts from 1 within the cell (0: the whole cell)."""

    cell: int
    severity: Severity
    category: str
    message: str
    suggestion: str = ""
    example: str = ""
    line: int = 0

    def to_wire(self, *, with_example: bool = True) -> dict[str, Any]:
        """One entry of `status.educationalFeedback`."""
        message = (
            self.message if len(self.message) <= MAX_MESSAGE_CHARACTERS else self.message[:MAX_MESSAGE_CHARACTERS] + "…"
        )
        fields = {"cell": self.cell, "severity": self.severity, "category": self.category, "message": message}
        fields |= {"suggestion": self.suggestion} if self.suggestion else {}
        return {**fields, "codeExample": self.example} if self.example and with_example else fields

    def __str__(self) -> str:
        return f"cell {self.cell}: {self.message}" if self.cell != WHOLE_NOTEBOOK else self.message


def list_blocking_findings(
    findings: Iterable[NotebookFinding], level: str, *, strict: bool = False
) -> list[NotebookFinding]:
    """Findings that make the notebook fail, most severe first."""
    threshold = SEVERITIES.index("info" if strict else THRESHOLDS[level])
    blocking_findings = [finding for finding in findings if SEVERITIES.index(finding.severity) >= threshold]
    return sorted(blocking_findings, key=lambda finding: -SEVERITIES.index(finding.severity))


def describe_failure(findings: Iterable[NotebookFinding], level: str, *, strict: bool = False) -> tuple[str, str]:
    """Message and category of the failure that the findings cause; both empty if nothing blocks."""
    blocking_findings = list_blocking_findings(findings, level, strict=strict)
    if not blocking_findings:
        return "", ""
    first, other_count = blocking_findings[0], len(blocking_findings) - 1
    message = str(first) + (f" (and {other_count} more)" if other_count else "")
    if first.severity == "error" and first.category in FAILURE_CATEGORIES:
        return message, FAILURE_CATEGORIES[first.category]
    is_by_level = bool(list_blocking_findings(blocking_findings, level))
    return message, SILENT_FAILURE if is_by_level else STRICT_FAILURE
