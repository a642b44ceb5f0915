"""A finding: a violation with the rule that reports it.

In, out: values. Never: a finding that is not certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.gitops.analysis.rule import AnalysisRule
from argosy.gitops.analysis.rule_violation import FileLocation, Severity, Violation


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation and the rule that reports it."""

    rule: AnalysisRule
    violation: Violation

    @property
    def severity(self) -> Severity:
        return self.violation.severity or self.rule.severity

    @property
    def location(self) -> FileLocation:
        return self.violation.location

    @property
    def fingerprint(self) -> str:
        """Identifies the same mistake even if lines above it are added or removed."""
        return "|".join((self.rule.id, self.location.file, self.violation.subject, self.violation.field))

    def to_wire(self) -> dict[str, Any]:
        violation = self.violation
        return {
            "rule": self.rule.id,
            "severity": str(self.severity),
            "file": violation.location.file,
            "line": violation.location.line or None,
            "object": violation.subject or None,
            "field": violation.field or None,
            "message": violation.message,
            "fix": violation.fix,
            "fixable": violation.file_fix is not None,
            "sure": self.rule.certainty,
        }
