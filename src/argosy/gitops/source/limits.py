"""Limits for repositories and hosts, as values. Never: enforces them."""

from __future__ import annotations

from typing import NamedTuple

MIB = 1 << 20


class SourceLimits(NamedTuple):
    """Time and size limits for one repository."""

    list_seconds: float = 15.0  # argo: same value
    fetch_seconds: float = 90.0  # argo: same value
    pack_bytes: int = 1024 * MIB
    refs_bytes: int = 32 * MIB  # output of `git ls-remote`
    file_bytes: int = 32 * MIB
    folder_entries: int = 200_000
