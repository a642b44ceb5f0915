"""Splits paths of a file tree.

In: a path as `gitops.render` writes it. Out: its parts. Never: a path that leaves the tree.
"""

from __future__ import annotations

from argosy.errors import SourceError


def split_path(path: str) -> list[str]:
    parts = path.split("/") if path else []
    if any(part in ("", ".", "..") for part in parts) or "\0" in path:
        message = "is not a valid path in the source; write it without .. and without leading or trailing slashes"
        raise SourceError(message, where=repr(path))
    return parts
