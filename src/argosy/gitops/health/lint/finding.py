"""Findings of the linter.

In, out: values. Never: contains logic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ScriptPurpose = Literal["health", "action", "discovery"]
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class LintFinding:
    """`advice` says what to do. An error makes the script fail or return a wrong result; a warning may do so."""

    rule: str  # AGY401, …
    line: int
    message: str
    advice: str
    severity: Severity = "error"
