"""Detects Git LFS pointers: the short files that Git has instead of the real ones.

In: the content of a file. Out: True if it is a pointer, and the message for it. Never: fetches the file.
"""

from __future__ import annotations

import re
from typing import Final

MAX_POINTER_BYTES: Final = 1024  # from the Git LFS specification
_POINTER: Final = re.compile(
    rb"version https://(?:git-lfs|hawser)\.github\.com/spec/[^\r\n]*\r?\n(?:[^\r\n]*\r?\n)*?oid "
)
LFS_POINTER_MESSAGE: Final = "is a Git LFS pointer, and not the file itself"
LFS_NOT_FETCHED_MESSAGE: Final = (
    f"{LFS_POINTER_MESSAGE}: files in Git LFS are not fetched; keep this one in Git (git lfs untrack, then commit it)"
)


def is_lfs_pointer(content: bytes) -> bool:
    return len(content) < MAX_POINTER_BYTES and _POINTER.match(content) is not None
