"""Parses and formats durations in Go's format.

In: text such as `1h30m`. Out: seconds, and such a text again. Never: guesses; an invalid duration is a UserError.
"""

from __future__ import annotations

import re
from typing import Final

from argosy.errors import UserError

_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_DURATION: Final = re.compile(r"((\d+(\.\d+)?)(ms|s|m|h))+", re.ASCII)
_UNIT_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
MAX_DURATION_SECONDS: Final = 7 * 86400.0


def parse_duration(text: str, where: str = "") -> float:
    if len(text) > 100 or not _DURATION.fullmatch(text):
        raise UserError(f"invalid duration {text[:40]!r}: expected for example 90s, 15m or 1h30m", where=where)
    return min(sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(text)), MAX_DURATION_SECONDS)


def format_duration(seconds: float) -> str:
    """Format seconds as `1.5s`, `15m` or `1h30m`, without zero units."""
    if seconds < 60:
        return f"{seconds:.3f}".rstrip("0").rstrip(".") + "s"
    whole = round(seconds)
    parts = ((whole // 3600, "h"), (whole // 60 % 60, "m"), (whole % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)
