"""Times as the wire writes them.

In: a time. Out: RFC 3339 in UTC, or how long to wait. Never: reads a clock.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

# By how much a stored time may lie ahead: clocks of several machines differ a little.
CLOCK_SKEW: Final = timedelta(seconds=10)


def written(time: datetime, parts: str = "seconds") -> str:
    """k8s: whole seconds, with a Z; `parts` may be milliseconds or microseconds where a second holds too much."""
    return time.astimezone(UTC).isoformat(timespec=parts).replace("+00:00", "Z")


def backoff_delay(first: float, factor: float, times: int, longest: float) -> float:
    """`first`, multiplied by `factor` so often; never below 0 or above `longest`, whatever users write."""
    try:
        return min(max(first * float(factor) ** times, 0.0), longest)
    except OverflowError:
        return longest


def remaining_delay(since: datetime, seconds: float, now: datetime) -> float:
    """Seconds until a delay that began at a stored time is over, 0 if it is.

    A start that lies ahead means that the clock was set back. Then the delay counts as over: to wait until the clock
    has caught up could take days.
    """
    if since > now + CLOCK_SKEW:
        return 0.0
    return min(max((since + timedelta(seconds=seconds) - now).total_seconds(), 0.0), max(seconds, 0.0))
