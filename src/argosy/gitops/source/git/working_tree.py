"""File tree of a commit with the edits of a working tree on top: the content of the next commit.

In: the commit's tree, the folder, the changed paths. Out: a tree. Never: includes a file that git ignores; reads an
unchanged file from the checkout, where filters and line endings may have changed it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from argosy.errors import SourceError
from argosy.gitops.application.file_tree import Tree, TreeEntry
from argosy.gitops.source.git.local_repository import Changed


class LaidOver:
    """Implements `Tree`."""

    def __init__(self, under: Tree, folder: Tree, changed: Iterable[Changed]) -> None:
        self.under, self.folder = under, folder
        self._changed = {each.path: each.is_after for each in changed}
        self._names: dict[str, set[str]] = defaultdict(set)  # folder → names in it that lead to a changed file
        for path in self._changed:
            while path:
                above, _, name = path.rpartition("/")
                self._names[above].add(name)
                path = above

    def entry(self, path: str) -> TreeEntry | None:
        if self._changed.get(path):
            found = self.folder.entry(path)
            return found if found is not None and found.kind != "folder" else None
        if path in self._names:  # also if a folder replaced a file
            is_there = not path or bool(self.listing(path))
            return TreeEntry(path.rpartition("/")[2], "folder", "") if is_there else None
        return None if path in self._changed else self.under.entry(path)

    def listing(self, path: str) -> Sequence[TreeEntry]:
        if path not in self._names:
            return () if path in self._changed else self.under.listing(path)
        if self._changed.get(path):
            return ()
        above = f"{path}/" if path else ""
        kept = [each for each in self.under.listing(path) if each.name not in self._names[path]]
        new = (self.entry(above + name) for name in self._names[path])
        return sorted([*kept, *filter(None, new)], key=lambda each: each.name)

    def read(self, path: str) -> bytes:
        if path not in self._changed:
            return self.under.read(path)
        if not self._changed[path]:
            raise SourceError("no such file", where=path)
        return self.folder.read(path)
