"""How much a source may take. In, out: values. Never: enforced here."""

from __future__ import annotations

from typing import NamedTuple

MIB = 1 << 20


class SourceLimits(NamedTuple):
    """What a host and a repository may take."""

    list_seconds: float = 15.0  # argo: the same as its own
    fetch_seconds: float = 90.0  # argo: the same as its own
    pack_bytes: int = 1024 * MIB
    refs_bytes: int = 32 * MIB  # of the listing of all branches and tags
    file_bytes: int = 32 * MIB
    folder_entries: int = 200_000
