"""Formats timestamps as Kubernetes does, and computes delays.

In: a time. Out: RFC 3339 in UTC, or seconds to wait. Never: reads a clock.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

# A stored time may be this far in the future, because clocks of several machines differ.
MAX_CLOCK_SKEW: Final = timedelta(seconds=10)


def format_timestamp(time: datetime, timespec: str = "seconds") -> str:
    """Format a time as RFC 3339 in UTC, ending in Z. k8s: whole seconds; MicroTime fields need microseconds."""
    in_utc = time if time.tzinfo is UTC else time.astimezone(UTC)
    return in_utc.isoformat(timespec=timespec)[: -len("+00:00")] + "Z"


def backoff_delay(first_delay: float, factor: float, exponent: int, max_delay: float) -> float:
    """Return `first_delay * factor ** exponent`, at least 0 and at most `max_delay`, for any user input."""
    try:
        return min(max(first_delay * float(factor) ** exponent, 0.0), max_delay)
    except OverflowError:
        return max_delay


def remaining_delay(since: datetime, seconds: float, now: datetime) -> float:
    """Return the seconds until a delay that began at a stored time ends; 0 if it has ended.

    A start in the future means that the clock was set back. Then the delay counts as ended: waiting until the clock
    catches up could take days.
    """
    if since > now + MAX_CLOCK_SKEW:
        return 0.0
    return min(max((since + timedelta(seconds=seconds) - now).total_seconds(), 0.0), max(seconds, 0.0))
