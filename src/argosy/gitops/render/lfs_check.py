"""Rejects Git LFS pointers in files that a tool would read.

In: the content of a file. Out: the same content, or a RenderError. Never: fetches the file.
"""

from __future__ import annotations

from argosy.errors import RenderError
from argosy.gitops.application.lfs_pointers import LFS_NOT_FETCHED_MESSAGE, is_lfs_pointer


def reject_lfs_pointer(content: bytes, where: str) -> bytes:
    """Raise RenderError for a pointer: parsed as YAML it is a string, and its manifests would be missing."""
    if is_lfs_pointer(content):
        raise RenderError(LFS_NOT_FETCHED_MESSAGE, where=where)
    return content
