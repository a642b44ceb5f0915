"""What a check of a script found.

In, out: nothing but values. Never: judges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Purpose = Literal["health", "action", "discovery"]
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """`advice` says what to do; an error makes the script fail or answer wrongly, a warning may."""

    rule: str  # AGY401, …
    line: int
    message: str
    advice: str
    severity: Severity = "error"
