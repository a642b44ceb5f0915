"""Resident memory of this process, for the metric process_resident_memory_bytes.

In: nothing. Out: bytes. Never: raises.
"""

from __future__ import annotations

import os
import resource
from pathlib import Path


def read_resident_bytes() -> int:
    """Return the current resident memory if the system reports it, else the maximum."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
