"""A file tree at one revision, wherever it is stored.

In: a path in the tree. Out: bytes, names, and IDs that are equal if the content is. Never: leaves the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol


class TreeEntry(NamedTuple):
    """A name in a folder. Equal IDs mean equal content, including subfolders."""

    name: str
    kind: Literal["file", "folder", "link"]
    id: str
    is_executable: bool = False  # only of a file


class FileTree(Protocol):
    """Paths are relative, with slashes, without `.` and `..`; "" is the root. Links are never followed."""

    def find_entry(self, path: str) -> TreeEntry | None:
        """Return the entry at the path, or None."""

    def list_folder(self, path: str) -> Sequence[TreeEntry]:
        """Return the entries of a folder by name; empty if it is not a folder."""

    def read_file(self, path: str) -> bytes:
        """Return the content of a file or the target of a link; raises SourceError if it is neither."""
