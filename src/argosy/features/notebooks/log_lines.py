"""What people read of a run, line by line: by `argosy notebook logs`, and as the log of its Pod.

In: a job's status. Out: lines. Never: I/O; what the status does not tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def cell_lines(result: Mapping[str, Any]) -> list[str]:
    """A heading, what the cell printed, and its error."""
    heading = f"-- cell {result['cellIndex']}  {result['status']}  {result.get('executionTime') or ''}".rstrip()
    said = (str(result.get(name) or "").rstrip("\n") for name in ("output", "errorMessage"))
    return [heading, *(line for text in said if text for line in text.split("\n"))]


def ending(status: Mapping[str, Any]) -> str:
    return f"{status.get('phase') or 'Pending'}: {status.get('message') or 'nobody has begun with it'}"
