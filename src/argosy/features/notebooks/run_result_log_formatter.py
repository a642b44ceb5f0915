"""Formats a run as log lines, for `argosy notebook logs` and for the log of its Pod.

In: the status of a job. Out: lines. Never: does I/O; prints facts that the status does not contain.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def format_cell_result(result: Mapping[str, Any]) -> list[str]:
    """A heading, the output of the cell, and its error."""
    heading = f"-- cell {result['cellIndex']}  {result['status']}  {result.get('executionTime') or ''}".rstrip()
    texts = (str(result.get(name) or "").rstrip("\n") for name in ("output", "errorMessage"))
    return [heading, *(line for text in texts if text for line in text.split("\n"))]


def format_result(status: Mapping[str, Any]) -> str:
    return f"{status.get('phase') or 'Pending'}: {status.get('message') or 'not started yet'}"
