"""Refuses Git LFS pointers where a tool would read the file itself.

In: the content of a file. Out: the same content, or a RenderError. Never: fetches the file.
"""

from __future__ import annotations

from argosy.errors import RenderError
from argosy.gitops.application.lfs_pointers import NOT_FETCHED, is_lfs_pointer


def refuse_pointer(content: bytes, where: str) -> bytes:
    """Raises RenderError for a pointer: read as YAML it is a text, and its manifests would just be missing."""
    if is_lfs_pointer(content):
        raise RenderError(NOT_FETCHED, where=where)
    return content
