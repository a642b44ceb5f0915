"""Files as they are at one revision, wherever they are kept.

In: a path within it. Out: bytes, names, and ids that are equal where the content is. Never: leaves the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol


class TreeEntry(NamedTuple):
    """A name in a folder. Equal ids mean equal content, all the way down."""

    name: str
    kind: Literal["file", "folder", "link"]
    id: str


class Tree(Protocol):
    """Paths are relative, with slashes, without `.` and `..`; the empty one is the root. Links are never followed."""

    def entry(self, path: str) -> TreeEntry | None:
        """What is there; None where nothing is."""

    def listing(self, path: str) -> Sequence[TreeEntry]:
        """What a folder holds, by name; empty where there is no folder."""

    def read(self, path: str) -> bytes:
        """A file's content, or the target of a link; raises SourceError where there is neither."""
