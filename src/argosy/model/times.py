"""Times as the wire writes them.

In: a time. Out: RFC 3339 in UTC. Never: reads a clock.
"""

from __future__ import annotations

from datetime import UTC, datetime


def written(time: datetime, parts: str = "seconds") -> str:
    """k8s: whole seconds, with a Z; `parts` may be milliseconds or microseconds where a second holds too much."""
    return time.astimezone(UTC).isoformat(timespec=parts).replace("+00:00", "Z")
