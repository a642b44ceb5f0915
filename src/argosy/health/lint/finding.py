"""What a check of a script found.

In, out: nothing but values. Never: judges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Purpose = Literal["health", "action", "discovery"]
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """`advice` says what to do; an error makes the script fail or answer wrongly, a warning may."""

    line: int
    rule: str
    message: str
    advice: str
    severity: Severity = "error"
