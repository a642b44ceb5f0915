"""A finding: a violation with the rule that reports it.

In, out: values. Never: a finding that is not certain.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from argosy.gitops.analysis.rule import Rule
from argosy.gitops.analysis.violation import Place, Severity, Sight


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation and the rule that reports it."""

    rule: Rule
    sight: Sight

    @property
    def severity(self) -> Severity:
        return self.sight.severity or self.rule.severity

    @property
    def place(self) -> Place:
        return self.sight.place

    @property
    def mark(self) -> str:
        """Identifies the same mistake even if lines above it are added or removed."""
        return "|".join((self.rule.id, self.place.file, self.sight.subject, self.sight.field))

    def as_data(self) -> dict[str, Any]:
        sight = self.sight
        return {
            "rule": self.rule.id,
            "severity": str(self.severity),
            "file": sight.place.file,
            "line": sight.place.line or None,
            "object": sight.subject or None,
            "field": sight.field or None,
            "message": sight.message,
            "fix": sight.fix,
            "fixable": sight.mend is not None,
            "sure": self.rule.why_sure,
        }
