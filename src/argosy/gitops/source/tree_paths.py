"""Paths within a tree.

In: a path as the room render writes it. Out: its parts. Never: a way out of the tree.
"""

from __future__ import annotations

from argosy.errors import SourceError


def split_path(path: str) -> list[str]:
    parts = path.split("/") if path else []
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise SourceError("is no plain path within the source; write it without .., and without a slash at its ends",
                          where=repr(path))  # fmt: skip
    return parts
